//! The store of one project: opens its parts, and rebuilds the ones that can be rebuilt.
//!
//! Each part is opened on first use. The commit path is in `judge.rs`, `publish.rs` and `apply.rs`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use quipu_contract::{Contract, ProjectPath};

use crate::clock::{Clock, boot_id};
use crate::disk::{Disk, Watch};
use crate::error::{Result, StoreError, Unwritable};
use crate::heads::{Head, Heads};
use crate::journal::{Journal, Position};
use crate::live::Live;
use crate::lock::KernelLock;
use crate::order::{Offline, Order};
use crate::restore::Kept;
use crate::rulebook::RuleBook;
use crate::survey::Surveyed;
use crate::tree::Tree;
use crate::version::Version;

/// How long a command waits for another process before it fails with that process's name.
const WAIT: Duration = Duration::from_secs(10);
/// The same in a working copy, where the holder may wait for a server.
const SHARED_WAIT: Duration = Duration::from_secs(90);
/// A segment of this size is closed, and the next one begins.
const SEGMENT_BYTES: u64 = 16 << 20;

/// Suffix of the boot id in a working copy.
const OF_SHARED: &str = "s";

/// Options for opening a store. The defaults are for ordinary use.
#[derive(Clone)]
pub struct Options {
    pub clock: Clock,
    pub wait: Duration,
    pub segment_bytes: u64,
    pub watch: Option<Arc<dyn Watch>>,
    /// The boot id, if it does not come from the kernel.
    pub boot: Option<String>,
    /// The shared commit log, if it does not come from the project's folder or the environment.
    pub order: Option<Arc<dyn Order>>,
    /// Open as a local project, regardless of the environment and the contract.
    pub alone: bool,
    /// Open a working copy without contacting its shared store: reads use the local state, and
    /// nothing can be committed.
    pub offline: bool,
    /// The interface that the caller uses, stored in every record that it makes: `page`.
    pub door: Option<&'static str>,
    /// Checks whether a changed contract is valid, and texts are valid in their form.
    pub rules: Option<Arc<dyn RuleBook>>,
    /// The contract cannot be read and the given one is empty: files have the classes in the
    /// journal.
    pub unruled: bool,
    /// Open for reading only, because nothing can be written; the reason.
    pub looks: Option<Unwritable>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            clock: Clock::system(),
            wait: WAIT,
            segment_bytes: SEGMENT_BYTES,
            watch: None,
            boot: None,
            order: None,
            alone: false,
            offline: false,
            door: None,
            rules: None,
            unruled: false,
            looks: None,
        }
    }
}

pub struct Store {
    pub(crate) contract: Arc<Contract>,
    pub(crate) tree: Tree,
    pub(crate) journal: Journal,
    pub(crate) disk: Disk,
    pub(crate) clock: Clock,
    pub(crate) boot: String,
    pub(crate) append_lock: KernelLock,
    pub(crate) sync_lock: KernelLock,
    pub(crate) apply_lock: KernelLock,
    /// Held while the file index is opened or replaced. Its holder waits for no other lock.
    heads_lock: KernelLock,
    live: RwLock<Option<Arc<Live>>>,
    heads: Mutex<Option<Heads>>,
    pub(crate) surveyed: Mutex<Option<Surveyed>>,
    read_only: bool,
    /// The current `quipu.toml` is journalled.
    pub(crate) rules_noted: AtomicBool,
    /// The reason why the store was opened for reading only.
    pub(crate) looks: Option<Unwritable>,
    /// The files were compared with the journal after the index was built.
    pub(crate) redone: AtomicBool,
    /// Leftovers of a killed process in `.quipu/aside` were searched for.
    pub(crate) asides_sought: AtomicBool,
    /// The last range of records that this process journalled and has not begun to apply.
    pub(crate) own: Mutex<Option<Range<Position>>>,
    /// Conflict copies since the last status scan, which reports them.
    pub(crate) kept: Mutex<Vec<Kept>>,
    /// The shared commit log of this working copy.
    pub(crate) order: Option<Arc<dyn Order>>,
    /// How far the log's clock is ahead of this one.
    pub(crate) skew_us: AtomicI64,
    /// Unanswered requests of a killed process were checked.
    pub(crate) sent_sought: AtomicBool,
    /// The version of the contract when the store was opened; only in a working copy.
    pub(crate) contract_text: Option<Version>,
    pub(crate) alone: bool,
    pub(crate) door: Option<&'static str>,
    pub(crate) rules: Option<Arc<dyn RuleBook>>,
    pub(crate) unruled: bool,
}

pub(crate) struct HeadsGuard<'s>(MutexGuard<'s, Option<Heads>>);

impl std::ops::Deref for HeadsGuard<'_> {
    type Target = Heads;

    fn deref(&self) -> &Heads {
        self.0.as_ref().expect("opened before it is handed out")
    }
}

/// Folders in `.quipu` with files that are written in place or read without a further check.
const TAKEN_AS_THEY_ARE: [&str; 7] = [
    "journal",
    "recall",
    "workers",
    "calls",
    "aside",
    "conflicts",
    "tokens",
];

/// Refuses links and special files in `.quipu`. Through a link, Quipu would write its own data to a
/// file elsewhere. A reader of a named pipe would wait forever.
fn refuse_other_than_files(quipu: &Path) -> Result<()> {
    let shown = |place: &Path| {
        let place = quipu
            .parent()
            .and_then(|root| place.strip_prefix(root).ok())
            .unwrap_or(place);
        place.display().to_string()
    };
    let refuse_link = |place: &Path| {
        let what = format!(
            "`{}` is a symbolic link: what Quipu keeps lies in the project itself",
            shown(place)
        );
        Err(StoreError::refused(
            what,
            "delete the link, or put what it leads to in its place",
        ))
    };
    if quipu
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink())
    {
        return refuse_link(quipu);
    }
    let folders = TAKEN_AS_THEY_ARE.map(|name| quipu.join(name));
    for folder in std::iter::once(quipu).chain(folders.iter().map(PathBuf::as_path)) {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_symlink() {
                return refuse_link(&entry.path());
            }
            if !kind.is_file() && !kind.is_dir() {
                let place = shown(&entry.path());
                let what = format!(
                    "`{place}` is a named pipe, a socket or a device: Quipu keeps only files and folders here"
                );
                return Err(StoreError::refused(what, "delete it"));
            }
        }
    }
    Ok(())
}

/// The bytes of a file, and its version.
pub type Text = (Vec<u8>, Version);

impl Store {
    /// Creates the folders of a store.
    pub fn init(root: &Path) -> Result<()> {
        let quipu = root.join(".quipu");
        refuse_other_than_files(&quipu)?;
        for folder in ["journal", "tmp", "aside"] {
            std::fs::create_dir_all(quipu.join(folder))
                .map_err(StoreError::io(format!("cannot make `.quipu/{folder}`")))?;
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
            Live::open_to_read(&quipu.join("live"), boot).is_some_and(|live| live.tail().is_some())
        };
        knows_end(&boot) || knows_end(&format!("{boot}{OF_SHARED}")) || !Self::has_history(root)
    }

    /// Opens the store of a project. The first command that takes a snapshot completes what a crash
    /// left undone.
    pub fn open(root: &Path, contract: Arc<Contract>, options: Options) -> Result<Store> {
        let quipu = root.join(".quipu");
        if !quipu.is_dir() {
            return Err(StoreError::NoStore(root.to_owned()));
        }
        refuse_other_than_files(&quipu)?;
        let disk = Disk::new(options.watch);
        let tree = Tree::open(root, disk.clone())
            .map_err(StoreError::io(format!("cannot open `{}`", root.display())))?;
        let read_only = options.looks.is_some()
            || rustix::fs::access(&quipu, rustix::fs::Access::WRITE_OK).is_err();
        let whole = quipu.join("tmp").is_dir() && quipu.join("journal").is_dir();
        if !read_only && !whole {
            Self::init(root)?;
        }
        let order = match options.order {
            Some(order) => Some(order),
            None if options.alone => None,
            None => crate::order::find_order(root, &contract)?,
        };
        let order = match order {
            Some(order) if options.offline && order.offline().is_none() => {
                Some(Arc::new(Offline::new(
                    order.describe(),
                    "this command does not use the network",
                    None,
                )) as Arc<dyn Order>)
            }
            order => order,
        };
        // A writer may wait for the server, and other writers wait for that writer.
        let wait = if order.is_some() {
            options.wait.max(SHARED_WAIT)
        } else {
            options.wait
        };
        let contract_text = order
            .as_ref()
            .and_then(|_| std::fs::read(root.join("quipu.toml")).ok())
            .map(|text| Version::of(&text));
        // A working copy and a local project have different boot ids. A process with the old state
        // of the project therefore finds no watermarks and takes a new snapshot (see `find_end`).
        let boot =
            options.boot.unwrap_or_else(boot_id) + if order.is_some() { OF_SHARED } else { "" };
        let lock =
            |name: &str| KernelLock::new(quipu.join(name), wait).barred(options.looks.clone());
        Ok(Store {
            contract,
            tree,
            journal: Journal::new(quipu.join("journal"), disk.clone(), options.segment_bytes),
            disk,
            clock: options.clock,
            boot,
            append_lock: lock("append.lock"),
            sync_lock: lock("sync.lock").unhurried(),
            apply_lock: lock("apply.lock"),
            heads_lock: lock("heads.lock"),
            live: RwLock::new(None),
            heads: Mutex::new(None),
            surveyed: Mutex::new(None),
            read_only,
            rules_noted: AtomicBool::new(false),
            looks: options.looks,
            redone: AtomicBool::new(false),
            asides_sought: AtomicBool::new(false),
            own: Mutex::new(None),
            kept: Mutex::new(Vec::new()),
            order,
            skew_us: AtomicI64::new(0),
            sent_sought: AtomicBool::new(false),
            contract_text,
            alone: options.alone,
            door: options.door,
            rules: options.rules,
            unruled: options.unruled,
        })
    }

    pub fn root(&self) -> &Path {
        &self.tree.path
    }

    /// The current time, by the clock of this store.
    pub fn now(&self) -> crate::clock::Instant {
        self.clock.now()
    }

    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Whether it was opened without the project's contract.
    pub fn is_unruled(&self) -> bool {
        self.unruled
    }

    /// Whether the project is on a disk or in a folder that cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(crate) fn quipu(&self) -> PathBuf {
        self.tree.path.join(".quipu")
    }

    pub(crate) fn live(&self) -> Result<Arc<Live>> {
        if let Some(live) = &*self.live.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(live));
        }
        let mut slot = self.live.write().unwrap_or_else(PoisonError::into_inner);
        let live = match &*slot {
            Some(live) => Arc::clone(live),
            None => Arc::new(Live::open(&self.quipu().join("live"), self.boot.clone())?),
        };
        *slot = Some(Arc::clone(&live));
        Ok(live)
    }

    /// The watermarks, reopened if the file was deleted: other processes may use a new one.
    pub(crate) fn live_now(&self) -> Result<Arc<Live>> {
        let live = self.live()?;
        if !live.is_deleted() {
            return Ok(live);
        }
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.live()
    }

    /// The file index, opened on first use.
    pub(crate) fn heads(&self) -> Result<HeadsGuard<'_>> {
        let mut slot = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Some(self.open_heads()?);
        }
        Ok(HeadsGuard(slot))
    }

    fn open_heads(&self) -> Result<Heads> {
        if self.read_only {
            let heads = Heads::in_memory()?;
            self.fill_heads(&heads)?;
            return Ok(heads);
        }
        let path = self.quipu().join("heads.db");
        let _held = self.heads_lock.acquire()?;
        crate::room::check_before_mapping(&self.quipu())?;
        let opened = Heads::open(&path).and_then(|heads| {
            crate::room::allocate_mapped(&path)?;
            if !heads.is_made()? {
                self.fill_heads(&heads)?;
                self.redone.store(false, Ordering::SeqCst);
            }
            Ok(heads)
        });
        match opened {
            Err(error) if is_damage(&error) => {
                self.remove_heads_files()?;
                let heads = Heads::open(&path)?;
                self.fill_heads(&heads)?;
                self.redone.store(false, Ordering::SeqCst);
                Ok(heads)
            }
            other => other,
        }
    }

    /// Closes the file index if its file was deleted: other processes may use a new one.
    pub(crate) fn forget_deleted_heads(&self) {
        let mut slot = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.read_only
            && slot
                .as_ref()
                .is_some_and(|heads| heads.inode != inode(&self.quipu().join("heads.db")))
        {
            *slot = None;
            self.redone.store(false, Ordering::SeqCst);
        }
    }

    /// Rebuilds the file index from the journal, in place if it can be opened at all. A database
    /// that another process has open should be replaced only if necessary.
    pub(crate) fn rebuild_heads(&self) -> Result<()> {
        let mut slot = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = None;
        let heads = self.open_heads()?;
        let held = self.heads_lock.acquire()?;
        match self.fill_heads(&heads) {
            Err(error) if is_damage(&error) => {
                drop((heads, held));
                self.discard_heads(&mut slot)?;
                *slot = Some(self.open_heads()?);
            }
            other => {
                other?;
                *slot = Some(heads);
            }
        }
        self.redone.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn discard_heads(&self, slot: &mut Option<Heads>) -> Result<()> {
        *slot = None;
        let _held = self.heads_lock.acquire()?;
        self.remove_heads_files()
    }

    /// Runs work that needs the file index. If the index turns out to be damaged, rebuilds it and
    /// runs the work again. The work must not journal anything before it has read the index.
    pub(crate) fn with_sound_heads<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        match work() {
            Err(error) if is_damage(&error) && !self.read_only => {
                let mut slot = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
                self.discard_heads(&mut slot)?;
                drop(slot);
                work()
            }
            other => other,
        }
    }

    fn remove_heads_files(&self) -> Result<()> {
        for name in ["heads.db", "heads.db-wal", "heads.db-shm"] {
            remove_cache(&self.quipu().join(name))
                .map_err(StoreError::io(format!("cannot remove `.quipu/{name}`")))?;
        }
        Ok(())
    }

    /// The newest text of a file and its version. An allowed external edit is adopted first; a
    /// disallowed one is not shown.
    pub fn read(&self, path: &ProjectPath) -> Result<Option<Text>> {
        Ok(self.read_all(std::slice::from_ref(path))?.pop().flatten())
    }

    /// Like `read` for many files, which costs less than single reads.
    pub fn read_all(&self, paths: &[ProjectPath]) -> Result<Vec<Option<Text>>> {
        self.with_sound_heads(|| self.read_once(paths))
    }

    fn read_once(&self, paths: &[ProjectPath]) -> Result<Vec<Option<Text>>> {
        self.settle()?;
        let heads = self
            .heads()?
            .heads_of(paths.iter().map(ProjectPath::as_str))?;
        let mut texts: Vec<Option<Text>> = paths
            .iter()
            .zip(heads)
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
            self.take_notice(&others)?;
            let heads = self
                .heads()?
                .heads_of(others.iter().map(ProjectPath::as_str))?;
            for ((at, path), head) in places.into_iter().zip(&others).zip(heads) {
                texts[at] = self.read_at_head(path, head)?;
            }
        }
        Ok(texts)
    }

    /// Reads a file if its stat is the recorded one, as it is for most files.
    fn read_unchanged(&self, path: &ProjectPath, head: Option<Head>) -> Option<Text> {
        let head = head.filter(|head| !head.gone)?;
        let (bytes, found) = self.tree.read(path).ok()??;
        (head.stamp == Some(found)).then_some((bytes, head.version))
    }

    fn read_at_head(&self, path: &ProjectPath, head: Option<Head>) -> Result<Option<Text>> {
        match head.filter(|h| !h.gone) {
            Some(head) => Ok(Some((self.content(path, &head)?, head.version))),
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
    pub fn look_of(&self, path: &ProjectPath) -> Result<Option<String>> {
        let stamp = self
            .tree
            .stamp(path)
            .map_err(StoreError::io(format!("cannot look at `{path}`")))?;
        Ok(stamp.map(|s| format!("{}-{}-{}", s.inode, s.size, s.mtime_ns)))
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

/// The inode of a path; zero if there is none.
pub(crate) fn inode(path: &Path) -> u64 {
    rustix::fs::stat(path).map_or(0, |stat| stat.st_ino)
}

/// Whether the file index is damaged. It is a cache, so a rebuild fixes any fault, except those
/// that a new index would have as well.
pub(crate) fn is_damage(error: &StoreError) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory};
    let StoreError::Heads(error) = error else {
        return false;
    };
    !matches!(
        error.sqlite_error_code(),
        Some(DatabaseBusy | DatabaseLocked | DiskFull | OutOfMemory)
    )
}

/// Deletes a cache file, or anything else at its path. A folder that is not empty was not made by
/// Quipu; it is renamed and kept.
pub(crate) fn remove_cache(path: &Path) -> std::io::Result<()> {
    use std::io::ErrorKind::{DirectoryNotEmpty, IsADirectory, NotFound};
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == NotFound => Ok(()),
        Err(error) if error.kind() == IsADirectory || path.is_dir() => {
            match std::fs::remove_dir(path) {
                Err(error) if error.kind() == DirectoryNotEmpty => {
                    let name = path
                        .file_name()
                        .map(|name| name.to_string_lossy().into_owned())
                        .unwrap_or_default();
                    std::fs::rename(
                        path,
                        path.with_file_name(format!("{name}.moved-{}", crate::ident::short_id())),
                    )
                }
                other => other,
            }
        }
        other => other,
    }
}
