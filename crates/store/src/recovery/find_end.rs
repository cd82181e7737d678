//! Finds the end of the journal for a writer, and recovers the files in the first command of a boot.
//!
//! `journal/end.rs` decides which records count.

use crate::error::{Result, StoreError};
use crate::journal::end::Torn;
use crate::journal::segments::Position;
use crate::journal::watermarks::Tail;
use crate::store::Store;

impl Store {
    /// Finds the journal's end: after a reboot, if `.quipu/watermarks` is missing, or if bytes follow the
    /// recorded tail. Requires the append lock.
    pub(crate) fn find_end(&self, known: Option<Tail>) -> Result<Tail> {
        self.replica.check_allegiance()?;
        let torn = if known.is_some() {
            Torn::KeepRecords
        } else {
            Torn::Keep
        };
        let from = match known {
            Some(tail) => tail,
            None => self.index.open()?.applied()?,
        };
        if from.at > Position::START {
            self.journal.is_end(from.at)?; // a tail beyond the end of the file is an error
            // Nothing after such a tail may be cut off as a torn tail.
            let displaced = match known {
                Some(known) => self.journal.is_displaced(&known),
                None => !self.journal.line_ends_at(from.at),
            };
            if !self.journal.is_closed(from.at.segment) && displaced {
                return Err(StoreError::Damaged {
                    segment: from.at.segment,
                    line: 0,
                    what: format!(
                        "record {} does not end at byte {}, as recorded",
                        from.seq, from.at.offset
                    ),
                });
            }
        }
        let tail = self.journal.follow(Some(from))?;
        if !self.journal.is_end(tail.at)? {
            self.journal.keep_torn(tail.at, torn)?;
            self.journal.cut(tail.at)?;
        }
        if known.is_none() {
            self.journal.sync_to(tail.at)?;
            self.applier.recover_files(tail.at)?;
        }
        // From here on no command of this boot looks for losses: see `Store::is_recovered`.
        self.journal.watermarks()?.set_tail(&tail)?;
        if known.is_some() {
            self.journal.sync_to(tail.at)?;
            self.applier.apply_files(tail.at)?;
        }
        Ok(tail)
    }
}
