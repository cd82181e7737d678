//! Reads damaged lines of the journal as far as possible, and tracks which damage `doctor` has
//! repaired.
//!
//! A flipped bit in the text of a record leaves the rest of the line readable. The line's entry for
//! a file is accepted only if it matches the state before it: the file's version and the position
//! of its record.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::ProjectPath;

use crate::heads::Head;
use crate::journal::{Damage, Position};
use crate::record::{OpKind, ROOT_SUM, Record, RecordOp, Sum, parse_sum};
use crate::store::Store;
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
    sum: Sum,
    pub seq: u64,
    /// The line before could not be read, so the next record is accepted without comparing its
    /// previous hash.
    pub is_cut: bool,
}

impl Chain {
    pub fn new() -> Chain {
        Chain {
            sum: parse_sum(ROOT_SUM),
            seq: 0,
            is_cut: false,
        }
    }

    /// Advances to the next record. Returns damage if lines in between are missing, duplicated or
    /// reordered.
    pub fn follow(&mut self, at: Position, record: &Record) -> Option<Damage> {
        let what = match () {
            () if self.is_cut => None,
            () if record.prev != self.sum => Some(format!(
                "record {} does not follow the one before it",
                record.seq
            )),
            () if record.seq != self.seq + 1 => {
                Some(format!("record {} follows record {}", record.seq, self.seq))
            }
            () => None,
        };
        let bytes = format!("{} {}", self.sum, record.sum).into_bytes();
        (self.sum, self.seq, self.is_cut) = (record.sum, record.seq, false);
        what.map(|what| Damage { at, what, bytes })
    }
}

/// The readable parts of a damaged record.
#[derive(Default)]
pub(crate) struct Salvaged {
    pub heads: Vec<(String, Head)>,
    /// Whether it changed no other files.
    pub is_whole: bool,
}

impl Store {
    /// The index entries after a damaged record, as far as its line matches `newest`, the entries
    /// before it.
    pub(crate) fn salvage(
        &self,
        damage: &Damage,
        newest: &BTreeMap<String, Head>,
        seq_before: u64,
    ) -> Salvaged {
        let record = serde_json::from_str::<Record>(&String::from_utf8_lossy(&damage.bytes));
        let Some(record) = record.ok().filter(|record| record.seq == seq_before + 1) else {
            return Salvaged::default();
        };
        let ops: Vec<&RecordOp> = record
            .ops
            .iter()
            .filter(|op| op.op != OpKind::Keep)
            .collect();
        let fitting = ops.iter().filter(|op| self.fits(op, newest.get(&op.path)));
        let heads: Vec<_> = fitting
            .map(|op| (op.path.clone(), Head::after(op, damage.at, record.seq)))
            .collect();
        // A record without files and without a lease may have lost its files to the damage.
        let is_whole = heads.len() == ops.len() && (!ops.is_empty() || record.lease.is_some());
        Salvaged { heads, is_whole }
    }

    fn fits(&self, op: &RecordOp, before: Option<&Head>) -> bool {
        match before {
            Some(head) => {
                let base = (!head.gone).then_some(&head.version);
                op.base.as_ref() == base
                    && op.last.as_deref().and_then(Position::parse) == Some(head.at)
            }
            // Nothing earlier confirms the name of a new file, but the file itself may.
            None => {
                let found = ProjectPath::parse(&op.path)
                    .ok()
                    .and_then(|path| self.tree.read(&path).ok().flatten());
                op.base.is_none()
                    && op.last.is_none()
                    && found.is_some_and(|(bytes, _)| Version::of(&bytes) == op.version)
            }
        }
    }
}
