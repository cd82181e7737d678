//! Adds facts from a report to the memory files: each offered fact goes into the section that it
//! names.
//!
//! A fact that follows another one closes it, and the old one stays as history. A fact that
//! supersedes one that cannot be found, or that belongs to no memory file, is left to a person. A
//! fact that already exists is not added twice, so the step is idempotent.

use std::collections::BTreeMap;

use quipu_claims::{PlaceError, Proposal, read_offers, read_report};
use quipu_contract::{Binding, Contract, ProjectPath, Step};

use crate::flow::job::{PlannedJob, fill};
use crate::novel::memory_files::{MemoryError, MemoryFiles};

/// The facts that a report offers, sorted.
#[derive(Debug, Default)]
pub struct Offers {
    pub by_file: BTreeMap<ProjectPath, Vec<Proposal>>,
    /// Facts that a person must place.
    pub left: Vec<Proposal>,
}

/// Sorts the offers of a report by the memory file that they belong to: one that the step writes for
/// its unit. The rest is left to a person.
pub fn sort_offers(contract: &Contract, job: &PlannedJob<'_>, report: &str) -> Offers {
    let mut asked = Offers::default();
    for offer in read_offers(report) {
        match ProjectPath::parse(offer.file())
            .ok()
            .filter(|path| takes_facts(contract, job.step, &job.binding, path))
        {
            Some(path) => asked.by_file.entry(path).or_default().push(offer),
            None => asked.left.push(offer),
        }
    }
    asked
}

/// Whether a remember step may add a fact to a file.
fn takes_facts(contract: &Contract, step: &Step, binding: &Binding, path: &ProjectPath) -> bool {
    let is_written = step.writes.iter().any(|write| {
        fill(write, binding).is_some_and(|pattern| pattern.matches(path.as_str()).is_some())
    });
    let is_memory = contract
        .rule(path)
        .is_some_and(|rule| rule.tier.as_deref() == Some("L1"));
    is_written && is_memory
}

/// Lists the parts of a report that the step could not remember, so that they are sent back to the
/// role that wrote them. Each completes "`FILE` …".
pub fn find_lost(contract: &Contract, step: &Step, binding: &Binding, report: &str) -> Vec<String> {
    let report = read_report(report);
    let written = step.writes.iter();
    let written: Vec<String> = written
        .map(|path| fill(path, binding).map_or_else(|| path.clone(), |filled| filled.to_string()))
        .collect();
    let files = written.join("`, `");
    let mut lost: Vec<String> = report
        .lost
        .iter()
        .map(|(line, text)| {
            format!(
                "line {line} would be lost: \"{text}\". Write each fact as a list item `- …` under \
                 a heading with its file, one of `## {}`",
                written.join("`, `## ")
            )
        })
        .collect();
    let strange = report.offers.iter().filter(|offer| {
        let path = ProjectPath::parse(offer.file());
        !path.is_ok_and(|path| takes_facts(contract, step, binding, &path))
    });
    lost.extend(strange.map(|offer| {
        format!(
            "line {}: `{}` takes no facts from this step; it adds facts to `{files}`",
            offer.line,
            offer.file()
        )
    }));
    lost
}

/// What a report added to a memory file.
#[derive(Debug, Default)]
pub struct Grown {
    pub added: usize,
    /// The number of facts that the added ones closed, in any file.
    pub closed: usize,
    /// The number of entries that were there already.
    pub known: usize,
    /// The number of entries that a person must place.
    pub left: usize,
}

/// Adds the missing entries of one file to memory.
pub fn with_entries(
    memory: &mut MemoryFiles<'_>,
    path: &ProjectPath,
    offers: &[Proposal],
) -> Result<Grown, MemoryError> {
    let mut grown = Grown::default();
    memory.include(path)?;
    for offer in offers {
        if memory.text(path).is_some_and(|text| offer.stands_in(text)) {
            grown.known += 1;
            continue;
        }
        match memory.place(path, offer.section(), &offer.entry) {
            Ok(closed) => {
                grown.added += 1;
                grown.closed += closed.len();
            }
            Err(MemoryError::Place(why)) if !matches!(why, PlaceError::Splice(_)) => {
                grown.left += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(grown)
}
