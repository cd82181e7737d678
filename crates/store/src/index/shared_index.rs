//! The file index as the threads of a process share it: opened on first use, and rebuilt from the
//! journal if it is missing or damaged.
//!
//! It owns `index.db` and the lock that is held while the database is opened or replaced. The holder
//! of that lock waits for no other lock.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::{Result, StoreError};
use crate::files::regular_file::remove_cache;
use crate::files::tree::Tree;
use crate::index::disk_space;
use crate::index::file_index::{Built, FileIndex};
use crate::journal::durable::Journal;
use crate::lock::{KernelLock, locked};
use crate::settings::Settings;

pub(crate) struct Index {
    settings: Arc<Settings>,
    pub(super) journal: Arc<Journal>,
    pub(super) tree: Arc<Tree>,
    lock: KernelLock,
    slot: Mutex<Option<FileIndex>>,
}

pub(crate) struct IndexGuard<'s>(MutexGuard<'s, Option<FileIndex>>);

impl Deref for IndexGuard<'_> {
    type Target = FileIndex;

    fn deref(&self) -> &FileIndex {
        self.0.as_ref().expect("opened before it is handed out")
    }
}

impl Index {
    pub fn new(settings: Arc<Settings>, journal: Arc<Journal>, tree: Arc<Tree>) -> Index {
        Index {
            lock: settings.lock("index.lock"),
            settings,
            journal,
            tree,
            slot: Mutex::new(None),
        }
    }

    /// The file index, opened on first use.
    pub fn open(&self) -> Result<IndexGuard<'_>> {
        let mut slot = locked(&self.slot);
        if slot.is_none() {
            *slot = Some(self.open_new()?);
        }
        Ok(IndexGuard(slot))
    }

    fn open_new(&self) -> Result<FileIndex> {
        if self.settings.read_only {
            let file_index = FileIndex::in_memory()?;
            self.fill(&file_index)?;
            return Ok(file_index);
        }
        let path = self.settings.quipu().join("index.db");
        let _held = self.lock.acquire()?;
        disk_space::check_before_mapping(&self.settings.quipu())?;
        let opened = FileIndex::open(&path).and_then(|file_index| {
            disk_space::allocate_mapped(&path)?;
            if file_index.progress()?.built == Built::No {
                self.fill(&file_index)?;
            }
            Ok(file_index)
        });
        match opened {
            Err(error) if is_damage(&error) => {
                self.remove_files()?;
                let file_index = FileIndex::open(&path)?;
                self.fill(&file_index)?;
                Ok(file_index)
            }
            other => other,
        }
    }

    /// Closes the file index if its file was deleted: other processes may use a new one.
    pub fn forget_deleted(&self) {
        let mut slot = locked(&self.slot);
        if !self.settings.read_only
            && slot.as_ref().is_some_and(|file_index| {
                file_index.is_displaced(&self.settings.quipu().join("index.db"))
            })
        {
            *slot = None;
        }
    }

    /// Rebuilds the file index from the journal, in place if it can be opened at all. A database
    /// that another process has open should be replaced only if necessary.
    pub fn rebuild(&self) -> Result<()> {
        let mut slot = locked(&self.slot);
        *slot = None;
        let file_index = self.open_new()?;
        let held = self.lock.acquire()?;
        match self.fill(&file_index) {
            Err(error) if is_damage(&error) => {
                drop((file_index, held));
                self.discard(&mut slot)?;
                *slot = Some(self.open_new()?);
            }
            other => {
                other?;
                *slot = Some(file_index);
            }
        }
        Ok(())
    }

    /// Replaces the file index with a new one. Requires the apply lock.
    pub fn replace(&self) -> Result<()> {
        let mut slot = locked(&self.slot);
        self.discard(&mut slot)?;
        *slot = Some(self.open_new()?);
        Ok(())
    }

    fn discard(&self, slot: &mut Option<FileIndex>) -> Result<()> {
        *slot = None;
        let _held = self.lock.acquire()?;
        self.remove_files()
    }

    /// Runs work that needs the file index. If the index turns out to be damaged, rebuilds it and
    /// runs the work again. The work must not journal anything before it has read the index.
    pub fn sound<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        match work() {
            Err(error) if is_damage(&error) && !self.settings.read_only => {
                let mut slot = locked(&self.slot);
                self.discard(&mut slot)?;
                drop(slot);
                work()
            }
            other => other,
        }
    }

    fn remove_files(&self) -> Result<()> {
        for name in ["index.db", "index.db-wal", "index.db-shm"] {
            remove_cache(&self.settings.quipu().join(name))
                .map_err(StoreError::io(format!("cannot remove `.quipu/{name}`")))?;
        }
        Ok(())
    }
}

/// Whether the file index is damaged. It is a cache, so a rebuild fixes any fault, except those
/// that a new index would have as well.
fn is_damage(error: &StoreError) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory};
    let StoreError::FileIndex(error) = error else {
        return false;
    };
    !matches!(
        error.sqlite_error_code(),
        Some(DatabaseBusy | DatabaseLocked | DiskFull | OutOfMemory)
    )
}
