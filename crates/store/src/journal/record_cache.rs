//! Records read from the journal, with a cache of the large ones.
//!
//! One import can be a single record about thousands of files. A comparison of these files requests
//! that record once per file, so it is decoded once and searched by path.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::journal::record::{OpKind, Record, RecordOp};
use crate::journal::segments::Position;

/// Shorter lines are decoded again, which is cheaper than caching them.
const LARGE: usize = 32 << 10;
/// The cache holds this many bytes of lines, or one longer line.
const MOST: usize = 64 << 20;
/// Up to this many operations are searched linearly.
const FEW: usize = 16;

/// A record of the journal, with its operations by path.
pub(crate) struct LoadedRecord {
    record: Record,
    by_path: OnceLock<HashMap<String, Vec<usize>>>,
}

impl Deref for LoadedRecord {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

impl LoadedRecord {
    pub fn new(record: Record) -> LoadedRecord {
        LoadedRecord {
            record,
            by_path: OnceLock::new(),
        }
    }

    /// The operations on a file, newest first. Bytes that were only kept are not a state of the
    /// file.
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

/// The large records that were used last.
#[derive(Default)]
pub(crate) struct RecordCache {
    /// Position, length of the line, record; the most recent at the end.
    kept: VecDeque<(Position, usize, Arc<LoadedRecord>)>,
}

impl RecordCache {
    pub fn get(&mut self, at: Position) -> Option<Arc<LoadedRecord>> {
        let index = self.kept.iter().position(|(place, ..)| *place == at)?;
        let found = self.kept.remove(index)?;
        let loaded = Arc::clone(&found.2);
        self.kept.push_back(found);
        Some(loaded)
    }

    pub fn put(&mut self, at: Position, length: usize, loaded: &Arc<LoadedRecord>) {
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
