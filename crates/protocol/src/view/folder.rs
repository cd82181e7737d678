//! A view as a folder: the same relative paths, the bytes that the role is shown, and a manifest that tells later
//! whether any of it has changed since.
//!
//! The folder belongs to whoever asked for it. A folder that holds anything but an older view is not touched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quipu_contract::{ProjectPath, Tokens};
use quipu_store::{StoreError, Version};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::pointers::slice_section;
use super::{StageView, View};
use crate::project::Project;

/// The manifest's name in the folder.
const NAME: &str = ".quipu-view.json";

/// What a folder shows, and what it was made from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format. Always 1.
    pub format: u32,
    pub role: String,
    pub unit: Option<String>,
    pub agent: Option<String>,
    pub counter: String,
    pub budget: Tokens,
    pub tokens: Tokens,
    /// Which stage this is, of how many.
    pub stage: (usize, usize),
    pub files: Vec<FileEntry>,
    /// Pointers that were left out for lack of room.
    pub trimmed: Vec<String>,
}

/// One file of the folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileEntry {
    pub path: String,
    /// A hash of the bytes in the folder.
    pub shown: Version,
    pub tokens: Tokens,
    pub sources: Vec<SourceEntry>,
}

/// A text that a file of the folder shows, whole or in part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SourceEntry {
    pub section: Option<String>,
    /// The version of the whole file that was read.
    pub version: Version,
    /// A hash of the text that the pointer names.
    pub text: Version,
    pub bytes: usize,
    pub whole: bool,
}

/// How something shown differs from what is there now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Drift {
    Changed,
    /// What was shown is still there, and more after it.
    Grew,
    Gone,
    /// The copy in the folder was edited.
    Edited,
}

impl Drift {
    pub fn as_str(self) -> &'static str {
        match self {
            Drift::Changed => "changed",
            Drift::Grew => "grew",
            Drift::Gone => "is gone",
            Drift::Edited => "was edited in the folder",
        }
    }
}

/// Whether a folder still shows what is there.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    pub role: String,
    pub unit: Option<String>,
    pub files: usize,
    pub drifted: Vec<(String, Drift)>,
}

#[derive(Debug, Error)]
pub enum FolderError {
    #[error("`{}` holds something that is not a view", .0.display())]
    NotEmpty(PathBuf),
    #[error("`{}` is not what the view showed, so it is not removed", .0.display())]
    Foreign(PathBuf),
    #[error("`{}` is a project, not a place for a view", .0.display())]
    IsProject(PathBuf),
    #[error("`{}` holds no view: there is no {NAME}", .0.display())]
    NoManifest(PathBuf),
    #[error("`{}`: {what}", path.display())]
    BadManifest { path: PathBuf, what: String },
    #[error("`{}`: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> FolderError + '_ {
    |source| FolderError::Io { path: path.to_owned(), source }
}

/// Writes a view into a folder; several stages become folders inside it. Returns what was written.
pub fn materialise_view(view: &View, folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    clear(folder)?;
    let count = view.stages.len();
    let mut written = Vec::new();
    for (index, stage) in view.stages.iter().enumerate() {
        let folder = if count > 1 { folder.join(format!("stage-{}", index + 1)) } else { folder.to_owned() };
        std::fs::create_dir_all(&folder).map_err(io(&folder))?;
        write_stage(view, stage, (index + 1, count), &folder, &mut written)?;
    }
    Ok(written)
}

fn write_stage(
    view: &View,
    stage: &StageView,
    number: (usize, usize),
    folder: &Path,
    written: &mut Vec<PathBuf>,
) -> Result<(), FolderError> {
    let mut texts: BTreeMap<&ProjectPath, (String, FileEntry)> = BTreeMap::new();
    for file in &stage.files {
        let entry = FileEntry { path: file.path.to_string(), shown: Version::of(b""), tokens: Tokens::ZERO, sources: Vec::new() };
        let (text, entry) = texts.entry(&file.path).or_insert_with(|| (String::new(), entry));
        text.push_str(&file.text);
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
    let mut files = Vec::new();
    for (path, (text, entry)) in texts {
        let target = folder.join(path.as_str());
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).map_err(io(parent))?;
        }
        std::fs::write(&target, text).map_err(io(&target))?;
        written.push(target);
        files.push(entry);
    }
    let trimmed = view.pointers.iter().zip(&stage.shares).filter(|(_, s)| s.shown == Tokens::ZERO && s.strategy.cuts());
    let manifest = Manifest {
        format: 1,
        role: view.role.clone(),
        unit: view.unit.clone(),
        agent: view.agent.clone(),
        counter: view.counter.to_owned(),
        budget: view.budget,
        tokens: stage.tokens,
        stage: number,
        files,
        trimmed: trimmed.map(|(seen, _)| seen.name.clone()).collect(),
    };
    let target = folder.join(NAME);
    let text = serde_json::to_string_pretty(&manifest).map_err(|e| bad(&target, &e))?;
    std::fs::write(&target, text + "\n").map_err(io(&target))
}

/// Makes room: an older view is removed, anything else is left alone and refused.
fn clear(folder: &Path) -> Result<(), FolderError> {
    if folder.join("quipu.toml").exists() {
        return Err(FolderError::IsProject(folder.to_owned()));
    }
    if !folder.exists() {
        return Ok(());
    }
    let manifests = load_manifests(folder).unwrap_or_default();
    for (place, manifest) in &manifests {
        for file in &manifest.files {
            let Ok(path) = ProjectPath::parse(&file.path) else { continue };
            let target = place.join(path.as_str());
            // What is not the copy that was made here is someone's own.
            match std::fs::read(&target) {
                Ok(bytes) if Version::of(&bytes) == file.shown => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                _ => return Err(FolderError::Foreign(target)),
            }
        }
    }
    for (place, manifest) in manifests {
        for path in manifest.files.iter().filter_map(|f| ProjectPath::parse(&f.path).ok()) {
            remove_file(&place.join(path.as_str()))?;
            let mut parent = path.parent().map(str::to_owned);
            // A folder that is not empty stays, and so do those above it.
            while let Some(inner) = parent {
                if std::fs::remove_dir(place.join(&inner)).is_err() {
                    break;
                }
                parent = inner.rsplit_once('/').map(|(above, _)| above.to_owned());
            }
        }
        remove_file(&place.join(NAME))?;
        if place != folder {
            let _ = std::fs::remove_dir(&place);
        }
    }
    let mut left = std::fs::read_dir(folder).map_err(io(folder))?;
    if left.next().is_some() { Err(FolderError::NotEmpty(folder.to_owned())) } else { Ok(()) }
}

fn remove_file(path: &Path) -> Result<(), FolderError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(path)(error)),
        _ => Ok(()),
    }
}

/// The manifest of a folder, or those of its stages.
fn load_manifests(folder: &Path) -> Result<Vec<(PathBuf, Manifest)>, FolderError> {
    let mut places = vec![folder.to_owned()];
    if !folder.join(NAME).exists() {
        let stages = (1..).map(|n| folder.join(format!("stage-{n}"))).take_while(|p| p.join(NAME).exists());
        places = stages.collect();
    }
    if places.is_empty() {
        return Err(FolderError::NoManifest(folder.to_owned()));
    }
    let load = |place: PathBuf| {
        let path = place.join(NAME);
        let text = std::fs::read_to_string(&path).map_err(io(&path))?;
        let manifest: Manifest = serde_json::from_str(&text).map_err(|e| bad(&path, &e))?;
        match manifest.format {
            1 => Ok((place, manifest)),
            other => Err(FolderError::BadManifest { path, what: format!("format {other} is not known") }),
        }
    };
    places.into_iter().map(load).collect()
}

fn bad(path: &Path, error: &serde_json::Error) -> FolderError {
    FolderError::BadManifest { path: path.to_owned(), what: error.to_string() }
}

/// Tells whether anything that a folder shows has changed since, here or there.
pub fn verify_view(project: &Project, folder: &Path) -> Result<Verdict, FolderError> {
    let manifests = load_manifests(folder)?;
    let (role, unit) = manifests.first().map(|(_, m)| (m.role.clone(), m.unit.clone())).unwrap_or_default();
    let mut verdict = Verdict { role, unit, files: 0, drifted: Vec::new() };
    for (place, manifest) in &manifests {
        for file in &manifest.files {
            verdict.files += 1;
            let path =
                ProjectPath::parse(&file.path).map_err(|e| FolderError::BadManifest { path: place.join(NAME), what: e.to_string() })?;
            for source in &file.sources {
                let name = match &source.section {
                    Some(section) => format!("{path}#{section}"),
                    None => path.to_string(),
                };
                if let Some(drift) = drift(project, &path, source)? {
                    verdict.drifted.push((name, drift));
                }
            }
            let copy = std::fs::read(place.join(path.as_str())).unwrap_or_default();
            if Version::of(&copy) != file.shown {
                verdict.drifted.push((file.path.clone(), Drift::Edited));
            }
        }
    }
    verdict.drifted.dedup();
    Ok(verdict)
}

fn drift(project: &Project, path: &ProjectPath, source: &SourceEntry) -> Result<Option<Drift>, FolderError> {
    let Some((bytes, version)) = project.store.read(path)? else { return Ok(Some(Drift::Gone)) };
    if version == source.version {
        return Ok(None);
    }
    // Another part of the file may have changed: what counts is the text that the pointer names.
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
    let begins_alike = now.get(..source.bytes).is_some_and(|begin| Version::of(begin) == source.text);
    Ok(Some(if begins_alike { Drift::Grew } else { Drift::Changed }))
}
