//! The head of a journal: the number and the hash of its newest record.
//!
//! Every record holds the hash of the record before it, so a head covers all records up to it. The
//! hashes have no key: a program that can write the journal can recompute them. Comparing the
//! journal with a head that was stored elsewhere detects this.

use std::fmt;

use crate::error::Result;
use crate::journal::segments::{Line, Position, Seen};
use crate::store::Store;

/// The digits of a record's hash, and the fewest that may abbreviate it.
const HASH_DIGITS: usize = 32;
const FEWEST_DIGITS: usize = 8;
/// The digits that name a journal: the beginning of the hash of its first record.
const JOURNAL_DIGITS: usize = 16;

/// The newest record of a journal at some moment, and the name of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalHead {
    pub seq: u64,
    pub hash: String,
    /// The name of the journal: each working copy and each clone has its own.
    pub journal: String,
}

impl fmt::Display for JournalHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

/// A record that a journal is expected to hold: `SEQ:HASH`, or a hash alone. The hash may be
/// abbreviated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedHead {
    pub seq: Option<u64>,
    pub hash: String,
}

impl ExpectedHead {
    pub fn parse(text: &str) -> Option<ExpectedHead> {
        let (seq, hash) = match text.split_once(':') {
            Some((seq, hash)) => (Some(seq.parse().ok()?), hash),
            None => (None, text),
        };
        let is_hash = (FEWEST_DIGITS..=HASH_DIGITS).contains(&hash.len())
            && hash.bytes().all(|b| b.is_ascii_hexdigit());
        is_hash.then(|| ExpectedHead {
            seq,
            hash: hash.to_ascii_lowercase(),
        })
    }
}

impl fmt::Display for ExpectedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seq {
            Some(seq) => write!(f, "{seq}:{}", self.hash),
            None => f.write_str(&self.hash),
        }
    }
}

/// The record that the journal holds for an expected head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadFound {
    /// This record.
    Same,
    /// A record with this number but another hash.
    Other { hash: String },
    /// No such record.
    Missing,
}

/// The result of comparing a journal with heads that were stored elsewhere.
#[derive(Debug, Clone, Default)]
pub struct HeadsFound {
    /// The name of the journal and the time of its first record; none if it has no readable record.
    pub journal: Option<(String, String)>,
    pub newest: u64,
    /// One result for each expected head, in the same order.
    pub found: Vec<HeadFound>,
}

impl Store {
    /// The head of the journal, durable; none while the journal is empty.
    pub fn journal_head(&self) -> Result<Option<JournalHead>> {
        let tail = {
            let _held = self.journal.lock()?;
            let tail = self.snapshot()?.tail;
            self.journal.sync_to(tail.at)?;
            tail
        };
        if tail.seq == 0 {
            return Ok(None);
        }
        let first = self.journal.read_record(Position::START)?;
        let journal = first.hash[..JOURNAL_DIGITS].to_owned();
        Ok(Some(JournalHead {
            seq: tail.seq,
            hash: tail.hash.to_string(),
            journal,
        }))
    }

    /// Finds heads in the journal, in one pass over its records.
    pub fn find_heads(&self, expected: &[ExpectedHead]) -> Result<HeadsFound> {
        let mut file_index = HeadsFound {
            found: vec![HeadFound::Missing; expected.len()],
            ..HeadsFound::default()
        };
        self.journal
            .scan(Position::START, None, &mut |Seen { line, .. }| {
                let Line::Record(record) = line else { return };
                if file_index.journal.is_none() {
                    file_index.journal =
                        Some((record.hash[..JOURNAL_DIGITS].to_owned(), record.at.clone()));
                }
                file_index.newest = record.seq;
                for (head, found) in expected.iter().zip(&mut file_index.found) {
                    if head.seq.is_none_or(|seq| seq == record.seq)
                        && record.hash.starts_with(&head.hash)
                    {
                        *found = HeadFound::Same;
                    } else if head.seq == Some(record.seq) {
                        *found = HeadFound::Other {
                            hash: record.hash.to_string(),
                        };
                    }
                }
            })?;
        Ok(file_index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_a_number_and_a_hash() {
        let head = ExpectedHead::parse("12:ABCDEF0123456789").unwrap();
        assert_eq!(
            (head.seq, head.hash.as_str()),
            (Some(12), "abcdef0123456789")
        );
        assert_eq!(ExpectedHead::parse("abcdef01").unwrap().seq, None);
        for bad in [
            "",
            "12",
            "12:",
            "12:xyz",
            "abc",
            "x:abcdef01",
            "12:abcdef01:2",
            "12:é́bcdef0",
        ] {
            assert_eq!(ExpectedHead::parse(bad), None, "{bad}");
        }
    }
}
