//! The errors of session work, grouped by the action that the caller should take.

use quipu_contract::{Form, KeyedError, Language, ProjectPath};
use quipu_store::StoreError;
use quipu_text::SpliceError;
use quipu_text::json::JsonError;
use thiserror::Error;

use crate::files::read::ReadError;
use crate::project::template::TemplateError;
use crate::worldlog::TaskError;

#[derive(Debug, Error)]
pub enum WorkError {
    #[error("no file of this project has the form `{0}`")]
    NoForm(Form),
    /// The file is per agent, and the caller did not name one.
    #[error("`{path}` is for one agent: name one with --agent")]
    WhichAgent { path: String },
    /// A file that is not valid in its form. It is not changed.
    #[error("`{path}`, line {line}: {what}")]
    Malformed {
        path: ProjectPath,
        line: usize,
        what: String,
        allowed: String,
    },
    #[error("{what}")]
    Refused { what: String, remedy: String },
    #[error("{what}")]
    NotFound { what: String, remedy: String },
    #[error("{what}")]
    Usage { what: String, remedy: String },
    /// Not an error for callers of `finish`, which returns it as a value.
    #[error("{} items of the finish are missing", .0.len())]
    Unfinished(Vec<crate::session::finish::Missing>),
    #[error("others changed the same file {0} times in a row")]
    Crowded(usize),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Keyed(#[from] KeyedError),
    #[error(transparent)]
    Splice(#[from] SpliceError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Chooses the text in the project's language.
pub(crate) fn in_language(
    language: Language,
    en: impl Into<String>,
    zh: impl Into<String>,
) -> String {
    match language {
        Language::En => en.into(),
        Language::Zh => zh.into(),
    }
}

impl WorkError {
    pub(crate) fn refused(what: impl Into<String>, remedy: impl Into<String>) -> WorkError {
        WorkError::Refused {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    pub(crate) fn not_found(what: impl Into<String>, remedy: impl Into<String>) -> WorkError {
        WorkError::NotFound {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    pub(crate) fn usage(what: impl Into<String>, remedy: impl Into<String>) -> WorkError {
        WorkError::Usage {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// Converts a JSON error to an error in its file.
    pub(crate) fn in_file(path: &ProjectPath) -> impl Fn(JsonError) -> WorkError + '_ {
        |JsonError { line, what }| WorkError::Malformed {
            path: path.clone(),
            line,
            what,
            allowed: String::new(),
        }
    }
}
