//! The link graph of a project, and renaming a file together with all links to it.
//!
//! A rename is one commit. It is refused if the actor may not read a page with a link. A page that
//! its class forbids to edit keeps its link only on request.

use std::collections::BTreeMap;

use quipu_claims::{Graph, plan_rename};
use quipu_contract::{Actor, Class, ProjectPath};
use quipu_store::{Change, Expect, LeaseToken, Op, Receipt, StoreError};
use quipu_text::{Document, Level};
use thiserror::Error;

use crate::files::read::{ReadError, may_read_whole};
use crate::project::open::Project;
use crate::view::pages::{Gathered, gather};

/// A section with more links is dense, unless the contract's `max_links` sets another limit.
const MOST_LINKS: usize = 5;

/// The start page if the contract names no index.
const ROOTS: [&str; 3] = ["index.md", "README.md", "PROJECT.md"];

/// The links between the pages that the actor may read, and the start page.
pub fn link_graph(project: &Project, actor: &Actor) -> Result<(Graph, Option<String>), ReadError> {
    let map = map_links(project, actor)?;
    Ok((map.graph, map.root))
}

/// The link graph with the data for drawing it.
#[derive(Debug)]
pub struct LinkMap {
    pub graph: Graph,
    /// The start page.
    pub root: Option<String>,
    /// For each page, the highest level of its facts.
    pub levels: Vec<Option<Level>>,
}

/// The link graph with the levels of the pages.
pub fn map_links(project: &Project, actor: &Actor) -> Result<LinkMap, ReadError> {
    let Gathered { pages, unread, .. } = gather(project, actor)?;
    let index = project
        .contract
        .index_path()
        .map(|path| path.as_str().to_owned());
    let root = index.or_else(|| {
        ROOTS
            .into_iter()
            .find(|root| pages.iter().any(|page| page.path == *root))
            .map(str::to_owned)
    });
    let mut graph = Graph::of(&pages, root.as_deref(), most_links(project));
    graph.note_unread(&unread);
    let levels = pages
        .iter()
        .map(|page| {
            Document::parse(&page.text)
                .level_tags()
                .iter()
                .map(|tag| tag.level)
                .min()
        })
        .collect();
    Ok(LinkMap {
        graph,
        root,
        levels,
    })
}

/// The maximum number of links in a section.
pub fn most_links(project: &Project) -> usize {
    project
        .contract
        .vars
        .get("max_links")
        .and_then(|var| var.value.as_ref()?.parse().ok())
        .unwrap_or(MOST_LINKS)
}

#[derive(Debug, Error)]
pub enum MoveError {
    #[error("`{0}` does not exist")]
    NotFound(ProjectPath),
    #[error("`{0}` already exists")]
    Exists(ProjectPath),
    #[error("{} with a link to `{path}` may not be edited: {}", if .pages.len() == 1 { "a file" } else { "files" }, render_pages(.pages))]
    Fixed {
        path: ProjectPath,
        pages: Vec<(String, Class)>,
    },
    #[error("a file that you may not read has a link to `{0}`")]
    Unseen(ProjectPath),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn render_pages(pages: &[(String, Class)]) -> String {
    pages
        .iter()
        .map(|(path, class)| format!("`{path}` ({class})", class = class.as_str()))
        .collect::<Vec<_>>()
        .join(", ")
}

#[derive(Debug)]
pub struct Moved {
    pub receipt: Receipt,
    /// The links that were rewritten, as file:line.
    pub fixed: Vec<String>,
    /// Pages that keep a link to the old path because their class forbids an edit.
    pub left: Vec<(String, Class)>,
}

/// Renames a file and updates every link to it, in one commit.
pub fn move_file(
    project: &Project,
    actor: &Actor,
    old: &ProjectPath,
    new: &ProjectPath,
    leave: bool,
    lease: Option<LeaseToken>,
) -> Result<Moved, MoveError> {
    // Before anything is said of either file.
    may_read_whole(project, actor, old)?;
    project.store.permit(
        actor,
        &Op::Remove {
            path: old.clone(),
            expect: Expect::Any,
        },
    )?;
    project.store.permit(
        actor,
        &Op::Create {
            path: new.clone(),
            bytes: Vec::new(),
        },
    )?;
    // Links of pages that the actor does not see must be fixed too: the store judges whether it
    // may.
    let gathered = gather(project, &Actor::Person)?;
    let Some((bytes, version)) = project.store.read(old)? else {
        return Err(MoveError::NotFound(old.clone()));
    };
    if project.store.read(new)?.is_some() {
        return Err(MoveError::Exists(new.clone()));
    }
    let mut change = Change::by(actor).why(format!("move {old} to {new}"));
    change.lease = lease;
    let (mut fixed, mut left, mut moved_text) = (Vec::new(), Vec::new(), bytes);
    let places: BTreeMap<&str, usize> = gathered
        .pages
        .iter()
        .enumerate()
        .map(|(nth, page)| (page.path.as_str(), nth))
        .collect();
    let is_hidden = |path: &str| {
        ProjectPath::parse(path).is_ok_and(|path| may_read_whole(project, actor, &path).is_err())
    };
    for page in plan_rename(&gathered.pages, old.as_str(), new.as_str(), &is_hidden) {
        if page.path == old.as_str() {
            fixed.extend(page.links.iter().map(ToString::to_string));
            moved_text = page.text.into_bytes();
            continue;
        }
        let (version, class) = &gathered.versions[places[page.path.as_str()]];
        let path = ProjectPath::parse(&page.path).map_err(ReadError::Path)?;
        match class {
            // The index is updated in the same commit.
            Class::Derived => {}
            _ if may_read_whole(project, actor, &path).is_err() => {
                return Err(MoveError::Unseen(old.clone()));
            }
            Class::Sealed | Class::Append | Class::Record => left.push((page.path, *class)),
            _ => {
                fixed.extend(page.links.iter().map(ToString::to_string));
                change = change.write(&path, page.text, Expect::Version(version.clone()));
            }
        }
    }
    if !left.is_empty() && !leave {
        return Err(MoveError::Fixed {
            path: old.clone(),
            pages: left,
        });
    }
    change = change.create(new, moved_text).op(Op::Remove {
        path: old.clone(),
        expect: Expect::Version(version),
    });
    let receipt = project.validate(change)?.publish()?;
    Ok(Moved {
        receipt,
        fixed,
        left,
    })
}
