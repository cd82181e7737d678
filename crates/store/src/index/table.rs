//! A table of the file index: rows with a key, a body in JSON, and proof that they are complete.
//!
//! SQLite does not notice a flipped bit inside a row or a key. Each row therefore has a checksum and
//! the key of the row before it. A row that is found is compared with its checksum. A missing row is
//! proven absent by the row after its position. Either failure is reported as a corrupt database.
//! The checksum detects accidental damage, not deliberate changes.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Result, StoreError};

pub(crate) struct Table<'d> {
    pub db: &'d Connection,
    pub name: &'static str,
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
}

impl ToSql for Key {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Key::Text(text) => text.as_str().into(),
            Key::End => ToSqlOutput::Borrowed(ValueRef::Blob(&[])),
        })
    }
}

/// A row with a verified checksum.
struct Row {
    key: Key,
    /// The key of the row before it.
    before: Option<String>,
    body: String,
}

impl Row {
    fn read(row: &rusqlite::Row<'_>) -> Result<Row> {
        let key = match row.get_ref(0)? {
            ValueRef::Blob([]) => Key::End,
            _ => Key::Text(row.get(0)?),
        };
        let (before, body): (Option<String>, String) = (row.get(1)?, row.get(2)?);
        if checksum(&key, before.as_deref(), &body) == row.get::<_, i64>(3)? {
            Ok(Row { key, before, body })
        } else {
            Err(corrupt("a row does not match its checksum"))
        }
    }

    /// Checks that this row has the wanted key, or comes right after its position.
    fn at(self, wanted: &str) -> Result<Row> {
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

impl Table<'_> {
    pub fn create(&self) -> Result<()> {
        self.db.execute_batch(&format!(
            "DROP TABLE IF EXISTS {0};
             CREATE TABLE {0} (key TEXT PRIMARY KEY, before TEXT, body TEXT NOT NULL,
               checksum INTEGER NOT NULL) WITHOUT ROWID;",
            self.name
        ))?;
        self.write(&Key::End, None, "")
    }

    pub fn get<V: DeserializeOwned>(&self, key: &str) -> Result<Option<V>> {
        let row = self.row("key >=", key)?.at(key)?;
        if row.key.is(key) {
            parse(&row.body).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The first key at or after a text.
    pub fn first_from(&self, text: &str) -> Result<Option<String>> {
        Ok(match self.row("key >=", text)?.at(text)?.key {
            Key::Text(key) => Some(key),
            Key::End => None,
        })
    }

    /// Inserts or replaces a row. Requires a transaction.
    pub fn put<V: Serialize>(&self, key: &str, value: &V) -> Result<()> {
        let found = self.row("key >=", key)?.at(key)?;
        let own = Key::Text(key.to_owned());
        self.write(&own, found.before.as_deref(), &render(value))?;
        if found.key.is(key) {
            Ok(())
        } else {
            self.write(&found.key, Some(key), &found.body)
        }
    }

    /// Removes a row, if it exists. Requires a transaction.
    pub fn remove(&self, key: &str) -> Result<()> {
        let found = self.row("key >=", key)?.at(key)?;
        if !found.key.is(key) {
            return Ok(());
        }
        let next = self.row("key >", key)?;
        self.db
            .prepare_cached(&format!("DELETE FROM {} WHERE key = ?", self.name))?
            .execute([key])?;
        self.write(&next.key, found.before.as_deref(), &next.body)
    }

    /// All rows, in the order of their keys.
    pub fn all<V: DeserializeOwned>(&self) -> Result<Vec<(String, V)>> {
        let query = format!(
            "SELECT key, before, body, checksum FROM {} ORDER BY key",
            self.name
        );
        let mut statement = self.db.prepare_cached(&query)?;
        let mut rows = statement.query([])?;
        let mut all: Vec<(String, V)> = Vec::new();
        while let Some(row) = rows.next()? {
            let row = Row::read(row)?;
            if row.before.as_deref() != all.last().map(|(key, _)| key.as_str()) {
                return Err(corrupt("a row is missing"));
            }
            match row.key {
                Key::Text(key) => all.push((key, parse(&row.body)?)),
                Key::End => return Ok(all),
            }
        }
        Err(corrupt("the end of a table is missing"))
    }

    /// Replaces all rows by these, which are in the order of their keys. Requires a transaction.
    pub fn replace_all<'v, V: Serialize + 'v>(
        &self,
        rows: impl Iterator<Item = (&'v String, &'v V)>,
    ) -> Result<()> {
        self.db
            .execute_batch(&format!("DELETE FROM {}", self.name))?;
        let mut before: Option<&str> = None;
        for (key, value) in rows {
            self.write(&Key::Text(key.clone()), before, &render(value))?;
            before = Some(key);
        }
        self.write(&Key::End, before, "")
    }

    /// The first row whose key satisfies a comparison.
    fn row(&self, comparison: &str, key: &str) -> Result<Row> {
        let query = format!(
            "SELECT key, before, body, checksum FROM {} WHERE {comparison} ? ORDER BY key LIMIT 1",
            self.name
        );
        let row = self
            .db
            .prepare_cached(&query)?
            .query_row([key], |row| Ok(Row::read(row)))
            .optional()?;
        row.unwrap_or_else(|| Err(corrupt("the end of a table is missing")))
    }

    fn write(&self, key: &Key, before: Option<&str>, body: &str) -> Result<()> {
        let query = format!("INSERT OR REPLACE INTO {} VALUES (?,?,?,?)", self.name);
        let checksum = checksum(key, before, body);
        self.db
            .prepare_cached(&query)?
            .execute(params![key, before, body, checksum])?;
        Ok(())
    }
}

fn render(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a row has only strings and numbers")
}

fn parse<V: DeserializeOwned>(body: &str) -> Result<V> {
    serde_json::from_str(body).map_err(|_| corrupt("the body of a row cannot be read"))
}

/// Lengths are included, so that no byte can move from one field to the next undetected.
fn checksum(key: &Key, before: Option<&str>, body: &str) -> i64 {
    let mut crc = flate2::Crc::new();
    let key = match key {
        Key::Text(key) => Some(key.as_str()),
        Key::End => None,
    };
    for field in [key, before, Some(body)] {
        let length = field.map_or(u64::MAX, |text| text.len() as u64);
        crc.update(&length.to_le_bytes());
        crc.update(field.unwrap_or_default().as_bytes());
    }
    crc.sum().into()
}

/// The error for content that was never written to the index.
fn corrupt(what: &str) -> StoreError {
    let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    StoreError::FileIndex(rusqlite::Error::SqliteFailure(error, Some(what.to_owned())))
}
