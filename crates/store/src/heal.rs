//! Repairs damage of the journal from the files on disk.
//!
//! A version is a hash over the previous version and the added bytes. If one record about a file
//! cannot be read, its bytes are in the file, between the earlier and the later text, and the hash
//! proves whether they are the right ones. Readers accept nothing without this proof. `doctor` also
//! journals a file without proof, as it is on disk, and says so.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::ProjectPath;

use crate::body::Body;
use crate::error::{Result, StoreError};
use crate::heads::Head;
use crate::journal::{Damage, Line, Position};
use crate::prune::MissingTexts;
use crate::publish::Published;
use crate::record::{Kind, OpKind, RecordOp, Who};
use crate::salvage::{Chain, heal_note, healed_by};
use crate::store::Store;
use crate::version::Version;

impl Store {
    /// The text of a file across one unreadable record.
    pub(crate) fn proven_content(
        &self,
        path: &ProjectPath,
        head: &Head,
        damage: StoreError,
    ) -> Result<Vec<u8>> {
        // The version alone proves a text that was written whole, even if it was stored as a
        // difference.
        if let Ok(Some((found, _))) = self.tree.read(path)
            && Version::of(&found) == head.version
        {
            return Ok(found);
        }
        let mut tails: Vec<Vec<u8>> = Vec::new();
        let mut edge = None;
        let walked = self.walk(path, head.at, &mut |record, op| {
            tails.push(op.content().to_vec());
            edge = Some((record.seq, op.clone()));
            op.op == OpKind::Append
        });
        let (Err(_), Some((seq, edge))) = (walked, edge) else {
            return self.proven_by_file(path, head, damage);
        };
        let length = edge.len.saturating_sub(edge.content().len() as u64);
        let (Some(version), Ok(Some((found, _)))) = (edge.base, self.tree.read(path)) else {
            return Err(damage);
        };
        let Some(found) = usize::try_from(length)
            .ok()
            .and_then(|length| found.get(..length))
        else {
            return Err(damage);
        };
        if Version::of(found) != version && !self.extends_older(path, seq, found, &version)? {
            return Err(damage);
        }
        let mut whole = found.to_vec();
        tails
            .iter()
            .rev()
            .for_each(|tail| whole.extend_from_slice(tail));
        Ok(whole)
    }

    /// The text of a file if its newest record cannot be read: the content of the file, if its
    /// version matches.
    fn proven_by_file(
        &self,
        path: &ProjectPath,
        head: &Head,
        damage: StoreError,
    ) -> Result<Vec<u8>> {
        match self.tree.read(path) {
            Ok(Some((found, _)))
                if Version::of(&found) == head.version
                    || self.extends_older(path, head.seq, &found, &head.version)? =>
            {
                Ok(found)
            }
            _ => Err(damage),
        }
    }

    /// Whether some bytes consist of an older, readable version and an addition that results in the
    /// wanted version.
    fn extends_older(
        &self,
        path: &ProjectPath,
        before: u64,
        bytes: &[u8],
        wanted: &Version,
    ) -> Result<bool> {
        let mut older = None;
        self.each_newest_first(usize::MAX, &mut |at, record| {
            if older.is_none() && record.seq < before {
                let op = record
                    .ops
                    .iter()
                    .rev()
                    .find(|o| o.path == path.as_str() && o.op != OpKind::Keep);
                older = op.map(|op| Head::after(op, at, record.seq));
            }
        })?;
        let Some(older) = older.filter(|h| !h.gone) else {
            return Ok(false);
        };
        let Ok(start) = self.plain_content(path, &older) else {
            return Ok(false);
        };
        Ok(bytes
            .strip_prefix(start.as_slice())
            .is_some_and(|added| older.version.extended(added) == *wanted))
    }

    /// Journals each file that the journal can no longer rebuild: the proven text, or the file as
    /// it is on disk if nothing proves its text. Returns a description of each repair.
    pub(crate) fn heal(&self) -> Result<Vec<String>> {
        self.with_sound_heads(|| self.heal_once())
    }

    fn heal_once(&self) -> Result<Vec<String>> {
        let held = self.append_lock.acquire()?;
        let look = self.look()?;
        // In a working copy the damage is local, but the log is shared.
        let damages = if self.order.is_none() {
            self.unhealed(look.tail.at)?
        } else {
            Vec::new()
        };
        let mut record = look.next_record(
            self,
            Kind::Adopt,
            Who::from(&quipu_contract::Actor::Runtime),
        );
        record.why =
            Some("the journal's own copy is damaged; this is the file as it stands".into());
        let mut healed = Vec::new();
        let heads = self.heads()?.all()?;
        for (text, head) in heads.into_iter().filter(|(_, head)| !head.gone) {
            let Ok(path) = ProjectPath::parse(&text) else {
                continue;
            };
            let (head, pending) = match look.head(self, &path)? {
                (Some(newer), pending) => (newer, pending),
                (None, pending) => (head, pending),
            };
            if pending
                || !matches!(
                    self.plain_content(&path, &head),
                    Err(StoreError::Damaged { .. })
                )
            {
                continue;
            }
            let proven = self.content_from_journal(&path, &head);
            let (bytes, how) = match (proven, self.tree.read(&path)) {
                (Ok(bytes), _) => (Some(bytes), "and the file proved what it said"),
                (Err(_), Ok(Some((bytes, stamp)))) if head.stamp == Some(stamp) => (
                    Some(bytes),
                    "and the file is untouched since it was written",
                ),
                (Err(_), Ok(Some((bytes, _)))) => (
                    Some(bytes),
                    "and nothing tells what it said: the file was taken as it stands",
                ),
                (Err(_), Ok(None)) => (None, "and the file is gone"),
                (Err(_), Err(_)) => continue,
            };
            healed.push(format!(
                "journalled `{path}` anew: a record about it is damaged, {how}"
            ));
            let op = RecordOp {
                op: if bytes.is_some() {
                    OpKind::Write
                } else {
                    OpKind::Remove
                },
                path: text,
                class: head.class.as_str().into(),
                base: Some(head.version),
                version: Version::of(bytes.as_deref().unwrap_or_default()),
                len: bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
                last: Some(head.at.text()),
                deltas: 0,
                hash: None,
                body: Body::None,
            };
            record.ops.push(match bytes {
                Some(bytes) => op.with_bytes(bytes),
                None => op,
            });
        }
        if healed.is_empty() && !damages.is_empty() {
            record.kind = Kind::Note;
            record.why = Some("damaged records were found; no file needs what they said".into());
        }
        if !damages.is_empty() {
            record.note = Some(heal_note(&damages));
            let count = damages.len();
            healed.push(format!(
                "noted {count} damaged {}: what {} said is lost as history",
                if count == 1 { "record" } else { "records" },
                if count == 1 { "it" } else { "they" }
            ));
        }
        if !healed.is_empty() {
            match self.publish_records(held, look, vec![record])? {
                Published::Done => {}
                Published::Overtaken => return Ok(Vec::new()),
            }
        }
        Ok(healed)
    }

    /// Damage that no record repairs.
    pub(crate) fn unhealed(&self, end: Position) -> Result<Vec<Damage>> {
        let mut damages: BTreeMap<String, Damage> = BTreeMap::new();
        let (mut chain, mut texts, mut healed) =
            (Chain::new(), MissingTexts::default(), BTreeSet::new());
        self.journal
            .scan(Position::START, Some(end), &mut |seen| match seen.line {
                Line::Damaged(damage) => {
                    chain.is_cut = true;
                    damages.insert(damage.name(), damage);
                }
                Line::Record(record) => {
                    damages.extend(
                        chain
                            .follow(seen.at, &record)
                            .map(|damage| (damage.name(), damage)),
                    );
                    texts.see(seen.at, &record);
                    healed.extend(healed_by(&record));
                }
                Line::OtherFormat(_) => chain.is_cut = true,
            })?;
        damages.extend(
            texts
                .judge()
                .1
                .into_iter()
                .map(|damage| (damage.name(), damage)),
        );
        damages.retain(|name, _| !healed.contains(name));
        Ok(damages.into_values().collect())
    }
}
