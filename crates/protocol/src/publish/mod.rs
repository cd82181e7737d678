//! Publishes the final chapters of a project as pages and EPUB, in one commit.
//!
//! The forms in the contract define which files are chapters and where pages go; a marker makes a
//! chapter final. Unchanged files are not written, so publishing twice makes one commit.

mod cited;
mod memory;

use std::collections::BTreeMap;

use quipu_contract::{
    Actor, Builtin, Class, Contract, Denial, FileRule, Form, Pattern, ProjectPath, Step, UnitId,
};
use quipu_publish::{Book, Chapter, Places, Remark, diagrams_of, drawing_name, images_of};
use quipu_store::{Change, Expect, LeaseToken, Op, Receipt, StoreError, Version};
use quipu_text::marker;
use thiserror::Error;

use self::cited::{Cited, collect_cited};
use self::memory::{collect_references, collect_terms};
use crate::files::read::{ReadError, may_read_whole};
use crate::flow::{Printed, Publisher};
use crate::project::open::Project;

#[derive(Debug, Error)]
pub enum PublishError {
    #[error("the contract names no file of the form `{0}`, which `publish` needs")]
    NoForm(Form),
    #[error("no chapter is final yet{}", render_unfinished(.0))]
    NothingFinal(Vec<String>),
    #[error("{}", .0.what)]
    Denied(Denial),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn render_unfinished(unfinished: &[String]) -> String {
    match unfinished {
        [] => String::new(),
        units => format!(": {} are drafts", units.join(", ")),
    }
}

/// Draws Mermaid diagrams. The program provides the implementation.
pub trait Draw: Sync {
    /// Draws a diagram as PNG, or returns the reason why it cannot.
    fn draw(&self, diagram: &str) -> Result<Vec<u8>, String>;
}

pub struct PublishRequest<'r> {
    pub actor: &'r Actor,
    pub lease: Option<LeaseToken>,
    /// Only files that match one of these patterns; all if empty.
    pub only: &'r [Pattern],
    pub draw: Option<&'r dyn Draw>,
}

#[derive(Debug)]
pub struct Publishing {
    /// None if no file changed.
    pub receipt: Option<Receipt>,
    pub chapters: usize,
    /// Declared or begun chapters that are not final.
    pub unfinished: Vec<String>,
    /// Places where a text could not be rendered as intended.
    pub remarks: Vec<Remark>,
}

pub fn publish(
    project: &Project,
    request: &PublishRequest<'_>,
) -> Result<Publishing, PublishError> {
    let (book, unfinished) = collect_book(project, request.actor, request.draw)?;
    if book.chapters.is_empty() {
        return Err(PublishError::NothingFinal(unfinished));
    }
    let made = quipu_publish::publish(&book);
    let contract = &project.contract;
    let grant = contract
        .grant(request.actor)
        .map_err(ReadError::UnknownActor)?;
    let binding = contract.actor_binding(request.actor);
    // Only Quipu may write derived files, and a commit has one author.
    let mut change = Change::by(&Actor::Runtime).why(format!("published by {}", request.actor));
    (change.lease, change.force) = (request.lease.clone(), true);
    for (path, bytes) in made.files {
        let path = ProjectPath::parse(&path).map_err(ReadError::Path)?;
        let asked = request.only.is_empty()
            || request
                .only
                .iter()
                .any(|only| only.matches(path.as_str()).is_some());
        if !asked || project.store.on_disk(&path)?.as_ref() == Some(&bytes) {
            continue;
        }
        let derived = contract.class(&path) == Class::Derived;
        if !derived {
            grant
                .may_write(&path, &binding)
                .map_err(PublishError::Denied)?;
        }
        change = change.op(if derived {
            Op::Derive {
                path,
                bytes,
                expect: Expect::Any,
            }
        } else {
            Op::Write {
                path,
                bytes,
                expect: Expect::Any,
            }
        });
    }
    let receipt = match change.ops.is_empty() {
        true => None,
        false => Some(project.validate(change)?.publish()?),
    };
    Ok(Publishing {
        receipt,
        chapters: book.chapters.len(),
        unfinished,
        remarks: made.remarks,
    })
}

/// Publishes for a flow's step, as `quipu publish` does.
pub struct BookPublisher<'d> {
    pub draw: Option<&'d dyn Draw>,
}

impl Publisher for BookPublisher<'_> {
    fn print(&self, project: &Project, _: &Step, _: Option<&UnitId>) -> Result<Printed, String> {
        let (book, unfinished) =
            collect_book(project, &Actor::Runtime, self.draw).map_err(|e| e.to_string())?;
        if book.chapters.is_empty() {
            return Err(PublishError::NothingFinal(unfinished).to_string());
        }
        let parse = |path: &str| ProjectPath::parse(path).map_err(|e| e.to_string());
        let mut printed = Printed::default();
        for (path, bytes) in quipu_publish::publish(&book).files {
            printed.files.push((parse(&path)?, bytes));
        }
        let sources = book
            .sources
            .iter()
            .map(|(path, text)| (path, text.as_bytes()));
        for (path, bytes) in book
            .images
            .iter()
            .map(|(path, bytes)| (path, bytes.as_slice()))
            .chain(sources)
        {
            printed.reads.push((parse(path)?, Version::of(bytes)));
        }
        Ok(printed)
    }
}

/// Collects the final chapters with their images, and the names of unfinished chapters.
fn collect_book(
    project: &Project,
    actor: &Actor,
    draw: Option<&dyn Draw>,
) -> Result<(Book, Vec<String>), PublishError> {
    let contract = &project.contract;
    let rule = first_of(contract, Form::Chapter)?;
    let pages = first_of(contract, Form::Page)?;
    let mut final_texts = BTreeMap::new();
    let mut unfinished: Vec<String> = Vec::new();
    let listed = project.store.list()?;
    for path in &listed {
        let Some(unit) = rule
            .path
            .matches(path.as_str())
            .and_then(|found| found.get("unit").cloned())
        else {
            continue;
        };
        if contract
            .rule(path)
            .is_none_or(|found| found.path != rule.path)
        {
            continue;
        }
        may_read_whole(project, actor, path)?;
        let text = project
            .store
            .read(path)?
            .and_then(|(bytes, _)| String::from_utf8(bytes).ok());
        match text.filter(|text| is_final(rule, text)) {
            Some(text) => drop(final_texts.insert(unit, (path.clone(), text))),
            None => unfinished.push(unit),
        }
    }
    // Declared units come first in their order; others follow by name.
    let declared: Vec<String> = contract
        .units
        .iter()
        .map(|unit| unit.id.to_string())
        .collect();
    let missing = declared
        .iter()
        .filter(|unit| !final_texts.contains_key(*unit) && !unfinished.contains(*unit));
    unfinished.extend(missing.cloned().collect::<Vec<_>>());
    unfinished.sort();
    let others: Vec<String> = final_texts
        .keys()
        .filter(|unit| !declared.contains(unit))
        .cloned()
        .collect();
    let mut chapters = Vec::new();
    for (at, id) in declared.into_iter().chain(others).enumerate() {
        let Some((path, text)) = final_texts.remove(&id) else {
            continue;
        };
        let unit = contract.units.iter().find(|unit| unit.id.as_str() == id);
        let title = unit
            .map_or(id.as_str(), |unit| {
                unit.title.in_language(contract.language)
            })
            .to_owned();
        let binding = BTreeMap::from([("unit".to_owned(), id.clone())]);
        let page = pages.path.fill(&binding);
        let page = page
            .as_literal()
            .ok_or(PublishError::NoForm(Form::Page))?
            .to_owned();
        chapters.push(Chapter {
            id,
            number: at + 1,
            title,
            path: path.as_str().to_owned(),
            text,
            page,
        });
    }
    let mut images = BTreeMap::new();
    for path in chapters.iter().flat_map(images_of) {
        let Ok(place) = ProjectPath::parse(&path) else {
            continue;
        };
        if may_read_whole(project, actor, &place).is_ok()
            && let Some(bytes) = project.store.on_disk(&place)?
        {
            images.insert(path, bytes);
        }
    }
    let value = |name: &str| {
        contract
            .vars
            .get(name)
            .and_then(|var| var.value.clone())
            .filter(|value| !value.trim().is_empty())
    };
    let places = places(contract)?;
    let source_root = value("source_root")
        .map(|root| root.trim_matches('/').to_owned())
        .unwrap_or_default();
    let cited = match &places.sources {
        Some(folder) if !source_root.is_empty() => {
            collect_cited(project, actor, &chapters, &source_root, folder, &listed)?
        }
        _ => Cited::default(),
    };
    let book = Book {
        title: value("project").unwrap_or_default(),
        author: value("author"),
        language: contract.language,
        drawings: collect_drawings(project, &chapters, &places.media, draw)?,
        terms: collect_terms(project, actor)?,
        references: collect_references(project, actor)?,
        source_root,
        sources: cited.texts,
        withheld: cited.withheld,
        places,
        chapters,
        images,
    };
    Ok((book, unfinished))
}

/// Collects the pictures of the diagrams. A published picture is reused, so that the same book
/// gives the same bytes and no program runs.
fn collect_drawings(
    project: &Project,
    chapters: &[Chapter],
    media: &str,
    draw: Option<&dyn Draw>,
) -> Result<BTreeMap<String, Result<Vec<u8>, String>>, PublishError> {
    let mut drawings = BTreeMap::new();
    for diagram in chapters.iter().flat_map(diagrams_of) {
        let place = ProjectPath::parse(&format!("{media}/{}", drawing_name(&diagram)))
            .map_err(ReadError::Path)?;
        let is_derived = project.contract.class(&place) == Class::Derived;
        let known = if is_derived {
            project.store.read(&place)?.map(|(bytes, _)| bytes)
        } else {
            None
        };
        if let Some(bytes) = known {
            drawings.insert(diagram, Ok(bytes));
        } else if let (Some(draw), false) = (draw, drawings.contains_key(&diagram)) {
            let drawn = draw.draw(&diagram);
            drawings.insert(diagram, drawn);
        }
    }
    Ok(drawings)
}

fn is_final(rule: &FileRule, text: &str) -> bool {
    rule.marker.as_ref().is_none_or(|wanted| {
        marker(text).is_some_and(|found| wanted.split('|').any(|name| name == found.name))
    })
}

fn first_of(contract: &Contract, form: Form) -> Result<&FileRule, PublishError> {
    contract
        .of_form(form)
        .next()
        .ok_or(PublishError::NoForm(form))
}

/// The paths for the files of the whole book: from their rules, or from the publishing step if a
/// rule has a wildcard.
fn places(contract: &Contract) -> Result<Places, PublishError> {
    let binding = contract.binding();
    let steps = contract
        .steps
        .iter()
        .filter(|step| step.builtin == Some(Builtin::Publish));
    let written: Vec<String> = steps
        .flat_map(|step| &step.writes)
        .filter_map(|path| {
            Pattern::parse(path)
                .ok()?
                .fill(&binding)
                .as_literal()
                .map(str::to_owned)
        })
        .collect();
    let named = |form: Form| {
        let rule = contract.of_form(form).next()?;
        let by_step = || {
            written
                .iter()
                .find(|path| rule.path.matches(path).is_some())
                .cloned()
        };
        rule.path.as_literal().map(str::to_owned).or_else(by_step)
    };
    let contents = named(Form::Contents).ok_or(PublishError::NoForm(Form::Contents))?;
    let stylesheet = named(Form::Stylesheet).ok_or(PublishError::NoForm(Form::Stylesheet))?;
    let beside = || {
        contents
            .rsplit_once('/')
            .map_or("media".to_owned(), |(folder, _)| format!("{folder}/media"))
    };
    let folder = |form: Form| {
        contract
            .of_form(form)
            .next()?
            .path
            .as_str()
            .rsplit_once('/')
            .map(|(folder, _)| folder.to_owned())
    };
    Ok(Places {
        media: folder(Form::Media).unwrap_or_else(beside),
        ebook: named(Form::Ebook),
        glossary: named(Form::GlossaryPage),
        search: named(Form::SearchPage),
        print: named(Form::PrintPage),
        sources: folder(Form::SourcePage),
        contents,
        stylesheet,
    })
}
