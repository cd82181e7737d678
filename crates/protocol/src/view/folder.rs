//! Writes a view to a folder: the same relative paths, the bytes that the role may see, and a
//! manifest to detect later changes.
//!
//! The folder belongs to the caller. A folder that contains anything but an older view is refused:
//! all of it is checked before the first file is deleted, and no link in it is followed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use quipu_contract::{Actor, BadPath, Class, ProjectPath, Tokens};
use quipu_store::{Entry, OpenFolder, Version};

use super::manifest::{
    FileEntry, FolderError, Laid, Manifest, NAME, SourceEntry, io, load_manifests,
};
use super::{StageView, View};
use crate::project::open::Project;

/// Writes a view to a folder chosen by the actor, if this is allowed. Returns the written paths.
pub fn lay_view(
    project: &Project,
    actor: &Actor,
    view: &View,
    folder: &Path,
) -> Result<Vec<PathBuf>, FolderError> {
    let real = OpenFolder::locate(folder).map_err(io(folder))?;
    let root = project
        .store
        .root()
        .canonicalize()
        .map_err(io(project.store.root()))?;
    let inside = real.strip_prefix(&root).ok();
    // The contract does not apply to folders outside, unless they belong to another project.
    for part in inside.unwrap_or(&real).components() {
        if let Err(reserved @ BadPath::Reserved { .. }) =
            ProjectPath::parse(&part.as_os_str().to_string_lossy())
        {
            return Err(reserved.into());
        }
    }
    stay_outside(project, actor, &real, folder)?;
    if let Some(inside) = inside.filter(|inside| !inside.as_os_str().is_empty()) {
        stay_unruled(project, view, inside)?;
    }
    write_view(view, &real, folder)
}

/// Refuses a folder in the project if a copy would have a path with a rule in the contract.
fn stay_unruled(project: &Project, view: &View, inside: &Path) -> Result<(), FolderError> {
    for (index, stage) in view.stages.iter().enumerate() {
        let folder = stage_folder(index, view.stages.len())
            .map_or_else(|| inside.to_owned(), |stage| inside.join(stage));
        for file in &stage.files {
            let target = ProjectPath::parse(&folder.join(file.path.as_str()).to_string_lossy())?;
            if project.contract.class(&target) != Class::Free {
                return Err(FolderError::Ruled(target));
            }
        }
    }
    Ok(())
}

/// Refuses a role or an agent a folder in any project. A unit alone does not count: it only selects
/// what a person sees.
pub(super) fn stay_outside(
    project: &Project,
    actor: &Actor,
    real: &Path,
    said: &Path,
) -> Result<(), FolderError> {
    let is_project =
        |folder: &Path| folder.join("quipu.toml").exists() || folder == project.store.root();
    if (actor.role().is_some() || actor.agent().is_some()) && real.ancestors().any(is_project) {
        return Err(FolderError::InProject(said.to_owned()));
    }
    Ok(())
}

/// Writes a view to one of Quipu's own folders.
pub(crate) fn materialise_view(view: &View, folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let real = OpenFolder::locate(folder).map_err(io(folder))?;
    write_view(view, &real, folder)
}

/// Several stages become subfolders.
fn write_view(view: &View, real: &Path, said: &Path) -> Result<Vec<PathBuf>, FolderError> {
    if real.join("quipu.toml").exists() {
        return Err(FolderError::IsProject(said.to_owned()));
    }
    if let Some(older) = OpenFolder::open(real).map_err(io(said))? {
        clear(&older, said)?;
    }
    let below = OpenFolder::make(real).map_err(io(said))?;
    let count = view.stages.len();
    let mut written = Vec::new();
    for (index, stage) in view.stages.iter().enumerate() {
        let (texts, manifest) = manifest_of(view, stage, (index + 1, count));
        let laid = Laid {
            stage: stage_folder(index, count),
            manifest,
        };
        for (path, text) in texts {
            let target = laid.within(path.as_str());
            below
                .create(&target, text.as_bytes())
                .map_err(io(&said.join(&target)))?;
            written.push(said.join(target));
        }
        let target = laid.within(NAME);
        let path = said.join(&target);
        let bad = |error: serde_json::Error| FolderError::BadManifest {
            path: path.clone(),
            what: error.to_string(),
        };
        let text = serde_json::to_string_pretty(&laid.manifest).map_err(bad)?;
        below
            .create(&target, (text + "\n").as_bytes())
            .map_err(io(&path))?;
    }
    Ok(written)
}

fn stage_folder(index: usize, count: usize) -> Option<String> {
    (count > 1).then(|| format!("stage-{}", index + 1))
}

/// The texts of a stage by path, and their manifest.
fn manifest_of<'v>(
    view: &'v View,
    stage: &'v StageView,
    number: (usize, usize),
) -> (BTreeMap<&'v ProjectPath, String>, Manifest) {
    let mut texts: BTreeMap<&ProjectPath, (String, FileEntry)> = BTreeMap::new();
    for file in &stage.files {
        let entry = FileEntry {
            path: file.path.to_string(),
            shown: Version::of(b""),
            tokens: Tokens::ZERO,
            sources: Vec::new(),
        };
        let (text, entry) = texts
            .entry(&file.path)
            .or_insert_with(|| (String::new(), entry));
        // The whole file contains its sections, at their true lines.
        let is_repeated = file.section.is_some()
            && stage
                .files
                .iter()
                .any(|other| other.path == file.path && other.section.is_none() && other.whole);
        if !is_repeated {
            text.push_str(&file.text);
        }
        entry.tokens += file.tokens;
        entry.shown = Version::of(text.as_bytes());
        entry.sources.push(SourceEntry {
            section: file.section.clone(),
            version: file.version.clone(),
            text: file.source.clone(),
            bytes: file.source_bytes,
            whole: file.whole,
        });
    }
    let mut manifest = Manifest {
        format: 1,
        role: view.role.clone(),
        unit: view.unit.clone(),
        agent: view.agent.clone(),
        counter: view.counter.to_owned(),
        budget: view.budget,
        tokens: stage.tokens,
        stage: number,
        files: Vec::new(),
        trimmed: view
            .pointers
            .iter()
            .flat_map(|seen| seen.left_out.iter().cloned())
            .collect(),
    };
    let mut shown = BTreeMap::new();
    for (path, (text, entry)) in texts {
        manifest.files.push(entry);
        shown.insert(path, text);
    }
    (shown, manifest)
}

/// Deletes an older view. Refuses a folder with any other content.
fn clear(older: &OpenFolder, said: &Path) -> Result<(), FolderError> {
    // An unreadable manifest proves nothing.
    let laid = load_manifests(older, said).unwrap_or_default();
    if let Some(stranger) = find_strangers(older, said, &laid)?.into_iter().next() {
        return Err(FolderError::NotEmpty {
            folder: said.to_owned(),
            stranger,
        });
    }
    let copies = || {
        laid.iter().flat_map(|l| {
            l.manifest
                .files
                .iter()
                .map(|file| (l.within(&file.path), file))
        })
    };
    for (target, file) in copies() {
        // A file that differs from the copy made here belongs to the user.
        match older.read(&target) {
            Ok(None) => {}
            Ok(Some(bytes)) if Version::of(&bytes) == file.shown => {}
            _ => return Err(FolderError::Foreign(said.join(target))),
        }
    }
    for (target, _) in copies() {
        older.remove(&target).map_err(io(&said.join(&target)))?;
    }
    // Delete the manifests last, so that an interrupted deletion can be repeated.
    for target in laid.iter().map(|l| l.within(NAME)) {
        older.remove(&target).map_err(io(&said.join(&target)))?;
    }
    for folder in folders_of(&laid).into_iter().rev() {
        older
            .remove_folder(&folder)
            .map_err(io(&said.join(&folder)))?;
    }
    Ok(())
}

/// The folders of a view's files, parents before children.
fn folders_of(laid: &[Laid]) -> BTreeSet<String> {
    let paths = laid.iter().flat_map(|l| {
        l.manifest
            .files
            .iter()
            .map(|f| l.within(&f.path))
            .chain([l.within(NAME)])
    });
    paths
        .flat_map(|path| {
            path.match_indices('/')
                .map(|(at, _)| path[..at].to_owned())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Entries of a folder that do not belong to the view. An unknown subfolder counts as one entry.
pub(super) fn find_strangers(
    below: &OpenFolder,
    said: &Path,
    laid: &[Laid],
) -> Result<Vec<String>, FolderError> {
    let folders = folders_of(laid);
    let files: BTreeSet<String> = laid
        .iter()
        .flat_map(|l| {
            l.manifest
                .files
                .iter()
                .map(|f| l.within(&f.path))
                .chain([l.within(NAME)])
        })
        .collect();
    let mut strangers = Vec::new();
    for folder in std::iter::once(".").chain(folders.iter().map(String::as_str)) {
        let entries = match below.entries(folder) {
            // The parent folder reports the entry found in its place.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput
                ) =>
            {
                continue;
            }
            other => other.map_err(io(&said.join(folder)))?,
        };
        for (name, kind) in entries {
            let path = if folder == "." {
                name
            } else {
                format!("{folder}/{name}")
            };
            let known = match kind {
                Entry::File => files.contains(&path),
                Entry::Folder => folders.contains(&path),
                // An entry in the place of a copy is reported as that copy.
                Entry::Other => files.contains(&path),
            };
            if !known {
                strangers.push(path);
            }
        }
    }
    Ok(strangers)
}
