//! The commit log of one project in PostgreSQL.
//!
//! Every call is one statement and one round trip. `link.rs` retries calls, `wire.rs` encodes the
//! records, and the SQL functions in `migrations/` decide which commits are accepted.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_store::{
    CommitLog, CommitRequest, CommitResult, LogCursor, LogDescription, LogHash, Record, StoreError,
    Verdict, WaitPolicy, WorkerReport,
};
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::address::Address;
use crate::attach::Attachment;
use crate::link::{Link, Open, Prepared};
use crate::migrate::{self, Schema};
use crate::wire;

/// The interval for polling the revision if no notification arrives.
const POLL: Duration = Duration::from_millis(500);
/// The minimum interval between two notifications of one process.
const TELL: Duration = Duration::from_millis(5);

const COMMIT: &str =
    "SELECT * FROM quipu.commit($1::text::uuid, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const AFTER: &str = "SELECT * FROM quipu.after($1::text::uuid, $2, $3)";
const HEAD_REV: &str = "SELECT quipu.head_rev($1::text::uuid)";
const ENTRIES: &str = "SELECT * FROM quipu.entries($1::text::uuid, $2)";
const TURN: &str = "SELECT * FROM quipu.turn($1::text::uuid, $2, $3)";

/// A project in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenProject {
    pub name: String,
    pub id: String,
    pub rev: u64,
}

/// The commit log of a project in PostgreSQL.
pub struct Postgres {
    link: Link,
    /// A second connection, so that waiting and polling do not block commits.
    feed: Link,
    project: String,
    /// The project's id; none before the project is created.
    id: Mutex<Option<String>>,
    /// The working copy, if this is one.
    root: Option<PathBuf>,
    told: Mutex<Option<Instant>>,
}

impl Postgres {
    /// The store at an address, for calls that need no project.
    pub fn at(address: &Address) -> Postgres {
        Postgres::of(
            address,
            address.project.clone().unwrap_or_default(),
            None,
            None,
        )
    }

    pub(crate) fn of(
        address: &Address,
        project: String,
        id: Option<String>,
        root: Option<&Path>,
    ) -> Postgres {
        Postgres {
            link: if root.is_some() {
                Link::lasting(address.clone())
            } else {
                Link::new(address.clone())
            },
            feed: Link::new(address.clone()),
            project,
            id: Mutex::new(id),
            root: root.map(Path::to_owned),
            told: Mutex::new(None),
        }
    }

    pub fn address(&self) -> &Address {
        &self.link.address
    }

    fn known_id(&self) -> Option<String> {
        self.id
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn founded(&self) -> Result<String, StoreError> {
        self.known_id().ok_or_else(|| {
            StoreError::refused(
                "this project is not in the shared store yet",
                "quipu store push ADDRESS",
            )
        })
    }

    /// Runs a query after checking that the schema is supported.
    pub(crate) fn rows(
        &self,
        wait_policy: WaitPolicy,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, StoreError> {
        self.link.ask(wait_policy, async |open: &mut Open| {
            match migrate::check(open).await? {
                Schema::Supported => Ok(Ok(open.client.query_typed(sql, parameters).await?)),
                Schema::Unsupported(refused) => Ok(Err(refused)),
            }
        })?
    }

    /// Migrates the schema of the database to the version that this program supports. Returns the
    /// previous version.
    pub fn migrate(&self) -> Result<i32, StoreError> {
        migrate::migrate(&self.link)
    }

    /// Grants the rights of workers and keepers.
    pub fn grant_roles(&self) -> Result<(), StoreError> {
        self.link.ask(WaitPolicy::Retry, async |open: &mut Open| {
            open.client.batch_execute(migrate::roles()).await
        })
    }

    /// Lists all projects.
    pub fn projects(&self) -> Result<Vec<SeenProject>, StoreError> {
        let rows = self.rows(
            WaitPolicy::Retry,
            "SELECT name, id, rev FROM quipu.projects()",
            &[],
        )?;
        Ok(rows
            .iter()
            .map(|row| SeenProject {
                name: row.get(0),
                id: row.get(1),
                rev: row.get::<_, i64>(2).unsigned_abs(),
            })
            .collect())
    }

    /// Finds a project by name.
    pub fn locate(&self, name: &str) -> Result<Option<SeenProject>, StoreError> {
        let rows = self.rows(
            WaitPolicy::Retry,
            "SELECT id, rev FROM quipu.locate($1)",
            &[(&name, Type::TEXT)],
        )?;
        Ok(rows.first().and_then(|row| {
            Some(SeenProject {
                name: name.to_owned(),
                id: row.get::<_, Option<String>>(0)?,
                rev: row.get::<_, i64>(1).unsigned_abs(),
            })
        }))
    }

    /// Creates a project, or takes an empty one of that name. Returns its id.
    pub fn found(&self, name: &str) -> Result<String, StoreError> {
        let rows = self.rows(
            WaitPolicy::Retry,
            "SELECT quipu.found($1)",
            &[(&name, Type::TEXT)],
        )?;
        rows.first().and_then(|row| row.get::<_, Option<String>>(0)).ok_or_else(|| {
            StoreError::refused(
                format!("{} already has a project `{name}`", self.link.address),
                "quipu checkout ADDRESS --project NAME     (to work in it), or use another name: \
                 …?project=NAME",
            )
        })
    }

    /// Uploads records of a local project after a revision. Returns the newest revision afterwards.
    pub(crate) fn load(&self, id: &str, rev: u64, records: &[Record]) -> Result<u64, StoreError> {
        let mut parts = Parts::of(records);
        parts.leases = records
            .iter()
            .map(|r| r.lease.as_ref().map(wire::happened))
            .collect();
        let times: Vec<i64> = records
            .iter()
            .map(|r| quipu_store::parse_time(&r.at).unwrap_or(0))
            .collect();
        let rev = signed(rev);
        let rows = self.rows(
            WaitPolicy::Retry,
            "SELECT quipu.load($1::text::uuid, $2, $3, $4, $5, $6, $7)",
            &[
                (&id, Type::TEXT),
                (&rev, Type::INT8),
                (&parts.ids, Type::TEXT_ARRAY),
                (&times, Type::INT8_ARRAY),
                (&parts.bodies, Type::TEXT_ARRAY),
                (&parts.leases, Type::TEXT_ARRAY),
                (&parts.bytes, Type::BYTEA_ARRAY),
            ],
        )?;
        Ok(rows
            .first()
            .map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
    }

    /// Creates the project on the server, for a working copy without history.
    fn attach_new(&self) -> Result<String, StoreError> {
        self.migrate()?;
        let id = self.found(&self.project).map_err(|error| match error {
            StoreError::Refused(refused) if refused.remedy.starts_with("quipu checkout") => {
                StoreError::NotFound {
                    what: format!(
                        "{}, and this folder is not (or no longer) a working copy of it",
                        refused.what
                    ),
                    remedy: refused.remedy,
                }
            }
            other => other,
        })?;
        if let Some(root) = &self.root {
            Attachment {
                address: self.link.address.shown().to_owned(),
                project: self.project.clone(),
                id: id.clone(),
            }
            .save(root)?;
        }
        *self.id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
        Ok(id)
    }

    /// Whether to notify others now. A burst of commits notifies them a few times, not once per
    /// commit.
    fn is_time_to_tell(&self) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let due = told.is_none_or(|told| told.elapsed() > TELL);
        if due {
            *told = Some(Instant::now());
        }
        due
    }

    /// Parses the commit result. For the copy's own records the database returns only what it added
    /// to them.
    fn commit_result(&self, rows: Vec<Row>, own: &[Record]) -> Result<CommitResult, StoreError> {
        let unknown = |what: String| {
            StoreError::refused(
                format!(
                    "the shared store returned an answer that this version of Quipu does not \
                    support: {what}"
                ),
                "quipu doctor",
            )
        };
        let mut rows = rows.into_iter();
        let first = rows.next().ok_or_else(|| unknown("nothing".into()))?;
        let what = first.get::<_, Option<String>>("what").unwrap_or_default();
        let verdict = match first.get::<_, Option<&str>>("verdict").unwrap_or_default() {
            "accepted" => Verdict::Accepted,
            "stale" => Verdict::Stale(what),
            "held" => Verdict::Held(what),
            "refused" => Verdict::Refused {
                what,
                remedy: "quipu store roles     (prints the rights in the shared store)".into(),
            },
            "diverged" => {
                return Err(StoreError::refused(
                    format!(
                        "the commit log of `{}` at {} is not the one that this working copy \
                         follows",
                        self.project, self.link.address
                    ),
                    "check whether an older backup was restored, or a standby promoted that had \
                     not received everything. Keep this folder and create another: quipu \
                     checkout ADDRESS DIR",
                ));
            }
            other => return Err(unknown(other.into())),
        };
        let mut records = Vec::new();
        for row in rows {
            let (rev, id, at_us, lease): (_, String, _, _) = (
                row.get("rev"),
                row.get("id"),
                row.get("at_us"),
                row.get("lease"),
            );
            let record = match row.get::<_, Option<&str>>("body") {
                Some(body) => wire::put_together(
                    rev,
                    id,
                    at_us,
                    body,
                    lease,
                    row.get::<_, Option<_>>("bytes").unwrap_or_default(),
                ),
                None => match own.iter().find(|record| record.id == id) {
                    Some(record) => wire::put_in_order(record, rev, at_us, lease),
                    None => Err(format!("revision {rev} has no body")),
                },
            };
            records.push(record.map_err(newer_than_known)?);
        }
        let newest = first
            .get::<_, Option<i64>>("newest")
            .unwrap_or_default()
            .unsigned_abs();
        Ok(CommitResult {
            verdict,
            records,
            newest,
            now_us: first.get::<_, Option<i64>>("now_us").unwrap_or_default(),
        })
    }

    fn refused_ruling(commit_result: CommitResult) -> Result<CommitResult, StoreError> {
        match commit_result.verdict {
            Verdict::Refused { what, remedy } => Err(StoreError::refused(what, remedy)),
            _ => Ok(commit_result),
        }
    }
}

/// Records as parameters of a call.
struct Parts {
    ids: Vec<String>,
    bodies: Vec<String>,
    leases: Vec<Option<String>>,
    bytes: Vec<Option<Vec<u8>>>,
}

impl Parts {
    fn of(records: &[Record]) -> Parts {
        let mut parts = Parts {
            ids: Vec::new(),
            bodies: Vec::new(),
            leases: Vec::new(),
            bytes: Vec::new(),
        };
        for record in records {
            let (body, bytes) = wire::take_apart(record);
            parts.ids.push(record.id.clone());
            parts.bodies.push(body);
            parts.leases.push(record.lease.as_ref().map(wire::wanted));
            parts.bytes.extend(bytes);
        }
        parts
    }
}

impl CommitLog for Postgres {
    fn commit(&self, request: &CommitRequest<'_>) -> Result<CommitResult, StoreError> {
        let id = match self.known_id() {
            Some(id) => id,
            None if request.cursor.rev == 0 => self.attach_new()?,
            None => self.founded()?,
        };
        let parts = Parts::of(request.records);
        let relies: serde_json::Map<String, serde_json::Value> = request
            .relies
            .iter()
            .filter_map(|(path, version)| Some((path.clone(), version.as_ref()?.as_str().into())))
            .collect();
        let relies = serde_json::Value::Object(relies).to_string();
        let (rev, token) = (
            signed(request.cursor.rev),
            request.lease.as_ref().map(|t| t.id.clone()),
        );
        let fence = request.lease.as_ref().map(|t| signed(t.fence));
        let parameters: [(&(dyn ToSql + Sync), Type); 10] = [
            (&id, Type::TEXT),
            (&rev, Type::INT8),
            (&request.cursor.id, Type::TEXT),
            (&parts.ids, Type::TEXT_ARRAY),
            (&parts.bodies, Type::TEXT_ARRAY),
            (&parts.leases, Type::TEXT_ARRAY),
            (&parts.bytes, Type::BYTEA_ARRAY),
            (&token, Type::TEXT),
            (&fence, Type::INT8),
            (&relies, Type::TEXT),
        ];
        let tell = self.is_time_to_tell();
        let telling = format!("SELECT quipu.tell('{id}')");
        let rows = self
            .link
            .hand_in(request.wait_policy, async |open: &mut Open| {
                if let Schema::Unsupported(refused) = migrate::check(open).await? {
                    return Ok(Err(refused));
                }
                let client = Arc::clone(&open.client);
                let commit = commit_over(open, &parameters).await?;
                if open.in_turn {
                    let rows = commit.await?;
                    client.batch_execute("COMMIT").await?;
                    open.in_turn = false;
                    client.batch_execute(&telling).await?;
                    return Ok(Ok(rows));
                }
                if !tell {
                    return Ok(Ok(commit.await?));
                }
                // Both calls are sent at once, in this order. Only the first answer is awaited.
                let (mut commit, mut woken) = (
                    std::pin::pin!(commit),
                    std::pin::pin!(client.batch_execute(&telling)),
                );
                tokio::select! {
                    biased;
                    rows = &mut commit => Ok(Ok(rows?)),
                    _ = &mut woken => Ok(Ok(commit.await?)),
                }
            })??;
        self.commit_result(rows, request.records)
    }

    fn after(
        &self,
        cursor: &LogCursor,
        wait_policy: WaitPolicy,
    ) -> Result<CommitResult, StoreError> {
        let Some(id) = self.known_id() else {
            return Ok(CommitResult {
                verdict: Verdict::Accepted,
                records: Vec::new(),
                newest: cursor.rev,
                now_us: now_us(),
            });
        };
        let rev = signed(cursor.rev);
        let rows = self.rows(
            wait_policy,
            AFTER,
            &[
                (&id, Type::TEXT),
                (&rev, Type::INT8),
                (&cursor.id, Type::TEXT),
            ],
        )?;
        Self::refused_ruling(self.commit_result(rows, &[])?)
    }

    fn lock(&self, cursor: &LogCursor) -> Result<CommitResult, StoreError> {
        let id = self.founded()?;
        let rev = signed(cursor.rev);
        let rows = self.link.ask(WaitPolicy::Retry, async |open: &mut Open| {
            open.in_turn = true;
            // A writer that stops answering loses the exclusive lock.
            open.client
                .batch_execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = '10s'")
                .await?;
            open.client
                .query_typed(
                    TURN,
                    &[
                        (&id, Type::TEXT),
                        (&rev, Type::INT8),
                        (&cursor.id, Type::TEXT),
                    ],
                )
                .await
        })?;
        let mut commit_result = Self::refused_ruling(self.commit_result(rows, &[])?)?;
        while let Some(last) = commit_result
            .records
            .last()
            .filter(|last| last.seq < commit_result.newest)
        {
            let cursor = LogCursor {
                rev: last.seq,
                id: last.id.clone(),
            };
            let more = self.after(&cursor, WaitPolicy::Retry)?.records;
            if more.is_empty() {
                break;
            }
            commit_result.records.extend(more);
        }
        Ok(commit_result)
    }

    fn unlock(&self) {
        self.link.give_up_turn();
    }

    fn wait(&self, rev: u64, most: Duration) -> Result<bool, StoreError> {
        let Some(id) = self.known_id() else {
            return Ok(false);
        };
        let deadline = Instant::now() + most;
        loop {
            let asked = self.feed.ask(WaitPolicy::OneTry, async |open: &mut Open| {
                // A revision that a notification has reported need not be queried.
                let due = match open.asked {
                    Some(asked) => asked.elapsed() >= POLL,
                    None => {
                        open.client
                            .batch_execute(&format!("LISTEN \"quipu {id}\""))
                            .await?;
                        true
                    }
                };
                if !due || open.bell.heard() > rev {
                    return Ok(open.bell.heard());
                }
                let rows = open
                    .client
                    .query_typed(HEAD_REV, &[(&id, Type::TEXT)])
                    .await?;
                open.asked = Some(Instant::now());
                Ok(rows
                    .first()
                    .and_then(|row| row.get::<_, Option<i64>>(0))
                    .unwrap_or_default()
                    .unsigned_abs())
            });
            let left = deadline.saturating_duration_since(Instant::now());
            match asked {
                Ok(newest) if newest > rev => return Ok(true),
                Ok(_) if left.is_zero() => return Ok(false),
                Err(error) if left.is_zero() => return Err(error),
                _ => self.feed.rest(POLL.min(left)),
            }
        }
    }

    fn newest(&self, wait_policy: WaitPolicy) -> Result<u64, StoreError> {
        let Some(id) = self.known_id() else {
            return Ok(0);
        };
        let rows = self.rows(wait_policy, HEAD_REV, &[(&id, Type::TEXT)])?;
        Ok(rows
            .first()
            .and_then(|row| row.get::<_, Option<i64>>(0))
            .unwrap_or_default()
            .unsigned_abs())
    }

    fn describe(&self) -> LogDescription {
        LogDescription {
            address: self.link.address.shown().to_owned(),
            project: self.project.clone(),
        }
    }

    fn heartbeat(&self, worker: &str, says: &serde_json::Value) -> Result<(), StoreError> {
        let (id, says) = (self.founded()?, says.to_string());
        let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
            (&id, Type::TEXT),
            (&worker, Type::TEXT),
            (&says, Type::TEXT),
        ];
        self.rows(
            WaitPolicy::OneTry,
            "SELECT quipu.beat($1::text::uuid, $2, $3)",
            &parameters,
        )
        .map(|_| ())
    }

    fn leave(&self, worker: &str) -> Result<(), StoreError> {
        let id = self.founded()?;
        self.rows(
            WaitPolicy::OneTry,
            "SELECT quipu.leave($1::text::uuid, $2)",
            &[(&id, Type::TEXT), (&worker, Type::TEXT)],
        )
        .map(|_| ())
    }

    fn workers(&self) -> Result<Vec<WorkerReport>, StoreError> {
        let Some(id) = self.known_id() else {
            return Ok(Vec::new());
        };
        let rows = self.rows(
            WaitPolicy::OneTry,
            "SELECT name, silent_us, says FROM quipu.workers($1::text::uuid)",
            &[(&id, Type::TEXT)],
        )?;
        let said = |row: &Row| WorkerReport {
            name: row.get(0),
            silent_ms: row.get::<_, i64>(1).max(0).unsigned_abs() / 1000,
            says: serde_json::from_str(row.get(2)).unwrap_or_default(),
        };
        Ok(rows.iter().map(said).collect())
    }

    fn examine(&self, cursor: &LogCursor) -> Result<Vec<(String, String)>, StoreError> {
        let Some(id) = self.known_id() else {
            let own = cursor.rev > 0;
            let told = (
                "this project is not in the shared store yet".to_owned(),
                "quipu store push".to_owned(),
            );
            return Ok(own.then_some(told).into_iter().collect());
        };
        self.after(cursor, WaitPolicy::Retry)?;
        let rows = self.rows(
            WaitPolicy::Retry,
            "SELECT * FROM quipu.examine($1::text::uuid)",
            &[(&id, Type::TEXT)],
        )?;
        let remedy = "the database was changed by other means: restore it from a backup, or push \
            this copy under another name";
        Ok(rows
            .iter()
            .map(|row| (row.get::<_, String>(0), remedy.to_owned()))
            .collect())
    }

    fn entries(&self, rev: u64) -> Result<Vec<LogHash>, StoreError> {
        let (id, rev) = (self.founded()?, signed(rev));
        let rows = self.rows(
            WaitPolicy::OneTry,
            ENTRIES,
            &[(&id, Type::TEXT), (&rev, Type::INT8)],
        )?;
        let entry = |row: &Row| {
            let (rev, id, at_us, body): (_, String, _, String) = (
                row.get("rev"),
                row.get("id"),
                row.get("at_us"),
                row.get("body"),
            );
            let (lease, hashes): (Option<String>, Vec<Option<Vec<u8>>>) =
                (row.get("lease"), row.get("hashes"));
            wire::entry(rev, &id, at_us, &body, lease.as_deref(), &hashes).map_err(newer_than_known)
        };
        rows.iter().map(entry).collect()
    }

    fn entry_of(&self, record: &Record) -> LogHash {
        wire::entry_of(record)
    }
}

fn newer_than_known(what: String) -> StoreError {
    StoreError::refused(
        format!("a newer version of Quipu wrote to the shared store: {what}"),
        "use that version, or a newer one",
    )
}

/// The commit call on a connection, ready to send.
async fn commit_over<'p>(
    open: &mut Open,
    parameters: &'p [(&'p (dyn ToSql + Sync), Type)],
) -> Result<impl Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + 'p, tokio_postgres::Error>
{
    let client = Arc::clone(&open.client);
    let prepared = match &open.commit {
        Prepared::ConflictCopy(statement) => Some(statement.clone()),
        Prepared::Once => {
            let types: Vec<Type> = parameters.iter().map(|(_, kind)| kind.clone()).collect();
            Some(client.prepare_typed(COMMIT, &types).await?)
        }
        Prepared::Never => None,
    };
    open.commit = prepared
        .clone()
        .map_or(Prepared::Once, Prepared::ConflictCopy);
    Ok(async move {
        match prepared {
            Some(statement) => {
                let values: Vec<&(dyn ToSql + Sync)> =
                    parameters.iter().map(|(value, _)| *value).collect();
                client.query(&statement, &values).await
            }
            None => client.query_typed(COMMIT, parameters).await,
        }
    })
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn now_us() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(0)
}
