//! Captured texts of a host's conversations, which the journal keeps beside the memory and can drop
//! again.
//!
//! Such a record is a note with one kept body. The hash chain covers the hash of the body and not
//! the body itself, so a purge blanks the body as `prune` does with old texts, and `verify` still
//! succeeds. No file is ever made from it.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::{Actor, Privilege};
use serde_json::Value;

use crate::error::{Result, StoreError};
use crate::history::prune::{Bodies, Pruned, PrunedFile};
use crate::journal::body::Body;
use crate::journal::record::{Kind, Record, RecordOp, Who};
use crate::journal::segments::{Line, Position};
use crate::rules::guards::guard_actor;
use crate::store::Store;

/// Used as the file path of a captured text. No path of a project ends in a dot.
pub(crate) const PLACE: &str = "capture.";

impl Store {
    /// Records a text of a conversation, or only the note without a text. Returns the number of the
    /// record.
    pub fn capture(
        &self,
        actor: &Actor,
        why: &str,
        note: Value,
        text: Option<&str>,
    ) -> Result<u64> {
        if self.commit_log().is_some() {
            return Err(StoreError::refused(
                "this is a working copy: a shared store records no conversations",
                "quipu capture show",
            ));
        }
        guard_actor(&self.contract().guards, actor)?;
        let held = self.journal.lock()?;
        let snapshot = self.snapshot()?;
        let seq = snapshot.tail.seq + 1;
        let mut record = snapshot.next_record(self, Kind::Note, Who::from(actor));
        record.why = Some(why.to_owned());
        record.note = Some(note);
        // A body must be longer than the `null` that a purge leaves.
        record.ops = text
            .map(|text| RecordOp::keep(PLACE, "", format!("{text}\n").into_bytes()))
            .into_iter()
            .collect();
        let _ = self.publish_records(held, snapshot, vec![record])?;
        Ok(seq)
    }

    /// The number and size of the captured texts in the journal.
    pub fn captured_size(&self) -> Result<Pruned> {
        self.settle()?;
        Ok(self.plan_purge()?.0)
    }

    /// Drops every captured text from the journal, and journals the purge.
    pub fn purge_captured(&self, actor: &Actor) -> Result<Pruned> {
        actor
            .may(Privilege::DropHistory)
            .map_err(|withheld| StoreError::refused(withheld.what, withheld.remedy))?;
        let pruned = self.drop_bodies(actor, "purge of recorded conversations", || {
            self.plan_purge()
        })?;
        let (left, _) = self.plan_purge()?;
        match left.texts {
            0 => Ok(pruned),
            texts => Err(StoreError::refused(
                format!("{texts} recorded conversation texts are in a damaged part of the journal"),
                "quipu doctor",
            )),
        }
    }

    fn plan_purge(&self) -> Result<(Pruned, Bodies)> {
        let end = self.journal.bound()?;
        let (mut file, mut bodies) = (PrunedFile::default(), Bodies::new());
        self.journal.scan(Position::START, Some(end), &mut |seen| {
            let Line::Record(record) = seen.line else {
                return;
            };
            for (index, op) in record
                .ops
                .iter()
                .enumerate()
                .filter(|(_, op)| op.path == PLACE && has_text(&op.body))
            {
                file = PrunedFile {
                    texts: file.texts + 1,
                    bytes: file.bytes + op.body.size() as u64,
                    up_to: record.seq,
                };
                bodies
                    .entry(seen.at)
                    .or_insert_with(BTreeSet::new)
                    .insert(index);
            }
        })?;
        let (texts, bytes) = (file.texts, file.bytes);
        let files = if texts == 0 {
            BTreeMap::new()
        } else {
            BTreeMap::from([(PLACE.to_owned(), file)])
        };
        Ok((
            Pruned {
                texts,
                bytes,
                files,
            },
            bodies,
        ))
    }
}

/// The text that a record captured; none if there was none, or if it was purged.
pub(super) fn captured_text(record: &Record) -> Option<String> {
    let op = record.ops.iter().find(|op| op.path == PLACE)?;
    let text = match &op.body {
        Body::Text(text) => text.strip_suffix('\n').unwrap_or(text),
        _ => return None,
    };
    Some(text.to_owned())
}

fn has_text(body: &Body) -> bool {
    !matches!(body, Body::None | Body::Dropped)
}
