//! A project: its root, its contract and its store.
//!
//! Opening a project recovers files after a power cut before it reads the rules from them.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_contract::{
    Contract, Fault, Faults, MANIFEST, Place, ProjectPath, Source, resolve_contract,
};
use quipu_store::{OpenFolder, Options, Store, StoreError, Unwritable};
use thiserror::Error;

use crate::project::library::Library;
use crate::project::rules::{Rules, no_rules};
use crate::recall::KeptIndex;

#[derive(Debug, Error)]
pub enum ProjectError {
    #[error("no quipu.toml in `{}` or any folder above it", .0.display())]
    NotFound(PathBuf),
    /// The folder has a history but no contract.
    #[error("`quipu.toml` of `{}` was removed; its history still exists", .0.display())]
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

/// An open project.
pub struct Project {
    pub contract: Arc<Contract>,
    pub store: Store,
    pub library: Library,
    /// The journal was missing, and the files on disk are the new beginning.
    pub began_anew: bool,
    /// The recall index, built on first use.
    pub(crate) index: KeptIndex,
    /// The files that the contract was read from.
    sources: Vec<RuleSource>,
}

/// A file of the project that the contract was read from, with the bytes that were read.
struct RuleSource {
    path: ProjectPath,
    bytes: Vec<u8>,
}

/// The rules of an open project beside those on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulesOnDisk {
    Same,
    Changed,
    /// A file is missing or cannot be read; an editor may be saving it.
    Unreadable,
}

impl Project {
    /// Finds the nearest ancestor folder with a `quipu.toml`, or with the history of a project that
    /// had one.
    pub fn find_root(from: &Path) -> Result<PathBuf, ProjectError> {
        // Canonicalize, because the parent of `project/..` is not `project`.
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

    /// Loads the contract as last committed, even right after a power cut.
    pub fn load_contract(root: &Path) -> Result<Contract, ProjectError> {
        Self::recover(root, &Options::default());
        Ok(Self::read_contract(root)?.0)
    }

    /// Recovers files before the rules are read: a power cut may have left an old, empty or missing
    /// `quipu.toml`.
    fn recover(root: &Path, options: &Options) {
        if options.unwritable.is_none() && !Store::is_recovered(root, options) {
            // Recovery needs only the local journal. A shared store is not contacted, because its
            // address may not be trusted yet. The command that needs the store reports any error.
            let options = Options {
                offline: true,
                ..options.clone()
            };
            let _ = Self::open_unruled(root, options).map(|project| project.store.settle());
        }
    }

    fn read_contract(root: &Path) -> Result<(Contract, Vec<RuleSource>), ProjectError> {
        let text =
            String::from_utf8(read_manifest(root)?).map_err(|error| not_utf8(MANIFEST, &error))?;
        let sources = RefCell::new(Vec::new());
        let note = |file: &str, text: &str| {
            sources
                .borrow_mut()
                .extend(ProjectPath::parse(file).map(|path| RuleSource {
                    path,
                    bytes: text.as_bytes().to_vec(),
                }));
        };
        note(MANIFEST, &text);
        let library = Library::of(root);
        let load = |name: &str, file: &str| {
            let source = library.load(name, file)?;
            if Library::is_folder(name) {
                note(&source.file, &source.text);
            }
            Ok(source)
        };
        let contract = resolve_contract(&Source::new(MANIFEST, text), &load)?;
        Ok((contract, sources.into_inner()))
    }

    /// Compares the rules of this project with those on disk, byte by byte: the files are small,
    /// and a stat can miss a change.
    pub fn compare_rules(&self) -> RulesOnDisk {
        for source in &self.sources {
            match self.store.on_disk(&source.path) {
                Ok(Some(bytes)) if bytes == source.bytes => {}
                Ok(Some(_)) => return RulesOnDisk::Changed,
                Ok(None) | Err(_) => return RulesOnDisk::Unreadable,
            }
        }
        RulesOnDisk::Same
    }

    pub fn open(root: &Path, options: Options) -> Result<Project, ProjectError> {
        Self::recover(root, &options);
        let (contract, sources) = Self::read_contract(root)?;
        let contract = Arc::new(contract);
        let options = Options {
            rules: Some(Arc::new(Rules::of(root))),
            ..options
        };
        let mut began_anew = false;
        if !root.join(".quipu").is_dir() {
            // A fresh clone, or the journal was deleted: the files are the source of truth.
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
            sources,
        })
    }

    /// Opens a project and applies the journal. A disk that is full, or that fails to write or
    /// sync, does not prevent reading: the journal holds all commits. The project is then read-only
    /// and reports why.
    pub fn open_to_read(root: &Path, options: Options) -> Result<Project, ProjectError> {
        let project = Self::open(root, options.clone())?;
        match project.settle() {
            None => Ok(project),
            Some(why) => {
                drop(project);
                let unwritable = Some(why);
                Self::open(
                    root,
                    Options {
                        unwritable,
                        ..options
                    },
                )
            }
        }
    }

    /// Applies the journal. Returns the reason if the disk cannot be written. The command that
    /// needs the files applied reports any other error.
    pub(crate) fn settle(&self) -> Option<Unwritable> {
        match self.store.settle() {
            Err(error) if error.is_full_disk() => Some(match error {
                StoreError::Unfinished { seq, .. } => Unwritable::Full(format!(
                    "the disk is full, and files of commit {seq} are not written yet"
                )),
                _ => Unwritable::Full("the disk is full".to_owned()),
            }),
            Err(error) if error.is_failing_disk() => Some(Unwritable::Failing(format!(
                "the disk reports an error ({error})"
            ))),
            _ => None,
        }
    }

    /// Opens a project with a faulty contract, for callers that need its history but not its rules.
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
            sources: Vec::new(),
        })
    }
}

/// Reads `quipu.toml`. Links are not followed: rules elsewhere have no history here and could
/// change without consent.
pub fn read_manifest(root: &Path) -> Result<Vec<u8>, ProjectError> {
    match OpenFolder::read_in(root, MANIFEST) {
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
                    "is a symbolic link, which Quipu does not follow",
                    "replace it with the file itself, or: quipu restore quipu.toml",
                ),
                false => (
                    "is not a file",
                    "move it away, then run: quipu restore quipu.toml",
                ),
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

/// The place where a contract file stops being valid UTF-8.
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
