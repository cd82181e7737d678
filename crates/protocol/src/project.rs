//! A project: its root, its contract and its store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_contract::{Contract, Fault, Faults, MANIFEST, Place, Source, resolve_contract};
use quipu_store::{Below, Options, Store, StoreError, Unwritable};
use thiserror::Error;

use crate::library::Library;
use crate::recall::KeptIndex;
use crate::rules::{Rules, no_rules};

#[derive(Debug, Error)]
pub enum ProjectError {
    #[error("no quipu.toml in `{}` or any folder above it", .0.display())]
    NotFound(PathBuf),
    /// The folder has a history and no contract.
    #[error("`quipu.toml` of `{}` was removed; its history is still there", .0.display())]
    Removed(PathBuf),
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
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
    /// The nearest folder with a `quipu.toml`, or with the history of a project that had one, from
    /// here upwards.
    pub fn find_root(from: &Path) -> Result<PathBuf, ProjectError> {
        // Not only made absolute: above `project/..` lies the parent, not the project.
        let from = std::fs::canonicalize(from).map_err(|source| ProjectError::Unreadable {
            path: from.to_owned(),
            source,
        })?;
        from.ancestors()
            .find(|folder| {
                folder.join(MANIFEST).symlink_metadata().is_ok() || Store::has_history(folder)
            })
            .map(Path::to_owned)
            .ok_or_else(|| ProjectError::NotFound(from.clone()))
    }

    /// The contract as it was last committed, also right after a power cut.
    pub fn load_contract(root: &Path) -> Result<Contract, ProjectError> {
        Self::recover(root, &Options::default());
        Self::read_contract(root)
    }

    /// A power cut may have left an older, empty or missing `quipu.toml`: files are recovered
    /// before the rules are read from them.
    fn recover(root: &Path, options: &Options) {
        if options.looks.is_none() && !Store::is_recovered(root, options) {
            // The journal is here: a shared store is not needed, and its address may be one that
            // nobody trusts. An error is reported by the command that needs the store.
            let options = Options {
                offline: true,
                ..options.clone()
            };
            let _ = Self::open_unruled(root, options).map(|project| project.store.settle());
        }
    }

    fn read_contract(root: &Path) -> Result<Contract, ProjectError> {
        let text =
            String::from_utf8(read_manifest(root)?).map_err(|error| not_utf8(MANIFEST, &error))?;
        let library = Library::of(root);
        Ok(resolve_contract(
            &Source::new(MANIFEST, text),
            &|name, file| library.load(name, file),
        )?)
    }

    pub fn open(root: &Path, options: Options) -> Result<Project, ProjectError> {
        Self::recover(root, &options);
        let contract = Arc::new(Self::read_contract(root)?);
        let options = Options {
            rules: Some(Arc::new(Rules::of(root))),
            ..options
        };
        let mut began_anew = false;
        if !root.join(".quipu").is_dir() {
            // A fresh clone, or someone deleted it: the files are still the truth.
            Store::init(root)?;
            began_anew = true;
        }
        let store = Store::open(root, Arc::clone(&contract), options)?;
        Ok(Project {
            contract,
            store,
            library: Library::of(root),
            began_anew,
            index: KeptIndex::default(),
        })
    }

    /// Opens a project and applies what is journalled. A disk that is full, or that fails to write
    /// or to sync, keeps nobody from reading: the journal holds all that was committed. The project
    /// can then only be read, and says why.
    pub fn open_to_read(root: &Path, options: Options) -> Result<Project, ProjectError> {
        let project = Self::open(root, options.clone())?;
        let looks = match project.store.settle() {
            Err(error) if error.is_full_disk() => match error {
                StoreError::Unfinished { seq, .. } => Unwritable::Full(format!(
                    "the disk is full, and files of commit {seq} wait for room"
                )),
                _ => Unwritable::Full("the disk is full".to_owned()),
            },
            Err(error) if error.is_failing_disk() => {
                Unwritable::Failing(format!("the disk fails ({error})"))
            }
            // Any other error is reported by the command that needs the files applied.
            _ => return Ok(project),
        };
        drop(project);
        Self::open(
            root,
            Options {
                looks: Some(looks),
                ..options
            },
        )
    }

    /// A project whose contract is faulty, for whoever needs its history and not its rules.
    pub fn open_unruled(root: &Path, options: Options) -> Result<Project, ProjectError> {
        let contract = Arc::new(no_rules()?);
        let store = Store::open(
            root,
            Arc::clone(&contract),
            Options {
                unruled: true,
                ..options
            },
        )?;
        Ok(Project {
            contract,
            store,
            library: Library::of(root),
            began_anew: false,
            index: KeptIndex::default(),
        })
    }
}

/// The bytes of `quipu.toml`. No link is followed: rules that lie elsewhere have no history here,
/// and change with nobody's consent.
pub fn read_manifest(root: &Path) -> Result<Vec<u8>, ProjectError> {
    match Below::read_in(root, MANIFEST) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) if Store::has_history(root) => Err(ProjectError::Removed(root.to_owned())),
        Ok(None) => Err(ProjectError::NotFound(root.to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            let place = Place {
                file: MANIFEST.to_owned(),
                line: 1,
            };
            let is_link = root.join(MANIFEST).is_symlink();
            let (what, remedy) = match is_link {
                true => (
                    "is a symbolic link: it is not followed",
                    "put the file itself there, or: quipu restore quipu.toml",
                ),
                false => ("is no file", "move it away, then: quipu restore quipu.toml"),
            };
            Err(Faults(vec![Fault {
                place,
                what: format!("`{MANIFEST}` {what}"),
                other: None,
                remedy: remedy.into(),
            }])
            .into())
        }
        Err(source) => Err(ProjectError::Unreadable {
            path: root.join(MANIFEST),
            source,
        }),
    }
}

/// Where a file of the contract stops being text.
pub(crate) fn not_utf8(file: &str, error: &std::string::FromUtf8Error) -> Faults {
    let read = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let place = Place {
        file: file.to_owned(),
        line: 1 + read.iter().filter(|byte| **byte == b'\n').count(),
    };
    Faults(vec![Fault {
        place,
        what: "a byte here is not UTF-8".into(),
        other: None,
        remedy: "save the file as UTF-8".into(),
    }])
}
