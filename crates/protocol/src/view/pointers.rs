//! From a role's pointers to the texts they name.
//!
//! Variables are filled, wildcards list files, sections are looked up, and of two pointers to one text the first
//! wins. What is not there is told with who would write it.

use std::collections::BTreeSet;

use quipu_contract::{Binding, Class, Contract, Need, Pattern, Place, Pointer, ProjectPath, Role};
use quipu_store::Version;
use quipu_text::{Document, marker};
use serde::Serialize;

use super::ViewError;
use crate::project::Project;
use crate::reading::find_section;

/// A pointer with the texts it names.
#[derive(Debug, Clone)]
pub struct Target<'c> {
    pub pointer: &'c Pointer,
    /// `outline-final.md#ch10`, with variables filled.
    pub name: String,
    pub class: Class,
    pub order: Order,
    pub files: Vec<TargetFile>,
}

/// One text: a file, or the section that the pointer names.
#[derive(Debug, Clone)]
pub struct TargetFile {
    pub path: ProjectPath,
    pub section: Option<String>,
    pub version: Version,
    pub text: String,
}

/// Where a text stands in a view: what changes least comes first, so that prompts share a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    Static,
    Append,
    State,
    /// Bound to the unit or the agent.
    Task,
}

/// A pointer that names nothing yet.
#[derive(Debug, Clone, Serialize)]
pub struct Absent {
    pub name: String,
    pub need: Need,
    /// Why it could not be read.
    pub what: String,
    pub writers: Vec<Writer>,
    pub place: Place,
    /// The role makes it itself, so that it cannot be asked for the first time.
    pub own: bool,
    /// It is there, and is no text.
    #[serde(skip)]
    pub unreadable: bool,
}

/// Who writes a path: a role, a step that Quipu does, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Writer {
    pub role: Option<String>,
    pub step: Option<String>,
}

/// The texts of a role's pointers, in the order of a view, and what is not there.
pub fn resolve_pointers<'c>(
    project: &'c Project,
    role: &'c Role,
    binding: &Binding,
    all: &[ProjectPath],
) -> Result<(Vec<Target<'c>>, Vec<Absent>), ViewError> {
    let mut targets = Vec::new();
    let mut absent = Vec::new();
    let mut taken: BTreeSet<(ProjectPath, Option<String>)> = BTreeSet::new();
    for pointer in &role.reads {
        let path = fill(&pointer.path, role, binding)?;
        let section = pointer.section.as_ref().map(|s| fill_text(s, role, pointer, binding)).transpose()?;
        let name = match &section {
            Some(section) => format!("{path}#{section}"),
            None => path.as_str().to_owned(),
        };
        let mut target = Target { pointer, name, class: Class::Free, order: Order::Static, files: Vec::new() };
        let mut lack = Lack::File;
        let mut repeated = false;
        let is_wild = path.as_literal().is_none();
        let mut unreadable = Vec::new();
        for path in list(&path, role, binding, all) {
            target.class = project.contract.class(&path);
            let whole = (path.clone(), None);
            let own = (path.clone(), section.clone());
            if taken.contains(&whole) || taken.contains(&own) || (section.is_none() && taken.iter().any(|(p, _)| *p == path)) {
                repeated = true;
                continue;
            }
            match load(project, &path, section.as_deref())? {
                Ok(file) => {
                    taken.insert(own);
                    target.files.push(file);
                }
                // What a wildcard finds is meant, each by its own name.
                Err(Lack::Text) if is_wild => unreadable.push(path),
                Err(found) => lack = found,
            }
        }
        target.order = order(pointer, target.class);
        let without = |name: String, pattern: &Pattern, lack: &Lack| {
            let writers = writers(&project.contract, pattern, binding);
            let unreadable = *lack == Lack::Text;
            let makes_it = !writers.is_empty() && writers.iter().all(|w| w.role.as_deref() == Some(role.name.as_str()));
            let (what, place, own) = (lack.to_string(), pointer.place.clone(), makes_it && !unreadable);
            Absent { name, need: pointer.need, what, writers, place, own, unreadable }
        };
        let none_told = unreadable.is_empty();
        for file in unreadable {
            let pattern = Pattern::parse(file.as_str()).unwrap_or_else(|_| path.clone());
            absent.push(without(file.to_string(), &pattern, &Lack::Text));
        }
        if !target.files.is_empty() {
            targets.push(target);
        } else if !repeated && none_told {
            absent.push(without(target.name, &path, &lack));
        }
    }
    targets.sort_by_key(|t| t.order);
    Ok((targets, absent))
}

fn fill(pattern: &Pattern, role: &Role, binding: &Binding) -> Result<Pattern, ViewError> {
    let filled = pattern.fill(binding);
    if let Some(hole) = filled.holes().next() {
        return Err(ViewError::open_hole(role, hole));
    }
    Ok(filled)
}

fn fill_text(text: &str, role: &Role, pointer: &Pointer, binding: &Binding) -> Result<String, ViewError> {
    let mut filled = text.to_owned();
    for (name, value) in binding {
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    match filled.split_once('{').and_then(|(_, rest)| rest.split_once('}')) {
        Some((hole, _)) if ["unit", "agent"].contains(&hole) => Err(ViewError::open_hole(role, hole)),
        Some((hole, _)) => Err(ViewError::NoValue { name: hole.to_owned(), place: pointer.place.clone() }),
        None => Ok(filled),
    }
}

/// The files a filled pattern names. A wildcard yields to the role's deny list, as it does for every read.
fn list(pattern: &Pattern, role: &Role, binding: &Binding, all: &[ProjectPath]) -> Vec<ProjectPath> {
    if let Some(literal) = pattern.as_literal() {
        return ProjectPath::parse(literal).into_iter().collect();
    }
    let denies: Vec<Pattern> = role.denies.iter().map(|d| d.path.fill(binding)).collect();
    let denied = |path: &ProjectPath| denies.iter().any(|d| d.matches(path.as_str()).is_some());
    all.iter().filter(|path| pattern.matches(path.as_str()).is_some() && !denied(path)).cloned().collect()
}

/// Why there is no text; its words complete "`path` …".
#[derive(Debug, Clone, PartialEq, Eq)]
enum Lack {
    File,
    Text,
    Section(String),
}

impl std::fmt::Display for Lack {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Lack::File => out.write_str("is not there"),
            Lack::Text => out.write_str("is not text"),
            Lack::Section(anchor) => write!(out, "has no section `{anchor}`"),
        }
    }
}

/// A text, or what there is in place of one.
fn load(project: &Project, path: &ProjectPath, section: Option<&str>) -> Result<Result<TargetFile, Lack>, ViewError> {
    let Some((bytes, version)) = project.store.read(path)? else {
        return Ok(Err(Lack::File));
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return Ok(Err(Lack::Text));
    };
    Ok(match section {
        None => Ok(TargetFile { path: path.clone(), section: None, version, text }),
        Some(anchor) => slice_section(&text, anchor)
            .map(|text| TargetFile { path: path.clone(), section: Some(anchor.to_owned()), version, text })
            .ok_or_else(|| Lack::Section(anchor.to_owned())),
    })
}

/// The text of a section. The blanks and the completion marker behind it are not part of it: another section may be
/// written there, and this one stays what it is.
pub fn slice_section(text: &str, anchor: &str) -> Option<String> {
    let document = Document::parse(text);
    let found = find_section(&document, anchor).ok()?;
    let end = marker(text).map_or(text.len(), |m| m.start).clamp(found.range.start, found.range.end);
    let own = document.slice(&(found.range.start..end)).trim_end();
    Some(format!("{own}\n"))
}

fn order(pointer: &Pointer, class: Class) -> Order {
    if pointer.path.holes().next().is_some() || pointer.section.as_ref().is_some_and(|s| s.contains('{')) {
        return Order::Task;
    }
    match class {
        Class::Sealed | Class::Free => Order::Static,
        Class::Append | Class::Record => Order::Append,
        Class::State | Class::Derived | Class::Overwrite => Order::State,
    }
}

/// Who writes what a pointer names.
fn writers(contract: &Contract, path: &Pattern, binding: &Binding) -> Vec<Writer> {
    let mut found = Vec::new();
    for role in contract.roles.values() {
        if role.writes.iter().any(|w| w.path.fill(binding).overlaps(path)) {
            let step = contract.steps.iter().find(|s| s.role.as_ref() == Some(&role.name)).map(|s| s.name.clone());
            found.push(Writer { role: Some(role.name.clone()), step });
        }
    }
    for step in contract.steps.iter().filter(|s| s.builtin.is_some()) {
        let writes = step.writes.iter().filter_map(|w| Pattern::parse(w).ok());
        if writes.into_iter().any(|w| w.fill(binding).overlaps(path)) {
            found.push(Writer { role: None, step: Some(step.name.clone()) });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_stays_the_same_when_another_follows_it() {
        let last = "# Outline\n\n## ch01\n\nThe goal.\n\n<!-- OUTLINE_FINAL -->\n";
        let followed = "# Outline\n\n## ch01\n\nThe goal.\n\n\n## ch02\n\nMore.\n\n<!-- OUTLINE_FINAL -->\n";
        assert_eq!(slice_section(last, "ch01").unwrap(), "## ch01\n\nThe goal.\n");
        assert_eq!(slice_section(last, "ch01"), slice_section(followed, "ch01"));
        assert_ne!(slice_section(last, "ch01"), slice_section(&last.replace("goal", "end"), "ch01"));
    }
}
