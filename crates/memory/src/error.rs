//! One error for every call, by what a program can do about it.

use quipu_protocol::{InitError, ProjectError, ReadError, RecallError, WorkError};
use quipu_store::StoreError;
use thiserror::Error;

/// Why a call failed. Nothing was written, unless the message says so.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The contract forbids it.
    #[error("{what}")]
    Refused {
        /// The forbidden action.
        what: String,
        /// The rule, with its file and line.
        rule: Option<String>,
        /// The remedy, as a command of `quipu`.
        repair: String,
    },
    /// The file is not at the version that the caller expected.
    #[error("`{path}` is at version {now}")]
    Stale {
        /// The file.
        path: String,
        /// Its version now.
        now: String,
    },
    /// There is no such file, section, version or project.
    #[error("{what}")]
    NotFound {
        /// The missing file, section or version.
        what: String,
    },
    /// Anything else: the disk, a lock that another process holds, a damaged journal, a contract
    /// with faults.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    pub(crate) fn refused(what: impl ToString, repair: impl ToString) -> Error {
        Error::Refused {
            what: what.to_string(),
            rule: None,
            repair: repair.to_string(),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match error {
            StoreError::Refused(refused) => Error::Refused {
                rule: refused.rule.map(|(place, rule)| format!("{place}  {rule}")),
                what: refused.what,
                repair: refused.remedy,
            },
            StoreError::Stale { path, now, .. } => Error::Stale {
                path,
                now: now.to_string(),
            },
            StoreError::NotFound { what, .. } => Error::NotFound { what },
            other => Error::Failed(other.to_string()),
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Error {
        let what = error.to_string();
        match error {
            ReadError::Store(error) => error.into(),
            ReadError::NotFound { .. } | ReadError::NoSection { .. } | ReadError::NoLine { .. } => {
                Error::NotFound { what }
            }
            ReadError::Denied(_)
            | ReadError::OnlySections { .. }
            | ReadError::UnknownActor(_)
            | ReadError::Path(_) => Error::refused(what, "quipu contract show"),
            _ => Error::Failed(what),
        }
    }
}

impl From<ProjectError> for Error {
    fn from(error: ProjectError) -> Error {
        match error {
            ProjectError::NotFound(_) | ProjectError::Removed(_) => Error::NotFound {
                what: error.to_string(),
            },
            ProjectError::Store(error) => error.into(),
            other => Error::Failed(other.to_string()),
        }
    }
}

impl From<WorkError> for Error {
    fn from(error: WorkError) -> Error {
        let what = error.to_string();
        match error {
            WorkError::Store(error) => error.into(),
            WorkError::Read(error) => error.into(),
            WorkError::Refused { remedy, .. } => Error::refused(what, remedy),
            WorkError::NotFound { .. } => Error::NotFound { what },
            _ => Error::Failed(what),
        }
    }
}

impl From<RecallError> for Error {
    fn from(error: RecallError) -> Error {
        match error {
            RecallError::Store(error) => error.into(),
            RecallError::Read(error) => error.into(),
            other => Error::Failed(other.to_string()),
        }
    }
}

impl From<InitError> for Error {
    fn from(error: InitError) -> Error {
        Error::Failed(error.to_string())
    }
}
