//! The heads: for every file its newest version and what it looked like on disk.
//!
//! Derived from the journal and always deletable. SQLite in WAL mode with `synchronous=NORMAL` is
//! never inconsistent and may only be behind after a power cut; it says itself how far it is
//! applied, and the rest is read from the journal. A short log stays when a command ends: folding it
//! in and deleting it is three syncs and an unlink, more than the command itself costs.

use std::path::Path;

use quipu_contract::Class;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, params};

use crate::adopt::Flag;
use crate::error::Result;
use crate::journal::Position;
use crate::lease::Lease;
use crate::live::Tail;
use crate::record::{ROOT_SUM, parse_sum};
use crate::tree::Stamp;
use crate::version::Version;

/// Raised whenever the tables change: an older index is simply made anew.
const FORMAT: i64 = 1;

/// A longer log is folded in at the end: whoever comes next has to read it first.
const SHORT_LOG: u64 = 256 * 1024;

/// The newest state of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub class: Class,
    pub version: Version,
    pub len: u64,
    /// The newest record about this file.
    pub at: Position,
    pub seq: u64,
    pub gone: bool,
    /// What the file looked like when it was last known to hold this version.
    pub stamp: Option<Stamp>,
    /// An outside edit that the contract does not allow, and what the file looked like then.
    pub flag: Option<(Flag, Option<Stamp>)>,
}

pub(crate) struct Heads {
    db: Connection,
    /// The file they are in; zero for none.
    pub inode: u64,
}

impl Heads {
    pub fn open(path: &Path) -> Result<Heads> {
        let db = Connection::open(path)?;
        db.execute_batch("PRAGMA busy_timeout=10000; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=2000;")?;
        Heads { db, inode: crate::store::inode(path) }.prepared()
    }

    /// Heads that live as long as this process: for a project that cannot be written.
    pub fn in_memory() -> Result<Heads> {
        Heads { db: Connection::open_in_memory()?, inode: 0 }.prepared()
    }

    fn prepared(self) -> Result<Heads> {
        let format: i64 = self.db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if format != FORMAT {
            self.db.execute_batch(&format!(
                "BEGIN IMMEDIATE;
                 DROP TABLE IF EXISTS head; DROP TABLE IF EXISTS key; DROP TABLE IF EXISTS lease; DROP TABLE IF EXISTS applied;
                 CREATE TABLE head (
                   path TEXT PRIMARY KEY, class TEXT NOT NULL, version TEXT NOT NULL, len INTEGER NOT NULL,
                   segment INTEGER NOT NULL, offset INTEGER NOT NULL, seq INTEGER NOT NULL, gone INTEGER NOT NULL,
                   inode INTEGER, size INTEGER, mtime INTEGER,
                   flag TEXT, flag_line INTEGER, flag_inode INTEGER, flag_size INTEGER, flag_mtime INTEGER) WITHOUT ROWID;
                 CREATE TABLE key (key TEXT PRIMARY KEY, segment INTEGER NOT NULL, offset INTEGER NOT NULL) WITHOUT ROWID;
                 CREATE TABLE lease (id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
                 CREATE TABLE applied (one INTEGER PRIMARY KEY CHECK (one = 1), segment INTEGER NOT NULL, offset INTEGER NOT NULL,
                   fence INTEGER NOT NULL, kept_segment INTEGER NOT NULL, kept_offset INTEGER NOT NULL, boot TEXT NOT NULL,
                   seq INTEGER NOT NULL, wall INTEGER NOT NULL, sum TEXT NOT NULL, made INTEGER NOT NULL);
                 INSERT INTO applied VALUES (1, 1, 0, 0, 1, 0, '', 0, 0, '{ROOT_SUM}', 0);
                 PRAGMA user_version = {FORMAT};
                 COMMIT;"
            ))?;
        }
        Ok(self)
    }

    /// How far the journal is applied to these heads and to the files.
    pub fn applied(&self) -> Result<Tail> {
        Ok(self.db.prepare_cached("SELECT segment, offset, seq, wall, sum FROM applied")?.query_row([], |row| {
            Ok(Tail {
                at: Position { segment: row.get(0)?, offset: row.get::<_, i64>(1)?.unsigned_abs() },
                seq: row.get::<_, i64>(2)?.unsigned_abs(),
                wall_us: row.get(3)?,
                sum: parse_sum(row.get_ref(4)?.as_str()?),
            })
        })?)
    }

    pub fn set_applied(&self, tail: &Tail) -> Result<()> {
        self.db.prepare_cached("UPDATE applied SET segment = ?, offset = ?, seq = ?, wall = ?, sum = ?")?.execute(params![
            tail.at.segment,
            signed(tail.at.offset),
            signed(tail.seq),
            tail.wall_us,
            tail.sum.as_str()
        ])?;
        Ok(())
    }

    /// How far the files themselves are known to have reached the disk, and in which boot.
    pub fn kept(&self) -> Result<(Position, String)> {
        Ok(self
            .db
            .prepare_cached("SELECT kept_segment, kept_offset, boot FROM applied")?
            .query_row([], |row| Ok((Position { segment: row.get(0)?, offset: row.get::<_, i64>(1)?.unsigned_abs() }, row.get(2)?)))?)
    }

    pub fn set_kept(&self, at: Position, boot: &str) -> Result<()> {
        self.db.prepare_cached("UPDATE applied SET kept_segment = ?, kept_offset = ?, boot = ?")?.execute(params![
            at.segment,
            signed(at.offset),
            boot
        ])?;
        Ok(())
    }

    /// Whether these heads were once filled from the journal, and so can be believed.
    pub fn is_made(&self) -> Result<bool> {
        Ok(self.made()? > 0)
    }

    /// Whether the files were compared with the journal since.
    pub fn is_redone(&self) -> Result<bool> {
        Ok(self.made()? > 1)
    }

    fn made(&self) -> Result<i64> {
        Ok(self.db.query_row("SELECT made FROM applied", [], |row| row.get(0))?)
    }

    pub fn set_made(&self) -> Result<()> {
        self.db.execute("UPDATE applied SET made = 1", [])?;
        Ok(())
    }

    pub fn set_redone(&self) -> Result<()> {
        self.db.execute("UPDATE applied SET made = 2", [])?;
        Ok(())
    }

    /// All of `work` or none of it.
    pub fn transaction<T>(&self, work: impl FnOnce(&Heads) -> Result<T>) -> Result<T> {
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

    /// The heads of many paths, as they stood at one moment.
    pub fn heads_of<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Result<Vec<Option<Head>>> {
        self.db.execute_batch("BEGIN")?;
        let found = paths.map(|path| self.head(path)).collect();
        self.db.execute_batch("COMMIT")?;
        found
    }

    pub fn head(&self, path: &str) -> Result<Option<Head>> {
        let mut statement = self.db.prepare_cached(&format!("SELECT {COLUMNS} FROM head WHERE path = ?"))?;
        Ok(statement.query_row([path], |row| head_of(row, 0)).optional()?)
    }

    /// Whether any file below a folder has a head, gone or not.
    pub fn any_below(&self, folder: &str) -> Result<bool> {
        // `0` comes right after `/`.
        let mut statement = self.db.prepare_cached("SELECT 1 FROM head WHERE path > ? AND path < ? LIMIT 1")?;
        Ok(statement.exists([format!("{folder}/"), format!("{folder}0")])?)
    }

    pub fn put(&self, path: &str, head: &Head) -> Result<()> {
        let (flag, line) = match &head.flag {
            Some((flag, _)) => (Some(flag.what.as_str()), flag.line.map(|l| l as i64)),
            None => (None, None),
        };
        let seen = head.flag.as_ref().and_then(|(_, stamp)| *stamp);
        self.db.prepare_cached("INSERT OR REPLACE INTO head VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")?.execute(params![
            path,
            head.class.as_str(),
            head.version.as_str(),
            signed(head.len),
            head.at.segment,
            signed(head.at.offset),
            signed(head.seq),
            head.gone,
            head.stamp.map(|s| s.inode.cast_signed()),
            head.stamp.map(|s| signed(s.size)),
            head.stamp.map(|s| s.mtime_ns),
            flag,
            line,
            seen.map(|s| s.inode.cast_signed()),
            seen.map(|s| signed(s.size)),
            seen.map(|s| s.mtime_ns),
        ])?;
        Ok(())
    }

    pub fn set_stamp(&self, path: &str, version: &Version, stamp: Option<Stamp>) -> Result<()> {
        self.db
            .prepare_cached(
                "UPDATE head SET inode = ?, size = ?, mtime = ?, flag = NULL, flag_line = NULL, flag_inode = NULL, flag_size = NULL, flag_mtime = NULL
                 WHERE path = ? AND version = ?",
            )?
            .execute(params![
                stamp.map(|s| s.inode.cast_signed()),
                stamp.map(|s| signed(s.size)),
                stamp.map(|s| s.mtime_ns),
                path,
                version.as_str()
            ])?;
        Ok(())
    }

    /// Notes an outside edit that the contract does not allow, unless the file has moved on.
    pub fn set_flag(&self, path: &str, version: &Version, flag: &Flag, seen: Option<Stamp>) -> Result<()> {
        self.db
            .prepare_cached(
                "UPDATE head SET flag = ?, flag_line = ?, flag_inode = ?, flag_size = ?, flag_mtime = ? WHERE path = ? AND version = ?",
            )?
            .execute(params![
                flag.what,
                flag.line.map(|l| l as i64),
                seen.map(|s| s.inode.cast_signed()),
                seen.map(|s| signed(s.size)),
                seen.map(|s| s.mtime_ns),
                path,
                version.as_str()
            ])?;
        Ok(())
    }

    /// Every file there is or was, in order.
    pub fn all(&self) -> Result<Vec<(String, Head)>> {
        let mut statement = self.db.prepare_cached(&format!("SELECT path, {COLUMNS} FROM head ORDER BY path"))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, head_of(row, 1)?)))?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }

    pub fn key(&self, key: &str) -> Result<Option<Position>> {
        let mut statement = self.db.prepare_cached("SELECT segment, offset FROM key WHERE key = ?")?;
        let found = statement.query_row([key], |row| Ok(Position { segment: row.get(0)?, offset: row.get::<_, i64>(1)?.unsigned_abs() }));
        Ok(found.optional()?)
    }

    pub fn put_key(&self, key: &str, at: Position) -> Result<()> {
        self.db.prepare_cached("INSERT OR IGNORE INTO key VALUES (?,?,?)")?.execute(params![key, at.segment, signed(at.offset)])?;
        Ok(())
    }

    pub fn leases(&self) -> Result<Vec<Lease>> {
        let mut statement = self.db.prepare_cached("SELECT body FROM lease ORDER BY id")?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        let mut leases = Vec::new();
        for body in rows {
            leases.extend(serde_json::from_str(&body?).ok());
        }
        Ok(leases)
    }

    pub fn put_lease(&self, lease: &Lease) -> Result<()> {
        let body = serde_json::to_string(lease).expect("a lease has only strings and numbers");
        self.db.prepare_cached("INSERT OR REPLACE INTO lease VALUES (?,?)")?.execute(params![lease.id, body])?;
        self.db.prepare_cached("UPDATE applied SET fence = max(fence, ?)")?.execute([signed(lease.fence)])?;
        Ok(())
    }

    pub fn drop_lease(&self, id: &str) -> Result<()> {
        self.db.prepare_cached("DELETE FROM lease WHERE id = ?")?.execute([id])?;
        Ok(())
    }

    /// The highest fencing number ever given.
    pub fn fence(&self) -> Result<u64> {
        Ok(self.db.prepare_cached("SELECT fence FROM applied")?.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs())
    }

    pub fn clear(&self) -> Result<()> {
        self.db.execute_batch("DELETE FROM head; DELETE FROM key; DELETE FROM lease; UPDATE applied SET segment = 1, offset = 0, fence = 0, seq = 0, wall = 0, made = 0;")?;
        Ok(())
    }
}

impl Drop for Heads {
    fn drop(&mut self) {
        let file = self.db.path().filter(|path| !path.is_empty());
        let log = file.and_then(|path| std::fs::metadata(format!("{path}-wal")).ok());
        if log.is_some_and(|log| log.len() <= SHORT_LOG) {
            // If it cannot be left, it is folded in.
            let _ = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

const COLUMNS: &str =
    "class, version, len, segment, offset, seq, gone, inode, size, mtime, flag, flag_line, flag_inode, flag_size, flag_mtime";

fn head_of(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<Head> {
    let number = |index: usize| -> rusqlite::Result<u64> { Ok(row.get::<_, i64>(from + index)?.unsigned_abs()) };
    let stamp = |index: usize| -> rusqlite::Result<Option<Stamp>> {
        let inode: Option<i64> = row.get(from + index)?;
        let size: Option<i64> = row.get(from + index + 1)?;
        let mtime_ns: Option<i64> = row.get(from + index + 2)?;
        Ok(inode.zip(size).zip(mtime_ns).map(|((inode, size), mtime_ns)| Stamp {
            inode: inode.cast_unsigned(),
            size: size.unsigned_abs(),
            mtime_ns,
        }))
    };
    let flag: Option<String> = row.get(from + 10)?;
    let line: Option<i64> = row.get(from + 11)?;
    let seen = stamp(12)?;
    Ok(Head {
        class: Class::parse(&row.get::<_, String>(from)?).unwrap_or(Class::Free),
        version: Version::parse(&row.get::<_, String>(from + 1)?),
        len: number(2)?,
        at: Position { segment: row.get(from + 3)?, offset: number(4)? },
        seq: number(5)?,
        gone: row.get(from + 6)?,
        stamp: stamp(7)?,
        flag: flag.map(|what| (Flag { what, line: line.map(|l| l.unsigned_abs() as usize) }, seen)),
    })
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
