//! Retention: drops old texts from the journal when a person requests it.
//!
//! A record keeps everything but the bytes: it still has the hash of each body, so the chain
//! verifies as before. The newest text of a file is never dropped, nor a text that a kept version
//! needs as the base of its difference. A prune has these steps; each one says what a crash leaves:
//! 1. A note record names the texts to drop. It begins a new segment, so that no older one grows.
//! 2. Each older segment with such texts is written to a new compressed file, synced and read back,
//!    and then replaces the old one. A dropped body becomes `null` and spaces, so every record
//!    keeps its offset and length. A crash leaves the old or the new segment; the next prune drops
//!    the rest.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::{Actor, Keep, Privilege};
use serde::Serialize;
use serde_json::json;

use crate::clock::parse_time;
use crate::commit::publish::Published;
use crate::error::{Result, StoreError};
use crate::journal::body::Body;
use crate::journal::record::{Kind, OpKind, Record, Who, blank_bodies};
use crate::journal::segments::{Damage, Line, Position};
use crate::journal::{archive, segment};
use crate::store::Store;

const DAY_US: i64 = 86_400_000_000;
/// The field of a note that names the dropped texts: for each path, the newest record with a
/// dropped text.
const PRUNED: &str = "pruned";

/// Texts that a prune drops, or has dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    pub texts: u64,
    /// Their size before compression.
    pub bytes: u64,
    pub files: BTreeMap<String, PrunedFile>,
}

/// The dropped texts of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PrunedFile {
    pub texts: u64,
    pub bytes: u64,
    /// The newest commit with a dropped text.
    pub up_to: u64,
}

/// The bodies to drop: for each record, by position, the indexes of the operations.
pub(crate) type Bodies = BTreeMap<Position, BTreeSet<usize>>;

/// One state of a file, or one conflict copy, as the journal stores it.
struct Stored {
    at: Position,
    op_index: usize,
    seq: u64,
    at_us: i64,
    op: OpKind,
    size: u64,
    /// Whether it has a body that can be dropped.
    has_text: bool,
    /// Whether it can be read without older records.
    is_start: bool,
}

impl Store {
    /// The texts that a prune would drop now.
    pub fn prunable(&self, actor: &Actor, keep: Keep) -> Result<Pruned> {
        self.check_may_prune(actor)?;
        self.settle()?;
        self.check_undamaged()?;
        Ok(self.plan_prune(keep)?.0)
    }

    /// Drops the texts that need not be kept, and journals the prune.
    pub fn prune(&self, actor: &Actor, keep: Keep) -> Result<Pruned> {
        self.drop_bodies(actor, &format!("retention: keep {keep}"), || {
            self.plan_prune(keep)
        })
    }

    pub(crate) fn drop_bodies(
        &self,
        actor: &Actor,
        why: &str,
        plan: impl Fn() -> Result<(Pruned, Bodies)>,
    ) -> Result<Pruned> {
        self.check_may_prune(actor)?;
        self.settle()?;
        let held = self.journal.lock()?;
        let snapshot = self.snapshot()?;
        self.journal.sync_to(snapshot.tail.at)?;
        self.check_undamaged()?;
        let (pruned, bodies) = plan()?;
        if bodies.is_empty() {
            return Ok(pruned);
        }
        let mut record = snapshot.next_record(self, Kind::Note, Who::from(actor));
        record.why = Some(why.to_owned());
        let up_to: BTreeMap<&String, u64> = pruned
            .files
            .iter()
            .map(|(path, file)| (path, file.up_to))
            .collect();
        record.note = Some(json!({ PRUNED: up_to }));
        match self.publish_records(held, snapshot.in_new_segment(), vec![record])? {
            Published::Done => {}
            Published::Overtaken => return Err(refused_when_shared()),
        }
        let segments: BTreeSet<u32> = bodies.keys().map(|at| at.segment).collect();
        for number in segments {
            // Under the lock, no other process compresses or prunes this segment.
            let _held = self.journal.lock()?;
            self.prune_segment(number, &bodies)?;
        }
        Ok(pruned)
    }

    fn check_may_prune(&self, actor: &Actor) -> Result<()> {
        actor
            .may(Privilege::DropHistory)
            .map_err(|withheld| StoreError::refused(withheld.what, withheld.remedy))?;
        if self.commit_log().is_some() {
            Err(refused_when_shared())
        } else {
            Ok(())
        }
    }

    fn check_undamaged(&self) -> Result<()> {
        match self.unhealed(self.journal.bound()?)?.first() {
            Some(damage) => {
                let what = format!(
                    "nothing is deleted while the journal is damaged: segment {}: {}",
                    damage.at.segment, damage.what
                );
                Err(StoreError::refused(what, "quipu doctor"))
            }
            None => Ok(()),
        }
    }

    fn plan_prune(&self, keep: Keep) -> Result<(Pruned, Bodies)> {
        let end = self.journal.bound()?;
        let mut files: BTreeMap<String, Vec<Stored>> = BTreeMap::new();
        // `doctor` names damage by its bytes, so a segment with such damage is not rewritten.
        let mut unreadable = BTreeSet::new();
        self.journal
            .scan(Position::START, Some(end), &mut |seen| match seen.line {
                Line::Record(record) => {
                    for (path, stored) in Stored::of(&record, seen.at) {
                        files.entry(path).or_default().push(stored);
                    }
                }
                Line::Damaged(damage) if damage.bytes.is_empty() => {
                    unreadable.insert(damage.at.segment);
                }
                Line::Damaged(_) | Line::OtherFormat(_) => {}
            })?;
        let since_us = match keep {
            Keep::Days(days) => self
                .now()
                .wall_us
                .saturating_sub(i64::from(days).saturating_mul(DAY_US)),
            Keep::Versions(_) => i64::MIN,
        };
        let (mut pruned, mut bodies) = (Pruned::default(), Bodies::new());
        for (path, versions) in files {
            for stored in needless(&versions, keep, since_us) {
                if unreadable.contains(&stored.at.segment) {
                    continue;
                }
                let file = pruned.files.entry(path.clone()).or_default();
                (file.texts, file.bytes, file.up_to) = (
                    file.texts + 1,
                    file.bytes + stored.size,
                    file.up_to.max(stored.seq),
                );
                (pruned.texts, pruned.bytes) = (pruned.texts + 1, pruned.bytes + stored.size);
                bodies.entry(stored.at).or_default().insert(stored.op_index);
            }
        }
        Ok((pruned, bodies))
    }

    /// Rewrites a closed segment without some bodies.
    fn prune_segment(&self, number: u32, bodies: &Bodies) -> Result<()> {
        let failed = |source| StoreError::Io {
            what: format!("cannot rewrite journal segment {number}"),
            source,
        };
        let text = segment::read_whole(self.journal.folder(), number).map_err(failed)?;
        if !text.flaws.is_empty() {
            return Ok(());
        }
        let mut bytes = text.bytes;
        for (at, ops) in bodies.iter().filter(|(at, _)| at.segment == number) {
            let start = usize::try_from(at.offset).unwrap_or(usize::MAX);
            let Some(rest) = bytes.get_mut(start..) else {
                continue;
            };
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            blank_bodies(&mut rest[..length], ops);
        }
        archive::replace(&self.settings.disk, self.journal.folder(), number, &bytes)
            .map_err(failed)?;
        self.journal.forget_read();
        Ok(())
    }
}

fn refused_when_shared() -> StoreError {
    StoreError::refused(
        "this is a working copy: the shared store keeps the complete history",
        "quipu store pull     (makes this working copy a local project; then prune it)",
    )
}

impl Stored {
    fn of(record: &Record, at: Position) -> Vec<(String, Stored)> {
        let at_us = parse_time(&record.at).unwrap_or(i64::MAX);
        let stored = |(op_index, op): (usize, &crate::journal::record::RecordOp)| {
            let has_text = match &op.body {
                Body::None | Body::Dropped => false,
                // A shorter body is no longer than the `null` that would replace it.
                Body::Text(text) => text.len() > 1,
                Body::Binary(_) | Body::Splice { .. } => true,
            };
            let (size, is_start) = (op.body.size() as u64, op.edit().is_start());
            (
                op.path.clone(),
                Stored {
                    at,
                    op_index,
                    seq: record.seq,
                    at_us,
                    op: op.op,
                    size,
                    has_text,
                    is_start,
                },
            )
        };
        record.ops.iter().enumerate().map(stored).collect()
    }
}

/// The states of one file that need not be kept; `versions` has all of them, oldest first.
fn needless(versions: &[Stored], keep: Keep, since_us: i64) -> Vec<&Stored> {
    let states: Vec<&Stored> = versions
        .iter()
        .filter(|stored| stored.op != OpKind::Keep)
        .collect();
    let wanted = match keep {
        Keep::Versions(count) => states
            .len()
            .saturating_sub(usize::try_from(count).unwrap_or(usize::MAX)),
        // The version that was current at the start of the period is kept as well.
        Keep::Days(_) => states
            .iter()
            .rposition(|stored| stored.at_us < since_us)
            .unwrap_or(0),
    };
    // The newest text stays, even if the file was deleted since.
    let newest_text = states
        .iter()
        .rposition(|stored| stored.op != OpKind::Remove)
        .unwrap_or(0);
    let first_kept = wanted.min(newest_text);
    let first_needed = (0..=first_kept)
        .rev()
        .find(|index| states.get(*index).is_some_and(|stored| stored.is_start))
        .unwrap_or(0);
    // A conflict copy is dropped with the versions of its time. Everything in the record of a kept
    // version stays, so that a record number separates kept from dropped texts.
    let (Some(kept), Some(needed)) = (states.get(first_kept), states.get(first_needed)) else {
        return Vec::new();
    };
    let is_needless = |stored: &&Stored| {
        let before = if stored.op == OpKind::Keep {
            kept.seq
        } else {
            needed.seq
        };
        stored.has_text && stored.seq < before
    };
    versions.iter().filter(is_needless).collect()
}

/// Bodies that are missing from the journal, and those that prunes account for. Takes every record,
/// oldest first.
#[derive(Default)]
pub(crate) struct MissingTexts {
    /// For each path, the newest record with a text that a prune dropped.
    pruned: BTreeMap<String, u64>,
    missing: Vec<(String, u64, Damage)>,
}

impl MissingTexts {
    pub fn see(&mut self, at: Position, record: &Record) {
        for (path, up_to) in pruned_by(record) {
            let known = self.pruned.entry(path).or_default();
            *known = (*known).max(up_to);
        }
        for op in record.ops.iter().filter(|op| op.body == Body::Dropped) {
            let what = format!(
                "record {}: the text of `{}` is missing, but no prune deleted it",
                record.seq, op.path
            );
            let bytes = op
                .hash
                .as_ref()
                .map(|hash| hash.as_bytes().to_vec())
                .unwrap_or_default();
            self.missing
                .push((op.path.clone(), record.seq, Damage { at, what, bytes }));
        }
    }

    /// The number of texts that prunes have dropped, and the other missing ones.
    pub fn validate(self) -> (u64, Vec<Damage>) {
        let MissingTexts { pruned, missing } = self;
        let all = missing.len();
        let is_pruned =
            |path: &String, seq: u64| pruned.get(path).is_some_and(|up_to| seq <= *up_to);
        let lost: Vec<Damage> = missing
            .into_iter()
            .filter(|(path, seq, _)| !is_pruned(path, *seq))
            .map(|(.., damage)| damage)
            .collect();
        ((all - lost.len()) as u64, lost)
    }
}

/// The dropped texts that a record names.
fn pruned_by(record: &Record) -> Vec<(String, u64)> {
    let is_prune = record.kind == Kind::Note && record.who.kind == "person";
    let note = record
        .note
        .as_ref()
        .filter(|_| is_prune)
        .and_then(|note| note.get(PRUNED))
        .and_then(|note| note.as_object());
    note.into_iter()
        .flatten()
        .filter_map(|(path, up_to)| Some((path.clone(), up_to.as_u64()?.min(record.seq))))
        .collect()
}
