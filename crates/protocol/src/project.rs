//! A project: its root, its contract and its store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_contract::{Contract, Fault, Faults, Place, Source, resolve_contract};
use quipu_store::{Options, Store, StoreError};
use thiserror::Error;

use crate::library::Library;
use crate::recall::KeptIndex;
use crate::rules::{Rules, no_rules};

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
        let bytes = std::fs::read(&path).map_err(|source| ProjectError::Unreadable { path, source })?;
        let text = String::from_utf8(bytes).map_err(|error| not_utf8("quipu.toml", &error))?;
        let library = Library::of(root);
        Ok(resolve_contract(&Source::new("quipu.toml", text), &|name, file| library.load(name, file))?)
    }

    pub fn open(root: &Path, options: Options) -> Result<Project, ProjectError> {
        let contract = Arc::new(Self::load_contract(root)?);
        let options = Options { rules: Some(Arc::new(Rules::of(root))), ..options };
        let mut began_anew = false;
        if !root.join(".quipu").is_dir() {
            // A fresh clone, or someone deleted it: the files are still the truth.
            Store::init(root)?;
            began_anew = true;
        }
        let store = Store::open(root, Arc::clone(&contract), options)?;
        Ok(Project { contract, store, library: Library::of(root), began_anew, index: KeptIndex::default() })
    }

    /// A project whose contract is faulty, for whoever needs its history and not its rules.
    pub fn open_unruled(root: &Path, options: Options) -> Result<Project, ProjectError> {
        let contract = Arc::new(no_rules()?);
        let store = Store::open(root, Arc::clone(&contract), Options { unruled: true, ..options })?;
        Ok(Project { contract, store, library: Library::of(root), began_anew: false, index: KeptIndex::default() })
    }
}

/// Where a file of the contract stops being text.
pub(crate) fn not_utf8(file: &str, error: &std::string::FromUtf8Error) -> Faults {
    let read = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let place = Place { file: file.to_owned(), line: 1 + read.iter().filter(|byte| **byte == b'\n').count() };
    Faults(vec![Fault { place, what: "a byte here is not UTF-8".into(), other: None, mend: "save the file as UTF-8".into() }])
}
