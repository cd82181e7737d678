//! Recall over a project: the sections that answer a question, from the files as they are now.
//!
//! The index in `.quipu/recall` is derived and follows the files: before every answer the versions
//! it covers are compared with those of the files, and what differs is read anew. Where the index
//! cannot be written, fresh text is laid over it: an answer always speaks of the current files.

use std::collections::BTreeMap;

use quipu_contract::{Actor, Class, Pattern, ProjectPath, Readable};
use quipu_store::StoreError;
use quipu_text::Document;
use quipu_text::recall::{Answer, Error, FileText, Index, Options, Overlay, Section, Tier, Writer};
use thiserror::Error;

use crate::index_file::refresh_index;
use crate::project::Project;
use crate::reading::ReadError;

/// The encoder reads at most so many new sections before one answer: about half a second.
const ENCODE_AT_ONCE: usize = 256;
/// Longer files hold data, not memory.
const LARGEST: usize = 8 << 20;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    pub question: &'a str,
    pub k: usize,
    /// Only in paths that match.
    pub within: Option<Pattern>,
    pub tier: Option<Tier>,
    pub use_model: bool,
    /// Let the encoder read everything first, however long it takes.
    pub complete: bool,
}

#[derive(Debug, Error)]
pub enum RecallError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Index(#[from] Error),
}

/// An answer, and what it covers.
#[derive(Debug)]
pub struct Recalled {
    pub answer: Answer,
    /// Files that had changed since the index last saw them, and were read for this answer.
    pub read_anew: usize,
}

/// A file that can be searched, at its current version.
struct Current {
    tier: Tier,
    version: String,
}

/// Finds the sections that answer a question, among those the actor may read.
pub fn recall(project: &Project, actor: &Actor, ask: &Ask<'_>) -> Result<Recalled, RecallError> {
    let current = current_files(project)?;
    let grant = project.contract.grant(actor).map_err(ReadError::UnknownActor)?;
    let binding = project.contract.actor_binding(actor);
    let folder = project.store.root().join(".quipu/recall");
    let (index, mut fresh, gone, read_anew) = bring_up_to_date(project, &folder, &current, ask)?;

    // Where a role reads only a section of a file, only that section is searched.
    let mut readable = BTreeMap::new();
    for path in current.keys() {
        let Ok(parsed) = ProjectPath::parse(path) else { continue };
        match grant.may_read(&parsed, &binding) {
            Ok(Readable::Whole) => {
                readable.insert(path.as_str(), ());
            }
            Ok(Readable::Sections(sections)) => {
                fresh.retain(|file| file.path != *path);
                if let Some(file) = load(project, path, &current[path], Some(&sections))? {
                    readable.insert(path.as_str(), ());
                    fresh.push(file);
                }
            }
            Err(_) => {}
        }
    }
    let visible = |path: &str, tier: Tier| {
        readable.contains_key(path)
            && ask.tier.is_none_or(|wanted| wanted == tier)
            && ask.within.as_ref().is_none_or(|pattern| pattern.matches(path).is_some())
    };
    let mut overlay = Overlay::new(&fresh, &gone).map_err(|damage| Error::Damaged { folder: folder.clone(), damage })?;
    if ask.use_model && !fresh.is_empty() {
        overlay.encode(ENCODE_AT_ONCE).map_err(|damage| Error::Damaged { folder: folder.clone(), damage })?;
    }
    let options = Options { k: ask.k, visible: Some(&visible), use_model: ask.use_model };
    let mut answer = index.recall_with(&overlay, ask.question, &options)?;
    // Sections that were indexed by words alone are read by the encoder when it is first wanted.
    if ask.use_model
        && answer.encoded < answer.sections
        && read_anew == 0
        && let Ok(index) = write(&folder, &[], &[], ask)
    {
        answer = index.recall_with(&overlay, ask.question, &options)?;
    }
    Ok(Recalled { answer, read_anew })
}

type UpToDate = (Index, Vec<FileText>, Vec<String>, usize);

/// The index over the current files; what could not be written into it comes back as fresh text.
fn bring_up_to_date(
    project: &Project,
    folder: &std::path::Path,
    current: &BTreeMap<String, Current>,
    ask: &Ask<'_>,
) -> Result<UpToDate, RecallError> {
    let opened = match Index::open(folder) {
        Ok(index) => Some(index),
        Err(error) if error.needs_rebuild() => None,
        Err(error) => return Err(error.into()),
    };
    let stale: Vec<&String> = match &opened {
        Some(index) => current.iter().filter(|(path, file)| index.version(path) != Some(&file.version)).map(|(path, _)| path).collect(),
        None => current.keys().collect(),
    };
    let gone: Vec<String> = opened
        .iter()
        .flat_map(|index| index.versions())
        .filter(|(path, _)| !current.contains_key(*path))
        .map(|(path, _)| path.to_owned())
        .collect();
    if let Some(index) = opened
        && stale.is_empty()
        && gone.is_empty()
        && !ask.complete
    {
        return Ok((index, Vec::new(), Vec::new(), 0));
    }
    let mut texts = Vec::new();
    for path in &stale {
        texts.extend(load(project, path, &current[*path], None)?);
    }
    let read_anew = texts.len();
    match write(folder, &texts, &gone, ask) {
        Ok(index) => Ok((index, Vec::new(), Vec::new(), read_anew)),
        // A folder that cannot be written is still searched, with what is new laid over the index.
        Err(Error::Io(_)) => Ok((Index::open(folder).unwrap_or_else(|_| Index::empty()), texts, gone, read_anew)),
        Err(error) => Err(error.into()),
    }
}

fn write(folder: &std::path::Path, texts: &[FileText], gone: &[String], ask: &Ask<'_>) -> Result<Index, Error> {
    let mut writer = match Writer::open(folder) {
        Err(error) if error.needs_rebuild() => Writer::create(folder)?,
        other => other?,
    };
    writer.encode_at_most(match (ask.use_model, ask.complete) {
        (false, _) => 0,
        (true, false) => ENCODE_AT_ONCE,
        (true, true) => usize::MAX,
    });
    for file in texts {
        writer.replace(file)?;
    }
    for path in gone {
        writer.remove(path);
    }
    writer.publish()?;
    Index::open(folder)
}

/// Every file that holds memory: those a rule names, and Markdown that none names.
fn current_files(project: &Project) -> Result<BTreeMap<String, Current>, StoreError> {
    refresh_index(project)?;
    let survey = project.store.survey()?;
    let mut current = BTreeMap::new();
    for file in survey.files.iter().filter(|f| f.class != Class::Free) {
        let Ok(path) = ProjectPath::parse(&file.path) else { continue };
        let tier = match project.contract.rule(&path).and_then(|r| r.tier.as_deref()) {
            Some("L0") => Tier::L0,
            Some("L2") => Tier::L2,
            _ => Tier::L1,
        };
        if let Some(version) = &file.version
            && is_memory(&file.path)
        {
            current.insert(file.path.clone(), Current { tier, version: version.to_string() });
        }
    }
    for path in survey.free.iter().filter(|p| p.ends_with(".md")) {
        let Ok(parsed) = ProjectPath::parse(path) else { continue };
        if let Some(version) = project.store.look_of(&parsed)? {
            current.insert(path.clone(), Current { tier: Tier::L1, version });
        }
    }
    Ok(current)
}

fn is_memory(path: &str) -> bool {
    path != "quipu.toml" && [".md", ".txt", ".json"].iter().any(|ending| path.ends_with(ending))
}

/// The sections of a file, or only those a role may read.
fn load(project: &Project, path: &str, current: &Current, only: Option<&[String]>) -> Result<Option<FileText>, StoreError> {
    let Ok(parsed) = ProjectPath::parse(path) else { return Ok(None) };
    let Some((bytes, _)) = project.store.read(&parsed)? else { return Ok(None) };
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    if text.len() > LARGEST {
        return Ok(None);
    }
    let document = Document::parse(&text);
    let ranges: Option<Vec<_>> =
        only.map(|names| names.iter().filter_map(|name| document.find(name).ok()).map(|s| s.range.clone()).collect());
    let sections = document
        .sections()
        .iter()
        .filter(|s| ranges.as_ref().is_none_or(|ranges| ranges.iter().any(|r| r.start <= s.range.start && s.range.end <= r.end)))
        .map(|section| Section {
            line: u32::try_from(section.line).unwrap_or(u32::MAX),
            heading_path: document.heading_path(section).into_iter().map(str::to_owned).collect(),
            text: without_comments(document.slice(&section.body)),
        })
        .collect();
    Ok(Some(FileText { path: path.to_owned(), version: current.version.clone(), tier: current.tier, sections }))
}

/// The text without HTML comments: examples in templates and markers are not memory.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_not_searched() {
        assert_eq!(without_comments("a <!-- example\nx --> b\n<!-- DONE -->\n"), "a  b\n\n");
        assert_eq!(without_comments("a <!-- open"), "a ");
        assert_eq!(without_comments("plain"), "plain");
    }
}
