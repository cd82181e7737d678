//! The file index (`heads.db`): for every file its newest version and its file stat.
//!
//! It is derived from the journal and can always be deleted. SQLite in WAL mode with
//! `synchronous=NORMAL` stays consistent and may only lag behind after a power cut. It stores how
//! far the journal is applied, and the rest is read from the journal. A short WAL is left in place
//! when a command ends: a checkpoint and deletion take three syncs and an unlink, more than the
//! command itself.
//!
//! SQLite does not notice a flipped bit inside a row or a key, so each row has its own checksum and
//! the key of the row before it (`row_sum.rs`). A row that is found is compared with its checksum.
//! A missing row is proven absent by the row after its position. Either failure is reported as a
//! corrupt database, and the caller rebuilds the index (`Store::with_sound_heads`).

use std::path::Path;

use quipu_contract::Class;
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use crate::adopt::Flag;
use crate::error::{Result, StoreError};
use crate::journal::Position;
use crate::lease::Lease;
use crate::live::Tail;
use crate::record::{ROOT_SUM, parse_sum};
use crate::row_sum::RowSum;
use crate::tree::Stamp;
use crate::version::Version;

/// Raised when the tables change: an older index is rebuilt.
const FORMAT: i64 = 2;

/// A longer WAL is checkpointed at the end, because the next process has to read it first.
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
    /// The file stat when the file was last known to hold this version.
    pub stamp: Option<Stamp>,
    /// A disallowed external edit, and the file stat then.
    pub flag: Option<(Flag, Option<Stamp>)>,
}

pub(crate) struct Heads {
    db: Connection,
    /// The inode of the database file; zero for none.
    pub inode: u64,
}

impl Heads {
    pub fn open(path: &Path) -> Result<Heads> {
        let db = Connection::open(path)?;
        db.execute_batch("PRAGMA busy_timeout=10000; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=2000;")?;
        Heads {
            db,
            inode: crate::store::inode(path),
        }
        .prepared()
    }

    /// An index in memory, for a project that cannot be written.
    pub fn in_memory() -> Result<Heads> {
        Heads {
            db: Connection::open_in_memory()?,
            inode: 0,
        }
        .prepared()
    }

    fn prepared(self) -> Result<Heads> {
        let format: i64 = self
            .db
            .query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if format != FORMAT {
            self.db.execute_batch(
                "BEGIN IMMEDIATE;
                 DROP TABLE IF EXISTS head; DROP TABLE IF EXISTS key; DROP TABLE IF EXISTS lease; DROP TABLE IF EXISTS applied;
                 CREATE TABLE head (
                   path TEXT PRIMARY KEY, class TEXT NOT NULL, version TEXT NOT NULL, len INTEGER NOT NULL,
                   segment INTEGER NOT NULL, offset INTEGER NOT NULL, seq INTEGER NOT NULL, gone INTEGER NOT NULL,
                   inode INTEGER, size INTEGER, mtime INTEGER,
                   flag TEXT, flag_line INTEGER, flag_inode INTEGER, flag_size INTEGER, flag_mtime INTEGER,
                   before TEXT, sum INTEGER NOT NULL) WITHOUT ROWID;
                 CREATE TABLE key (key TEXT PRIMARY KEY, segment INTEGER NOT NULL, offset INTEGER NOT NULL,
                   before TEXT, sum INTEGER NOT NULL) WITHOUT ROWID;
                 CREATE TABLE lease (id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
                 CREATE TABLE applied (one INTEGER PRIMARY KEY CHECK (one = 1), segment INTEGER NOT NULL, offset INTEGER NOT NULL,
                   fence INTEGER NOT NULL, kept_segment INTEGER NOT NULL, kept_offset INTEGER NOT NULL, boot TEXT NOT NULL,
                   seq INTEGER NOT NULL, wall INTEGER NOT NULL, last TEXT NOT NULL, made INTEGER NOT NULL,
                   leases INTEGER NOT NULL, hidden TEXT NOT NULL, sum INTEGER NOT NULL);",
            )?;
            self.put_applied(&Applied::start())?;
            self.put_end_rows()?;
            self.db
                .execute_batch(&format!("PRAGMA user_version = {FORMAT}; COMMIT;"))?;
        }
        Ok(self)
    }

    /// Writes the end row of each table.
    fn put_end_rows(&self) -> Result<()> {
        self.put_row(&Key::End, None, &end_head())?;
        self.put_key_row(&Key::End, None, Position::START)
    }

    fn load_applied(&self) -> Result<Applied> {
        let mut statement = self.db.prepare_cached(
            "SELECT segment, offset, fence, kept_segment, kept_offset, boot, seq, wall, last, made, leases, hidden, sum FROM applied",
        )?;
        let (applied, sum) = statement.query_row([], |row| {
            let applied = Applied {
                at: (row.get(0)?, row.get(1)?),
                fence: row.get(2)?,
                kept: (row.get(3)?, row.get(4)?),
                boot: row.get(5)?,
                seq: row.get(6)?,
                wall: row.get(7)?,
                last: row.get(8)?,
                made: row.get(9)?,
                leases: row.get(10)?,
                hidden: row.get(11)?,
            };
            Ok((applied, row.get::<_, i64>(12)?))
        })?;
        if applied.sum() == sum {
            Ok(applied)
        } else {
            Err(corrupt("the row `applied` does not match its checksum"))
        }
    }

    fn put_applied(&self, applied: &Applied) -> Result<()> {
        self.db
            .prepare_cached("INSERT OR REPLACE INTO applied VALUES (1,?,?,?,?,?,?,?,?,?,?,?,?,?)")?
            .execute(params![
                applied.at.0,
                applied.at.1,
                applied.fence,
                applied.kept.0,
                applied.kept.1,
                applied.boot,
                applied.seq,
                applied.wall,
                applied.last,
                applied.made,
                applied.leases,
                applied.hidden,
                applied.sum(),
            ])?;
        Ok(())
    }

    fn change_applied(&self, change: impl FnOnce(&mut Applied)) -> Result<()> {
        self.atomically(|| {
            let mut applied = self.load_applied()?;
            change(&mut applied);
            self.put_applied(&applied)
        })
    }

    /// How far the journal is applied to this index and to the files.
    pub fn applied(&self) -> Result<Tail> {
        let applied = self.load_applied()?;
        Ok(Tail {
            at: position(applied.at),
            seq: applied.seq.unsigned_abs(),
            wall_us: applied.wall,
            sum: parse_sum(&applied.last),
        })
    }

    pub fn set_applied(&self, tail: &Tail) -> Result<()> {
        self.change_applied(|applied| {
            applied.at = (tail.at.segment, signed(tail.at.offset));
            (applied.seq, applied.wall) = (signed(tail.seq), tail.wall_us);
            applied.last = tail.sum.as_str().to_owned();
        })
    }

    /// How far the files themselves are known to be synced, and in which boot.
    pub fn kept(&self) -> Result<(Position, String)> {
        let applied = self.load_applied()?;
        Ok((position(applied.kept), applied.boot))
    }

    pub fn set_kept(&self, at: Position, boot: &str) -> Result<()> {
        self.change_applied(|applied| {
            applied.kept = (at.segment, signed(at.offset));
            boot.clone_into(&mut applied.boot);
        })
    }

    /// Damaged records about unknown files. Each may hide a change of any file.
    pub fn hidden(&self) -> Result<Vec<Position>> {
        Ok(self
            .load_applied()?
            .hidden
            .split_whitespace()
            .filter_map(Position::parse)
            .collect())
    }

    pub fn set_hidden(&self, places: impl Iterator<Item = Position>) -> Result<()> {
        let places: Vec<String> = places.map(|at| at.to_string()).collect();
        self.change_applied(|applied| applied.hidden = places.join(" "))
    }

    /// Whether this index was completely built from the journal.
    pub fn is_made(&self) -> Result<bool> {
        Ok(self.load_applied()?.made > 0)
    }

    /// Whether the files were compared with the journal since the index was built.
    pub fn is_redone(&self) -> Result<bool> {
        Ok(self.load_applied()?.made > 1)
    }

    pub fn set_made(&self) -> Result<()> {
        self.change_applied(|applied| applied.made = 1)
    }

    pub fn set_redone(&self) -> Result<()> {
        self.change_applied(|applied| applied.made = 2)
    }

    /// Runs `work` in a transaction.
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

    /// Runs `work` in the current transaction, or in one of its own.
    fn atomically<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.db.is_autocommit() {
            self.transaction(|_| work())
        } else {
            work()
        }
    }

    /// The entries of many paths, read in one transaction.
    pub fn heads_of<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Result<Vec<Option<Head>>> {
        self.db.execute_batch("BEGIN")?;
        let found = paths.map(|path| self.head(path)).collect();
        self.db.execute_batch("COMMIT")?;
        found
    }

    pub fn head(&self, path: &str) -> Result<Option<Head>> {
        let row = self.row_from(path)?;
        Ok((row.key.is(path)).then_some(row.value))
    }

    /// Whether the index has any file below a folder, deleted ones included.
    pub fn any_below(&self, folder: &str) -> Result<bool> {
        let folder = format!("{folder}/");
        let row = self.row_from(&folder)?;
        Ok(matches!(row.key, Key::Text(path) if path.starts_with(&folder)))
    }

    /// The row of a path, or the next row, which proves that the path has none.
    fn row_from(&self, path: &str) -> Result<Row<Head>> {
        let query = format!(
            "SELECT path, before, sum, {COLUMNS} FROM head WHERE path >= ? ORDER BY path LIMIT 1"
        );
        let row = self
            .db
            .prepare_cached(&query)?
            .query_row([path], |row| Ok(head_row(row)))
            .optional()?;
        row.unwrap_or_else(|| Err(corrupt("the end of table `head` is missing")))?
            .at(path)
    }

    pub fn put(&self, path: &str, head: &Head) -> Result<()> {
        self.atomically(|| {
            let row = self.row_from(path)?;
            let key = Key::Text(path.to_owned());
            self.put_row(&key, row.before.as_deref(), head)?;
            if row.key.is(path) {
                Ok(())
            } else {
                self.put_row(&row.key, Some(path), &row.value)
            }
        })
    }

    /// Fills an empty table with entries in the order of their paths.
    pub fn put_all<'h>(&self, heads: impl Iterator<Item = (&'h String, &'h Head)>) -> Result<()> {
        let mut before = None;
        for (path, head) in heads {
            self.put_row(&Key::Text(path.clone()), before.as_deref(), head)?;
            before = Some(path.clone());
        }
        self.put_row(&Key::End, before.as_deref(), &end_head())
    }

    fn put_row(&self, key: &Key, before: Option<&str>, head: &Head) -> Result<()> {
        let (flag, line) = match &head.flag {
            Some((flag, _)) => (Some(flag.what.as_str()), flag.line.map(|l| l as i64)),
            None => (None, None),
        };
        let seen = head.flag.as_ref().and_then(|(_, stamp)| *stamp);
        self.db
            .prepare_cached(
                "INSERT OR REPLACE INTO head VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            )?
            .execute(params![
                key,
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
                before,
                head_sum(key, before, head),
            ])?;
        Ok(())
    }

    /// Changes the entry of a path, unless the file has another version by now.
    fn change_head(
        &self,
        path: &str,
        version: &Version,
        change: impl FnOnce(&mut Head),
    ) -> Result<()> {
        self.atomically(|| {
            let mut row = self.row_from(path)?;
            if row.key.is(path) && row.value.version == *version {
                change(&mut row.value);
                self.put_row(&row.key, row.before.as_deref(), &row.value)?;
            }
            Ok(())
        })
    }

    pub fn set_stamp(&self, path: &str, version: &Version, stamp: Option<Stamp>) -> Result<()> {
        self.change_head(path, version, |head| {
            (head.stamp, head.flag) = (stamp, None)
        })
    }

    /// Stores the flag of a disallowed external edit, unless the file has another version by now.
    pub fn set_flag(
        &self,
        path: &str,
        version: &Version,
        flag: &Flag,
        seen: Option<Stamp>,
    ) -> Result<()> {
        self.change_head(path, version, |head| head.flag = Some((flag.clone(), seen)))
    }

    /// All files, including deleted ones, in order.
    pub fn all(&self) -> Result<Vec<(String, Head)>> {
        let query = format!("SELECT path, before, sum, {COLUMNS} FROM head ORDER BY path");
        let mut statement = self.db.prepare_cached(&query)?;
        let mut rows = statement.query([])?;
        let mut all: Vec<(String, Head)> = Vec::new();
        while let Some(row) = rows.next()? {
            let row = head_row(row)?;
            if row.before.as_deref() != all.last().map(|(path, _)| path.as_str()) {
                return Err(corrupt("a row of table `head` is missing"));
            }
            match row.key {
                Key::Text(path) => all.push((path, row.value)),
                Key::End => return Ok(all),
            }
        }
        Err(corrupt("the end of table `head` is missing"))
    }

    pub fn key(&self, key: &str) -> Result<Option<Position>> {
        let row = self.key_row_from(key)?;
        Ok(row.key.is(key).then_some(row.value))
    }

    fn key_row_from(&self, key: &str) -> Result<Row<Position>> {
        let query =
            "SELECT key, before, sum, segment, offset FROM key WHERE key >= ? ORDER BY key LIMIT 1";
        let row = self
            .db
            .prepare_cached(query)?
            .query_row([key], |row| Ok(key_row(row)))
            .optional()?;
        row.unwrap_or_else(|| Err(corrupt("the end of table `key` is missing")))?
            .at(key)
    }

    pub fn put_key(&self, key: &str, at: Position) -> Result<()> {
        self.atomically(|| {
            let row = self.key_row_from(key)?;
            if row.key.is(key) {
                return Ok(());
            }
            self.put_key_row(&Key::Text(key.to_owned()), row.before.as_deref(), at)?;
            self.put_key_row(&row.key, Some(key), row.value)
        })
    }

    fn put_key_row(&self, key: &Key, before: Option<&str>, at: Position) -> Result<()> {
        let sum = key_sum(key, before, at);
        let mut statement = self
            .db
            .prepare_cached("INSERT OR REPLACE INTO key VALUES (?,?,?,?,?)")?;
        statement.execute(params![key, at.segment, signed(at.offset), before, sum])?;
        Ok(())
    }

    pub fn leases(&self) -> Result<Vec<Lease>> {
        let mut statement = self
            .db
            .prepare_cached("SELECT id, body FROM lease ORDER BY id")?;
        let mut rows = statement.query([])?;
        let (mut leases, mut sums) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let (id, body) = (text(row, 0)?, text(row, 1)?);
            sums ^= lease_sum(id, body);
            leases.push(serde_json::from_str(body).map_err(|_| corrupt("a lease cannot be read"))?);
        }
        if sums == self.load_applied()?.leases {
            Ok(leases)
        } else {
            Err(corrupt("the leases do not match their checksum"))
        }
    }

    pub fn put_lease(&self, lease: &Lease) -> Result<()> {
        let body = serde_json::to_string(lease).expect("a lease has only strings and numbers");
        self.atomically(|| {
            let sums = self.lease_sum_of(&lease.id)? ^ lease_sum(&lease.id, &body);
            self.db
                .prepare_cached("INSERT OR REPLACE INTO lease VALUES (?,?)")?
                .execute(params![lease.id, body])?;
            self.change_applied(|applied| {
                applied.fence = applied.fence.max(signed(lease.fence));
                applied.leases ^= sums;
            })
        })
    }

    pub fn drop_lease(&self, id: &str) -> Result<()> {
        self.atomically(|| {
            let sums = self.lease_sum_of(id)?;
            self.db
                .prepare_cached("DELETE FROM lease WHERE id = ?")?
                .execute([id])?;
            self.change_applied(|applied| applied.leases ^= sums)
        })
    }

    fn lease_sum_of(&self, id: &str) -> Result<i64> {
        let mut statement = self
            .db
            .prepare_cached("SELECT body FROM lease WHERE id = ?")?;
        let sum = statement
            .query_row([id], |row| Ok(text(row, 0).map(|body| lease_sum(id, body))))
            .optional()?;
        sum.unwrap_or(Ok(0))
    }

    /// The highest fence so far.
    pub fn fence(&self) -> Result<u64> {
        Ok(self.load_applied()?.fence.unsigned_abs())
    }

    pub fn clear(&self) -> Result<()> {
        self.db
            .execute_batch("DELETE FROM head; DELETE FROM key; DELETE FROM lease;")?;
        let Applied { kept, boot, .. } = self.load_applied()?;
        self.put_applied(&Applied {
            kept,
            boot,
            ..Applied::start()
        })?;
        self.put_end_rows()
    }
}

impl Drop for Heads {
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

/// The progress row of the database.
struct Applied {
    at: (u32, i64),
    fence: i64,
    kept: (u32, i64),
    boot: String,
    seq: i64,
    wall: i64,
    last: String,
    made: i64,
    /// The checksums of all leases, combined with XOR.
    leases: i64,
    /// Positions of damaged records about unknown files, separated by spaces.
    hidden: String,
}

impl Applied {
    fn start() -> Applied {
        let (at, kept) = ((1, 0), (1, 0));
        let (boot, last, hidden) = (String::new(), ROOT_SUM.to_owned(), String::new());
        Applied {
            at,
            fence: 0,
            kept,
            boot,
            seq: 0,
            wall: 0,
            last,
            made: 0,
            leases: 0,
            hidden,
        }
    }

    fn sum(&self) -> i64 {
        let numbers = [
            self.at.1,
            self.fence,
            self.kept.1,
            self.seq,
            self.wall,
            self.made,
            self.leases,
        ];
        let sum = RowSum::default()
            .number(self.at.0.into())
            .number(self.kept.0.into())
            .text(&self.boot)
            .text(&self.last)
            .text(&self.hidden);
        numbers.into_iter().fold(sum, RowSum::number).finish()
    }
}

fn position((segment, offset): (u32, i64)) -> Position {
    Position {
        segment,
        offset: offset.unsigned_abs(),
    }
}

/// The primary key of a row. The end row of a table has an empty blob, which SQLite sorts after
/// every text.
enum Key {
    Text(String),
    End,
}

impl Key {
    fn is(&self, text: &str) -> bool {
        matches!(self, Key::Text(key) if key == text)
    }

    fn sum(&self) -> RowSum {
        match self {
            Key::Text(key) => RowSum::default().text(key),
            Key::End => RowSum::default(),
        }
    }
}

impl rusqlite::ToSql for Key {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(match self {
            Key::Text(text) => text.as_str().into(),
            Key::End => rusqlite::types::ToSqlOutput::Borrowed(ValueRef::Blob(&[])),
        })
    }
}

/// A row with a verified checksum.
struct Row<V> {
    key: Key,
    /// The key of the row before it.
    before: Option<String>,
    value: V,
}

impl<V> Row<V> {
    /// Checks that this row has the wanted key, or comes right after its position.
    fn at(self, wanted: &str) -> Result<Row<V>> {
        let follows = match &self.key {
            Key::Text(key) => key.as_str() > wanted,
            Key::End => true,
        };
        let proves = follows && self.before.as_deref().is_none_or(|before| before < wanted);
        if self.key.is(wanted) || proves {
            Ok(self)
        } else {
            Err(corrupt("a row is missing or in a wrong place"))
        }
    }
}

fn row_of<V>(
    row: &rusqlite::Row<'_>,
    value: V,
    sum: impl FnOnce(&Key, Option<&str>, &V) -> i64,
) -> Result<Row<V>> {
    let key = match row.get_ref(0)? {
        ValueRef::Blob([]) => Key::End,
        _ => Key::Text(row.get(0)?),
    };
    let before: Option<String> = row.get(1)?;
    if sum(&key, before.as_deref(), &value) == row.get::<_, i64>(2)? {
        Ok(Row { key, before, value })
    } else {
        Err(corrupt("a row does not match its checksum"))
    }
}

fn head_row(row: &rusqlite::Row<'_>) -> Result<Row<Head>> {
    row_of(row, head_of(row, 3)?, head_sum)
}

fn key_row(row: &rusqlite::Row<'_>) -> Result<Row<Position>> {
    row_of(
        row,
        position((row.get(3)?, row.get(4)?)),
        |key, before, at| key_sum(key, before, *at),
    )
}

fn key_sum(key: &Key, before: Option<&str>, at: Position) -> i64 {
    key.sum()
        .maybe_text(before)
        .number(at.segment.into())
        .number(signed(at.offset))
        .finish()
}

fn lease_sum(id: &str, body: &str) -> i64 {
    RowSum::default().text(id).text(body).finish()
}

fn text<'r>(row: &'r rusqlite::Row<'_>, index: usize) -> Result<&'r str> {
    row.get_ref(index)?
        .as_str()
        .map_err(|_| corrupt("a row holds no text where it should"))
}

/// The entry in the end row. It is never used as a file.
fn end_head() -> Head {
    let version = Version::none();
    Head {
        class: Class::Free,
        version,
        len: 0,
        at: Position::START,
        seq: 0,
        gone: true,
        stamp: None,
        flag: None,
    }
}

fn head_sum(key: &Key, before: Option<&str>, head: &Head) -> i64 {
    let stamp = |sum: RowSum, stamp: Option<Stamp>| match stamp {
        Some(stamp) => sum
            .number(1)
            .number(stamp.inode.cast_signed())
            .number(signed(stamp.size))
            .number(stamp.mtime_ns),
        None => sum.number(0),
    };
    let sum = key
        .sum()
        .maybe_text(before)
        .text(head.class.as_str())
        .text(head.version.as_str());
    let place = [
        head.len,
        u64::from(head.at.segment),
        head.at.offset,
        head.seq,
        u64::from(head.gone),
    ];
    let sum = stamp(
        place.into_iter().map(signed).fold(sum, RowSum::number),
        head.stamp,
    );
    match &head.flag {
        Some((flag, seen)) => stamp(
            sum.number(1)
                .text(&flag.what)
                .number(flag.line.map_or(-1, |line| signed(line as u64))),
            *seen,
        )
        .finish(),
        None => sum.number(0).finish(),
    }
}

/// The error for content that was never written to the index.
fn corrupt(what: &str) -> StoreError {
    let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    StoreError::Heads(rusqlite::Error::SqliteFailure(error, Some(what.to_owned())))
}

const COLUMNS: &str = "class, version, len, segment, offset, seq, gone, inode, size, mtime, flag, flag_line, flag_inode, flag_size, flag_mtime";

fn head_of(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<Head> {
    let number = |index: usize| -> rusqlite::Result<u64> {
        Ok(row.get::<_, i64>(from + index)?.unsigned_abs())
    };
    let stamp = |index: usize| -> rusqlite::Result<Option<Stamp>> {
        let inode: Option<i64> = row.get(from + index)?;
        let size: Option<i64> = row.get(from + index + 1)?;
        let mtime_ns: Option<i64> = row.get(from + index + 2)?;
        Ok(inode
            .zip(size)
            .zip(mtime_ns)
            .map(|((inode, size), mtime_ns)| Stamp {
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
        at: Position {
            segment: row.get(from + 3)?,
            offset: number(4)?,
        },
        seq: number(5)?,
        gone: row.get(from + 6)?,
        stamp: stamp(7)?,
        flag: flag.map(|what| {
            (
                Flag {
                    what,
                    line: line.map(|l| l.unsigned_abs() as usize),
                },
                seen,
            )
        }),
    })
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
