//! Schema migrations of the database.
//!
//! Each version runs once, in its own transaction. An older program refuses a newer schema.

use quipu_store::{StoreError, WaitPolicy};
use tokio_postgres::error::SqlState;

use crate::link::{Link, Open};

/// The versions of the schema, in order. Each one runs once, in its own transaction.
const MIGRATIONS: [&str; 8] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
    include_str!("migrations/0008.sql"),
];

/// The newest version that this program knows.
pub const SCHEMA: i32 = MIGRATIONS.len() as i32;

/// The advisory lock that serialises concurrent migrations.
const LOCK: i64 = 0x7175_6970_7500;

/// The SQL that grants rights to workers and keepers.
pub fn roles() -> &'static str {
    include_str!("roles.sql")
}

/// The schema version, also inside a transaction; zero without a schema.
async fn version(open: &mut Open) -> Result<i32, tokio_postgres::Error> {
    let there = open
        .client
        .query_typed("SELECT to_regclass('quipu.migration') IS NOT NULL", &[])
        .await?;
    if !there.first().is_some_and(|row| row.get::<_, bool>(0)) {
        return Ok(0);
    }
    let rows = open
        .client
        .query_typed("SELECT coalesce(max(version), 0) FROM quipu.migration", &[])
        .await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// Whether this program can use the schema of a database.
pub(crate) enum Schema {
    Supported,
    /// Too old, too new or missing.
    Unsupported(StoreError),
}

/// Compares the schema with this program. Done once per connection.
pub(crate) async fn check(open: &mut Open) -> Result<Schema, tokio_postgres::Error> {
    if open.checked {
        return Ok(Schema::Supported);
    }
    let found = match open
        .client
        .query_typed("SELECT coalesce(max(version), 0) FROM quipu.migration", &[])
        .await
    {
        Ok(rows) => rows.first().map_or(0, |row| row.get(0)),
        Err(error)
            if matches!(
                error.code(),
                Some(&SqlState::UNDEFINED_TABLE | &SqlState::INVALID_SCHEMA_NAME)
            ) =>
        {
            0
        }
        Err(error) => return Err(error),
    };
    open.checked = found == SCHEMA;
    Ok(Schema::Unsupported(match found {
        SCHEMA => return Ok(Schema::Supported),
        0 => StoreError::refused(
            "the database contains no Quipu store yet",
            "quipu store migrate ADDRESS",
        ),
        newer if newer > SCHEMA => StoreError::refused(
            format!(
                "the shared store has schema {newer}, but this version of Quipu supports only \
                 {SCHEMA}; nothing was changed"
            ),
            "use the newer version of Quipu here too",
        ),
        older => StoreError::refused(
            format!(
                "the shared store has schema {older}, but this version of Quipu needs {SCHEMA}"
            ),
            "quipu store migrate ADDRESS     (as the owner; older versions of Quipu can then no \
             longer use it)",
        ),
    }))
}

/// Migrates the schema to the newest version. Returns the previous version.
pub(crate) fn migrate(link: &Link) -> Result<i32, StoreError> {
    let before = link.ask(WaitPolicy::Retry, async |open: &mut Open| {
        version(open).await
    })?;
    if before > SCHEMA {
        return match link.ask(WaitPolicy::Retry, async |open: &mut Open| check(open).await)? {
            Schema::Supported => Ok(before),
            Schema::Unsupported(refused) => Err(refused),
        };
    }
    if before < SCHEMA {
        link.ask(WaitPolicy::Retry, async |open: &mut Open| {
            // Take the lock before the transaction: an earlier transaction would not see the other
            // process's migration.
            open.in_turn = true;
            open.client
                .batch_execute(&format!("SELECT pg_advisory_lock({LOCK})"))
                .await?;
            open.client.batch_execute("BEGIN").await?;
            // Another process may have migrated while this one waited.
            let from = version(open).await?;
            for (number, sql) in (1..)
                .zip(MIGRATIONS)
                .skip(usize::try_from(from).unwrap_or(0))
            {
                open.client.batch_execute(sql).await?;
                open.client
                    .batch_execute(&format!(
                        "INSERT INTO quipu.migration (version) VALUES ({number})"
                    ))
                    .await?;
            }
            open.client
                .batch_execute(&format!("COMMIT; SELECT pg_advisory_unlock({LOCK})"))
                .await?;
            open.in_turn = false;
            Ok(())
        })?;
    }
    Ok(before)
}
