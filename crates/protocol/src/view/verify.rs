//! Verifies that a view folder is unmodified and still matches the project.
//!
//! A manifest can be forged. Files that the actor may not read are never read, even if it lists
//! them.

use std::path::Path;

use quipu_contract::{Actor, Contract, ProjectPath, Readable};
use quipu_store::{OpenFolder, Version};
use serde::Serialize;

use super::folder::{find_strangers, stay_outside};
use super::manifest::{FolderError, Laid, SourceEntry, io, load_manifests};
use super::pointers::{shown_name, slice_section};
use super::unit_of;
use crate::files::read::{ReadError, may_read};
use crate::project::open::Project;

/// How a shown text differs from the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Drift {
    Changed,
    /// The shown text still exists, with more text after it.
    Grew,
    Gone,
    /// The copy in the folder was edited.
    Edited,
    /// The copy in the folder, or a whole stage, is missing.
    Missing,
    /// A link or another non-file is in the place of the copy.
    Link,
    /// An entry in the folder that is not part of the view.
    Stranger,
}

impl Drift {
    pub fn as_str(self) -> &'static str {
        match self {
            Drift::Changed => "changed",
            Drift::Grew => "grew",
            Drift::Gone => "was deleted",
            Drift::Edited => "was edited in the folder",
            Drift::Missing => "is missing from the folder",
            Drift::Link => "is a link in the folder, not a copy",
            Drift::Stranger => "is in the folder but not part of the view",
        }
    }
}

/// The result of a verification.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    pub role: String,
    pub unit: Option<String>,
    pub files: usize,
    pub drifted: Vec<(String, Drift)>,
}

/// Checks whether anything that a folder shows has changed since, in the project or in the folder.
pub fn verify_view(
    project: &Project,
    actor: &Actor,
    folder: &Path,
) -> Result<Verdict, FolderError> {
    let real = OpenFolder::locate(folder).map_err(io(folder))?;
    stay_outside(project, actor, &real, folder)?;
    let none = || FolderError::NoManifest(folder.to_owned());
    let below = OpenFolder::open(&real)
        .map_err(io(folder))?
        .ok_or_else(none)?;
    let laid = load_manifests(&below, folder)?;
    let first = &laid.first().ok_or_else(none)?.manifest;
    for Laid { manifest, .. } in &laid {
        if let Some(own) = actor.role().filter(|own| own.as_str() != manifest.role) {
            return Err(FolderError::OtherRole {
                role: manifest.role.clone(),
                own: own.to_string(),
            });
        }
    }
    let actor = &seen_as(&project.contract, actor);
    let mut verdict = Verdict {
        role: first.role.clone(),
        unit: first.unit.clone(),
        files: 0,
        drifted: Vec::new(),
    };
    let mut tell = |name: String, drift: Drift| {
        let told = (name, drift);
        if !verdict.drifted.contains(&told) {
            verdict.drifted.push(told);
        }
    };
    for number in
        (1..=first.stage.1).filter(|number| !laid.iter().any(|l| l.manifest.stage.0 == *number))
    {
        tell(format!("stage-{number}"), Drift::Missing);
    }
    for stage in &laid {
        for file in &stage.manifest.files {
            verdict.files += 1;
            let path = ProjectPath::parse(&file.path)?;
            for source in &file.sources {
                if let Some(drift) = drift(project, actor, &path, source)? {
                    tell(shown_name(&path, source.section.as_deref()), drift);
                }
            }
            let copy = stage.within(path.as_str());
            match below.read(&copy) {
                Ok(Some(bytes)) if Version::of(&bytes) == file.shown => {}
                Ok(Some(_)) => tell(copy, Drift::Edited),
                Ok(None) => tell(copy, Drift::Missing),
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                    tell(copy, Drift::Link)
                }
                Err(error) => return Err(io(&folder.join(&copy))(error)),
            }
        }
    }
    for stranger in find_strangers(&below, folder, &laid)? {
        tell(stranger, Drift::Stranger);
    }
    Ok(verdict)
}

/// The actor for which the view was made.
fn seen_as(contract: &Contract, actor: &Actor) -> Actor {
    match actor {
        Actor::Agent {
            role: Some(role),
            unit,
            agent,
        } => Actor::Agent {
            role: Some(role.clone()),
            unit: unit_of(contract, role, unit.as_ref()),
            agent: agent.clone(),
        },
        other => other.clone(),
    }
}

fn drift(
    project: &Project,
    actor: &Actor,
    path: &ProjectPath,
    source: &SourceEntry,
) -> Result<Option<Drift>, FolderError> {
    let readable = may_read(project, actor, path)?;
    if let Readable::Sections(sections) = &readable
        && source
            .section
            .as_ref()
            .is_none_or(|section| !sections.contains(section))
    {
        return Err(ReadError::OnlySections {
            path: path.clone(),
            sections: sections.clone(),
        }
        .into());
    }
    let Some((bytes, version)) = project.store.read(path)? else {
        return Ok(Some(Drift::Gone));
    };
    // The version covers the whole file, which not every actor may know.
    if readable == Readable::Whole && version == source.version {
        return Ok(None);
    }
    // Another part of the file may have changed. Only the text that the pointer selects counts.
    let now = match &source.section {
        None => bytes,
        Some(anchor) => match slice_section(&String::from_utf8_lossy(&bytes), anchor) {
            Some(text) => text.into_bytes(),
            None => return Ok(Some(Drift::Gone)),
        },
    };
    if Version::of(&now) == source.text {
        return Ok(None);
    }
    let begins_alike = now
        .get(..source.bytes)
        .is_some_and(|begin| Version::of(begin) == source.text);
    Ok(Some(if begins_alike {
        Drift::Grew
    } else {
        Drift::Changed
    }))
}
