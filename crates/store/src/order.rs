//! The interface to a shared commit log, which puts the commits of several working copies in one
//! order.
//!
//! Without it, the journal under its lock is the commit log, and nothing here costs anything. With
//! it, the journal is a replica: record numbers are the revisions of the log, and a record enters
//! the journal only after the log has accepted it. `replica.rs` uses this interface; the crate
//! `shared` implements it for PostgreSQL.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quipu_contract::Contract;
use serde::Serialize;

use crate::error::StoreError;
use crate::lease::LeaseToken;
use crate::record::Record;
use crate::version::Version;

/// How far a working copy has read the shared log: a revision, and the id of its record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    pub rev: u64,
    /// Empty at the beginning of the log.
    pub id: String,
}

/// How long to wait for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Nobody waits: without an immediate answer, the call fails.
    Glance,
    /// For a reader: one attempt, and none if the last one has just failed.
    Little,
    /// For a writer: retried for a while, with a message to the user.
    Bounded,
}

/// A commit request: records to add to the shared log, all of them or none.
#[derive(Debug, Clone)]
pub struct Bid<'b> {
    /// The position that the judge knew.
    pub mark: Mark,
    /// The ids are assigned here, so that a repeated request changes nothing more. The log assigns
    /// numbers and times.
    pub records: &'b [Record],
    pub lease: Option<LeaseToken>,
    /// Versions that the judge relied on without changing them: the contract's own files.
    pub relies: Vec<(String, Option<Version>)>,
    /// Alternatives to the lease in the record, in order of preference: id and paths.
    pub instead: Vec<(String, Vec<String>)>,
    pub patience: Patience,
}

/// The log's decision about a commit request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The records are in the log, from this attempt or an earlier one.
    Accepted,
    /// Something that the judge relied on has changed; the text completes "… has moved on".
    Stale(String),
    /// A lease has expired or belongs to another owner.
    Held(String),
    /// The request violates the rules of the log itself.
    Refused { what: String, remedy: String },
}

/// A commit result: the decision, and the log's records after the mark.
#[derive(Debug, Clone)]
pub struct Ruling {
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
pub struct Described {
    /// The address, without a password.
    pub address: String,
    pub project: String,
}

/// The last heartbeat of a worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Said {
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
pub trait Order: Send + Sync {
    /// Submits a commit request.
    fn rule(&self, bid: &Bid<'_>) -> Result<Ruling, StoreError>;

    /// The log's records after a mark, perhaps not all of them.
    fn after(&self, mark: &Mark, patience: Patience) -> Result<Ruling, StoreError>;

    /// Like `after`, but also takes the exclusive lock: no other commit is accepted until the next
    /// `rule` or `pass`. For a writer that got too many stale results.
    fn turn(&self, mark: &Mark) -> Result<Ruling, StoreError>;

    /// Releases the exclusive lock without a commit.
    fn pass(&self);

    /// Waits until the log is beyond a revision; false on a timeout.
    fn wait(&self, rev: u64, most: Duration) -> Result<bool, StoreError>;

    fn newest(&self, patience: Patience) -> Result<u64, StoreError>;

    fn describe(&self) -> Described;

    /// Sends a heartbeat of a worker, with its state.
    fn beat(&self, worker: &str, says: &serde_json::Value) -> Result<(), StoreError>;

    /// Removes the registration of a worker.
    fn leave(&self, worker: &str) -> Result<(), StoreError>;

    /// The last heartbeats of this project's workers.
    fn workers(&self) -> Result<Vec<Said>, StoreError>;

    /// Problems of the shared log: a description, and the command that fixes it.
    fn examine(&self, mark: &Mark) -> Result<Vec<(String, String)>, StoreError>;

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
    about: Described,
    why: String,
    remedy: Option<&'static str>,
}

impl Offline {
    /// `why` completes "the shared store … is not contacted: …". With a `remedy` the user can
    /// change that; without one, the caller never contacts shared stores.
    pub fn new(about: Described, why: &str, remedy: Option<&'static str>) -> Offline {
        Offline {
            why: format!("the shared store {} is not contacted: {why}", about.address),
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

impl Order for Offline {
    fn rule(&self, _: &Bid<'_>) -> Result<Ruling, StoreError> {
        self.fail()
    }

    fn after(&self, _: &Mark, _: Patience) -> Result<Ruling, StoreError> {
        self.fail()
    }

    fn turn(&self, _: &Mark) -> Result<Ruling, StoreError> {
        self.fail()
    }

    fn pass(&self) {}

    fn wait(&self, _: u64, _: Duration) -> Result<bool, StoreError> {
        self.fail()
    }

    fn newest(&self, _: Patience) -> Result<u64, StoreError> {
        self.fail()
    }

    fn describe(&self) -> Described {
        self.about.clone()
    }

    fn beat(&self, _: &str, _: &serde_json::Value) -> Result<(), StoreError> {
        self.fail()
    }

    fn leave(&self, _: &str) -> Result<(), StoreError> {
        self.fail()
    }

    fn workers(&self) -> Result<Vec<Said>, StoreError> {
        self.fail()
    }

    fn examine(&self, _: &Mark) -> Result<Vec<(String, String)>, StoreError> {
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
pub type Finder = fn(&Path, &Contract) -> Result<Option<Arc<dyn Order>>, StoreError>;

static FINDER: OnceLock<Finder> = OnceLock::new();

/// Registers a finder, so that this process can open working copies. The program calls this once at
/// startup.
pub fn register_orders(finder: Finder) {
    let _ = FINDER.set(finder);
}

/// The file that makes a project a working copy.
pub const SHARED: &str = "shared";

pub(crate) fn find_order(
    root: &Path,
    contract: &Contract,
) -> Result<Option<Arc<dyn Order>>, StoreError> {
    match FINDER.get() {
        Some(find) => find(root, contract),
        // Writing without the log would fork the history.
        None if root.join(".quipu").join(SHARED).exists() => Err(StoreError::refused(
            "this is a working copy of a shared project, and this program knows no shared stores",
            "quipu store status",
        )),
        None => Ok(None),
    }
}
