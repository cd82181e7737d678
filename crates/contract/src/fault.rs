//! Faults of a contract: the error, its place, and the remedy.

use std::fmt;

use serde::Serialize;

use crate::characters::in_one_line;

/// A line of a contract file: `profiles/book/profile.toml:22`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    pub file: String,
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One fault of a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub place: Place,
    pub what: String,
    /// The second place, if two rules contradict each other.
    pub other: Option<Place>,
    /// The allowed values, or how to fix the fault.
    pub remedy: String,
}

/// Maximum number of names in a message.
const NAMES_SHOWN: usize = 30;

/// "one of a, b, c": the allowed names.
pub(crate) fn one_of(names: impl Iterator<Item = impl fmt::Display>) -> String {
    format!("one of {}", list(names))
}

/// "a, b, c"; a long list is cut after `NAMES_SHOWN`.
pub(crate) fn list(mut names: impl Iterator<Item = impl fmt::Display>) -> String {
    let shown: Vec<String> = names
        .by_ref()
        .take(NAMES_SHOWN)
        .map(|name| name.to_string())
        .collect();
    let more = match names.count() {
        0 => String::new(),
        count => format!(", … ({count} more)"),
    };
    shown.join(", ") + &more
}

/// All faults of a contract, in the order of its files and lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", render(.0))]
pub struct Faults(pub Vec<Fault>);

/// A contract may come from a stranger, and messages quote its keys and values. A line break in a
/// value must not start a new line of output.
fn render(faults: &[Fault]) -> String {
    let mut text = String::new();
    for (index, fault) in faults.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&format!(
            "{}\n  at    {}",
            in_one_line(&fault.what),
            in_one_line(&fault.place.to_string())
        ));
        if let Some(other) = &fault.other {
            text.push_str(&format!("\n  and   {}", in_one_line(&other.to_string())));
        }
        if !fault.remedy.is_empty() {
            text.push_str(&format!("\n  help  {}", in_one_line(&fault.remedy)));
        }
    }
    text
}
