//! Selects the source files that chapters cite and that may be published.
//!
//! Agents write the citations, so a citation alone grants nothing. A file is published only if it
//! is one of the project's files below the source folder, is not denied to all roles, is not
//! reached through a link, is text, is not too large, and contains nothing that looks like a
//! credential.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::{Actor, ActorName, Class, ProjectPath, Role, find_credentials};
use quipu_publish::{Chapter, sources_of};

use super::PublishError;
use crate::files::read::{may_read, may_read_whole};
use crate::project::open::Project;

/// Source code written for people is smaller; larger files are data.
const MOST_BYTES: u64 = 1 << 20;
/// The limit for all source pages of a book together, so that the book can still be sent.
const MOST_TOGETHER: usize = 32 << 20;

#[derive(Default)]
pub(super) struct Cited {
    pub texts: BTreeMap<String, String>,
    /// The reasons for files that are left out.
    pub withheld: BTreeMap<String, String>,
}

/// Reads the files that the chapters cite below `root`. `folder` is the target of their pages.
pub(super) fn collect_cited(
    project: &Project,
    actor: &Actor,
    chapters: &[Chapter],
    root: &str,
    folder: &str,
    listed: &[ProjectPath],
) -> Result<Cited, PublishError> {
    let paths: BTreeSet<String> = chapters
        .iter()
        .flat_map(|chapter| sources_of(chapter, root))
        .collect();
    let mut cited = Cited::default();
    let mut together = 0;
    for place in listed
        .iter()
        .filter(|listed| paths.contains(listed.as_str()))
    {
        let path = place.as_str().to_owned();
        match read_source(project, actor, place, &page_of(root, folder, &path)) {
            Ok(text) if together + text.len() <= MOST_TOGETHER => {
                together += text.len();
                cited.texts.insert(path, text);
            }
            Ok(_) => drop(cited.withheld.insert(
                path,
                format!("the cited source has more than {} MiB", MOST_TOGETHER >> 20),
            )),
            Err(why) => drop(cited.withheld.insert(path, why)),
        }
    }
    Ok(cited)
}

fn page_of(root: &str, folder: &str, path: &str) -> String {
    format!(
        "{folder}/{}.html",
        path.strip_prefix(root)
            .unwrap_or(path)
            .trim_start_matches('/')
    )
}

/// The text of a source file, or the reason why it is not published.
fn read_source(
    project: &Project,
    actor: &Actor,
    place: &ProjectPath,
    page: &str,
) -> Result<String, String> {
    if may_read_whole(project, actor, place).is_err() {
        return Err(format!("{actor} may not read `{place}`"));
    }
    if is_kept_from_all(project, place) {
        return Err(format!(
            "`{place}` is denied to a role, and no role may read it"
        ));
    }
    if ProjectPath::parse(page).map_or(true, |page| project.contract.class(&page) != Class::Derived)
    {
        return Err(format!("`{page}` is not a valid name of a page"));
    }
    let size = std::fs::symlink_metadata(project.store.root().join(place.as_str()))
        .map_or(0, |found| found.len());
    if size > MOST_BYTES {
        return Err(format!("`{place}` is larger than {} MiB", MOST_BYTES >> 20));
    }
    let Ok(Some(bytes)) = project.store.on_disk(place) else {
        return Err(format!("`{place}` cannot be read, or is a link"));
    };
    let Some(text) = String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
    else {
        return Err(format!("`{place}` is not text"));
    };
    match find_credentials(&project.contract.guards, &text) {
        Some(found) => Err(format!(
            "line {} of `{place}` looks like a credential",
            found.line
        )),
        None => Ok(text),
    }
}

/// Whether a role is denied a file and no role reads it, for any unit. The project then keeps the
/// file from everyone, including readers. A denial for a single role does not concern readers: a
/// writer may be denied the source that the book is about.
fn is_kept_from_all(project: &Project, place: &ProjectPath) -> bool {
    let contract = &project.contract;
    let binding = contract.binding();
    let is_denied = |role: &Role| {
        role.denies
            .iter()
            .any(|deny| deny.path.fill(&binding).matches(place.as_str()).is_some())
    };
    let is_read = |name: &String| {
        let role = ActorName::parse(name).ok();
        let mut units = contract
            .units
            .iter()
            .map(|unit| Some(unit.id.clone()))
            .chain([None]);
        units.any(|unit| {
            may_read(
                project,
                &Actor::Agent {
                    role: role.clone(),
                    unit,
                    agent: None,
                },
                place,
            )
            .is_ok()
        })
    };
    contract.roles.values().any(is_denied) && !contract.roles.keys().any(is_read)
}
