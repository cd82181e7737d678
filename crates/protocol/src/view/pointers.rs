//! Resolves a role's pointers to texts.
//!
//! Variables are filled, wildcards list files, sections are looked up. If two pointers select one
//! text, the first wins, but a `must` precedes an `if-room`, and a whole text includes its
//! sections. A missing text is reported with the role that would write it.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::{
    Binding, Class, Contract, Form, Need, Pattern, Place, Pointer, ProjectPath, Role,
};
use quipu_store::{StoreError, Version};
use quipu_text::{Document, marker};
use serde::Serialize;

use super::ViewError;
use crate::files::read::find_section;
use crate::project::open::Project;
use crate::view::source_map::{is_named, mapped_paths};

/// A pointer with its texts.
#[derive(Debug, Clone)]
pub struct Target<'c> {
    pub pointer: &'c Pointer,
    /// `outline-final.md#ch10`, with variables filled.
    pub name: String,
    pub section: Option<String>,
    pub class: Class,
    pub order: PointerOrder,
    pub files: Vec<TargetFile>,
    /// Matching files that the map does not assign to this unit; they are only listed.
    pub listed: Vec<ProjectPath>,
    /// Whether its lines are shown with their numbers, because comments cite them.
    pub numbered: bool,
}

/// One text: a file, or the section that the pointer names.
#[derive(Debug, Clone)]
pub struct TargetFile {
    pub path: ProjectPath,
    pub section: Option<String>,
    pub version: Version,
    pub text: String,
}

/// The position of a text in a view. Stable texts come first, so that prompts share a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PointerOrder {
    Static,
    Append,
    State,
    /// Depends on the unit or the agent.
    Task,
}

/// A pointer that matches nothing yet.
#[derive(Debug, Clone, Serialize)]
pub struct Absent {
    pub name: String,
    pub need: Need,
    /// The reason why it could not be read.
    pub what: String,
    pub writers: Vec<Writer>,
    pub place: Place,
    /// The role writes the file itself, so it cannot be required the first time.
    pub own: bool,
    /// The file exists but cannot be shown.
    #[serde(skip)]
    pub unreadable: Option<Unreadable>,
}

/// The reason why an existing file cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    NotText,
    NotFile,
}

/// A pointer with a text that another pointer already shows.
#[derive(Debug, Clone, Serialize)]
pub struct Repeated {
    pub name: String,
    pub need: Need,
    /// The texts under the names of the other pointers: `outline.md`, `outline.md#ch01`.
    pub shown: Vec<String>,
    pub place: Place,
}

/// The resolved pointers of a role.
pub struct Resolved<'c> {
    /// In the order of the view.
    pub targets: Vec<Target<'c>>,
    pub absent: Vec<Absent>,
    pub repeated: Vec<Repeated>,
}

/// The writer of a path: a role, a built-in step, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Writer {
    pub role: Option<String>,
    pub step: Option<String>,
}

/// Resolves a role's pointers to texts, and lists what is missing.
pub fn resolve_pointers<'c>(
    project: &'c Project,
    role: &'c Role,
    binding: &Binding,
    all: &[ProjectPath],
) -> Result<Resolved<'c>, ViewError> {
    let mut resolver = Resolver {
        project,
        role,
        binding,
        all,
        taken: BTreeMap::new(),
        found: Vec::new(),
        absent: Vec::new(),
        repeated: Vec::new(),
    };
    let mut pointers: Vec<(usize, &Pointer)> = role.reads.iter().enumerate().collect();
    // Claim order: required texts first, then whole texts before sections.
    pointers.sort_by_key(|(number, pointer)| {
        (
            pointer.need != Need::Must,
            pointer.section.is_some(),
            *number,
        )
    });
    for (number, pointer) in pointers {
        resolver.resolve(number, pointer)?;
    }
    let mut found = resolver.found;
    found.sort_by_key(|(number, target)| (target.order, *number));
    Ok(Resolved {
        targets: in_place(found),
        absent: declared(resolver.absent),
        repeated: declared(resolver.repeated),
    })
}

/// Resolves pointers one after another. A text that one pointer shows is not shown by the next.
struct Resolver<'c, 'a> {
    project: &'c Project,
    role: &'c Role,
    binding: &'a Binding,
    all: &'a [ProjectPath],
    /// The sections of each file that are shown; `None` is the whole file.
    taken: BTreeMap<ProjectPath, BTreeSet<Option<String>>>,
    found: Vec<(usize, Target<'c>)>,
    absent: Vec<(usize, Absent)>,
    repeated: Vec<(usize, Repeated)>,
}

/// The files of one pointer.
#[derive(Default)]
struct Gathered {
    files: Vec<TargetFile>,
    /// Names of texts that an earlier pointer shows.
    shown: Vec<String>,
    /// Files that a wildcard matches and that are no text.
    unreadable: Vec<(ProjectPath, Lack)>,
    class: Option<Class>,
    lack: Option<Lack>,
}

impl<'c> Resolver<'c, '_> {
    fn resolve(&mut self, number: usize, pointer: &'c Pointer) -> Result<(), ViewError> {
        let path = fill(&pointer.path, self.role, self.binding)?;
        let section = self.section(pointer, &path)?;
        let name = match &section {
            Some(section) => format!("{path}#{section}"),
            None => path.as_str().to_owned(),
        };
        let (paths, listed) = self.paths(pointer, &path)?;
        let is_wild = path.as_literal().is_none();
        let gathered = self.gather(paths, section.as_deref(), is_wild)?;
        let class = gathered.class.unwrap_or(Class::Free);

        let none_reported = gathered.unreadable.is_empty() && gathered.shown.is_empty();
        for (file, lack) in gathered.unreadable {
            let pattern = Pattern::parse(file.as_str()).unwrap_or_else(|_| path.clone());
            let absent = self.without(pointer, file.to_string(), &pattern, &lack);
            self.absent.push((number, absent));
        }
        if !gathered.shown.is_empty() {
            let repeated = Repeated {
                name: name.clone(),
                need: pointer.need,
                shown: gathered.shown,
                place: pointer.place.clone(),
            };
            self.repeated.push((number, repeated));
        }
        if !gathered.files.is_empty() {
            let target = Target {
                pointer,
                name,
                section,
                class,
                order: order(pointer, class),
                numbered: gathered
                    .files
                    .iter()
                    .all(|file| self.is_cited_by_line(&file.path)),
                files: gathered.files,
                listed,
            };
            self.found.push((number, target));
        } else if none_reported {
            let lack = gathered.lack.unwrap_or(Lack::File);
            let absent = self.without(pointer, name, &path, &lack);
            self.absent.push((number, absent));
        }
        Ok(())
    }

    /// Whether comments cite the lines of a file.
    fn is_cited_by_line(&self, path: &ProjectPath) -> bool {
        let rule = self.project.contract.rule(path);
        let form = rule.and_then(|rule| rule.form);
        matches!(form, Some(Form::Manuscript | Form::Bibliography))
    }

    /// The section that a pointer names, with its variables filled in.
    fn section(&self, pointer: &Pointer, path: &Pattern) -> Result<Option<String>, ViewError> {
        let Some(section) = &pointer.section else {
            return Ok(None);
        };
        let names = fill_text(section, self.role, pointer, self.binding)?;
        pick_section(self.project, path, &names).map(Some)
    }

    /// The files to show, and the files that are only listed, because the pointer's map does not
    /// assign them to the unit.
    fn paths(
        &self,
        pointer: &Pointer,
        path: &Pattern,
    ) -> Result<(Vec<ProjectPath>, Vec<ProjectPath>), ViewError> {
        let paths = list(path, self.role, self.binding, self.all);
        let Some(mapped) = mapped(self.project, pointer, self.binding)? else {
            return Ok((paths, Vec::new()));
        };
        let is_mapped = |path: &ProjectPath| mapped.iter().any(|named| is_named(named, path));
        // Ignore a map that assigns nothing here, else the role would see nothing.
        Ok(match paths.iter().any(is_mapped) {
            true => paths.into_iter().partition(is_mapped),
            false => (paths, Vec::new()),
        })
    }

    /// Loads the files of one pointer, except those that an earlier pointer shows.
    fn gather(
        &mut self,
        paths: Vec<ProjectPath>,
        section: Option<&str>,
        is_wild: bool,
    ) -> Result<Gathered, ViewError> {
        let mut gathered = Gathered::default();
        for path in paths {
            let class = self.project.contract.class(&path);
            gathered.class = Some(class);
            let others = self.taken.entry(path.clone()).or_default();
            // A section shows nothing of the rest of its file, which a pointer of its own asks for.
            let covers = |other: &&Option<String>| {
                other.is_none() || other.as_deref() == section || is_wild && section.is_none()
            };
            let before = gathered.shown.len();
            let covering = others.iter().filter(covers);
            gathered
                .shown
                .extend(covering.map(|other| shown_name(&path, other.as_deref())));
            if gathered.shown.len() > before {
                continue;
            }
            let own = section.map(str::to_owned);
            match load(self.project, &path, section)? {
                Found::Text(file) => {
                    others.insert(own);
                    gathered.files.push(file);
                }
                // A source tree may contain images; list them without reading.
                Found::Lacking(Lack::Binary(file)) if is_wild && class == Class::Free => {
                    others.insert(own);
                    gathered.files.push(*file);
                }
                // Report each unreadable file that a wildcard matches by its own name.
                Found::Lacking(found @ (Lack::Text | Lack::Binary(_) | Lack::Link)) if is_wild => {
                    gathered.unreadable.push((path, found))
                }
                Found::Lacking(found) => gathered.lack = Some(found),
            }
        }
        Ok(gathered)
    }

    fn without(&self, pointer: &Pointer, name: String, pattern: &Pattern, lack: &Lack) -> Absent {
        let writers = writers(&self.project.contract, pattern, self.binding);
        let unreadable = lack.unreadable();
        let is_role = |writer: &Writer| writer.role.as_deref() == Some(self.role.name.as_str());
        let makes_it = !writers.is_empty() && writers.iter().all(is_role);
        Absent {
            name,
            need: pointer.need,
            what: lack.to_string(),
            writers,
            place: pointer.place.clone(),
            own: makes_it && unreadable.is_none(),
            unreadable,
        }
    }
}

/// Sorts by the declared order of the role's pointers.
fn declared<T>(mut numbered: Vec<(usize, T)>) -> Vec<T> {
    numbered.sort_by_key(|(number, _)| *number);
    in_place(numbered)
}

fn in_place<T>(numbered: Vec<(usize, T)>) -> Vec<T> {
    numbered.into_iter().map(|(_, one)| one).collect()
}

/// Renders `outline.md` or `outline.md#ch01`.
pub fn shown_name(path: &ProjectPath, section: Option<&str>) -> String {
    match section {
        Some(section) => format!("{path}#{section}"),
        None => path.to_string(),
    }
}

fn fill(pattern: &Pattern, role: &Role, binding: &Binding) -> Result<Pattern, ViewError> {
    let filled = pattern.fill(binding);
    if let Some(variable) = filled.variables().next() {
        return Err(ViewError::open_variable(role, variable));
    }
    Ok(filled)
}

fn fill_text(
    text: &str,
    role: &Role,
    pointer: &Pointer,
    binding: &Binding,
) -> Result<String, ViewError> {
    let mut filled = text.to_owned();
    for (name, value) in binding {
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    match filled
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
    {
        Some((variable, _)) if ["unit", "agent"].contains(&variable) => {
            Err(ViewError::open_variable(role, variable))
        }
        Some((variable, _)) => Err(ViewError::NoValue {
            name: variable.to_owned(),
            place: pointer.place.clone(),
        }),
        None => Ok(filled),
    }
}

/// Lists the files that match a filled pattern. The role's deny list restricts wildcards, as in
/// every read.
fn list(
    pattern: &Pattern,
    role: &Role,
    binding: &Binding,
    all: &[ProjectPath],
) -> Vec<ProjectPath> {
    if let Some(literal) = pattern.as_literal() {
        return ProjectPath::parse(literal).into_iter().collect();
    }
    let denies: Vec<Pattern> = role.denies.iter().map(|d| d.path.fill(binding)).collect();
    let denied = |path: &ProjectPath| denies.iter().any(|d| d.matches(path.as_str()).is_some());
    all.iter()
        .filter(|path| pattern.matches(path.as_str()).is_some() && !denied(path))
        .cloned()
        .collect()
}

/// Chooses among several names of a section, `Book|全书`: the first one in the file, else the
/// first.
fn pick_section(project: &Project, path: &Pattern, names: &str) -> Result<String, ViewError> {
    let Some((first, _)) = names.split_once('|') else {
        return Ok(names.to_owned());
    };
    let file = path
        .as_literal()
        .and_then(|path| ProjectPath::parse(path).ok());
    let text = file
        .map(|file| project.store.read(&file))
        .transpose()?
        .flatten()
        .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned());
    let is_there = |name: &&str| {
        text.as_ref()
            .is_some_and(|text| slice_section(text, name).is_some())
    };
    Ok(names.split('|').find(is_there).unwrap_or(first).to_owned())
}

/// The paths that the pointer's map assigns to the unit. None if there is no map.
fn mapped(
    project: &Project,
    pointer: &Pointer,
    binding: &Binding,
) -> Result<Option<Vec<String>>, ViewError> {
    let map = pointer
        .map
        .as_ref()
        .and_then(|map| ProjectPath::parse(map).ok());
    let (Some(map), Some(unit)) = (map, binding.get("unit")) else {
        return Ok(None);
    };
    let Some((bytes, _)) = project.store.read(&map)? else {
        return Ok(None);
    };
    Ok(slice_section(&String::from_utf8_lossy(&bytes), unit).map(|section| mapped_paths(&section)))
}

/// The reason for a missing text, worded to complete "`path` …".
#[derive(Debug, Clone)]
enum Lack {
    File,
    Text,
    /// Not text in any encoding; contains the line that represents it in a listing.
    Binary(Box<TargetFile>),
    Link,
    Section(String),
}

impl Lack {
    fn unreadable(&self) -> Option<Unreadable> {
        match self {
            Lack::Text | Lack::Binary(_) => Some(Unreadable::NotText),
            Lack::Link => Some(Unreadable::NotFile),
            Lack::File | Lack::Section(_) => None,
        }
    }
}

impl std::fmt::Display for Lack {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Lack::File => out.write_str("does not exist"),
            Lack::Text | Lack::Binary(_) => out.write_str("is not text"),
            Lack::Link => out.write_str("is a link or a folder, not a file"),
            Lack::Section(anchor) => write!(out, "has no section `{anchor}`"),
        }
    }
}

/// The text at a pointer's path, or the reason why there is none.
enum Found {
    Text(TargetFile),
    Lacking(Lack),
}

/// Loads a text, or the reason for its absence.
fn load(project: &Project, path: &ProjectPath, section: Option<&str>) -> Result<Found, ViewError> {
    let (bytes, version) = match project.store.read(path) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(Found::Lacking(Lack::File)),
        // The store follows no link. Still show the other texts.
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::InvalidInput => {
            return Ok(Found::Lacking(Lack::Link));
        }
        Err(error) => return Err(error.into()),
    };
    let file = |section: Option<&str>, text: String| TargetFile {
        path: path.clone(),
        section: section.map(str::to_owned),
        version: version.clone(),
        text,
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if section.is_none() && error.as_bytes().contains(&0) => {
            let size = error.as_bytes().len();
            let shown = format!("(a binary file of {size} bytes, not shown)\n");
            return Ok(Found::Lacking(Lack::Binary(Box::new(file(None, shown)))));
        }
        Err(_) => return Ok(Found::Lacking(Lack::Text)),
    };
    let Some(anchor) = section else {
        return Ok(Found::Text(file(None, text)));
    };
    Ok(match slice_section(&text, anchor) {
        Some(text) => Found::Text(file(section, text)),
        None => Found::Lacking(Lack::Section(anchor.to_owned())),
    })
}

/// The text of a section, without trailing blanks and completion marker. Another section may be
/// added there later, and this one must stay the same.
pub fn slice_section(text: &str, anchor: &str) -> Option<String> {
    let document = Document::parse(text);
    let found = find_section(&document, anchor).ok()?;
    let end = marker(text)
        .map_or(text.len(), |m| m.start)
        .clamp(found.range.start, found.range.end);
    let own = document.slice(&(found.range.start..end)).trim_end();
    Some(format!("{own}\n"))
}

fn order(pointer: &Pointer, class: Class) -> PointerOrder {
    if pointer.path.variables().next().is_some()
        || pointer.section.as_ref().is_some_and(|s| s.contains('{'))
    {
        return PointerOrder::Task;
    }
    match class {
        Class::Sealed | Class::Free => PointerOrder::Static,
        Class::Append | Class::Record => PointerOrder::Append,
        Class::State | Class::Derived | Class::Overwrite => PointerOrder::State,
    }
}

/// The writers of the files that a pointer selects.
fn writers(contract: &Contract, path: &Pattern, binding: &Binding) -> Vec<Writer> {
    let mut found = Vec::new();
    for role in contract.roles.values() {
        if role
            .writes
            .iter()
            .any(|w| w.path.fill(binding).overlaps(path))
        {
            let step = contract
                .steps
                .iter()
                .find(|s| s.role.as_ref() == Some(&role.name))
                .map(|s| s.name.clone());
            found.push(Writer {
                role: Some(role.name.clone()),
                step,
            });
        }
    }
    for step in contract.steps.iter().filter(|s| s.builtin.is_some()) {
        let writes = step.writes.iter().filter_map(|w| Pattern::parse(w).ok());
        if writes.into_iter().any(|w| w.fill(binding).overlaps(path)) {
            found.push(Writer {
                role: None,
                step: Some(step.name.clone()),
            });
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
        let followed =
            "# Outline\n\n## ch01\n\nThe goal.\n\n\n## ch02\n\nMore.\n\n<!-- OUTLINE_FINAL -->\n";
        assert_eq!(
            slice_section(last, "ch01").unwrap(),
            "## ch01\n\nThe goal.\n"
        );
        assert_eq!(slice_section(last, "ch01"), slice_section(followed, "ch01"));
        assert_ne!(
            slice_section(last, "ch01"),
            slice_section(&last.replace("goal", "end"), "ch01")
        );
    }
}
