//! Completes what other processes left: syncs and applies all journalled records.

use crate::error::Result;
use crate::journal::segments::Position;
use crate::store::Store;

impl Store {
    /// Syncs and applies all journalled records. Cheap if nothing is pending.
    pub fn settle(&self) -> Result<()> {
        if self.is_read_only() {
            return Ok(());
        }
        self.index.sound(|| self.settle_once())
    }

    fn settle_once(&self) -> Result<()> {
        let mut tail = match self.journal.watermarks_now()?.tail() {
            // A dead writer may have left records after the tail. Complete them before reporting
            // that they do not exist.
            Some(tail) if self.is_tail(&tail)? => tail,
            _ => {
                let _held = self.journal.lock()?;
                self.snapshot()?.tail
            }
        };
        if self.replica.begin_search() {
            self.heal_sent()?;
        }
        self.index.forget_deleted();
        self.applier.redo_after_rebuild()?;
        if self.copies.begin_search() {
            self.journal_conflict_copies()?;
        }
        let mut applied = self.index.open()?.applied()?.at;
        if applied > tail.at {
            // Another process has just committed, or the index is of another journal.
            let _held = self.journal.lock()?;
            tail = self.snapshot()?.tail;
            applied = self.index.open()?.applied()?.at;
        }
        if applied >= tail.at {
            return Ok(());
        }
        self.journal.sync_to(tail.at)?;
        match self.apply_to(tail.at) {
            // If another process's file could not be written, that process gets the error, and so
            // does every reader of the file. This caller does not.
            Err(error) if error.is_of_one_file() && self.index.open()?.applied()?.at >= tail.at => {
                Ok(())
            }
            other => other,
        }
    }

    /// Applies all synced records, at least up to `end`.
    pub(crate) fn apply_to(&self, end: Position) -> Result<()> {
        if self.applier.apply_files(end)? {
            self.journal_conflict_copies()?;
        }
        Ok(())
    }

    /// Syncs all files now, so that no power cut loses them or their folders.
    pub fn sync_files(&self) -> Result<()> {
        self.settle()?;
        let _held = self.applier.lock()?;
        let applied = self.index.open()?.applied()?.at;
        self.applier.sync_everything()?;
        self.index.open()?.set_kept(applied, &self.settings.boot)
    }
}
