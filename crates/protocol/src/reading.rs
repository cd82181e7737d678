//! Reading a file, or one section of it, as an actor.

use quipu_contract::{Actor, BadPath, Denial, ProjectPath, Readable, nearest};
use quipu_store::{At, Change, Expect, Op, StoreError, Version};
use quipu_text::{Document, Miss, Section};
use thiserror::Error;

use crate::index_file::refresh_index;
use crate::project::Project;

#[derive(Debug, Error)]
pub enum ReadError {
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error("{}", .0.what)]
    Denied(Denial),
    #[error("{0}")]
    UnknownActor(String),
    #[error("there is no file `{path}`{}", near.as_ref().map(|near| format!(": did you mean `{near}`?")).unwrap_or_default())]
    NotFound {
        path: ProjectPath,
        near: Option<ProjectPath>,
    },
    #[error("of `{path}` this role reads only the section {}", sections.iter().map(|s| format!("`{s}`")).collect::<Vec<_>>().join(", "))]
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
    #[error("`{0}` is not text, so it has no sections")]
    NotText(ProjectPath),
    #[error("`{at}` is no version: write a1b2c3…, @12, ~1 or a time such as 2026-01-31T12:00:00Z")]
    BadVersion { path: ProjectPath, at: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The same for operations that show a whole file.
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

/// What was read.
#[derive(Debug, Clone)]
pub struct Reading {
    pub path: ProjectPath,
    pub section: Option<String>,
    pub line: usize,
    pub version: Version,
    pub bytes: Vec<u8>,
}

/// Reads `PATH` or `PATH#section`, now or at an older version, if the actor may.
pub fn read_pointer(
    project: &Project,
    actor: &Actor,
    pointer: &str,
    at: Option<&str>,
) -> Result<Reading, ReadError> {
    let (path, section) = split_pointer(project, pointer)?;
    let readable = may_read(project, actor, &path)?;
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
    let Some(anchor) = section else {
        return match readable {
            Readable::Whole => Ok(Reading {
                path,
                section: None,
                line: 1,
                version,
                bytes,
            }),
            Readable::Sections(sections) => Err(ReadError::OnlySections { path, sections }),
        };
    };
    // The version is a hash of the whole text.
    let version = match readable {
        Readable::Whole => version,
        Readable::Sections(_) => Version::withheld(),
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| ReadError::NotText(path.clone()))?;
    let document = Document::parse(text);
    let found = find_section(&document, &anchor).map_err(|miss| match &readable {
        // The names of other sections are not for this reader either.
        Readable::Sections(sections) if !sections.contains(&anchor) => ReadError::OnlySections {
            path: path.clone(),
            sections: sections.clone(),
        },
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
    })?;
    if let Readable::Sections(sections) = readable {
        // The section asked for must be one of them, or lie inside one.
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

/// The path and the section of a pointer. A file may have a `#` in its name: the longest name that
/// is there is meant.
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
            .filter(|path| matches!(project.store.look_of(path), Ok(Some(_))))
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

/// So many sections are named before the rest is only counted.
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
            format!("; it has {named} and {} more", more - SECTIONS_NAMED)
        }
        _ => format!("; it has {named}"),
    }
}

/// Whether an actor's pointers name a path, and how much of it.
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

/// The section that an anchor names, or the only one whose heading begins with it: `ch10` finds `##
/// ch10: Leases`.
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
