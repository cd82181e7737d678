//! The journal: records that only grow, one line each.
//!
//! Everything that was acknowledged can be redone from it, because a record is written before anything else happens.

use std::fmt;

/// A record of the journal, chained to the one before it.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its number, from one.
    pub number: u64,
    pub text: String,
    hash: u64,
}

/// What may go wrong when a record is added.
pub enum Fault {
    /// The disk is full.
    Full,
    Torn(u64),
}

/// A journal in memory.
pub struct Journal {
    records: Vec<Record>,
}

impl Journal {
    /// Makes an empty journal.
    pub fn new() -> Journal {
        Journal { records: Vec::new() }
    }

    /// Adds a record and says its number. A record must not be empty, otherwise the chain could not tell it from a torn one.
    pub fn append(&mut self, text: &str) -> Result<u64, Fault> {
        check(text)?;
        let number = self.records.len() as u64 + 1;
        let hash = chain(self.last_hash(), text);
        self.records.push(Record { number, text: text.to_owned(), hash });
        Ok(number)
    }

    fn last_hash(&self) -> u64 {
        self.records.last().map_or(0, |record| record.hash)
    }
}

/// Refuses what cannot be recorded.
fn check(text: &str) -> Result<(), Fault> {
    if text.is_empty() { Err(Fault::Torn(0)) } else { Ok(()) }
}

/// Joins a hash with the text that follows it.
pub fn chain(before: u64, text: &str) -> u64 {
    text.bytes().fold(before, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

/// Something that can be shown.
pub trait Shown: fmt::Display {
    /// Shows it on one line.
    fn show(&self) -> String;
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_is_no_part_of_the_book() {}
}
