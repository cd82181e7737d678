//! Rebuilds the file index, and runs the repairs of `doctor`.
//!
//! A rebuild ends at the applied watermark and writes no memory file. `redo.rs` compares files with
//! the journal, and `heal.rs` repairs damaged records.

use std::collections::BTreeMap;

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::apply::note;
use crate::error::Result;
use crate::heads::{Head, Heads};
use crate::journal::{Line, Position};
use crate::live::Tail;
use crate::record::{OpKind, RecordOp};
use crate::salvage::healed_by;
use crate::store::Store;

/// How many segments back files are compared after the index was rebuilt. All files are synced when
/// a segment is closed, and one commit can close at most this many.
const REDO_SEGMENTS: u32 = 4;

/// A repair by `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    pub what: String,
}

impl Store {
    /// The end of a rebuilt index: the applied watermark, if a running process knows it. Later
    /// records are applied as usual. Treating them as applied would make an unfinished commit look
    /// like an external edit.
    fn placed_bound(&self) -> Result<Position> {
        let bound = self.bound()?;
        if self.is_read_only() {
            return Ok(bound);
        }
        Ok(self
            .live()?
            .known()
            .applied
            .map_or(bound, |placed| placed.min(bound)))
    }

    /// Fills the index from the journal. Writes no file. File stats are copied from an earlier
    /// index if it has the same version; otherwise they are unknown until the file is compared.
    pub(crate) fn fill_heads(&self, heads: &Heads) -> Result<()> {
        let bound = self.placed_bound()?;
        heads.transaction(|heads| {
            let were_redone = heads.is_redone()?;
            let known: BTreeMap<String, Head> = if heads.is_made()? {
                heads.all()?.into_iter().collect()
            } else {
                BTreeMap::new()
            };
            heads.clear()?;
            let mut tail = Tail::start();
            let mut result = Ok(());
            let mut newest: BTreeMap<String, Head> = BTreeMap::new();
            // Damaged records about unknown files.
            let mut hidden: BTreeMap<String, Position> = BTreeMap::new();
            self.journal
                .scan(Position::START, Some(bound), &mut |seen| {
                    let record = match seen.line {
                        Line::Record(record) => record,
                        Line::Damaged(damage) => {
                            let told = self.salvage(&damage, &newest, tail.seq);
                            if !told.is_whole {
                                hidden.insert(damage.name(), damage.at);
                            }
                            newest.extend(told.heads);
                            return;
                        }
                        Line::OtherFormat(other) => {
                            result = Err(other.refusal());
                            return;
                        }
                    };
                    // A duplicated or moved line says nothing new about its files.
                    let is_newer = |path: &str| {
                        newest
                            .get(path)
                            .is_none_or(|head: &Head| head.seq <= record.seq)
                    };
                    let ops: Vec<&RecordOp> = record
                        .ops
                        .iter()
                        .filter(|o| o.op != OpKind::Keep && is_newer(&o.path))
                        .collect();
                    for op in ops {
                        newest.insert(op.path.clone(), Head::after(op, seen.at, record.seq));
                    }
                    for name in healed_by(&record) {
                        hidden.remove(&name);
                    }
                    if result.is_ok() {
                        result = note(heads, seen.at, &record);
                    }
                    if record.seq >= tail.seq {
                        tail = Tail::after(&record, seen.end, tail.wall_us);
                    }
                })?;
            result?;
            let mut all_known = were_redone;
            for (path, head) in &mut newest {
                match known.get(path).filter(|old| {
                    old.at == head.at && old.version == head.version && old.gone == head.gone
                }) {
                    Some(old) => (head.stamp, head.flag) = (old.stamp, old.flag.clone()),
                    None => all_known = false,
                }
            }
            heads.put_all(newest.iter())?;
            tail.at = tail.at.max(bound);
            heads.set_applied(&tail)?;
            heads.set_hidden(hidden.into_values())?;
            if all_known {
                return heads.set_redone();
            }
            // It is no longer known which files are synced.
            heads.set_kept(
                Position {
                    segment: bound.segment.saturating_sub(REDO_SEGMENTS).max(1),
                    offset: 0,
                },
                "",
            )?;
            heads.set_made()
        })
    }

    /// Repairs as much as possible and reports each repair.
    pub fn doctor(&self) -> Result<Vec<Repair>> {
        let mut fixed = Vec::new();
        let mut did = |what: String| fixed.push(Repair { what });
        let known = match self.live()?.tail() {
            Some(tail) => Ok(tail),
            None => self.heads().and_then(|heads| heads.applied()),
        };
        let known = known.ok().filter(|tail| tail.at > Position::START);
        let lost = known
            .is_some_and(|tail| self.journal.is_end(tail.at).is_err() || self.is_displaced(&tail));
        if !lost {
            // Use the current index, because it has the file stats. Errors here are fixed below.
            let _ = self.settle();
            for path in self.with_sound_heads(|| self.write_unwritten())? {
                did(format!(
                    "wrote `{path}`, which could not be written when it was committed"
                ));
            }
            self.heal()?.into_iter().for_each(&mut did);
        }
        let tail = {
            let _held = self.append_lock.acquire()?;
            if lost {
                let live = self.live()?;
                let in_doubt = live.known().doubt;
                live.forget(&self.disk)?;
                live.set_doubt(&self.disk, in_doubt)?;
                did(
                    "the journal is gone or cut short: what is on disk becomes the new beginning"
                        .into(),
                );
            }
            // Under the append lock nobody commits. Apply everything first, so that no process is
            // still about to write files.
            if !lost {
                let tail = self.with_sound_heads(|| self.look())?.tail;
                let _ = self
                    .sync_to(tail.at)
                    .and_then(|()| self.apply_files(tail.at));
            }
            let placing = self.apply_lock.acquire()?;
            self.rebuild_heads()?;
            self.with_sound_heads(|| self.doubt_stamps())?;
            drop(placing);
            match self.live()?.tail() {
                Some(tail) => tail,
                None => self.find_end(None)?,
            }
        };
        self.settle()?;
        did(format!(
            "made the heads anew from {} {}",
            tail.seq,
            if tail.seq == 1 { "record" } else { "records" }
        ));
        if lost {
            self.heal()?.into_iter().for_each(&mut did);
            let taken = self.survey()?.adopted.len();
            did(format!(
                "journalled {taken} {} as they stand",
                if taken == 1 { "file" } else { "files" }
            ));
        }
        for left in self.with_sound_heads(|| self.rescue_leftovers())? {
            did(match left.edit_of {
                Some(path) => format!(
                    "set aside an edit of `{path}` that a killed program left in `.quipu/tmp`"
                ),
                None => format!("removed the left-over `.quipu/tmp/{}`", left.name),
            });
        }
        let asides = self.journal_asides()?;
        if asides > 0 {
            did(format!(
                "journalled {asides} external edit(s) that a commit had replaced"
            ));
        }
        let compressed = {
            // Under the lock, because a compressed copy of the old segment must not undo a prune.
            let _held = self.append_lock.acquire()?;
            self.journal.compress_older(tail.at.segment)?
        };
        if compressed > 0 {
            did(format!("compressed {compressed} old journal segment(s)"));
        }
        Ok(fixed)
    }

    /// Clears the stat of files that have the recorded stat but other content: an edit within one
    /// clock tick, or with its time set back. The next comparison reads them.
    fn doubt_stamps(&self) -> Result<()> {
        let heads = self.heads()?.all()?;
        for (text, head) in heads
            .into_iter()
            .filter(|(_, head)| !head.gone && head.stamp.is_some())
        {
            let Ok(path) = ProjectPath::parse(&text) else {
                continue;
            };
            if let Ok(Some((bytes, stamp))) = self.tree.read(&path)
                && head.stamp == Some(stamp)
                && self
                    .plain_content(&path, &head)
                    .is_ok_and(|journalled| journalled != bytes)
            {
                self.heads()?.set_stamp(&text, &head.version, None)?;
            }
        }
        Ok(())
    }
}
