//! Checks the memory of a project against itself, on request and whenever Quipu changes it.
//!
//! A memory file is a file of tier L1. Its rule says with `conflicts` whether a change may bring a
//! contradiction (`warn`) or not (`block`). A waiver silences a finding here as in a draft. The
//! claims crate finds the contradictions.

use std::collections::BTreeSet;

use quipu_claims::{Inconsistency, Memory, Page, check_memory};
use quipu_contract::{Actor, FileRule, Language, ProjectPath};
use quipu_recall::Tier;
use quipu_store::Receipt;
use serde::Serialize;

use crate::files::read::{ReadError, may_read_whole};
use crate::novel::check::{Blocking, CheckError, waivers};
use crate::project::open::Project;
use crate::view::pages::{gather, gather_as_is};

/// The result of a check of memory against itself.
#[derive(Debug, Serialize)]
pub struct MemoryChecking {
    pub conflicts: Vec<Inconsistency>,
    pub waived: usize,
}

/// Checks the memory that the actor may read.
pub fn check_own_memory(project: &Project, actor: &Actor) -> Result<MemoryChecking, CheckError> {
    check_pages(project, &gather(project, actor)?.pages)
}

/// Checks pages of memory.
fn check_pages(project: &Project, pages: &[Page]) -> Result<MemoryChecking, CheckError> {
    let held: BTreeSet<String> = waivers(project)?.into_iter().map(|w| w.id).collect();
    let all = check_memory(&Memory::of(pages));
    let count = all.len();
    let conflicts: Vec<Inconsistency> = all
        .into_iter()
        .filter(|found| !held.contains(&found.id))
        .collect();
    Ok(MemoryChecking {
        waived: count - conflicts.len(),
        conflicts,
    })
}

/// Returns true if the contract has memory at this path that is checked.
pub(crate) fn is_checked_memory(project: &Project, path: &ProjectPath) -> bool {
    project.contract.rule(path).is_some_and(is_checked_rule)
}

fn is_checked_rule(rule: &FileRule) -> bool {
    rule.tier.as_deref() == Some("L1") && rule.conflicts.is_some()
}

/// Returns the contradictions inside memory, as far as the actor may read it, in the form in which
/// those of other texts are reported.
pub(crate) fn memory_conflicts(
    project: &Project,
    actor: &Actor,
) -> Result<Vec<Blocking>, CheckError> {
    if !project.contract.files.iter().any(is_checked_rule) {
        return Ok(Vec::new());
    }
    let pages = gather_as_is(project, actor)?.pages;
    let is_checked =
        |path: &str| ProjectPath::parse(path).is_ok_and(|path| is_checked_memory(project, &path));
    let found = check_pages(project, &pages)?.conflicts.into_iter();
    found
        .filter(|one| is_checked(&one.at.path) || is_checked(&one.against.path))
        .map(|one| {
            let path = ProjectPath::parse(&one.at.path).map_err(ReadError::from)?;
            Ok(as_blocking(project, actor, &path, one))
        })
        .collect()
}

/// Returns the contradictions of the files that a commit changed, as far as the actor may read
/// them.
pub fn check_changed_memory(
    project: &Project,
    actor: &Actor,
    receipt: &Receipt,
) -> Result<Vec<Inconsistency>, CheckError> {
    let is_checked =
        |path: &&str| ProjectPath::parse(path).is_ok_and(|path| is_checked_memory(project, &path));
    let paths = receipt.versions.keys().map(String::as_str);
    let changed: BTreeSet<&str> = paths.filter(is_checked).collect();
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = check_own_memory(project, actor)?.conflicts;
    found.retain(|one| {
        [&one.at, &one.against]
            .iter()
            .any(|place| changed.contains(place.path.as_str()))
    });
    Ok(found)
}

/// Finds the contradictions that a new text of a memory file has with memory. Quotes nothing that
/// the actor may not read.
pub(crate) fn find_blocking_memory(
    project: &Project,
    actor: &Actor,
    path: &ProjectPath,
    text: &str,
) -> Result<Vec<Blocking>, CheckError> {
    let mut pages = gather(project, &Actor::Person)?.pages;
    let form = project.contract.rule(path).and_then(|rule| rule.form);
    pages.retain(|page| page.path != path.as_str());
    pages.push(Page {
        path: path.as_str().to_owned(),
        tier: Tier::L1,
        is_memory: true,
        form,
        text: text.to_owned(),
    });
    let found = check_pages(project, &pages)?.conflicts.into_iter();
    let mine =
        found.filter(|one| one.at.path == path.as_str() || one.against.path == path.as_str());
    Ok(mine
        .map(|one| as_blocking(project, actor, path, one))
        .collect())
}

fn as_blocking(
    project: &Project,
    actor: &Actor,
    path: &ProjectPath,
    found: Inconsistency,
) -> Blocking {
    let Inconsistency {
        id,
        at,
        text,
        against,
        against_text,
        why,
        ..
    } = found;
    let is_read = |path: &str| {
        let path = ProjectPath::parse(path);
        path.is_ok_and(|path| may_read_whole(project, actor, &path).is_ok())
    };
    let (own, other) = if at.path == path.as_str() {
        (&at, &against)
    } else {
        (&against, &at)
    };
    let reads_both = is_read(&at.path) && is_read(&against.path);
    let fault = match (reads_both, project.contract.language) {
        (true, Language::En) => {
            format!("`{at}` contradicts `{against}`: “{text}” / “{against_text}”: {why}")
        }
        (true, Language::Zh) => {
            format!("`{at}` 与 `{against}` 矛盾：“{text}”／“{against_text}”：{why}")
        }
        (false, Language::En) => {
            format!("`{own}` contradicts memory in a file that you may not read")
        }
        (false, Language::Zh) => format!("`{own}` 与你不可读的记忆矛盾"),
    };
    Blocking {
        id,
        at: own.to_string(),
        against: if reads_both {
            other.to_string()
        } else {
            String::new()
        },
        fault,
        old: false,
        kept: None,
    }
}
