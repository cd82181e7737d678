//! Adds facts from a report to the memory files: each offered fact goes into the section that it
//! names.
//!
//! Memory is never edited. A fact that would replace another one, or that belongs to no memory
//! file, is left to a person. A fact that already exists is not added twice, so the step is
//! idempotent.

use std::collections::BTreeMap;

use quipu_claims::{Proposal, read_offers, with_entry};
use quipu_contract::{Contract, ProjectPath};

use crate::flow::job::{PlannedJob, fill};

/// The facts that a report offers, sorted.
#[derive(Debug, Default)]
pub struct Asked {
    pub by_file: BTreeMap<ProjectPath, Vec<Proposal>>,
    /// Facts that a person must place.
    pub left: Vec<Proposal>,
}

/// Sorts the offers of a report by the memory file that they belong to: one that the step writes for
/// its unit. The rest is left to a person.
pub fn sort_offers(contract: &Contract, job: &PlannedJob<'_>, report: &str) -> Asked {
    let mut asked = Asked::default();
    for offer in read_offers(report) {
        let is_written = |path: &ProjectPath| {
            let mut written = job.step.writes.iter();
            written.any(|write| {
                fill(write, &job.binding).is_some_and(|p| p.matches(path.as_str()).is_some())
            })
        };
        let memory = |path: &ProjectPath| {
            is_written(path)
                && contract
                    .rule(path)
                    .is_some_and(|rule| rule.tier.as_deref() == Some("L1"))
        };
        match ProjectPath::parse(offer.file())
            .ok()
            .filter(|path| memory(path) && !offer.supersedes())
        {
            Some(path) => asked.by_file.entry(path).or_default().push(offer),
            None => asked.left.push(offer),
        }
    }
    asked
}

/// Returns the memory file with the missing entries added, and their number. None if nothing is
/// missing.
pub fn with_entries(
    path: &ProjectPath,
    now: Option<&str>,
    offers: &[Proposal],
) -> Result<Option<(String, usize)>, String> {
    let mut text = now.map_or_else(
        || format!("# {}\n", path.as_str().trim_end_matches(".md")),
        str::to_owned,
    );
    let mut added = 0;
    for offer in offers {
        if offer.stands_in(&text) {
            continue;
        }
        text = with_entry(&text, offer.section(), &offer.entry)
            .map_err(|error| format!("`{}` cannot take `{}`: {error}", path, offer.entry))?;
        added += 1;
    }
    Ok((added > 0).then_some((text, added)))
}
