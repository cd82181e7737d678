//! Splits a page that exceeds its size limit at its sections, and updates links, in one commit.
//!
//! The split is refused if the actor may not read or edit a page that links to the old one.

use quipu_claims::plan_split;
use quipu_contract::{Actor, Class, ProjectPath};
use quipu_store::{Change, Expect, LeaseToken, Receipt, StoreError};
use quipu_text::Counter;
use thiserror::Error;

use crate::files::read::{ReadError, may_read_whole};
use crate::project::open::Project;
use crate::view::pages::gather;

/// The suffix of the variable that limits a page: `chronicle_tokens` for `chronicle.md`.
const BOUND: &str = "_tokens";

#[derive(Debug, Error)]
pub enum GrowthError {
    #[error("`{0}` does not exist")]
    NotFound(ProjectPath),
    #[error("`{0}` has fewer than two sections and cannot be split")]
    Whole(ProjectPath),
    #[error("a file that you may not read in full has a link into `{0}`")]
    Unseen(ProjectPath),
    #[error("files with a link into `{path}` may not be edited: {pages}")]
    Unchangeable { path: ProjectPath, pages: String },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of a split.
#[derive(Debug)]
pub enum Grown {
    /// The page is within its limit. Names the variable with the limit, if there is one.
    Within {
        tokens: u64,
        bound: Option<u64>,
        variable: String,
    },
    Split {
        receipt: Box<Receipt>,
        created: Vec<String>,
        fixed: Vec<String>,
    },
}

/// Splits a page that exceeds its limit, or unconditionally if `now`.
pub fn split_page(
    project: &Project,
    actor: &Actor,
    path: &ProjectPath,
    now: bool,
    lease: Option<LeaseToken>,
) -> Result<Grown, GrowthError> {
    may_read_whole(project, actor, path)?;
    // Pages that the actor sees in part would be written back in part.
    let gathered = gather(project, &Actor::Person)?;
    let Some(page) = gathered
        .pages
        .iter()
        .find(|page| page.path == path.as_str())
    else {
        return Err(GrowthError::NotFound(path.clone()));
    };
    let name = path
        .as_str()
        .trim_end_matches(".md")
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned()
        + BOUND;
    let bound = project
        .contract
        .vars
        .get(&name)
        .and_then(|var| var.value.as_ref()?.parse().ok());
    let tokens = Counter::O200k.count(&page.text).0;
    if bound.is_none_or(|bound| tokens <= bound) && !now {
        return Ok(Grown::Within {
            tokens,
            bound,
            variable: name,
        });
    }
    let split = plan_split(&gathered.pages, path.as_str())
        .ok_or_else(|| GrowthError::Whole(path.clone()))?;
    let mut change = Change::by(actor).why(format!("{path} is split by its sections"));
    // The page becomes shorter on purpose.
    (change.lease, change.force) = (lease, true);
    let (mut unchangeable, mut fixed) = (Vec::new(), Vec::new());
    for page in split.changed {
        let nth = gathered
            .pages
            .iter()
            .position(|p| p.path == page.path)
            .expect("a fixed page was gathered");
        let (version, class) = &gathered.versions[nth];
        let linking = ProjectPath::parse(&page.path).map_err(ReadError::Path)?;
        match class {
            Class::Derived => {}
            _ if may_read_whole(project, actor, &linking).is_err() => {
                return Err(GrowthError::Unseen(path.clone()));
            }
            Class::Sealed | Class::Append | Class::Record => {
                unchangeable.push(format!("`{}` ({})", page.path, class.as_str()))
            }
            _ => {
                fixed.extend(page.links.iter().map(ToString::to_string));
                change = change.write(&linking, page.text, Expect::Version(version.clone()));
            }
        }
    }
    if !unchangeable.is_empty() {
        return Err(GrowthError::Unchangeable {
            path: path.clone(),
            pages: unchangeable.join(", "),
        });
    }
    let mut created = Vec::new();
    for (path, text) in split.created {
        change = change.create(&ProjectPath::parse(&path).map_err(ReadError::Path)?, text);
        created.push(path);
    }
    let receipt = project.validate(change)?.publish()?;
    Ok(Grown::Split {
        receipt: Box::new(receipt),
        created,
        fixed,
    })
}
