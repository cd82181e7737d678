//! Follows the hash chain of the records, and tracks which damage `doctor` has repaired.

use std::collections::BTreeSet;

use crate::journal::record::{ChainHash, ROOT_HASH, Record, parse_hash};
use crate::journal::segments::{Damage, Position};
use crate::version::Version;

/// The field of a note that names the damage that a record repairs.
const HEALS: &str = "heals";

impl Damage {
    /// The name of this damage: its position and a hash of the bytes there. Different damage at the
    /// same position has another name.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.at, Version::of(&self.bytes))
    }
}

/// The note of a record that repairs damage.
pub(crate) fn heal_note(damages: &[Damage]) -> serde_json::Value {
    serde_json::json!({ HEALS: damages.iter().map(Damage::name).collect::<Vec<_>>() })
}

/// The names of the damage that a record repairs.
pub(crate) fn healed_by(record: &Record) -> BTreeSet<String> {
    let names = record
        .note
        .as_ref()
        .and_then(|note| note.get(HEALS))
        .and_then(|names| names.as_array());
    names
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

/// Follows the hash chain of records from the first one on.
pub(crate) struct Chain {
    hash: ChainHash,
    pub seq: u64,
    /// The line before could not be read, so the next record is accepted without comparing its
    /// previous hash.
    pub is_cut: bool,
}

impl Chain {
    pub fn new() -> Chain {
        Chain {
            hash: parse_hash(ROOT_HASH),
            seq: 0,
            is_cut: false,
        }
    }

    /// Advances to the next record. Returns damage if lines in between are missing, duplicated or
    /// reordered.
    pub fn follow(&mut self, at: Position, record: &Record) -> Option<Damage> {
        let what = match () {
            () if self.is_cut => None,
            () if record.prev != self.hash => Some(format!(
                "record {} does not follow the one before it",
                record.seq
            )),
            () if record.seq != self.seq + 1 => {
                Some(format!("record {} follows record {}", record.seq, self.seq))
            }
            () => None,
        };
        let bytes = format!("{} {}", self.hash, record.hash).into_bytes();
        (self.hash, self.seq, self.is_cut) = (record.hash, record.seq, false);
        what.map(|what| Damage { at, what, bytes })
    }
}
