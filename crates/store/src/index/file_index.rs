//! The file index (`index.db`): for every file its newest version and its file stat.
//!
//! It is derived from the journal and can always be deleted. SQLite in WAL mode with
//! `synchronous=NORMAL` stays consistent and may only lag behind after a power cut. It stores how
//! far the journal is applied, and the rest is read from the journal. A short WAL is left in place
//! when a command ends: a checkpoint and deletion take three syncs and an unlink, more than the
//! command itself. `table.rs` detects damaged rows; the caller then rebuilds the index.

use std::path::Path;

use quipu_contract::Class;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::error::Result;
use crate::files::tree::FileStat;
use crate::index::table::Table;
use crate::journal::lease::Lease;
use crate::journal::record::{OpKind, Record, RecordOp};
use crate::journal::segments::Position;
use crate::journal::watermarks::Tail;
use crate::rules::flag::Flag;
use crate::version::Version;

/// Raised when the tables change: an older index is rebuilt.
const FORMAT: i64 = 3;

/// A longer WAL is checkpointed at the end, because the next process has to read it first.
const SHORT_LOG: u64 = 256 * 1024;

/// The newest state of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileHead {
    pub class: Class,
    pub version: Version,
    pub len: u64,
    /// The newest record about this file.
    pub at: Position,
    pub seq: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// The file stat when the file was last known to hold this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_stat: Option<FileStat>,
    /// A disallowed external edit, and the file stat then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<(Flag, Option<FileStat>)>,
}

impl FileHead {
    /// The entry after an operation.
    pub fn after(op: &RecordOp, at: Position, seq: u64) -> FileHead {
        FileHead {
            class: Class::parse(&op.class).unwrap_or(Class::Free),
            version: op.version.clone(),
            len: op.len,
            at,
            seq,
            gone: op.op == OpKind::Remove,
            file_stat: None,
            flag: None,
        }
    }

    /// The entry after an operation that is not journalled yet.
    pub fn unjournalled(op: &RecordOp) -> FileHead {
        FileHead::after(op, Position::START, 0)
    }

    /// The position of the record, if it is journalled, as records name it.
    pub fn place(&self) -> Option<SmolStr> {
        (self.seq > 0).then(|| self.at.text())
    }
}

/// How far an index was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Built {
    No,
    /// Completely, from the journal.
    Filled,
    /// The files were compared with the journal as well.
    Compared,
}

/// The progress of the index as a whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// How far the journal is applied to this index and to the files.
    pub applied: Tail,
    /// The highest fence so far.
    pub fence: u64,
    /// How far the files themselves are known to be synced, and in which boot.
    pub kept: Position,
    pub boot: String,
    pub built: Built,
    /// Damaged records about unknown files. Each may hide a change of any file.
    pub hidden: Vec<Position>,
}

impl Progress {
    fn start() -> Progress {
        Progress {
            applied: Tail::start(),
            fence: 0,
            kept: Position::START,
            boot: String::new(),
            built: Built::No,
            hidden: Vec::new(),
        }
    }
}

/// The tables. The last one has a single row with the same name.
const TABLES: [&str; 4] = [HEADS, KEYS, LEASES, PROGRESS];
const HEADS: &str = "head";
const KEYS: &str = "key";
const LEASES: &str = "lease";
const PROGRESS: &str = "progress";

pub(crate) struct FileIndex {
    db: Connection,
    /// The inode of the database file; zero for none.
    inode: u64,
}

impl FileIndex {
    pub fn open(path: &Path) -> Result<FileIndex> {
        let db = Connection::open(path)?;
        db.execute_batch("PRAGMA busy_timeout=10000; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=2000;")?;
        let inode = inode(path);
        FileIndex { db, inode }.prepared()
    }

    /// An index in memory, for a project that cannot be written.
    pub fn in_memory() -> Result<FileIndex> {
        let db = Connection::open_in_memory()?;
        FileIndex { db, inode: 0 }.prepared()
    }

    fn prepared(self) -> Result<FileIndex> {
        let format: i64 = self
            .db
            .query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if format != FORMAT {
            self.transaction(|index| {
                for name in TABLES {
                    index.table(name).create()?;
                }
                index.table(PROGRESS).put(PROGRESS, &Progress::start())?;
                Ok(index.db.pragma_update(None, "user_version", FORMAT)?)
            })?;
        }
        Ok(self)
    }

    fn table(&self, name: &'static str) -> Table<'_> {
        Table { db: &self.db, name }
    }

    /// Whether another file has the path of this database by now, or none.
    pub fn is_displaced(&self, path: &Path) -> bool {
        self.inode != inode(path)
    }

    pub fn progress(&self) -> Result<Progress> {
        let found = self.table(PROGRESS).get(PROGRESS)?;
        Ok(found.unwrap_or_else(Progress::start))
    }

    pub fn change_progress(&self, change: impl FnOnce(&mut Progress)) -> Result<()> {
        self.atomically(|| {
            let mut progress = self.progress()?;
            change(&mut progress);
            self.table(PROGRESS).put(PROGRESS, &progress)
        })
    }

    /// How far the journal is applied to this index and to the files.
    pub fn applied(&self) -> Result<Tail> {
        Ok(self.progress()?.applied)
    }

    pub fn set_applied(&self, tail: &Tail) -> Result<()> {
        self.change_progress(|progress| progress.applied = *tail)
    }

    pub fn set_kept(&self, at: Position, boot: &str) -> Result<()> {
        self.change_progress(|progress| {
            progress.kept = at;
            boot.clone_into(&mut progress.boot);
        })
    }

    /// Runs `work` in a transaction.
    pub fn transaction<T>(&self, work: impl FnOnce(&FileIndex) -> Result<T>) -> Result<T> {
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        match work(self) {
            Ok(value) => {
                self.db.execute_batch("COMMIT")?;
                Ok(value)
            }
            Err(error) => {
                let _ = self.db.execute_batch("ROLLBACK");
                Err(error)
            }
        }
    }

    /// Runs `work` in the current transaction, or in one of its own.
    fn atomically<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.db.is_autocommit() {
            self.transaction(|_| work())
        } else {
            work()
        }
    }

    /// The entries of many paths, read in one transaction.
    pub fn heads_of<'p>(
        &self,
        paths: impl Iterator<Item = &'p str>,
    ) -> Result<Vec<Option<FileHead>>> {
        self.db.execute_batch("BEGIN")?;
        let found = paths.map(|path| self.head(path)).collect();
        self.db.execute_batch("COMMIT")?;
        found
    }

    pub fn head(&self, path: &str) -> Result<Option<FileHead>> {
        self.table(HEADS).get(path)
    }

    /// Whether the index has any file below a folder, deleted ones included.
    pub fn any_below(&self, folder: &str) -> Result<bool> {
        let folder = format!("{folder}/");
        let first = self.table(HEADS).first_from(&folder)?;
        Ok(first.is_some_and(|path| path.starts_with(&folder)))
    }

    pub fn put(&self, path: &str, head: &FileHead) -> Result<()> {
        self.atomically(|| self.table(HEADS).put(path, head))
    }

    /// Changes the entry of a path, unless the file has another version by now.
    fn change_head(
        &self,
        path: &str,
        version: &Version,
        change: impl FnOnce(&mut FileHead),
    ) -> Result<()> {
        self.atomically(|| match self.head(path)? {
            Some(mut head) if head.version == *version => {
                change(&mut head);
                self.table(HEADS).put(path, &head)
            }
            _ => Ok(()),
        })
    }

    pub fn set_stat(
        &self,
        path: &str,
        version: &Version,
        file_stat: Option<FileStat>,
    ) -> Result<()> {
        self.change_head(path, version, |head| {
            (head.file_stat, head.flag) = (file_stat, None)
        })
    }

    /// Stores the flag of a disallowed external edit, unless the file has another version by now.
    pub fn set_flag(
        &self,
        path: &str,
        version: &Version,
        flag: &Flag,
        seen: Option<FileStat>,
    ) -> Result<()> {
        self.change_head(path, version, |head| head.flag = Some((flag.clone(), seen)))
    }

    /// All files, including deleted ones, in order.
    pub fn all(&self) -> Result<Vec<(String, FileHead)>> {
        self.table(HEADS).all()
    }

    pub fn key(&self, key: &str) -> Result<Option<Position>> {
        self.table(KEYS).get(key)
    }

    /// Stores the position of the record with an idempotency key. The first one counts.
    pub fn put_key(&self, key: &str, at: Position) -> Result<()> {
        self.atomically(|| match self.key(key)? {
            Some(_) => Ok(()),
            None => self.table(KEYS).put(key, &at),
        })
    }

    pub fn leases(&self) -> Result<Vec<Lease>> {
        let leases = self.table(LEASES).all()?;
        Ok(leases.into_iter().map(|(_, lease)| lease).collect())
    }

    pub fn put_lease(&self, lease: &Lease) -> Result<()> {
        self.atomically(|| {
            self.table(LEASES).put(&lease.id, lease)?;
            self.change_progress(|progress| progress.fence = progress.fence.max(lease.fence))
        })
    }

    pub fn drop_lease(&self, id: &str) -> Result<()> {
        self.atomically(|| self.table(LEASES).remove(id))
    }

    /// Stores the idempotency key and the leases of a record.
    pub fn note(&self, at: Position, record: &Record) -> Result<()> {
        if let Some(key) = &record.key {
            self.put_key(key, at)?;
        }
        if let Some(event) = &record.lease {
            self.put_lease(&Lease::apply(record, event))?;
            if event.act == "release" {
                self.drop_lease(&event.id)?;
            }
        }
        Ok(())
    }

    /// Forgets everything but how far the files are synced. Requires a transaction.
    pub fn clear(&self) -> Result<()> {
        let Progress { kept, boot, .. } = self.progress()?;
        for name in [HEADS, KEYS, LEASES] {
            self.table(name)
                .replace_all(std::iter::empty::<(&String, &())>())?;
        }
        self.change_progress(|progress| {
            *progress = Progress {
                kept,
                boot,
                ..Progress::start()
            }
        })
    }

    /// Replaces all entries of files, given in the order of their paths. Requires a transaction.
    pub fn put_all<'h>(
        &self,
        heads: impl Iterator<Item = (&'h String, &'h FileHead)>,
    ) -> Result<()> {
        self.table(HEADS).replace_all(heads)
    }
}

impl Drop for FileIndex {
    fn drop(&mut self) {
        let file = self.db.path().filter(|path| !path.is_empty());
        let log = file.and_then(|path| std::fs::metadata(format!("{path}-wal")).ok());
        if log.is_some_and(|log| log.len() <= SHORT_LOG) {
            // If this fails, SQLite checkpoints the WAL on close.
            let _ = self
                .db
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

/// The inode of a path; zero if there is none.
fn inode(path: &Path) -> u64 {
    rustix::fs::stat(path).map_or(0, |stat| stat.st_ino)
}
