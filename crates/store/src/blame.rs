//! Blame: for each line of a file the commit that last changed it.

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::error::{Result, StoreError};
use crate::record::{OpKind, Who};
use crate::store::Store;

/// Who made a line what it is.
#[derive(Debug, Clone, Serialize)]
pub struct BlameLine {
    pub line: usize,
    pub seq: u64,
    pub who: Who,
    pub at: String,
    pub text: String,
}

/// The maker of lines that came with or right after a record which cannot be read.
const UNKNOWN: usize = usize::MAX;

impl Store {
    /// For each line of a file the commit that last changed it. Fails where damage hides who that was.
    pub fn blame(&self, path: &ProjectPath) -> Result<Vec<BlameLine>> {
        let mut events = self.events(path)?;
        let Some(newest) = events.first().cloned() else {
            return Err(StoreError::NotFound { what: format!("`{path}` has no history"), mend: "quipu log".into() });
        };
        let gap = events.iter().find(|e| e.after_gap).unwrap_or(&newest).clone();
        events.reverse();
        let mut text = String::new();
        let mut makers: Vec<usize> = Vec::new();
        let mut unsure = false;
        for (index, event) in events.iter().enumerate() {
            unsure |= event.after_gap;
            let newer = match event.op {
                // What it was appended to is not known.
                OpKind::Append if unsure => continue,
                OpKind::Append => format!("{text}{}", String::from_utf8_lossy(&event.bytes)),
                OpKind::Write => String::from_utf8_lossy(&event.bytes).into_owned(),
                OpKind::Remove | OpKind::Keep => String::new(),
            };
            makers = carry(&text, &newer, &makers, if unsure { UNKNOWN } else { index });
            text = newer;
            unsure = false;
        }
        if unsure || makers.contains(&UNKNOWN) {
            return Err(self.untold(path, &gap));
        }
        let lines = text.split_inclusive('\n').zip(&makers).enumerate();
        Ok(lines
            .map(|(number, (line, maker))| {
                let event = &events[*maker];
                BlameLine {
                    line: number + 1,
                    seq: event.seq,
                    who: event.who.clone(),
                    at: event.at.clone(),
                    text: line.trim_end_matches(['\n', '\r']).to_owned(),
                }
            })
            .collect())
    }
}

/// Who made each line of the newer text: lines that stayed keep their maker.
fn carry(older: &str, newer: &str, makers: &[usize], maker: usize) -> Vec<usize> {
    let old: Vec<&str> = older.split_inclusive('\n').collect();
    let new: Vec<&str> = newer.split_inclusive('\n').collect();
    let mut result = Vec::with_capacity(new.len());
    for op in similar::capture_diff_slices(similar::Algorithm::Myers, &old, &new) {
        match op {
            similar::DiffOp::Equal { old_index, len, .. } => result.extend_from_slice(&makers[old_index..old_index + len]),
            other => result.extend(std::iter::repeat_n(maker, other.new_range().len())),
        }
    }
    result
}
