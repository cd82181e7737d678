//! The interface to a shared commit log, which puts the commits of several working copies in one
//! order.
//!
//! Without it, the journal under its lock is the commit log, and nothing here costs anything. With
//! it, the journal is a replica: record numbers are the revisions of the log, and a record enters
//! the journal only after the log has accepted it. `working_copy.rs` uses this interface; the crate
//! `postgres` implements it for PostgreSQL.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quipu_contract::Contract;
use serde::Serialize;

use crate::error::StoreError;
use crate::journal::lease::LeaseToken;
use crate::journal::record::Record;
use crate::version::Version;

/// How far a working copy has read the shared log: a revision, and the id of its record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogCursor {
    pub rev: u64,
    /// Empty at the beginning of the log.
    pub id: String,
}

/// How long to wait for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Nobody waits: without an immediate answer, the call fails.
    NoWait,
    /// For a reader: one attempt, and none if the last one has just failed.
    OneTry,
    /// For a writer: retried for a while, with a message to the user.
    Retry,
}

/// A commit request: records to add to the shared log, all of them or none.
#[derive(Debug, Clone)]
pub struct CommitRequest<'b> {
    /// The position that validation knew.
    pub cursor: LogCursor,
    /// The ids are assigned here, so that a repeated request changes nothing more. The log assigns
    /// numbers and times.
    pub records: &'b [Record],
    pub lease: Option<LeaseToken>,
    /// Versions that validation relied on without changing them: the contract's own files.
    pub relies: Vec<(String, Option<Version>)>,
    pub wait_policy: WaitPolicy,
}

/// The log's decision about a commit request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The records are in the log, from this attempt or an earlier one.
    Accepted,
    /// Something that validation relied on has changed; the text completes "… has moved on".
    Stale(String),
    /// A lease has expired or belongs to another owner.
    Held(String),
    /// The request violates the rules of the log itself.
    Refused { what: String, remedy: String },
}

/// A commit result: the decision, and the log's records after the cursor.
#[derive(Debug, Clone)]
pub struct CommitResult {
    pub verdict: Verdict,
    /// In order and without a gap, with the number, time and lease that the log assigned.
    pub records: Vec<Record>,
    /// The newest revision. If it is beyond `records`, the log has more.
    pub newest: u64,
    /// The log's clock, in microseconds since 1970.
    pub now_us: i64,
}

/// A description of the log, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogDescription {
    /// The address, without a password.
    pub address: String,
    pub project: String,
}

/// The last heartbeat of a worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerReport {
    pub name: String,
    /// The age of the heartbeat, by the log's clock.
    pub silent_ms: u64,
    pub says: serde_json::Value,
}

/// A record of the log without its texts: a hash of its content that a journal record has as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHash {
    pub rev: u64,
    pub hash: [u8; 32],
}

/// A shared commit log. Every call is one round trip.
pub trait CommitLog: Send + Sync {
    /// Submits a commit request.
    fn commit(&self, request: &CommitRequest<'_>) -> Result<CommitResult, StoreError>;

    /// The log's records after a cursor, perhaps not all of them.
    fn after(
        &self,
        cursor: &LogCursor,
        wait_policy: WaitPolicy,
    ) -> Result<CommitResult, StoreError>;

    /// Like `after`, but also takes the exclusive lock: no other commit is accepted until the next
    /// `commit` or `unlock`. For a writer that got too many stale results.
    fn lock(&self, cursor: &LogCursor) -> Result<CommitResult, StoreError>;

    /// Releases the exclusive lock without a commit.
    fn unlock(&self);

    /// Waits until the log is beyond a revision; false on a timeout.
    fn wait(&self, rev: u64, most: Duration) -> Result<bool, StoreError>;

    fn newest(&self, wait_policy: WaitPolicy) -> Result<u64, StoreError>;

    fn describe(&self) -> LogDescription;

    /// Sends a heartbeat of a worker, with its state.
    fn heartbeat(&self, worker: &str, says: &serde_json::Value) -> Result<(), StoreError>;

    /// Refuses all leases that a worker claimed and has not taken, and removes its registration
    /// unless it still holds one that it claimed.
    fn leave(&self, worker: &str) -> Result<(), StoreError>;

    /// The last heartbeats of this project's workers.
    fn workers(&self) -> Result<Vec<WorkerReport>, StoreError>;

    /// Problems of the shared log: a description, and the command that fixes it.
    fn examine(&self, cursor: &LogCursor) -> Result<Vec<(String, String)>, StoreError>;

    /// The hashes of the log's records after a revision, in order, perhaps not all of them; empty
    /// at the end.
    fn entries(&self, rev: u64) -> Result<Vec<LogHash>, StoreError>;

    /// The hash that a journal record has in the log.
    fn entry_of(&self, record: &Record) -> LogHash;

    /// Why the log is never contacted, and the command that changes that; none if it is contacted.
    fn offline(&self) -> Option<(&str, Option<&'static str>)> {
        None
    }
}

/// Replaces a shared log that must not be contacted: every request fails at once, and nothing is
/// sent.
pub struct Offline {
    about: LogDescription,
    why: String,
    remedy: Option<&'static str>,
}

impl Offline {
    /// `why` completes "the shared store … is not contacted: …". With a `remedy` the user can
    /// change that; without one, the caller never contacts shared stores.
    pub fn new(about: LogDescription, why: &str, remedy: Option<&'static str>) -> Offline {
        Offline {
            why: format!(
                "the shared store {} was not contacted: {why}",
                about.address
            ),
            about,
            remedy,
        }
    }

    fn fail<T>(&self) -> Result<T, StoreError> {
        Err(StoreError::Unreachable {
            what: self.why.clone(),
            sent: false,
            remedy: self.remedy,
        })
    }
}

impl CommitLog for Offline {
    fn commit(&self, _: &CommitRequest<'_>) -> Result<CommitResult, StoreError> {
        self.fail()
    }

    fn after(&self, _: &LogCursor, _: WaitPolicy) -> Result<CommitResult, StoreError> {
        self.fail()
    }

    fn lock(&self, _: &LogCursor) -> Result<CommitResult, StoreError> {
        self.fail()
    }

    fn unlock(&self) {}

    fn wait(&self, _: u64, _: Duration) -> Result<bool, StoreError> {
        self.fail()
    }

    fn newest(&self, _: WaitPolicy) -> Result<u64, StoreError> {
        self.fail()
    }

    fn describe(&self) -> LogDescription {
        self.about.clone()
    }

    fn heartbeat(&self, _: &str, _: &serde_json::Value) -> Result<(), StoreError> {
        self.fail()
    }

    fn leave(&self, _: &str) -> Result<(), StoreError> {
        self.fail()
    }

    fn workers(&self) -> Result<Vec<WorkerReport>, StoreError> {
        self.fail()
    }

    fn examine(&self, _: &LogCursor) -> Result<Vec<(String, String)>, StoreError> {
        self.fail()
    }

    fn entries(&self, _: u64) -> Result<Vec<LogHash>, StoreError> {
        self.fail()
    }

    fn entry_of(&self, record: &Record) -> LogHash {
        LogHash {
            rev: record.seq,
            hash: [0; 32],
        }
    }

    fn offline(&self) -> Option<(&str, Option<&'static str>)> {
        Some((&self.why, self.remedy))
    }
}

/// Finds the commit log of a project, if it is a working copy.
pub type CommitLogFinder = fn(&Path, &Contract) -> Result<Option<Arc<dyn CommitLog>>, StoreError>;

static FINDER: OnceLock<CommitLogFinder> = OnceLock::new();

/// Registers a finder, so that this process can open working copies. The program calls this once at
/// startup.
pub fn register_commit_logs(finder: CommitLogFinder) {
    let _ = FINDER.set(finder);
}

/// The file that makes a project a working copy.
pub const SHARED: &str = "shared";

pub(crate) fn find_commit_log(
    root: &Path,
    contract: &Contract,
) -> Result<Option<Arc<dyn CommitLog>>, StoreError> {
    match FINDER.get() {
        Some(find) => find(root, contract),
        // Writing without the log would fork the history.
        None if root.join(".quipu").join(SHARED).exists() => Err(StoreError::refused(
            "this is a working copy of a shared project, but this program does not support shared \
             stores",
            "quipu store status",
        )),
        None => Ok(None),
    }
}
