//! Messages for edits of a part of a file that cannot be applied.

use quipu_contract::KeyedError;
use quipu_protocol::worldlog::TaskError;
use quipu_text::SpliceError;

use crate::answer::{Failure, exit};

impl From<KeyedError> for Failure {
    fn from(error: KeyedError) -> Failure {
        let what = error.to_string();
        match error {
            KeyedError::NoSection { .. } => Failure::new(
                exit::NOT_FOUND,
                what,
                "run the same command with one of these",
            ),
            KeyedError::WhichSection { .. } | KeyedError::Ambiguous { .. } => {
                Failure::usage(what, "--section SECTION")
            }
            KeyedError::NotOneLine { .. } => Failure::usage(
                what,
                "write one fact per line; longer texts belong in a session",
            ),
            KeyedError::NoKey { .. } => {
                Failure::usage(what, "use a short name, such as `test command`")
            }
            KeyedError::OtherCells { .. } => Failure::usage(what, "\"cell | cell\""),
        }
    }
}

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Failure {
        let what = error.to_string();
        match error {
            TaskError::UnderWay(_) => Failure::new(
                exit::REFUSED,
                what,
                "quipu task status; then quipu finish …, or quipu finish --abandon --why \"…\"",
            ),
            TaskError::NoTask => Failure::new(exit::NOT_FOUND, what, "quipu task start \"…\""),
            TaskError::NoItem { .. } => Failure::new(exit::NOT_FOUND, what, "quipu task status"),
            TaskError::Edit(error) => error.into(),
        }
    }
}

impl From<SpliceError> for Failure {
    fn from(error: SpliceError) -> Failure {
        Failure::usage(error.to_string(), "")
    }
}
