//! Damaged lines of the journal: what they still tell, and which of them `doctor` has dealt with.
//!
//! A flipped bit in the text of a record leaves the rest of the line readable. What the line says
//! of a file is believed only if it fits what stands before it: the file's version then and the
//! place of its record.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::ProjectPath;

use crate::heads::Head;
use crate::journal::{Damage, Position};
use crate::record::{OpKind, ROOT_SUM, Record, RecordOp, Sum, parse_sum};
use crate::store::Store;
use crate::version::Version;

/// The field of a note that names the damage a record deals with.
const HEALS: &str = "heals";

impl Damage {
    /// Names this damage: its place and a hash of what stands there. Another damage in the same
    /// place has another name.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.at, Version::of(&self.bytes))
    }
}

/// The note of a record that deals with damage.
pub(crate) fn heal_note(damages: &[Damage]) -> serde_json::Value {
    serde_json::json!({ HEALS: damages.iter().map(Damage::name).collect::<Vec<_>>() })
}

/// The damage that a record deals with, by name.
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

/// The chain of records, followed from the first one on.
pub(crate) struct Chain {
    sum: Sum,
    pub seq: u64,
    /// The line before could not be read: the next record is believed, since it names its
    /// predecessor's sum.
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

    /// Goes on to the next record. Damage if lines between the two are missing, doubled or in
    /// another order.
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

/// What a damaged record still tells.
#[derive(Default)]
pub(crate) struct Salvaged {
    pub heads: Vec<(String, Head)>,
    /// It changed no other files.
    pub is_whole: bool,
}

impl Store {
    /// The heads after a damaged record, as far as its line fits `newest`, which holds the heads
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
        // A record without files that has no lease either may have lost its files to the damage.
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
            // Nothing before it vouches for the name of a new file; the file itself may.
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
