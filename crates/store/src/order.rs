//! The port to a shared order: where several working copies agree on what comes after what.
//!
//! Without one, the journal under its lock is the order, and nothing here costs anything. With one,
//! the journal is a replica: its numbers are the revisions of the shared log, and a record gets
//! into it only after the order has accepted it. Files are the truth for reading, the order is the
//! truth for sequence.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quipu_contract::Contract;
use serde::Serialize;

use crate::error::StoreError;
use crate::lease::LeaseToken;
use crate::record::Record;
use crate::version::Version;

/// How far a working copy knows the shared log: a revision, and the id of its record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    pub rev: u64,
    /// Empty at the very beginning.
    pub id: String,
}

/// How long an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Nobody waits for it: an answer that does not come at once is none.
    Glance,
    /// Someone only reads: one try, and none if the last one has just failed.
    Little,
    /// Someone wants to write: tried again for a while, and told so.
    Bounded,
}

/// Records that someone wants to see in the shared log, all of them or none.
#[derive(Debug, Clone)]
pub struct Bid<'b> {
    /// What the judge knew.
    pub mark: Mark,
    /// Their ids are made here, so that handing them in twice does nothing more. Numbers and times
    /// are given by the order.
    pub records: &'b [Record],
    pub lease: Option<LeaseToken>,
    /// Versions that the judge relied on without changing them: the contract's own files.
    pub relies: Vec<(String, Option<Version>)>,
    /// Other leases that would do as well as the one in the record, in the order of wish: id and
    /// paths.
    pub instead: Vec<(String, Vec<String>)>,
    pub patience: Patience,
}

/// What the order says to a bid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The records are in the log, now or since an earlier try.
    Accepted,
    /// Something that the judge relied on has moved on; what, completes "… has moved on".
    Stale(String),
    /// A lease is over, held by another, or somebody else's.
    Held(String),
    /// Against the rules of the log itself.
    Refused { what: String, remedy: String },
}

/// An answer of the order: a verdict, and what the log holds behind the mark.
#[derive(Debug, Clone)]
pub struct Ruling {
    pub verdict: Verdict,
    /// In order and without a gap, number, time and lease as the order gave them.
    pub records: Vec<Record>,
    /// The newest revision: there is more than `records` if it lies behind them.
    pub newest: u64,
    /// The order's clock, in microseconds since 1970.
    pub now_us: i64,
}

/// What the order is, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Described {
    /// Where it is, without a password.
    pub address: String,
    pub project: String,
}

/// What a worker last said of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Said {
    pub name: String,
    /// How long ago, by the order's clock.
    pub silent_ms: u64,
    pub says: serde_json::Value,
}

/// A record of the log without its texts: what it says, as a hash that a record of a journal has as
/// well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHash {
    pub rev: u64,
    pub hash: [u8; 32],
}

/// A shared order of commits. Every call is one round trip.
pub trait Order: Send + Sync {
    /// Hands in records.
    fn rule(&self, bid: &Bid<'_>) -> Result<Ruling, StoreError>;

    /// What the log holds behind a mark, perhaps not all of it.
    fn after(&self, mark: &Mark, patience: Patience) -> Result<Ruling, StoreError>;

    /// The same, and nobody else gets anything accepted until the next `rule` or `pass`: for a
    /// writer that was overtaken too often.
    fn turn(&self, mark: &Mark) -> Result<Ruling, StoreError>;

    /// Gives up a turn that came to nothing.
    fn pass(&self);

    /// Waits until the log reaches behind a revision; false if it has not in that time.
    fn wait(&self, rev: u64, most: Duration) -> Result<bool, StoreError>;

    /// The newest revision.
    fn newest(&self, patience: Patience) -> Result<u64, StoreError>;

    fn describe(&self) -> Described;

    /// Says that a worker is here, and what it is at.
    fn beat(&self, worker: &str, says: &serde_json::Value) -> Result<(), StoreError>;

    /// Says that a worker is gone.
    fn leave(&self, worker: &str) -> Result<(), StoreError>;

    /// What the workers of this project last said.
    fn workers(&self) -> Result<Vec<Said>, StoreError>;

    /// What is wrong with the shared log: what, and the command that fixes it.
    fn examine(&self, mark: &Mark) -> Result<Vec<(String, String)>, StoreError>;

    /// The records of the log behind a revision as hashes, in order, perhaps not all of them; none
    /// at its end.
    fn entries(&self, rev: u64) -> Result<Vec<LogHash>, StoreError>;

    /// The hash that a record of a journal has in the log.
    fn entry_of(&self, record: &Record) -> LogHash;

    /// Why it is never contacted, and the command that changes that; none for an order that is.
    fn offline(&self) -> Option<(&str, Option<&'static str>)> {
        None
    }
}

/// Stands for a shared order that must not be contacted: every request fails at once, and nothing
/// is sent.
pub struct Offline {
    about: Described,
    why: String,
    remedy: Option<&'static str>,
}

impl Offline {
    /// `why` completes "the shared store … is not contacted: …". With `fix` the user can change
    /// that; without it, the caller does not contact shared stores at all.
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

/// Finds the order of a project, if it is a working copy.
pub type Finder = fn(&Path, &Contract) -> Result<Option<Arc<dyn Order>>, StoreError>;

static FINDER: OnceLock<Finder> = OnceLock::new();

/// Teaches this process to open working copies. The program does so once, at its start.
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
        // Writing on without the order would make two histories of one.
        None if root.join(".quipu").join(SHARED).exists() => Err(StoreError::refused(
            "this is a working copy of a shared project, and this program knows no shared stores",
            "quipu store status",
        )),
        None => Ok(None),
    }
}
