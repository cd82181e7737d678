//! Checks whether a store that stays open is still the store of its folder.
//!
//! A command opens the store, uses it and ends. A server keeps it open between two calls, and in
//! between a person may move the project, restore a backup of `.quipu`, or put a link into it. Other
//! processes' commits need no check here: every operation reads the watermarks and the file index.

use crate::error::Result;
use crate::files::quipu_folder::Checked;
use crate::store::Store;

impl Store {
    /// Whether this store may serve another command. If not, the caller opens it again. A link in
    /// `.quipu` is refused, as when the store is opened.
    pub fn is_current(&self) -> Result<bool> {
        if !self.tree.is_at_its_path() || !self.has_its_folders()? {
            return Ok(false);
        }
        self.has_its_history()
    }

    /// `.quipu` holds the files that this store has open, and the journal its segments: any change
    /// in these two needs a new store. In the others, only new files need a check.
    fn has_its_folders(&self) -> Result<bool> {
        let checked = self.folders.check(&self.quipu(), &self.settings.clock)?;
        if checked == Checked::NewCopies {
            // A killed process may have left conflict copies to be journalled.
            self.copies.search_again();
        }
        Ok(checked != Checked::Replaced)
    }

    /// Whether the journal still ends with, or continues from, the record that this process knew as
    /// the last. A backup that was copied over the files does not, and leaves their inodes as they
    /// were.
    fn has_its_history(&self) -> Result<bool> {
        if self.is_read_only() {
            return Ok(false);
        }
        let watermarks = self.journal.watermarks_now()?;
        Ok(match (watermarks.last_tail(), watermarks.tail()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(last), Some(now)) => {
                last == now || now.seq > last.seq && !self.journal.is_displaced(&last)
            }
        })
    }
}
