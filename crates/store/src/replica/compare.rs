//! Compares the journal of a working copy with the shared log, record by record.
//!
//! The hashes of a journal have no key, so a rewritten journal passes its own checks. The log is on
//! another machine: a record that differs there, or is missing there, was changed here.

use std::collections::VecDeque;

use serde::Serialize;

use crate::error::Result;
use crate::journal::segments::{Line, Position};
use crate::replica::commit_log::{CommitLog, LogHash};
use crate::store::Store;

/// At most this many differing record numbers are listed.
const NAMED: usize = 10;

/// The result of comparing a journal with the shared log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ComparedLog {
    /// The address of the log, without a password.
    pub address: String,
    pub project: String,
    /// Records that are equal in both.
    pub agree: u64,
    /// Records of the journal that are missing from the log or differ there; the first of them are
    /// listed.
    pub differ: u64,
    pub differing: Vec<u64>,
}

/// Reads the log forwards, as far as needed.
struct Reader<'o> {
    commit_log: &'o dyn CommitLog,
    page: VecDeque<LogHash>,
    ended: bool,
}

impl Reader<'_> {
    fn entry(&mut self, rev: u64) -> Result<Option<LogHash>> {
        while self.page.front().is_some_and(|entry| entry.rev < rev) {
            self.page.pop_front();
        }
        if self.page.is_empty() && !self.ended {
            self.page = self.commit_log.entries(rev.saturating_sub(1))?.into();
            self.ended = self.page.is_empty();
        }
        Ok(self.page.front().filter(|entry| entry.rev == rev).cloned())
    }
}

impl Store {
    /// Compares every readable record with the shared log; none in a local project. Newer records
    /// of the log have not been synced yet and do not count.
    pub fn compare_log(&self) -> Result<Option<ComparedLog>> {
        let Some(commit_log) = self.commit_log() else {
            return Ok(None);
        };
        let about = commit_log.describe();
        let mut compared = ComparedLog {
            address: about.address,
            project: about.project,
            ..ComparedLog::default()
        };
        let mut log = Reader {
            commit_log,
            page: VecDeque::new(),
            ended: false,
        };
        let mut result = Ok(());
        let bound = self.journal.bound()?;
        self.journal
            .scan(Position::START, Some(bound), &mut |seen| {
                let Line::Record(record) = seen.line else {
                    return;
                };
                if result.is_err() {
                    return;
                }
                match log.entry(record.seq) {
                    Ok(Some(entry)) if entry == commit_log.entry_of(&record) => compared.agree += 1,
                    Ok(_) => {
                        compared.differ += 1;
                        if compared.differing.len() < NAMED {
                            compared.differing.push(record.seq);
                        }
                    }
                    Err(error) => result = Err(error),
                }
            })?;
        result.map(|()| Some(compared))
    }
}
