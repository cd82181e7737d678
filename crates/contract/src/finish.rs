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

/// One item of the checklist, with its source line.
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
    /// Changed since this session began, or by the finish itself.
    Changed,
    /// A file of this form was created since this session began, or is created by the finish.
    Created,
    /// Changed, or explicitly answered with nothing: `--none NAME`.
    Answered,
    /// A JSON value (`/next_steps`) or a section (`#Goal`) is neither empty nor a placeholder.
    Filled(String),
    /// The file holds no task, or no content.
    Cleared,
    /// This actor has left nothing open in it: no todo in progress.
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

/// When an item counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    /// At every finish.
    #[default]
    Always,
    /// Only if this session has committed anything, or commits it now.
    Worked,
    /// Only if a file of the form is there.
    Exists,
    /// Not at all: for a project that drops an item of its profile.
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
