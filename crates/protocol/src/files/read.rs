//! Reads a file, or one section of it, on behalf of an actor.
//!
//! All reads check the actor's pointers first. Errors reveal only names that the actor may read.

use std::path::Path;

use quipu_contract::{Actor, BadPath, Denial, ProjectPath, Readable, nearest};
use quipu_store::{At, Change, Expect, Op, StoreError, Version};
use quipu_text::{Document, Miss, Section};
use thiserror::Error;

use crate::files::index_file::refresh_index;
use crate::files::json_place::{is_json, json_at, json_keys};
use crate::project::open::Project;

#[derive(Debug, Error)]
pub enum ReadError {
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error("{}", .0.what)]
    Denied(Denial),
    #[error("{0}")]
    UnknownActor(String),
    #[error("file `{path}` does not exist{}", near.as_ref().map(|near| format!(": did you mean `{near}`?")).unwrap_or_default())]
    NotFound {
        path: ProjectPath,
        near: Option<ProjectPath>,
    },
    #[error("this role may read only the section {} of `{path}`", sections.iter().map(|s| format!("`{s}`")).collect::<Vec<_>>().join(", "))]
    OnlySections {
        path: ProjectPath,
        sections: Vec<String>,
    },
    #[error("`{path}` has no section `{}`{}", miss.anchor, render_known(known))]
    NoSection {
        path: ProjectPath,
        miss: Miss,
        known: Vec<String>,
    },
    #[error("`{path}` has no line {line}: it has {lines}")]
    NoLine {
        path: ProjectPath,
        line: usize,
        lines: usize,
    },
    #[error("`{0}` is not text, so it has no sections")]
    NotText(ProjectPath),
    #[error(
        "`{at}` is not a version: write a1b2c3…, @12, ~1 or a time such as \
        2026-01-31T12:00:00Z"
    )]
    BadVersion { path: ProjectPath, at: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks that the actor may read the whole file.
pub fn may_read_whole(
    project: &Project,
    actor: &Actor,
    path: &ProjectPath,
) -> Result<(), ReadError> {
    match may_read(project, actor, path)? {
        Readable::Whole => Ok(()),
        Readable::Sections(sections) => Err(ReadError::OnlySections {
            path: path.clone(),
            sections,
        }),
    }
}

/// Refuses a change that expects a version of a file that its actor does not read: a version is a
/// hash of the text, and the answer would confirm a guess. That a file is not there may be expected
/// of every file that the actor writes.
pub fn may_expect(project: &Project, change: &Change) -> Result<(), ReadError> {
    for op in &change.ops {
        if let Op::Write { expect, .. } | Op::Remove { expect, .. } = op
            && let Expect::Version(version) = expect
            && version.if_any().is_some()
        {
            project.store.permit(&change.actor, op)?;
            may_read_whole(project, &change.actor, op.path())?;
        }
    }
    Ok(())
}

/// Whether an actor may bring a version of a file back, asked before its history is read. An older
/// version is named by one who reads the file.
pub fn may_restore(
    project: &Project,
    actor: &Actor,
    path: &ProjectPath,
    older: bool,
) -> Result<(), ReadError> {
    let op = Op::Restore {
        path: path.clone(),
        bytes: Vec::new(),
        older,
    };
    project.store.permit(actor, &op)?;
    if older {
        may_read_whole(project, actor, path)?;
    }
    Ok(())
}

/// A file that is not there, with the file that was probably meant: one that the actor may read.
pub fn not_found(project: &Project, actor: &Actor, path: &ProjectPath) -> ReadError {
    let there = project.store.list().unwrap_or_default();
    let readable: Vec<&ProjectPath> = there
        .iter()
        .filter(|there| may_read(project, actor, there).is_ok())
        .collect();
    let near = nearest(path.as_str(), readable.iter().map(|there| there.as_str()));
    let near = near.and_then(|near| {
        readable
            .into_iter()
            .find(|there| there.as_str() == near)
            .cloned()
    });
    ReadError::NotFound {
        path: path.clone(),
        near,
    }
}

/// The result of a read.
#[derive(Debug, Clone)]
pub struct Reading {
    pub path: ProjectPath,
    pub section: Option<String>,
    pub line: usize,
    pub version: Version,
    pub bytes: Vec<u8>,
}

/// Reads `PATH`, `PATH#section` or the section at `PATH:LINE`, now or at an older version, if the
/// actor may.
pub fn read_pointer(
    project: &Project,
    actor: &Actor,
    pointer: &str,
    at: Option<&str>,
) -> Result<Reading, ReadError> {
    let pointer = &relative(project, pointer);
    let (path, wanted) = match split_line(project, pointer) {
        Some((path, line)) => (path, Wanted::Line(line)),
        None => match split_pointer(project, pointer)? {
            (path, None) => (path, Wanted::Whole),
            (path, Some(section)) => (path, Wanted::Section(section)),
        },
    };
    let readable = may_read(project, actor, &path).map_err(|error| match error {
        // A role without a pointer to a mistyped path is told the file that it probably means.
        ReadError::Denied(denial) => match not_found(project, actor, &path) {
            meant @ ReadError::NotFound { near: Some(_), .. }
                if project.contract.rule(&path).is_none() =>
            {
                meant
            }
            _ => ReadError::Denied(denial),
        },
        error => error,
    })?;
    if at.is_none() && project.contract.index_path().as_ref() == Some(&path) {
        refresh_index(project)?;
    }
    let (bytes, version) = match at {
        None => project
            .store
            .read(&path)?
            .ok_or_else(|| not_found(project, actor, &path))?,
        Some(at) => {
            let at = At::parse(at).ok_or_else(|| ReadError::BadVersion {
                path: path.clone(),
                at: at.to_owned(),
            })?;
            let (bytes, event) = project.store.text_at(&path, &at)?;
            (bytes, event.version)
        }
    };
    let whole = |path, bytes, readable| match readable {
        Readable::Whole => Ok(Reading {
            path,
            section: None,
            line: 1,
            version: version.clone(),
            bytes,
        }),
        Readable::Sections(sections) => Err(ReadError::OnlySections { path, sections }),
    };
    if matches!(wanted, Wanted::Whole) {
        return whole(path, bytes, readable);
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| ReadError::NotText(path.clone()))?;
    if let (Wanted::Section(pointer), Readable::Whole, true) =
        (&wanted, &readable, is_json(path.as_str()))
    {
        return value_named(text, pointer, path, version);
    }
    let document = Document::parse(text);
    let found = match &wanted {
        Wanted::Section(anchor) => Some(section_named(&document, anchor, &path, &readable)?),
        Wanted::Line(line) => section_at(&document, text, *line, &path)?,
        Wanted::Whole => None,
    };
    // The line is before the first section, in the front matter.
    let Some(found) = found else {
        return whole(path, bytes, readable);
    };
    // The version is a hash of the whole text.
    let version = match readable {
        Readable::Whole => version,
        Readable::Sections(_) => Version::withheld(),
    };
    if let Readable::Sections(sections) = readable {
        // The requested section must be one of them, or be inside one.
        let inside = |outer: &str| {
            find_section(&document, outer)
                .is_ok_and(|s| s.range.start <= found.range.start && found.range.end <= s.range.end)
        };
        if !sections.iter().any(|s| inside(s)) {
            return Err(ReadError::OnlySections { path, sections });
        }
    }
    let body = document.slice(&found.range).as_bytes().to_vec();
    Ok(Reading {
        line: found.line,
        section: Some(document.anchor_of(found).to_owned()),
        version,
        bytes: body,
        path,
    })
}

/// The address of a file over MCP.
const SCHEME: &str = "quipu:///";

/// A pointer relative to the project root. It may be given as an address, or as an absolute path
/// below the root. Any other text is returned as it is.
fn relative(project: &Project, pointer: &str) -> String {
    if let Some(name) = pointer.strip_prefix(SCHEME) {
        return decoded(name).unwrap_or_else(|| name.to_owned());
    }
    let root = project.store.root();
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let below = |root: &Path| {
        let rest = pointer.strip_prefix(root.to_str()?)?.strip_prefix('/')?;
        Some(rest.trim_start_matches('/').to_owned())
    };
    below(root)
        .or_else(|| below(&real))
        .unwrap_or_else(|| pointer.to_owned())
}

/// Decodes `%20` and the like. None if the text is not a valid address.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first == b'%' {
            let (digits, more) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = more;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The part of a file that a pointer names.
enum Wanted {
    Whole,
    Section(String),
    Line(usize),
}

/// Splits `PATH:LINE`, as recall prints it. A file of this very name wins.
fn split_line(project: &Project, pointer: &str) -> Option<(ProjectPath, usize)> {
    let (path, line) = pointer.rsplit_once(':')?;
    let line = line.parse().ok().filter(|line| *line > 0)?;
    let there = |name: &str| {
        let path = ProjectPath::parse(name).ok()?;
        matches!(project.store.stat_text(&path), Ok(Some(_))).then_some(path)
    };
    if there(pointer).is_some() {
        return None;
    }
    there(path).map(|path| (path, line))
}

/// Finds the innermost section that contains a line. Lines before the first section have none.
fn section_at<'d>(
    document: &'d Document,
    text: &str,
    line: usize,
    path: &ProjectPath,
) -> Result<Option<&'d Section>, ReadError> {
    let lines = text.lines().count();
    if line > lines {
        return Err(ReadError::NoLine {
            path: path.clone(),
            line,
            lines,
        });
    }
    let mut before = document.sections().iter().filter(|s| s.line <= line);
    Ok(before.next_back())
}

/// Finds a section by its name. An error names only sections that the reader may see.
fn section_named<'d>(
    document: &'d Document,
    anchor: &str,
    path: &ProjectPath,
    readable: &Readable,
) -> Result<&'d Section, ReadError> {
    find_section(document, anchor).map_err(|miss| match readable {
        // This reader may not see the names of other sections either.
        Readable::Sections(sections) if !sections.iter().any(|name| name == anchor) => {
            ReadError::OnlySections {
                path: path.clone(),
                sections: sections.clone(),
            }
        }
        Readable::Sections(_) => ReadError::NoSection {
            path: path.clone(),
            miss: Miss {
                nearest: Vec::new(),
                ..miss
            },
            known: Vec::new(),
        },
        Readable::Whole => {
            let known = document
                .sections()
                .iter()
                .map(|s| document.anchor_of(s).to_owned())
                .filter(|a| !a.is_empty())
                .collect();
            ReadError::NoSection {
                path: path.clone(),
                miss,
                known,
            }
        }
    })
}

/// Reads one value of a JSON file by its pointer, as recall prints it.
fn value_named(
    text: &str,
    pointer: &str,
    path: ProjectPath,
    version: Version,
) -> Result<Reading, ReadError> {
    let Some((line, value)) = json_at(text, pointer) else {
        let miss = Miss {
            anchor: pointer.to_owned(),
            nearest: Vec::new(),
        };
        let known = json_keys(text);
        return Err(ReadError::NoSection { path, miss, known });
    };
    Ok(Reading {
        line,
        section: Some(pointer.to_owned()),
        version,
        bytes: format!("{value}\n").into_bytes(),
        path,
    })
}

/// Splits a pointer into path and section. A file name may contain a `#`: the longest existing name
/// wins.
pub(crate) fn split_pointer(
    project: &Project,
    pointer: &str,
) -> Result<(ProjectPath, Option<String>), ReadError> {
    let Some((first, section)) = pointer.split_once('#') else {
        return Ok((ProjectPath::parse(pointer)?, None));
    };
    let there = |name: &str| {
        ProjectPath::parse(name)
            .ok()
            .filter(|path| matches!(project.store.stat_text(path), Ok(Some(_))))
    };
    if let Some(path) = there(pointer) {
        return Ok((path, None));
    }
    for (at, _) in pointer
        .rmatch_indices('#')
        .filter(|(at, _)| *at > first.len())
    {
        if let Some(path) = there(&pointer[..at]) {
            return Ok((path, Some(pointer[at + 1..].to_owned())));
        }
    }
    Ok((ProjectPath::parse(first)?, Some(section.to_owned())))
}

/// At most this many sections are named; the rest are counted.
const SECTIONS_NAMED: usize = 12;

fn render_known(known: &[String]) -> String {
    let named = known
        .iter()
        .take(SECTIONS_NAMED)
        .map(|k| format!("`{k}`"))
        .collect::<Vec<_>>()
        .join(", ");
    match known.len() {
        0 => String::new(),
        more if more > SECTIONS_NAMED => {
            format!(
                "; its sections are {named} and {} more",
                more - SECTIONS_NAMED
            )
        }
        _ => format!("; its sections are {named}"),
    }
}

/// Whether an actor's pointers cover a path, and how much of it.
pub fn may_read(
    project: &Project,
    actor: &Actor,
    path: &ProjectPath,
) -> Result<Readable, ReadError> {
    let grant = project
        .contract
        .grant(actor)
        .map_err(ReadError::UnknownActor)?;
    grant
        .may_read(path, &project.contract.actor_binding(actor))
        .map_err(ReadError::Denied)
}

/// Finds the section of an anchor, or the only section with a heading that begins with it: `ch10`
/// finds `## ch10: Leases`.
pub(crate) fn find_section<'d>(
    document: &'d Document<'_>,
    anchor: &str,
) -> Result<&'d Section, Miss> {
    let begins = |section: &&Section| {
        let rest = section.title.strip_prefix(anchor);
        rest.is_some_and(|rest| {
            rest.chars()
                .next()
                .is_some_and(|c| !c.is_alphanumeric() && c != '-' && c != '_')
        })
    };
    document.find(anchor).or_else(|miss| {
        let mut alike = document.sections().iter().filter(begins);
        alike.next().filter(|_| alike.next().is_none()).ok_or(miss)
    })
}
