//! How a change of part of a file that cannot be made is told.

use quipu_contract::KeyedError;
use quipu_protocol::FormedError;
use quipu_protocol::experience::TaskError;
use quipu_text::SpliceError;

use crate::answer::{Failure, exit};

impl From<FormedError> for Failure {
    fn from(error: FormedError) -> Failure {
        let what = error.to_string();
        match error {
            FormedError::NoFile(form) => {
                Failure::new(exit::NOT_FOUND, what, format!("quipu contract show     (a file rule says form = \"{form}\")"))
            }
            FormedError::WhichAgent { .. } => Failure::usage(what, "--agent NAME, or QUIPU_AGENT"),
            FormedError::NotText(path) => Failure::new(exit::USAGE, what, format!("quipu log {path}")),
            FormedError::Read(error) => error.into(),
            FormedError::Template(_) => Failure::usage(what, "quipu profile eject NAME     (then mend the template)"),
            FormedError::Store(error) => error.into(),
        }
    }
}

impl From<KeyedError> for Failure {
    fn from(error: KeyedError) -> Failure {
        let what = error.to_string();
        match error {
            KeyedError::NoSection { .. } => Failure::new(exit::NOT_FOUND, what, "--section with one of these"),
            KeyedError::WhichSection { .. } | KeyedError::Ambiguous { .. } => Failure::usage(what, "--section SECTION"),
            KeyedError::NotOneLine { .. } => Failure::usage(what, "one fact per line; what is longer belongs in a session"),
            KeyedError::NoKey { .. } => Failure::usage(what, "a short name, such as `test command`"),
            KeyedError::OtherCells { .. } => Failure::usage(what, "\"cell | cell\""),
        }
    }
}

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Failure {
        let what = error.to_string();
        match error {
            TaskError::UnderWay(_) => Failure::new(exit::REFUSED, what, "quipu task status; then finish it or give it up, and begin anew"),
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
