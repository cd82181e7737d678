//! Blame: for each line of a file the commit that last changed it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::body::Gap;
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
    /// The line is from this commit or an older one: the text before it was dropped by retention.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub or_older: bool,
}

/// The maker of lines that came with or right after a record which cannot be read.
const UNKNOWN: usize = usize::MAX;
/// So long two versions are compared. Beyond that, lines count as changed.
const PATIENCE: Duration = Duration::from_millis(200);

impl Store {
    /// For each line of a file the commit that last changed it. Fails where damage hides who that
    /// was.
    pub fn blame(&self, path: &ProjectPath) -> Result<Vec<BlameLine>> {
        let mut events = self.events(path)?;
        let Some(newest) = events.first().cloned() else {
            return Err(StoreError::NotFound {
                what: format!("`{path}` has no history"),
                remedy: "quipu log".into(),
            });
        };
        let gap = events
            .iter()
            .find(|e| e.after_gap)
            .unwrap_or(&newest)
            .clone();
        if newest.damaged {
            return Err(self.untold(path, &newest));
        }
        events.reverse();
        let mut text = Vec::new();
        let mut makers: Vec<usize> = Vec::new();
        let mut unsure = false;
        let (mut dropped, mut after_dropped) = (false, BTreeSet::new());
        for (index, event) in events.iter().enumerate() {
            unsure |= event.after_gap;
            let edit = event.edit();
            // What it was added to is not known.
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
                Err(Gap::Mismatch) => return Err(self.untold(path, event)),
            }
            if event.op == OpKind::Append {
                // The line that was left open is now another.
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
            return Err(self.untold(path, &gap));
        }
        let text = String::from_utf8_lossy(&text).into_owned();
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
                    or_older: after_dropped.contains(maker),
                }
            })
            .collect())
    }
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Who made each line of the newer text: lines that stayed keep their maker. Lines at both ends are
/// mostly the same, so only what lies between them is compared, and not longer than a reader waits.
fn carry(older: &[u8], newer: &[u8], makers: &[usize], maker: usize) -> Vec<usize> {
    let (old, new) = (lines(older), lines(newer));
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[start..]
        .iter()
        .rev()
        .zip(new[start..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (old, new) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let mut result = makers[..start].to_vec();
    let deadline = Some(Instant::now() + PATIENCE);
    for op in similar::capture_diff_slices_deadline(similar::Algorithm::Myers, old, new, deadline) {
        match op {
            similar::DiffOp::Equal { old_index, len, .. } => {
                result.extend_from_slice(&makers[start + old_index..start + old_index + len])
            }
            other => result.extend(std::iter::repeat_n(maker, other.new_range().len())),
        }
    }
    result.extend_from_slice(&makers[makers.len() - end..]);
    result
}
