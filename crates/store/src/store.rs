//! The store of one project: a facade that opens its parts and reads single files.
//!
//! Each part owns its lock and its file, and reaches into no other. A part uses only the parts that
//! are listed before it. The methods of the facade that need several parts are beside their subject:
//! a commit in `commit/`, leases in `lease/`, repairs in `recovery/`.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_contract::{Contract, ProjectPath};

use crate::apply::applier::Applier;
use crate::apply::conflict_copies::ConflictCopies;
use crate::clock::{Instant, boot_id};
use crate::error::{Result, StoreError};
use crate::files::disk::Disk;
use crate::files::quipu_folder::Folders;
use crate::files::quipu_folder::refuse_other_than_files;
use crate::files::tree::Tree;
use crate::history::texts::Texts;
use crate::index::file_index::FileHead;
use crate::index::shared_index::Index;
use crate::journal::durable::Journal;
use crate::journal::watermarks::Watermarks;
use crate::options::Options;
use crate::replica::commit_log::{CommitLog, Offline, find_commit_log};
use crate::replica::link::Replica;
use crate::rules::rule_book::Rules;
use crate::settings::{SHARED_WAIT, Settings, shared_boot};
use crate::version::Version;
use crate::worktree::external_edit::WorkTree;
use crate::worktree::scan_result::LastScan;

/// The store of one project: a facade over parts that each own their lock and their file.
pub struct Store {
    pub(crate) settings: Arc<Settings>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) index: Arc<Index>,
    pub(crate) texts: Arc<Texts>,
    pub(crate) worktree: Arc<WorkTree>,
    pub(crate) copies: Arc<ConflictCopies>,
    pub(crate) applier: Applier,
    pub(crate) replica: Replica,
    pub(crate) last_scan: LastScan,
    /// The folders in `.quipu` as they were when they were last checked.
    pub(crate) folders: Folders,
}

/// The bytes of a file, and its version.
pub type Text = (Vec<u8>, Version);

impl Store {
    /// Creates the folders of a store.
    pub fn init(root: &Path) -> Result<()> {
        let quipu = root.join(".quipu");
        refuse_other_than_files(&quipu)?;
        for folder in ["journal", "tmp", "conflict-copies"] {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(quipu.join(folder))
                .map_err(StoreError::io(format!("cannot create `.quipu/{folder}`")))?;
        }
        // The journal is only as durable as the folders above it.
        for folder in [quipu.as_path(), root] {
            let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(StoreError::io(format!(
                "cannot sync `{}`",
                folder.display()
            )))?;
        }
        let ignore = quipu.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(&ignore, "*\n")
                .map_err(StoreError::io("cannot write `.quipu/.gitignore`"))?;
        }
        Ok(())
    }

    /// Whether a folder has any commits.
    pub fn has_history(root: &Path) -> bool {
        let segments = std::fs::read_dir(root.join(".quipu").join("journal"));
        segments.is_ok_and(|mut segments| {
            segments
                .any(|s| s.is_ok_and(|s| s.metadata().is_ok_and(|m| m.is_file() && m.len() > 0)))
        })
    }

    /// Whether a command of this boot has recovered the files of a project. Before that, a power
    /// cut may have damaged any of them, including the contract.
    pub fn is_recovered(root: &Path, options: &Options) -> bool {
        let quipu = root.join(".quipu");
        let boot = options.boot.clone().unwrap_or_else(boot_id);
        let knows_end = |boot: &str| {
            Watermarks::open_to_read(&quipu.join("watermarks"), boot)
                .is_some_and(|watermarks| watermarks.tail().is_some())
        };
        knows_end(&boot) || knows_end(&shared_boot(&boot)) || !Self::has_history(root)
    }

    /// Opens the store of a project. The first command that takes a snapshot completes what a crash
    /// left undone.
    pub fn open(root: &Path, contract: Arc<Contract>, options: Options) -> Result<Store> {
        let quipu = root.join(".quipu");
        if !quipu.is_dir() {
            return Err(StoreError::NoStore(root.to_owned()));
        }
        let folders = Folders::note(&quipu, &options.clock);
        refuse_other_than_files(&quipu)?;
        let disk = Disk::new(options.watch.clone());
        let tree = Tree::open(root, disk.clone())
            .map_err(StoreError::io(format!("cannot open `{}`", root.display())))?;
        let read_only = options.unwritable.is_some()
            || rustix::fs::access(&quipu, rustix::fs::Access::WRITE_OK).is_err();
        let whole = quipu.join("tmp").is_dir() && quipu.join("journal").is_dir();
        if !read_only && !whole {
            Self::init(root)?;
        }
        let commit_log = choose_commit_log(root, &contract, &options)?;
        let is_shared = commit_log.is_some();
        let boot = options.boot.unwrap_or_else(boot_id);
        let (boot, wait) = if is_shared {
            (shared_boot(&boot), options.wait.max(SHARED_WAIT))
        } else {
            (boot, options.wait)
        };
        let rules = Rules::new(contract, options.rules, options.unruled);
        let settings = Settings {
            root: tree.path().to_owned(),
            clock: options.clock,
            boot,
            disk,
            wait,
            read_only,
            unwritable: options.unwritable,
            alone: options.alone,
            door: options.door,
        };
        Ok(Store::from_parts(
            Arc::new(settings),
            Arc::new(rules),
            Arc::new(tree),
            options.segment_bytes,
            commit_log,
            folders,
        ))
    }

    /// Opens the parts on one another, each on first use.
    fn from_parts(
        settings: Arc<Settings>,
        rules: Arc<Rules>,
        tree: Arc<Tree>,
        segment_bytes: u64,
        commit_log: Option<Arc<dyn CommitLog>>,
        folders: Folders,
    ) -> Store {
        let journal = Arc::new(Journal::new(settings.clone(), segment_bytes));
        let index = Index::new(settings.clone(), journal.clone(), tree.clone());
        let index = Arc::new(index);
        let texts = Arc::new(Texts {
            journal: journal.clone(),
            tree: tree.clone(),
            index: index.clone(),
        });
        let worktree = Arc::new(WorkTree {
            settings: settings.clone(),
            rules: rules.clone(),
            tree: tree.clone(),
            index: index.clone(),
            texts: texts.clone(),
        });
        let is_shared = commit_log.is_some();
        let copies = Arc::new(ConflictCopies::new(settings.clone(), is_shared));
        let applier = Applier::new(
            settings.clone(),
            journal.clone(),
            index.clone(),
            tree.clone(),
            texts.clone(),
            worktree.clone(),
            copies.clone(),
        );
        Store {
            replica: Replica::new(settings.clone(), commit_log),
            settings,
            rules,
            tree,
            journal,
            index,
            texts,
            worktree,
            copies,
            applier,
            last_scan: LastScan::default(),
            folders,
        }
    }

    pub fn root(&self) -> &Path {
        &self.settings.root
    }

    /// The current time, by the clock of this store.
    pub fn now(&self) -> Instant {
        self.settings.now()
    }

    pub fn contract(&self) -> &Contract {
        self.rules.contract()
    }

    /// Whether it was opened without the project's contract.
    pub fn is_unruled(&self) -> bool {
        self.rules.is_unruled()
    }

    /// Whether the project is on a disk or in a folder that cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.settings.read_only
    }

    /// The shared commit log of this working copy; none in a local project.
    pub fn commit_log(&self) -> Option<&dyn CommitLog> {
        self.replica.commit_log()
    }

    pub(crate) fn quipu(&self) -> PathBuf {
        self.settings.quipu()
    }

    /// The newest text of a file and its version. An allowed external edit is adopted first; a
    /// disallowed one is not shown.
    pub fn read(&self, path: &ProjectPath) -> Result<Option<Text>> {
        Ok(self.read_all(std::slice::from_ref(path))?.pop().flatten())
    }

    /// Like `read` for many files, which costs less than single reads.
    pub fn read_all(&self, paths: &[ProjectPath]) -> Result<Vec<Option<Text>>> {
        self.index.sound(|| self.read_once(paths))
    }

    fn read_once(&self, paths: &[ProjectPath]) -> Result<Vec<Option<Text>>> {
        self.settle()?;
        let file_index = self
            .index
            .open()?
            .heads_of(paths.iter().map(ProjectPath::as_str))?;
        let mut texts: Vec<Option<Text>> = paths
            .iter()
            .zip(file_index)
            .map(|(path, head)| self.read_unchanged(path, head))
            .collect();
        let (places, others): (Vec<usize>, Vec<ProjectPath>) = texts
            .iter()
            .zip(paths)
            .enumerate()
            .filter(|(_, (text, _))| text.is_none())
            .map(|(at, (_, path))| (at, path.clone()))
            .unzip();
        if !others.is_empty() {
            self.adopt_edits(&others)?;
            let file_index = self
                .index
                .open()?
                .heads_of(others.iter().map(ProjectPath::as_str))?;
            for ((at, path), head) in places.into_iter().zip(&others).zip(file_index) {
                texts[at] = self.read_at_head(path, head)?;
            }
        }
        Ok(texts)
    }

    /// Reads a file if its stat is the recorded one, as it is for most files.
    fn read_unchanged(&self, path: &ProjectPath, head: Option<FileHead>) -> Option<Text> {
        let head = head.filter(|head| !head.gone)?;
        let (bytes, found) = self.tree.read(path).ok()??;
        (head.file_stat == Some(found)).then_some((bytes, head.version))
    }

    fn read_at_head(&self, path: &ProjectPath, head: Option<FileHead>) -> Result<Option<Text>> {
        match head.filter(|h| !h.gone) {
            Some(head) => Ok(Some((self.texts.content(path, &head)?, head.version))),
            // A file without any commit is still readable.
            None => {
                let found = self
                    .tree
                    .read(path)
                    .map_err(StoreError::io(format!("cannot read `{path}`")))?;
                Ok(found.map(|(bytes, _)| {
                    let version = Version::of(&bytes);
                    (bytes, version)
                }))
            }
        }
    }
}

impl Store {
    /// A string that changes when a file without commits changes, from its stat alone.
    pub fn stat_text(&self, path: &ProjectPath) -> Result<Option<String>> {
        let file_stat = self
            .tree
            .file_stat(path)
            .map_err(StoreError::io(format!("cannot check `{path}`")))?;
        Ok(file_stat.map(|s| format!("{}-{}-{}", s.inode, s.size, s.mtime_ns)))
    }

    /// The bytes on disk, whether the contract allows them or not.
    pub fn on_disk(&self, path: &ProjectPath) -> Result<Option<Vec<u8>>> {
        let found = self
            .tree
            .read(path)
            .map_err(StoreError::io(format!("cannot read `{path}`")))?;
        Ok(found.map(|(bytes, _)| bytes))
    }
}

/// The shared commit log of a project, if it is a working copy.
fn choose_commit_log(
    root: &Path,
    contract: &Contract,
    options: &Options,
) -> Result<Option<Arc<dyn CommitLog>>> {
    let commit_log = match &options.commit_log {
        Some(commit_log) => Some(Arc::clone(commit_log)),
        None if options.alone => None,
        None => find_commit_log(root, contract)?,
    };
    Ok(match commit_log {
        Some(commit_log) if options.offline && commit_log.offline().is_none() => {
            let why = "this command does not use the network";
            Some(Arc::new(Offline::new(commit_log.describe(), why, None)))
        }
        commit_log => commit_log,
    })
}
