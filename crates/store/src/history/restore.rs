//! Restores versions, and keeps replaced edits as conflict copies.
//!
//! A conflict copy is saved and synced in `.quipu/conflict-copies` before its original disappears, and then
//! journalled. `tree.rs` exchanges the files.

use quipu_contract::ProjectPath;

use crate::apply::conflict_copies::ConflictCopy;
use crate::change::{Change, Op};
use crate::commit::publish::Published;
use crate::error::{Result, StoreError};
use crate::history::log::At;
use crate::index::file_index::FileHead;
use crate::journal::backwards::RECENT_BYTES;
use crate::journal::record::{Kind, OpKind, Record, RecordOp, Who};
use crate::store::Store;

impl Store {
    /// The change that restores the newest journalled version of a file, or an older one; not yet
    /// validated.
    pub fn restoring(&self, change: Change, path: &ProjectPath, at: Option<&At>) -> Result<Change> {
        let head = {
            self.settle()?;
            self.index
                .sound(|| self.index.open()?.head(path.as_str()))?
        };
        let (bytes, older) = match (at, &head) {
            (Some(at), _) => (self.text_at(path, at)?.0, true),
            (None, Some(head)) if !head.gone => {
                let newest = self.texts.content_from_journal(path, head)?;
                self.clear_stat(path, head, &newest)?;
                match self.worktree.repaired(path, head)? {
                    Some(repaired) => (repaired, true),
                    None => (newest, false),
                }
            }
            // The file was deleted: restore the newest version before that.
            (None, Some(_)) => (self.text_at(path, &At::Back(1))?.0, true),
            (None, None) => {
                return Err(StoreError::not_found(
                    format!("`{path}` has no history"),
                    "quipu log",
                ));
            }
        };
        Ok(change.op(Op::Restore {
            path: path.clone(),
            bytes,
            older,
        }))
    }

    /// A file with the recorded stat is not read. If this one has other content, clears the stat,
    /// so that it is compared from now on.
    fn clear_stat(&self, path: &ProjectPath, head: &FileHead, newest: &[u8]) -> Result<()> {
        if let Ok(Some((bytes, file_stat))) = self.tree.read(path)
            && head.file_stat == Some(file_stat)
            && bytes != newest
        {
            self.index
                .open()?
                .set_stat(path.as_str(), &head.version, None)?;
        }
        Ok(())
    }

    /// Journals the conflict copies, so that `log` shows them and nothing depends on the folder.
    pub(crate) fn journal_conflict_copies(&self) -> Result<usize> {
        let mut count = 0;
        // One edit per file and record, so that each can be selected.
        loop {
            let (journalled, removed) = self.journal_some_copies()?;
            count += journalled;
            if journalled == 0 || removed == 0 {
                return Ok(count);
            }
        }
    }

    /// Journals one copy of each file. Returns how many, and how many were removed from the folder.
    fn journal_some_copies(&self) -> Result<(usize, usize)> {
        let names = self.copies.saved();
        if names.is_empty() {
            return Ok((0, 0));
        }
        let held = self.journal.lock()?;
        let snapshot = self.snapshot()?;
        let (mut ops, mut taken): (Vec<RecordOp>, _) = (Vec::new(), Vec::new());
        for name in names {
            // Another process may journal it at this moment.
            if let Ok(bytes) = std::fs::read(&name)
                && let Some(split) = memchr::memchr(b'\n', &bytes)
            {
                let path = String::from_utf8_lossy(&bytes[..split]);
                if !ops.iter().any(|op| op.path == path) {
                    ops.push(RecordOp::keep(&path, "", bytes[split + 1..].to_vec()));
                    taken.push(name);
                }
            }
        }
        let mut seq = snapshot.tail.seq + 1;
        let paths: Vec<String> = ops.iter().map(|op| op.path.clone()).collect();
        if !ops.is_empty() {
            let mut record = snapshot.next_record(self, Kind::ConflictCopy, Who::external());
            record.why =
                Some("an external edit conflicted with a commit; this is a copy of it".into());
            record.ops = ops;
            match self.publish_records(held, snapshot, vec![record]) {
                // Bytes that are not current have no base version. They stay in the folder until
                // the server is back.
                Err(StoreError::Unreachable { .. }) | Ok(Published::Overtaken) => {
                    return Ok((0, 0));
                }
                other => other.map(|_| ())?,
            }
            if self.commit_log().is_some() {
                seq = self.pulse()?;
            }
        }
        let copies = paths.into_iter().map(|path| ConflictCopy { path, seq });
        let copies: Vec<ConflictCopy> = copies.collect();
        self.copies.report(&copies);
        let removed = taken
            .iter()
            .filter(|name| std::fs::remove_file(name).is_ok());
        Ok((copies.len(), removed.count()))
    }

    /// The conflict copies among the newest records, except those of files that were written since.
    pub fn edited_since_written(&self) -> Result<Vec<ConflictCopy>> {
        let mut found = Vec::new();
        self.journal
            .each_line_newest_first(RECENT_BYTES, &mut |_, line| {
                if memchr::memmem::find(line, b"\"conflict-copy\"").is_some()
                    && let Ok(record) = Record::decode(line)
                    && record.kind == Kind::ConflictCopy
                {
                    found.extend(record.ops.iter().map(|op| ConflictCopy {
                        path: op.path.clone(),
                        seq: record.seq,
                    }));
                }
                true
            })?;
        let mut listed = Vec::new();
        for kept in found.into_iter().rev() {
            if self
                .index
                .open()?
                .head(&kept.path)?
                .is_none_or(|head| head.seq < kept.seq)
            {
                listed.push(kept);
            }
        }
        Ok(listed)
    }

    /// The bytes of a conflict copy, by the number of its record.
    pub fn conflict_copies_of(&self, seq: u64, path: &ProjectPath) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        self.journal
            .each_newest_first(usize::MAX, &mut |_, record| {
                if record.seq == seq {
                    found = record
                        .ops
                        .iter()
                        .find(|o| o.op == OpKind::Keep && o.path == path.as_str())
                        .map(|op| op.content().to_vec());
                }
            })?;
        Ok(found)
    }
}
