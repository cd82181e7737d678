//! Flags: why a file on disk is not as the journal and the contract want it, and the command that
//! fixes it.

use quipu_contract::{Class, ProjectPath, is_loss};
use serde::{Deserialize, Serialize};

use crate::rules::form_fault::{COMMITTED, CONFLICT, INVALID, NO_VERSION};

/// The command that repairs all state files that lost something.
pub fn repair_losses(paths: &[&str]) -> String {
    let paths = paths.join(" ");
    format!("quipu restore {paths}     (or accept the edit: quipu amend {paths} --why \"…\")")
}

/// An external edit that the contract does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// Completes the sentence "`path` …".
    pub what: String,
    pub line: Option<usize>,
}

/// The flag of a file if its newest text cannot be read from the journal.
pub(crate) const NOT_COMPARED: &str =
    "cannot be compared with the journal: a record about it is damaged";
/// The flags of files that could not be read or written.
const UNREAD: &str = "cannot be read: ";
const UNWRITTEN: &str = "could not be written: ";
const BLOCKED: &str = ", which is in its way";
pub(crate) const NO_ROOM: &str = "is not written yet: the disk is full";
pub(crate) const DISK_FAILS: &str = "is not written yet: the disk reports errors";
/// The flags of paths that something else occupies, at the path itself or at a folder above it.
const IN_THE_WAY: &str = ", where a file is expected";
const ON_THE_WAY: &str = ", where a folder is expected";

impl Flag {
    pub(crate) fn new(what: impl Into<String>) -> Flag {
        let what = what.into();
        Flag { what, line: None }
    }

    /// The commit is journalled, but this file could not be written.
    pub(crate) fn unwritten(error: &std::io::Error) -> Flag {
        let blocked = if error.kind() == std::io::ErrorKind::PermissionDenied {
            ""
        } else {
            BLOCKED
        };
        Flag::new(format!("{UNWRITTEN}{error}{blocked}"))
    }

    /// Something else occupies the path or a folder above it. A user did this; the disk did not
    /// fail.
    fn obstacle(path: &ProjectPath, error: &std::io::Error) -> Flag {
        let what = error.to_string();
        let what = match what
            .strip_prefix(&format!("`{path}` "))
            .filter(|what| what.starts_with("is "))
        {
            Some(what) => format!("{what}{IN_THE_WAY}"),
            None => format!("cannot be reached: {what}{ON_THE_WAY}"),
        };
        Flag::new(what)
    }

    /// The flag for a file that could not be read, if the error concerns only this file.
    pub(crate) fn of_unreadable(path: &ProjectPath, error: &std::io::Error) -> Option<Flag> {
        match error.kind() {
            std::io::ErrorKind::InvalidInput => Some(Self::obstacle(path, error)),
            std::io::ErrorKind::PermissionDenied => Some(Flag::new(format!("{UNREAD}{error}"))),
            _ => None,
        }
    }

    /// Whether the flag says that the file could not be read, and not that its content is wrong.
    pub(crate) fn is_of_unreadable(&self) -> bool {
        self.what.starts_with(UNREAD)
            || self.what.ends_with(IN_THE_WAY)
            || self.what.ends_with(ON_THE_WAY)
    }

    /// Whether a state file lost something, and one command repairs all such files.
    pub fn is_loss(&self) -> bool {
        is_loss(&self.what)
    }

    /// Whether the text is invalid in the form that the contract requires.
    pub fn is_invalid(&self) -> bool {
        self.what.starts_with(INVALID) || self.what.starts_with(COMMITTED)
    }

    pub(crate) fn is_unwritten(&self) -> bool {
        self.what.starts_with(UNWRITTEN)
    }

    /// The command that fixes it.
    pub fn remedy(&self, path: &str, class: Class, has_history: bool) -> String {
        if self.what == NOT_COMPARED {
            return "quipu doctor".into();
        }
        if self.what.starts_with(UNREAD) {
            return "grant permission to read it".into();
        }
        if self.what == NO_ROOM {
            return "free some disk space, then run: quipu doctor".into();
        }
        if self.what == DISK_FAILS {
            return "repair the disk, then run: quipu doctor".into();
        }
        if self.what.ends_with(BLOCKED) {
            return "move the obstacle away, then run: quipu doctor".into();
        }
        if self.is_unwritten() {
            return format!("grant permission to write it, then run: quipu restore {path}");
        }
        if self.what.ends_with(IN_THE_WAY) || self.what.ends_with(ON_THE_WAY) {
            return if has_history {
                format!("move it away, then run: quipu restore {path}")
            } else {
                "move it away".into()
            };
        }
        if is_loss(&self.what) {
            return repair_losses(&[path]);
        }
        if self.what.ends_with(CONFLICT) {
            return format!(
                "quipu git setup && git checkout --merge {path}     (merges both sides; or \
                 resolve the conflict in an editor)"
            );
        }
        if self.is_invalid() {
            // A restore may undo more than the fault, so it is named second if a value is wrong.
            let is_committed = self.what.starts_with(COMMITTED);
            return match has_history && !self.what.ends_with(NO_VERSION) {
                true if is_committed => {
                    format!(
                        "correct it in an editor, and Quipu adopts the valid text; or restore the \
                         newest valid version: quipu restore {path}"
                    )
                }
                true => format!(
                    "quipu restore {path}     (or correct it in an editor, and Quipu adopts the \
                     valid text)"
                ),
                false => "correct it in an editor; Quipu adopts the valid text".into(),
            };
        }
        if !has_history {
            return format!("fix `{path}` in an editor: it has no earlier version to restore");
        }
        let keep = if class == Class::Sealed && !self.what.starts_with("was removed") {
            format!("; or accept it: quipu amend {path} --why \"…\"")
        } else {
            String::new()
        };
        format!("quipu diff {path}; then quipu restore {path}{keep}")
    }
}
