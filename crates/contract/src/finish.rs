//! The checklist of `quipu finish`: the conditions for ending a session.
//!
//! An item names files by their form, a condition out of a small vocabulary, and the command that
//! supplies the missing part. This module only defines the items; the finish command evaluates
//! them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fault::Place;
use crate::form::Form;
use crate::language::Localized;

/// One item of the finish checklist, with its source line.
#[derive(Debug, Clone, Serialize)]
pub struct FinishItem {
    pub name: String,
    /// The request, as shown to the actor that finishes.
    pub text: Localized,
    /// The form of the files it concerns.
    pub form: Form,
    pub need: Condition,
    pub when: Occasion,
    /// The roles it applies to; empty means all. An actor without a role is always asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The command that fulfils it.
    #[serde(rename = "do")]
    pub supply: String,
    pub place: Place,
}

/// A condition on the files of a form after the finish is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The file changed since this session started, or the finish changes it.
    Changed,
    /// A file of this form was created since this session started, or the finish creates one.
    Created,
    /// The file changed, or the finish states explicitly that there is nothing to report: `--none
    /// NAME`.
    Answered,
    /// A JSON value (`/next_steps`) or a section (`#Goal`) is neither empty nor a placeholder.
    Filled(String),
    /// The file contains no task, or no content.
    Cleared,
    /// This actor has no todo in progress in the file.
    Settled,
}

impl Condition {
    pub const KNOWN: &str =
        "changed, created, answered, filled(/pointer), filled(#section), cleared, settled";

    pub fn parse(text: &str) -> Option<Condition> {
        Some(match text {
            "changed" => Condition::Changed,
            "created" => Condition::Created,
            "answered" => Condition::Answered,
            "cleared" => Condition::Cleared,
            "settled" => Condition::Settled,
            _ => {
                let place = text.strip_prefix("filled(")?.strip_suffix(')')?;
                if !place.starts_with(['/', '#']) || place.len() < 2 {
                    return None;
                }
                Condition::Filled(place.to_owned())
            }
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Changed => f.write_str("changed"),
            Condition::Created => f.write_str("created"),
            Condition::Answered => f.write_str("answered"),
            Condition::Filled(place) => write!(f, "filled({place})"),
            Condition::Cleared => f.write_str("cleared"),
            Condition::Settled => f.write_str("settled"),
        }
    }
}

impl Serialize for Condition {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// When an item applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    /// At every finish.
    #[default]
    Always,
    /// Only if this session has committed something, or the finish commits something.
    Worked,
    /// Only if a file of the form exists.
    Exists,
    /// Never. A project uses this to remove an item of its profile.
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_they_are_written() {
        for text in [
            "changed",
            "created",
            "answered",
            "cleared",
            "settled",
            "filled(/progress/next_steps)",
            "filled(#Goal)",
        ] {
            assert_eq!(Condition::parse(text).unwrap().to_string(), text);
        }
        for bad in ["", "filled", "filled()", "filled(x)", "filled(/)", "done"] {
            assert!(Condition::parse(bad).is_none(), "{bad}");
        }
    }
}
