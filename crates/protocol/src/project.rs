//! A project: its root, its contract and its store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_contract::{Contract, Faults, Source, resolve_contract};
use quipu_store::{Options, Store, StoreError};
use thiserror::Error;

use crate::library::Library;
use crate::recall::KeptIndex;

#[derive(Debug, Error)]
pub enum ProjectError {
    #[error("no quipu.toml in `{}` or any folder above it", .0.display())]
    NotFound(PathBuf),
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Faulty(#[from] Faults),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A project that can be read and changed.
pub struct Project {
    pub contract: Arc<Contract>,
    pub store: Store,
    pub library: Library,
    /// The journal was missing, and what is on disk is the new beginning.
    pub began_anew: bool,
    /// The recall index, once it was asked.
    pub(crate) index: KeptIndex,
}

impl Project {
    /// The nearest folder with a `quipu.toml`, from here upwards.
    pub fn find_root(from: &Path) -> Result<PathBuf, ProjectError> {
        // Not only made absolute: above `project/..` lies the parent, not the project.
        let from = std::fs::canonicalize(from).map_err(|source| ProjectError::Unreadable { path: from.to_owned(), source })?;
        from.ancestors()
            .find(|folder| folder.join("quipu.toml").is_file())
            .map(Path::to_owned)
            .ok_or_else(|| ProjectError::NotFound(from.clone()))
    }

    pub fn load_contract(root: &Path) -> Result<Contract, ProjectError> {
        let path = root.join("quipu.toml");
        let text = std::fs::read_to_string(&path).map_err(|source| ProjectError::Unreadable { path, source })?;
        let library = Library::of(root);
        Ok(resolve_contract(&Source::new("quipu.toml", text), &|name, file| library.load(name, file))?)
    }

    pub fn open(root: &Path, options: Options) -> Result<Project, ProjectError> {
        let contract = Arc::new(Self::load_contract(root)?);
        let mut began_anew = false;
        if !root.join(".quipu").is_dir() {
            // A fresh clone, or someone deleted it: the files are still the truth.
            Store::init(root)?;
            began_anew = true;
        }
        let store = Store::open(root, Arc::clone(&contract), options)?;
        Ok(Project { contract, store, library: Library::of(root), began_anew, index: KeptIndex::default() })
    }
}
