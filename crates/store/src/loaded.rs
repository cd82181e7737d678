//! Records read back from the journal, and the large ones among them kept for the next reader.
//!
//! One import can be a single record about thousands of files. Whoever compares these files asks
//! for that record once for each, so it is decoded once and found by path.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::journal::Position;
use crate::record::{OpKind, Record, RecordOp};

/// Shorter lines are quicker decoded than worth keeping.
const LARGE: usize = 32 << 10;
/// So many bytes of lines are kept, or a single longer one.
const MOST: usize = 64 << 20;
/// Up to so many operations are searched one by one.
const FEW: usize = 16;

/// A record of the journal, with its operations by path.
pub(crate) struct Loaded {
    record: Record,
    by_path: OnceLock<HashMap<String, Vec<usize>>>,
}

impl Deref for Loaded {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

impl Loaded {
    pub fn new(record: Record) -> Loaded {
        Loaded {
            record,
            by_path: OnceLock::new(),
        }
    }

    /// What it did to a file, newest first. Bytes that were only kept are no state of the file.
    pub fn about(&self, path: &str) -> Vec<&RecordOp> {
        let ops = &self.record.ops;
        let is_about = |op: &&RecordOp| op.path == path && op.op != OpKind::Keep;
        if ops.len() <= FEW {
            return ops.iter().rev().filter(is_about).collect();
        }
        let by_path = self.by_path.get_or_init(|| {
            let mut by_path: HashMap<String, Vec<usize>> = HashMap::new();
            for (index, op) in ops.iter().enumerate() {
                by_path.entry(op.path.clone()).or_default().push(index);
            }
            by_path
        });
        by_path
            .get(path)
            .into_iter()
            .flatten()
            .rev()
            .map(|index| &ops[*index])
            .filter(is_about)
            .collect()
    }
}

/// The large records that were read last.
#[derive(Default)]
pub(crate) struct Recent {
    /// Place, length of the line, record; the newest at the end.
    kept: VecDeque<(Position, usize, Arc<Loaded>)>,
}

impl Recent {
    pub fn get(&mut self, at: Position) -> Option<Arc<Loaded>> {
        let index = self.kept.iter().position(|(place, ..)| *place == at)?;
        let found = self.kept.remove(index)?;
        let loaded = Arc::clone(&found.2);
        self.kept.push_back(found);
        Some(loaded)
    }

    pub fn put(&mut self, at: Position, length: usize, loaded: &Arc<Loaded>) {
        if length < LARGE {
            return;
        }
        self.kept.push_back((at, length, Arc::clone(loaded)));
        while self.kept.len() > 1
            && self.kept.iter().map(|(_, length, _)| length).sum::<usize>() > MOST
        {
            self.kept.pop_front();
        }
    }

    pub fn clear(&mut self) {
        self.kept.clear();
    }
}
