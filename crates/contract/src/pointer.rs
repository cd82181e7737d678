//! Pointers: the files a role reads and writes, why, and how a read may shrink.

use serde::Serialize;

use crate::fault::Place;
use crate::language::Localized;
use crate::pattern::Pattern;

/// Whether a view is worthless without the pointer's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    #[default]
    Must,
    IfRoom,
}

impl Need {
    pub const NAMES: [&str; 2] = ["must", "if-room"];

    pub fn parse(text: &str) -> Option<Need> {
        match text {
            "must" => Some(Need::Must),
            "if-room" => Some(Need::IfRoom),
            _ => None,
        }
    }
}

/// How a pointer's text may shrink when the budget forces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shrink {
    /// The best fit, trying the strategies in order.
    #[default]
    Auto,
    /// The newest n sections whole, one sentence of each older.
    Recent(u32),
    /// The sections relevant to this unit.
    Relevant,
    /// Only the section named by the pointer.
    Section,
    /// As much as fits from the beginning.
    Head,
    /// Split the task, with one plan per stage.
    Stage,
    /// Whole or not at all.
    Never,
}

impl Shrink {
    pub const NAMES: [&str; 7] = [
        "auto",
        "recent(N)",
        "relevant",
        "section",
        "head",
        "stage",
        "never",
    ];

    pub fn parse(text: &str) -> Option<Shrink> {
        Some(match text {
            "auto" => Shrink::Auto,
            "relevant" => Shrink::Relevant,
            "section" => Shrink::Section,
            "head" => Shrink::Head,
            "stage" => Shrink::Stage,
            "never" => Shrink::Never,
            other => {
                let count = other.strip_prefix("recent(")?.strip_suffix(')')?;
                Shrink::Recent(count.trim().parse().ok().filter(|n| *n > 0)?)
            }
        })
    }
}

/// A read pointer of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pointer {
    #[serde(serialize_with = "as_text")]
    pub path: Pattern,
    pub section: Option<String>,
    pub why: Localized,
    pub need: Need,
    pub shrink: Shrink,
    /// A file with a section per unit that names the files to show; other files are only listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    pub place: Place,
}

/// A file that a role may query with questions but does not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AskPointer {
    #[serde(serialize_with = "as_text")]
    pub path: Pattern,
    pub place: Place,
}

/// A write pointer of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WritePointer {
    #[serde(serialize_with = "as_text")]
    pub path: Pattern,
    /// The marker that proves the file complete.
    pub marker: Option<String>,
    pub format: Localized,
    /// An attempt may omit it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Usual number of words, for estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<u32>,
    pub place: Place,
}

pub(crate) fn as_text<S: serde::Serializer>(
    pattern: &Pattern,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(pattern.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrink_names_are_read() {
        assert_eq!(Shrink::parse("recent(3)"), Some(Shrink::Recent(3)));
        assert_eq!(Shrink::parse("head"), Some(Shrink::Head));
        for bad in ["recent", "recent()", "recent(0)", "recent(-1)", "tail"] {
            assert_eq!(Shrink::parse(bad), None, "{bad}");
        }
    }
}
