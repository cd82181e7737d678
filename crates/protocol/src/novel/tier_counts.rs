//! Counts how often each recall tier answered a question.
//!
//! The counts are a local statistic: one line per question in a file under `.quipu`. Deleting the
//! file only resets the counts.

use std::io::Write;

use quipu_claims::Asked;
use serde::Serialize;

use crate::project::open::Project;

const FILE: &str = ".quipu/asked.log";

/// Hits and misses of memory (L1) and of the manuscripts (L2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AskedCounts {
    pub l1_hits: usize,
    pub l1_misses: usize,
    pub l2_hits: usize,
    pub l2_misses: usize,
}

/// Appends one line per question. Errors are ignored: a lost count does no harm.
pub fn note_asked(project: &Project, questions: &[(Asked, Asked)]) {
    let sign = |asked: &Asked| match asked {
        Asked::Hit => 'h',
        Asked::Miss => 'm',
        Asked::No => '-',
    };
    let lines: String = questions
        .iter()
        .map(|(l1, l2)| format!("{}{}\n", sign(l1), sign(l2)))
        .collect();
    if let Ok(mut file) = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(project.store.root().join(FILE))
    {
        let _ = file.write_all(lines.as_bytes());
    }
}

pub fn asked_counts(project: &Project) -> AskedCounts {
    let text = std::fs::read_to_string(project.store.root().join(FILE)).unwrap_or_default();
    let mut counts = AskedCounts::default();
    for line in text.lines() {
        let mut signs = line.chars();
        match signs.next() {
            Some('h') => counts.l1_hits += 1,
            Some('m') => counts.l1_misses += 1,
            _ => {}
        }
        match signs.next() {
            Some('h') => counts.l2_hits += 1,
            Some('m') => counts.l2_misses += 1,
            _ => {}
        }
    }
    counts
}
