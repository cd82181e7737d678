//! Blame: for each line of a file, the commit that last changed it.
//!
//! It follows the file's own records (`events.rs`) and carries the author of each unchanged line
//! from version to version.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::error::{Result, StoreError};
use crate::history::events::PathEvent;
use crate::history::log::At;
use crate::journal::body::Gap;
use crate::journal::record::{OpKind, Who};
use crate::store::Store;

/// A line and the commit that last changed it.
#[derive(Debug, Clone, Serialize)]
pub struct BlameLine {
    pub line: usize,
    pub seq: u64,
    pub who: Who,
    pub at: String,
    pub text: String,
    /// The line is from this commit or an older one, because retention dropped the text before it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub or_older: bool,
}

/// The author of lines that came with an unreadable record or right after it.
const UNKNOWN: usize = usize::MAX;
/// The time limit for comparing two versions. After it, the remaining lines count as changed.
const PATIENCE: Duration = Duration::from_millis(200);

impl Store {
    /// For each line of a file, the commit that last changed it. Fails if damage hides that commit.
    pub fn blame(&self, path: &ProjectPath) -> Result<Vec<BlameLine>> {
        self.blame_of(path, self.events(path)?)
    }

    /// Like `blame`, for an older state of the file.
    pub fn blame_at(&self, path: &ProjectPath, at: &At) -> Result<Vec<BlameLine>> {
        self.blame_of(path, self.events_until(path, at)?)
    }

    /// The authors of the newest of some states, which are sorted newest first.
    fn blame_of(&self, path: &ProjectPath, mut events: Vec<PathEvent>) -> Result<Vec<BlameLine>> {
        let Some(newest) = events.first().cloned() else {
            return Err(StoreError::not_found(
                format!("`{path}` has no history"),
                "quipu log",
            ));
        };
        let gap = events
            .iter()
            .find(|e| e.after_gap)
            .unwrap_or(&newest)
            .clone();
        if newest.damaged {
            return Err(self.texts.not_compared(path, &newest));
        }
        events.reverse();
        let mut text = Vec::new();
        let mut makers: Vec<usize> = Vec::new();
        let mut unsure = false;
        let (mut dropped, mut after_dropped) = (false, BTreeSet::new());
        for (index, event) in events.iter().enumerate() {
            unsure |= event.after_gap;
            let edit = event.edit();
            // The text that it extends is unknown.
            if (unsure || dropped) && !edit.is_start() {
                continue;
            }
            let maker = if unsure { UNKNOWN } else { index };
            let before = if event.op == OpKind::Append {
                Vec::new()
            } else {
                text.clone()
            };
            let (length, open) = (text.len(), !text.is_empty() && !text.ends_with(b"\n"));
            match edit.apply(&mut text) {
                Ok(()) => {}
                Err(Gap::Dropped) => {
                    dropped = true;
                    continue;
                }
                Err(Gap::Mismatch) => return Err(self.texts.not_compared(path, event)),
            }
            if event.op == OpKind::Append {
                // The append continued the last line, so that line has a new author.
                makers.truncate(makers.len() - usize::from(open && text.len() > length));
                let added = lines(&text[length..]).len();
                makers.extend(std::iter::repeat_n(maker, added));
            } else {
                makers = carry(&before, &text, &makers, maker);
            }
            if dropped {
                after_dropped.insert(index);
            }
            (unsure, dropped) = (false, false);
        }
        if dropped {
            return Err(Gap::Dropped.of_newest(path));
        }
        if unsure || makers.contains(&UNKNOWN) {
            return Err(self.texts.not_compared(path, &gap));
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines = text.split_inclusive('\n').zip(&makers).enumerate();
        Ok(lines
            .map(|(number, (line, maker))| {
                let or_older = after_dropped.contains(maker);
                BlameLine::of(number + 1, line, &events[*maker], or_older)
            })
            .collect())
    }
}

impl BlameLine {
    fn of(line: usize, text: &str, event: &PathEvent, or_older: bool) -> BlameLine {
        BlameLine {
            line,
            seq: event.seq,
            who: event.who.clone(),
            at: event.at.clone(),
            text: text.trim_end_matches(['\n', '\r']).to_owned(),
            or_older,
        }
    }
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The author of each line of the newer text: unchanged lines keep their author.
fn carry(older: &[u8], newer: &[u8], makers: &[usize], maker: usize) -> Vec<usize> {
    let (old, new) = (lines(older), lines(newer));
    let mut result = Vec::with_capacity(new.len());
    let deadline = Some(Instant::now() + PATIENCE);
    for op in similar::capture_diff_slices_deadline(similar::Algorithm::Myers, &old, &new, deadline)
    {
        match op {
            similar::DiffOp::Equal { old_index, len, .. } => {
                result.extend_from_slice(&makers[old_index..old_index + len]);
            }
            other => result.extend(std::iter::repeat_n(maker, other.new_range().len())),
        }
    }
    result
}
