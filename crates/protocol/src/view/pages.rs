//! Gathers all pages of a project that an actor may see.
//!
//! Pages that the actor may not read are left out. If it may read only sections of a page, the rest
//! is blanked.

use quipu_claims::Page;
use quipu_contract::{Actor, Class, Form, ProjectPath, Readable};
use quipu_recall::Tier;
use quipu_store::{StoreError, Version};
use quipu_text::Document;

use crate::files::index_file::refresh_index;
use crate::files::read::{ReadError, may_read};
use crate::project::open::Project;

/// Larger files are data, not memory.
const LARGEST: usize = 8 << 20;

/// Pages with the version and class at which they were read.
#[derive(Debug, Clone)]
pub struct Gathered {
    pub pages: Vec<Page>,
    /// For each page, in the same order.
    pub versions: Vec<(Version, Class)>,
    /// Files that could not be loaded as pages, with a reason that completes "the file …".
    pub unread: Vec<(String, String)>,
}

/// A page, or the reason why there is none.
enum Loaded {
    Page(Page, Version),
    Unread(String),
    Gone,
}

/// Returns every Markdown page that the actor may read. If it may read only sections of a page, the
/// rest is blank.
pub fn gather(project: &Project, actor: &Actor) -> Result<Gathered, ReadError> {
    refresh_index(project)?;
    gather_as_is(project, actor)
}

/// Returns every page that the actor may read, without those of the lowest tier: the manuscripts,
/// which may be many times larger than memory.
pub fn gather_memory(project: &Project, actor: &Actor) -> Result<Vec<Page>, ReadError> {
    let is_manuscript = |path: &ProjectPath| {
        let rule = project.contract.rule(path);
        rule.is_some_and(|rule| rule.tier.as_deref() == Some("L2"))
    };
    Ok(gather_where(project, actor, &|path| !is_manuscript(path))?.pages)
}

/// Like `gather`, for a caller that may not repair the index: it reports external edits.
pub fn gather_as_is(project: &Project, actor: &Actor) -> Result<Gathered, ReadError> {
    gather_where(project, actor, &|_| true)
}

fn gather_where(
    project: &Project,
    actor: &Actor,
    is_wanted: &dyn Fn(&ProjectPath) -> bool,
) -> Result<Gathered, ReadError> {
    let mut gathered = Gathered {
        pages: Vec::new(),
        versions: Vec::new(),
        unread: Vec::new(),
    };
    for path in project.store.list()? {
        if !path.as_str().ends_with(".md")
            && project
                .contract
                .rule(&path)
                .and_then(|rule| rule.tier.as_ref())
                .is_none()
            || !is_wanted(&path)
        {
            continue;
        }
        let Ok(readable) = may_read(project, actor, &path) else {
            continue;
        };
        match load_page(project, &path, readable)? {
            Loaded::Page(page, version) => {
                gathered
                    .versions
                    .push((version, project.contract.class(&path)));
                gathered.pages.push(page);
            }
            Loaded::Unread(why) => gathered.unread.push((path.as_str().to_owned(), why)),
            Loaded::Gone => {}
        }
    }
    Ok(gathered)
}

fn load_page(
    project: &Project,
    path: &ProjectPath,
    readable: Readable,
) -> Result<Loaded, StoreError> {
    let Some((bytes, version)) = project.store.read(path)? else {
        return Ok(Loaded::Gone);
    };
    if bytes.len() > LARGEST {
        return Ok(Loaded::Unread(format!(
            "has {} bytes; a page may have at most {LARGEST}",
            bytes.len()
        )));
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return Ok(Loaded::Unread("is not text".to_owned()));
    };
    let text = match readable {
        Readable::Whole => text,
        Readable::Sections(sections) => only_sections(&text, &sections),
    };
    let rule = project.contract.rule(path);
    let tier = match rule.and_then(|rule| rule.tier.as_deref()) {
        Some("L0") => Tier::L0,
        Some("L2") => Tier::L2,
        _ => Tier::L1,
    };
    let page = Page {
        path: path.as_str().to_owned(),
        tier,
        is_memory: rule.is_none_or(|rule| {
            rule.tier.is_some() || matches!(rule.form, Some(Form::Glossary | Form::Metaphors))
        }),
        form: rule.and_then(|rule| rule.form),
        text,
    };
    Ok(Loaded::Page(page, version))
}

/// Blanks everything outside the named sections. Line numbers are preserved.
fn only_sections(text: &str, sections: &[String]) -> String {
    let document = Document::parse(text);
    let shown: Vec<_> = sections
        .iter()
        .filter_map(|name| document.find(name).ok())
        .map(|section| section.range.clone())
        .collect();
    let visible = |at: usize| shown.iter().any(|range| range.contains(&at));
    text.char_indices()
        .filter(|(at, c)| *c == '\n' || visible(*at))
        .map(|(_, c)| c)
        .collect()
}
