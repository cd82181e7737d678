//! The manifest of a view folder: the shown texts, their versions, and the texts that did not fit.
//!
//! A manifest can be forged: `folder.rs` and `verify.rs` check the files against it.

use std::path::{Path, PathBuf};

use quipu_contract::plan::MOST_STAGES;
use quipu_contract::{BadPath, ProjectPath, Tokens};
use quipu_store::{Entry, OpenFolder, StoreError, Version};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::files::read::ReadError;

/// The manifest's name in the folder.
pub const NAME: &str = ".quipu-view.json";

/// The content of a folder and its sources.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// The format version. Always 1.
    pub format: u32,
    pub role: String,
    pub unit: Option<String>,
    pub agent: Option<String>,
    pub counter: String,
    pub budget: Tokens,
    pub tokens: Tokens,
    /// The number of this stage, and the number of stages.
    pub stage: (usize, usize),
    pub files: Vec<FileEntry>,
    /// Texts named by pointers that are not shown because they did not fit.
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

/// A text shown in a file of the folder, in full or in part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SourceEntry {
    pub section: Option<String>,
    /// The version of the whole source file.
    pub version: Version,
    /// A hash of the text that the pointer selects.
    pub text: Version,
    pub bytes: usize,
    pub whole: bool,
}

#[derive(Debug, Error)]
pub enum FolderError {
    #[error("`{}` contains `{stranger}`, which is not part of a view", folder.display())]
    NotEmpty { folder: PathBuf, stranger: String },
    #[error("`{}` has changed since the view was written, so it was not removed", .0.display())]
    Foreign(PathBuf),
    #[error("`{}` is a project; a view cannot be written there", .0.display())]
    IsProject(PathBuf),
    #[error("`{}` is inside a project; the view of a role or agent must be outside", .0.display())]
    InProject(PathBuf),
    #[error("`{0}` is under the contract; a view cannot be written there")]
    Ruled(ProjectPath),
    #[error("the view belongs to role `{role}`, not to `{own}`")]
    OtherRole { role: String, own: String },
    #[error("`{}` contains no view: {NAME} is missing", .0.display())]
    NoManifest(PathBuf),
    #[error("`{}`: {what}", path.display())]
    BadManifest { path: PathBuf, what: String },
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("`{}`: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> FolderError + '_ {
    |source| FolderError::Io {
        path: path.to_owned(),
        source,
    }
}

/// A view in a folder, or one of its stages.
pub(super) struct Laid {
    /// `stage-2`; None for a view with one stage.
    pub stage: Option<String>,
    pub manifest: Manifest,
}

impl Laid {
    /// The path of a file of this stage, relative to the folder.
    pub fn within(&self, path: &str) -> String {
        match &self.stage {
            Some(stage) => format!("{stage}/{path}"),
            None => path.to_owned(),
        }
    }
}

/// Loads the manifest of a folder, or the manifests of its stages. `said` is the caller's name for
/// the folder, used in messages.
pub(super) fn load_manifests(below: &OpenFolder, said: &Path) -> Result<Vec<Laid>, FolderError> {
    let entries = below.entries(".").map_err(io(said))?;
    if entries.iter().any(|(name, _)| name == NAME) {
        return Ok(load(below, said, None)?.into_iter().collect());
    }
    let stages: Vec<String> = (1..=MOST_STAGES)
        .map(|number| format!("stage-{number}"))
        .collect();
    let mut found = Vec::new();
    for (stage, kind) in entries {
        if kind == Entry::Folder && stages.contains(&stage) {
            found.extend(load(below, said, Some(stage))?);
        }
    }
    found.sort_by_key(|laid| laid.manifest.stage);
    Ok(found)
}

fn load(
    below: &OpenFolder,
    said: &Path,
    stage: Option<String>,
) -> Result<Option<Laid>, FolderError> {
    let place = stage
        .as_ref()
        .map_or_else(|| NAME.to_owned(), |stage| format!("{stage}/{NAME}"));
    let path = said.join(&place);
    let bad = |what: String| FolderError::BadManifest {
        path: path.clone(),
        what,
    };
    let Some(bytes) = below.read(&place).map_err(io(&path))? else {
        return Ok(None);
    };
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    if manifest.format != 1 {
        return Err(bad(format!("unknown format {}", manifest.format)));
    }
    let (number, count) = manifest.stage;
    let own = stage.as_ref().map_or(1, |stage| {
        stage.trim_start_matches("stage-").parse().unwrap_or(0)
    });
    if number != own || number > count || count > MOST_STAGES || (count > 1) != stage.is_some() {
        return Err(bad(format!("stage {number} of {count} is invalid")));
    }
    for file in &manifest.files {
        ProjectPath::parse(&file.path).map_err(|e| bad(e.to_string()))?;
    }
    Ok(Some(Laid { stage, manifest }))
}
