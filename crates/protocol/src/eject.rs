//! Ejecting a profile: its files become the project's own, to be changed.

use std::path::Path;

use crate::library::Library;

/// What `eject` wrote.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Ejected {
    /// The folder, as `quipu.toml` names it.
    pub folder: String,
    pub files: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum EjectError {
    #[error("no built-in profile `{0}`: there are {list}", list = Library::built_in().join(", "))]
    Unknown(String),
    #[error("`{0}` is there already")]
    Exists(String),
    #[error("cannot write `{path}`: {source}")]
    Io { path: String, source: std::io::Error },
}

/// Copies a built-in profile into `profiles/NAME` of a project.
pub fn eject_profile(root: &Path, name: &str) -> Result<Ejected, EjectError> {
    let files = Library::files(name);
    if files.is_empty() {
        return Err(EjectError::Unknown(name.to_owned()));
    }
    let folder = format!("profiles/{name}");
    if root.join(&folder).exists() {
        return Err(EjectError::Exists(folder));
    }
    let mut written = Vec::new();
    for (path, text) in files {
        let target = root.join(&folder).join(&path);
        let io = |source| EjectError::Io { path: format!("{folder}/{path}"), source };
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent).map_err(io)?;
        }
        std::fs::write(&target, text).map_err(io)?;
        written.push(format!("{folder}/{path}"));
    }
    Ok(Ejected { folder: format!("./{folder}"), files: written })
}
