//! Errors of the store, grouped by what the caller should do about them.
//!
//! Each error names its object and, where possible, the command that fixes it. The program maps
//! them to exit codes.

use std::path::PathBuf;

use quipu_contract::Place;
use thiserror::Error;

use crate::version::Version;

/// The contract refused an operation: what, under which rule, and the command that fixes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub what: String,
    pub rule: Option<(Place, String)>,
    pub remedy: String,
}

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("{}", .0.what)]
    Refused(Refused),
    #[error("`{path}` is at version {now}, not at {expected}{}", kept_at(.kept.as_deref()))]
    Stale {
        path: String,
        expected: Version,
        now: Version,
        /// The path of the stale text, if it was kept.
        kept: Option<String>,
    },
    #[error("{what}")]
    LeaseLost { what: String },
    #[error("{what}")]
    NotFound { what: String, remedy: String },
    #[error("waited {seconds} s for {holder}, which holds `{lock}`")]
    Busy {
        lock: String,
        holder: String,
        seconds: u64,
    },
    /// The commit is safe in the journal, but its files could not be written yet.
    #[error("commit {seq} is saved in the journal, but `{path}` could not be written: {source}")]
    Unfinished {
        seq: u64,
        path: String,
        source: std::io::Error,
    },
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: std::io::Error,
    },
    #[error("the file index failed: {0}")]
    FileIndex(#[from] rusqlite::Error),
    /// Damage in the journal. The segment is zero if the damage has no single position, and the
    /// line is zero if it is not about one line.
    #[error("{}{what}", in_journal(*.segment, *.line))]
    Damaged {
        segment: u32,
        line: usize,
        what: String,
    },
    /// The commit is written, but the disk failed to sync it.
    #[error(
        "commit {seq} is written, but the disk did not confirm it: {source}; it is unknown \
         whether it will survive"
    )]
    Unsure { seq: u64, source: Box<StoreError> },
    /// The disk is full, and the store was opened for reading only.
    #[error("nothing can be written: {what}")]
    Full { what: String },
    /// The disk fails, and the store was opened for reading only.
    #[error("nothing can be written: {what}")]
    Failing { what: String },
    /// The shared store does not answer.
    #[error("{what}{}", unsure(*.sent))]
    Unreachable {
        what: String,
        /// A request was sent, and it is unknown whether it was accepted.
        sent: bool,
        /// The command that makes it reachable, if waiting does not help.
        remedy: Option<&'static str>,
    },
    #[error("no project at `{}`", .0.display())]
    NoStore(PathBuf),
}

/// Why nothing can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwritable {
    Full(String),
    /// The disk refuses to write or to sync.
    Failing(String),
}

impl From<Unwritable> for StoreError {
    fn from(why: Unwritable) -> StoreError {
        match why {
            Unwritable::Full(what) => StoreError::Full { what },
            Unwritable::Failing(what) => StoreError::Failing { what },
        }
    }
}

impl StoreError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> StoreError {
        move |source| StoreError::Io {
            what: what.into(),
            source,
        }
    }

    /// The error that this one reports in other words, or this one.
    fn innermost(&self) -> &StoreError {
        let inner = match self {
            StoreError::Unsure { source, .. } => Some(&**source),
            StoreError::Io { source, .. } | StoreError::Unfinished { source, .. } => source
                .get_ref()
                .and_then(|inner| inner.downcast_ref::<StoreError>()),
            _ => None,
        };
        inner.map_or(self, StoreError::innermost)
    }

    /// Whether the disk is full.
    pub fn is_full_disk(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match self.innermost() {
            StoreError::Full { .. } => true,
            StoreError::Io { source, .. } | StoreError::Unfinished { source, .. } => {
                matches!(source.kind(), StorageFull | QuotaExceeded)
            }
            StoreError::FileIndex(error) => {
                error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
            }
            _ => false,
        }
    }

    /// Whether the disk fails to write or to sync.
    pub fn is_failing_disk(&self) -> bool {
        use rusqlite::ErrorCode::{ReadOnly, SystemIoFailure};
        match self.innermost() {
            StoreError::Failing { .. } => true,
            StoreError::Io { source, .. } | StoreError::Unfinished { source, .. } => {
                source.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
                    || source.kind() == std::io::ErrorKind::ReadOnlyFilesystem
            }
            StoreError::FileIndex(error) => {
                matches!(error.sqlite_error_code(), Some(SystemIoFailure | ReadOnly))
            }
            _ => false,
        }
    }

    /// Whether the error concerns a single file, which is flagged, and blocks no other file.
    pub(crate) fn is_of_one_file(&self) -> bool {
        use std::io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, PermissionDenied};
        let kind = match self {
            StoreError::Unfinished { source, .. } | StoreError::Io { source, .. } => source.kind(),
            _ => return false,
        };
        matches!(
            kind,
            PermissionDenied | InvalidInput | NotADirectory | IsADirectory
        )
    }

    /// Whether the file index cannot be opened at all, for example because a folder has its name.
    pub fn is_closed_index(&self) -> bool {
        matches!(self, StoreError::FileIndex(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen))
    }

    /// Damage without a single position in the journal.
    pub(crate) fn damaged(what: impl Into<String>) -> StoreError {
        StoreError::Damaged {
            segment: 0,
            line: 0,
            what: what.into(),
        }
    }

    pub(crate) fn not_found(what: impl Into<String>, remedy: impl Into<String>) -> StoreError {
        StoreError::NotFound {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    pub fn refused(what: impl Into<String>, remedy: impl Into<String>) -> StoreError {
        StoreError::Refused(Refused {
            what: what.into(),
            rule: None,
            remedy: remedy.into(),
        })
    }
}

fn unsure(sent: bool) -> &'static str {
    if sent {
        "; it is unknown whether the commit was accepted"
    } else {
        ""
    }
}

fn in_journal(segment: u32, line: usize) -> String {
    match (segment, line) {
        (0, _) => String::new(),
        (segment, 0) => format!("journal segment {segment}: "),
        (segment, line) => format!("journal segment {segment}, line {line}: "),
    }
}

fn kept_at(kept: Option<&str>) -> String {
    kept.map(|place| format!("; your text is in `{place}`"))
        .unwrap_or_default()
}

pub(crate) type Result<T> = std::result::Result<T, StoreError>;
