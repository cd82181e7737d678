//! Rehearsals: the behaviour of the built-in agent in a role.
//!
//! A profile selects one behaviour per role and the input file it works on. The agent knows kinds
//! of work, never the names of roles or profiles.

use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;
use crate::pointer::as_text;

/// A kind of work that can be done without a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rehearsal {
    /// A plan of units, and a map from units to source files.
    Outline,
    /// An opinion on such a plan.
    ReviewOutline,
    /// What a source tree holds: modules, types, functions, with their places.
    Research,
    /// A text made of what a report quotes.
    Draft,
    /// Whether the places and names that a text cites are in the source.
    ReviewCode,
    /// Whether a text agrees with memory and form, and what memory should keep of it.
    ReviewMemory,
    /// Whether a text reads well, by what can be counted.
    ReviewText,
    /// A reader's scores.
    Read,
    /// Where a text goes against what memory says, by the rules that need no opinion.
    Check,
    /// A text made of what a plan says of its unit.
    Retell,
    /// A text as it stands, and notes that nothing was changed.
    Edit,
    /// A reading of all units together.
    Audit,
    /// A page made of a text.
    Typeset,
    /// Whether a page holds what its text holds.
    Inspect,
    /// Scores for one aspect of a text, in the form of a report.
    Score,
    /// All such reports weighed.
    Weigh,
    /// The outcome on one page.
    SumUp,
    /// The facts of a text, each with its place.
    Extract,
    /// What was read, listed.
    #[default]
    Report,
}

/// The rehearsal settings of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rehearsed {
    #[serde(rename = "as")]
    pub kind: Rehearsal,
    /// The input file, among those the role reads.
    #[serde(serialize_with = "maybe_text", skip_serializing_if = "Option::is_none")]
    pub from: Option<Pattern>,
}

fn maybe_text<S: serde::Serializer>(
    pattern: &Option<Pattern>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match pattern {
        Some(pattern) => as_text(pattern, serializer),
        None => serializer.serialize_none(),
    }
}
