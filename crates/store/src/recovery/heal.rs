//! Repairs damage of the journal from the files on disk.
//!
//! A version is a hash over the previous version and the added bytes. If one record about a file
//! cannot be read, its bytes are in the file, between the earlier and the later text, and the hash
//! proves whether they are the right ones. Readers accept nothing without this proof. `doctor` also
//! journals a file without proof, as it is on disk, and says so.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::ProjectPath;

use crate::commit::publish::{Published, Snapshot};
use crate::error::{Result, StoreError};
use crate::history::prune::MissingTexts;
use crate::index::file_index::FileHead;
use crate::journal::chain::{Chain, heal_note, healed_by};
use crate::journal::record::{Kind, OpKind, RecordOp, Who};
use crate::journal::segments::{Damage, Line, Position};
use crate::store::Store;
use crate::version::Version;

impl Store {
    /// Journals each file that the journal can no longer rebuild: the proven text, or the file as
    /// it is on disk if nothing proves its text. Returns a description of each repair.
    pub(crate) fn heal(&self) -> Result<Vec<String>> {
        self.index.sound(|| self.heal_once())
    }

    fn heal_once(&self) -> Result<Vec<String>> {
        let held = self.journal.lock()?;
        let snapshot = self.snapshot()?;
        // In a working copy the damage is local, but the log is shared.
        let damages = if self.commit_log().is_none() {
            self.unhealed(snapshot.tail.at)?
        } else {
            Vec::new()
        };
        let mut record = snapshot.next_record(
            self,
            Kind::Adopt,
            Who::from(&quipu_contract::Actor::Runtime),
        );
        record.why =
            Some("the journal's copy is damaged; this is the text of the file on disk".into());
        let mut healed = Vec::new();
        let heads = self.index.open()?.all()?;
        for (text, head) in heads.into_iter().filter(|(_, head)| !head.gone) {
            if let Ok(path) = ProjectPath::parse(&text)
                && let Some((op, how)) = self.healing_op(&snapshot, &path, head)?
            {
                healed.push(format!(
                    "journalled `{path}` again: a record about it is damaged, {how}"
                ));
                record.ops.push(op);
            }
        }
        if healed.is_empty() && !damages.is_empty() {
            record.kind = Kind::Note;
            record.why = Some("damaged records were found; no file depends on them".into());
        }
        if !damages.is_empty() {
            record.note = Some(heal_note(&damages));
            let count = damages.len();
            healed.push(format!(
                "recorded {count} damaged {}: the history in {} is lost",
                if count == 1 { "record" } else { "records" },
                if count == 1 { "it" } else { "them" }
            ));
        }
        if !healed.is_empty() {
            match self.publish_records(held, snapshot, vec![record])? {
                Published::Done => {}
                Published::Overtaken => return Ok(Vec::new()),
            }
        }
        Ok(healed)
    }

    /// The operation that journals a file again, and what proves its text. None if the journal can
    /// rebuild the file, or if the file cannot be read.
    fn healing_op(
        &self,
        snapshot: &Snapshot,
        path: &ProjectPath,
        head: FileHead,
    ) -> Result<Option<(RecordOp, &'static str)>> {
        let (newer, pending) = snapshot.head(self, path)?;
        let head = newer.unwrap_or(head);
        let plain = self.texts.plain_content(path, &head);
        if pending || !matches!(plain, Err(StoreError::Damaged { .. })) {
            return Ok(None);
        }
        let proven = self.texts.content_from_journal(path, &head);
        let (bytes, how) = match (proven, self.tree.read(path)) {
            (Ok(bytes), _) => (Some(bytes), "and the file matched its checksum"),
            (Err(_), Ok(Some((bytes, file_stat)))) if head.file_stat == Some(file_stat) => (
                Some(bytes),
                "and the file has not changed since it was written",
            ),
            (Err(_), Ok(Some((bytes, _)))) => (
                Some(bytes),
                "and its contents are unknown: the file on disk was used",
            ),
            (Err(_), Ok(None)) => (None, "and the file does not exist"),
            (Err(_), Err(_)) => return Ok(None),
        };
        let kind = match bytes {
            Some(_) => OpKind::Write,
            None => OpKind::Remove,
        };
        let text = bytes.as_deref().unwrap_or_default();
        let (version, len) = (Version::of(text), text.len() as u64);
        let op = RecordOp {
            base: Some(head.version),
            last: Some(head.at.text()),
            ..RecordOp::new(kind, path.as_str(), head.class.as_str(), version, len)
        };
        let op = match bytes {
            Some(bytes) => op.with_bytes(bytes),
            None => op,
        };
        Ok(Some((op, how)))
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
                .validate()
                .1
                .into_iter()
                .map(|damage| (damage.name(), damage)),
        );
        damages.retain(|name, _| !healed.contains(name));
        Ok(damages.into_values().collect())
    }
}
