//! Errors of an import.

use std::path::PathBuf;

use quipu_contract::BadPath;
use quipu_store::StoreError;
use thiserror::Error;

use crate::files::source_file::SourceError;

#[derive(Debug, Error)]
pub enum ImportError {
    #[error("unknown source `{0}`; the sources are {1}")]
    NoSource(String, String),
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The source exists, but is not of the stated kind.
    #[error("`{}`: {what}", path.display())]
    Other {
        path: PathBuf,
        what: String,
        remedy: String,
    },
    #[error("`{}`, line {line}: {what}", path.display())]
    Malformed {
        path: PathBuf,
        line: usize,
        what: String,
    },
    /// Each as `file:line what`.
    #[error("credentials do not belong in memory:\n  {}", .0.join("\n  "))]
    Credentials(Vec<String>),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ImportError {
    pub(super) fn unreadable(
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> ImportError + '_ {
        |source| ImportError::Unreadable {
            path: path.to_owned(),
            source,
        }
    }
}
