//! Consolidation: proposes lines of memory to drop, and drops one that a person accepts.

use quipu_claims::{Memory, Merge, find_merges};
use quipu_contract::{Actor, ProjectPath};
use quipu_recall::Tier;
use quipu_store::{Change, Expect, LeaseToken, Receipt};

use super::check::{last_chapter, waivers};
use super::learn::LearnError;
use super::memory_check::is_checked_memory;
use crate::project::open::Project;
use crate::view::pages::gather;

/// The lines of memory that could be dropped, as far as the actor may read it. A waiver keeps a line.
pub fn merges(project: &Project, actor: &Actor) -> Result<Vec<Merge>, LearnError> {
    let mut pages = gather(project, actor)?.pages;
    let last = last_chapter(&pages);
    pages.retain(|page| {
        page.tier == Tier::L2
            || ProjectPath::parse(&page.path).is_ok_and(|path| is_checked_memory(project, &path))
    });
    let mut found = find_merges(&Memory::of(&pages), last);
    let held = waivers(project)?;
    found.retain(|merge| !held.iter().any(|waiver| waiver.id == merge.id));
    Ok(found)
}

/// Drops a line of memory.
pub fn accept_merge(
    project: &Project,
    actor: &Actor,
    id: &str,
    lease: Option<LeaseToken>,
) -> Result<(Merge, Receipt), LearnError> {
    let found = merges(project, actor)?.into_iter().find(|one| one.id == id);
    let merge = found.ok_or_else(|| LearnError::NoProposal(id.to_owned()))?;
    let path = ProjectPath::parse(&merge.at.path)?;
    let Some((bytes, version)) = project.store.read(&path)? else {
        return Err(LearnError::NoProposal(id.to_owned()));
    };
    let text = String::from_utf8(bytes).map_err(|_| LearnError::NotText(path.clone()))?;
    let kept: String = text
        .split_inclusive('\n')
        .enumerate()
        .filter(|(nth, _)| nth + 1 != merge.at.line)
        .map(|(_, line)| line)
        .collect();
    let mut change = Change::by(actor).write(&path, kept, Expect::Version(version));
    change.lease = lease;
    let receipt = project
        .validate(change.why(format!("merged {id}")))?
        .publish()?;
    Ok((merge, receipt))
}
