//! How often each tier knew the answer: a line for each question, under `.quipu`, which anyone may
//! delete.

use std::io::Write;

use quipu_claims::Asked;
use serde::Serialize;

use crate::project::Project;

const FILE: &str = ".quipu/asked.log";

/// Hits and misses of memory (L1) and of the manuscripts (L2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AskedCounts {
    pub l1_hits: usize,
    pub l1_misses: usize,
    pub l2_hits: usize,
    pub l2_misses: usize,
}

/// Notes what two tiers answered. A count that cannot be written is not worth an error.
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

/// The counts so far.
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
