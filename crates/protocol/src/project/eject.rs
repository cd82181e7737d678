//! Ejects a built-in profile: copies its files into the project, where they can be edited.
//!
//! A folder that already exists is never overwritten.

use std::path::Path;

use quipu_contract::{BadPath, ProjectPath, unknown};
use quipu_store::create_files;

use crate::project::library::Library;

#[derive(Debug, Clone, serde::Serialize)]
pub struct Ejected {
    /// The folder as named in `quipu.toml`.
    pub folder: String,
    pub files: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum EjectError {
    #[error("{}", unknown("profile", .0, Library::built_in().iter().map(String::as_str)))]
    Unknown(String),
    #[error("`{0}` already exists")]
    Exists(String),
    #[error(transparent)]
    Path(BadPath),
    #[error("cannot write `{path}`: {source}")]
    Io {
        path: String,
        source: std::io::Error,
    },
}

pub fn eject_profile(root: &Path, name: &str) -> Result<Ejected, EjectError> {
    let files = Library::files(name);
    if files.is_empty() {
        return Err(EjectError::Unknown(name.to_owned()));
    }
    let folder = format!("profiles/{name}");
    if root.join(&folder).symlink_metadata().is_ok() {
        return Err(EjectError::Exists(folder));
    }
    let mut laid = Vec::new();
    for (path, text) in files {
        let path = ProjectPath::parse(&format!("{folder}/{path}")).map_err(EjectError::Path)?;
        laid.push((path, text));
    }
    create_files(root, &laid).map_err(|source| EjectError::Io {
        path: folder.clone(),
        source,
    })?;
    let written = laid
        .into_iter()
        .map(|(path, _)| path.as_str().to_owned())
        .collect();
    Ok(Ejected {
        folder: format!("./{folder}"),
        files: written,
    })
}
