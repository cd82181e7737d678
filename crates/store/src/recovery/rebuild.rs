//! Runs the repairs of `doctor`. `heal.rs` repairs damaged records.

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::error::Result;
use crate::journal::segments::Position;
use crate::journal::watermarks::Tail;
use crate::store::Store;

/// A repair by `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    pub what: String,
}

impl Store {
    /// Repairs as much as possible and reports each repair.
    pub fn doctor(&self) -> Result<Vec<Repair>> {
        let mut fixed = Vec::new();
        let is_lost = self.is_journal_lost()?;
        if !is_lost {
            // Use the current index, because it has the file stats. Errors here are fixed below.
            let _ = self.settle();
            let written = self.index.sound(|| self.applier.write_unwritten())?;
            let what =
                |path| format!("wrote `{path}`, which could not be written when it was committed");
            fixed.extend(written.into_iter().map(what));
            fixed.extend(self.heal()?);
        }
        let tail = self.rebuild_all(is_lost, &mut fixed)?;
        self.settle()?;
        fixed.push(format!(
            "rebuilt the file index from {}",
            count(tail.seq, "record")
        ));
        if is_lost {
            fixed.extend(self.heal()?);
            let taken = self.scan_status()?.adopted.len() as u64;
            fixed.push(format!(
                "journalled {} with their current contents",
                count(taken, "file")
            ));
        }
        for left in self.index.sound(|| self.rescue_leftovers())? {
            fixed.push(match left.edit_of {
                Some(path) => format!(
                    "kept an edit of `{path}`, which a killed program had left in `.quipu/tmp`, \
                     as a conflict copy"
                ),
                None => format!("deleted the leftover `.quipu/tmp/{}`", left.name),
            });
        }
        let conflict_copies = self.journal_conflict_copies()?;
        if conflict_copies > 0 {
            fixed.push(format!(
                "journalled {conflict_copies} external edit(s) that a commit had replaced"
            ));
        }
        let compressed = {
            // Under the lock, because a compressed copy of the old segment must not undo a prune.
            let _held = self.journal.lock()?;
            // After a failed sync, the segments are still to be written again.
            match self.journal.watermarks()?.known().doubt {
                true => 0,
                false => self.journal.compress_older(tail.at.segment)?,
            }
        };
        if compressed > 0 {
            fixed.push(format!("compressed {compressed} old journal segment(s)"));
        }
        Ok(fixed.into_iter().map(|what| Repair { what }).collect())
    }

    /// Whether the journal ends before, or differs from, what is known of its end.
    fn is_journal_lost(&self) -> Result<bool> {
        let known = match self.journal.watermarks()?.tail() {
            Some(tail) => Ok(tail),
            None => self.index.open().and_then(|index| index.applied()),
        };
        let known = known.ok().filter(|tail| tail.at > Position::START);
        Ok(known.is_some_and(|tail| {
            self.journal.is_end(tail.at).is_err() || self.journal.is_displaced(&tail)
        }))
    }

    /// Rebuilds the index while nobody commits or applies. Returns the end of the journal.
    fn rebuild_all(&self, is_lost: bool, fixed: &mut Vec<String>) -> Result<Tail> {
        let _held = self.journal.lock()?;
        if is_lost {
            let watermarks = self.journal.watermarks()?;
            let in_doubt = watermarks.known().doubt;
            watermarks.forget()?;
            watermarks.set_doubt(in_doubt)?;
            fixed.push(
                "the journal is missing or truncated: a new one starts with the files on disk"
                    .into(),
            );
        } else {
            // Under the append lock nobody commits. Apply everything first, so that no process is
            // still about to write files.
            let tail = self.index.sound(|| self.snapshot())?.tail;
            let _ = self
                .journal
                .sync_to(tail.at)
                .and_then(|()| self.applier.apply_files(tail.at));
        }
        let placing = self.applier.lock()?;
        self.index.rebuild()?;
        self.index.sound(|| self.doubt_stats())?;
        drop(placing);
        match self.journal.watermarks()?.tail() {
            Some(tail) => Ok(tail),
            None => self.find_end(None),
        }
    }

    /// Clears the stat of files that have the recorded stat but other content: an edit within one
    /// clock tick, or with its time set back. The next comparison reads them.
    fn doubt_stats(&self) -> Result<()> {
        let file_index = self.index.open()?.all()?;
        for (text, head) in file_index
            .into_iter()
            .filter(|(_, head)| !head.gone && head.file_stat.is_some())
        {
            let Ok(path) = ProjectPath::parse(&text) else {
                continue;
            };
            if let Ok(Some((bytes, file_stat))) = self.tree.read(&path)
                && head.file_stat == Some(file_stat)
                && self
                    .texts
                    .plain_content(&path, &head)
                    .is_ok_and(|journalled| journalled != bytes)
            {
                self.index.open()?.set_stat(&text, &head.version, None)?;
            }
        }
        Ok(())
    }
}

/// `1 record`, `2 records`.
fn count(number: u64, of: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {of}{ending}")
}
