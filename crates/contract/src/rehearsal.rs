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
    /// A review of such a plan.
    ReviewOutline,
    /// An inventory of a source tree: modules, types and functions, with their places.
    Research,
    /// A text composed of the quotations of a report.
    Draft,
    /// A check whether the places and names that a text cites exist in the source.
    ReviewCode,
    /// A check of a text against memory and form, and a proposal of what memory should store from
    /// it.
    ReviewMemory,
    /// A check of readability by countable properties.
    ReviewText,
    /// The scores of a reader.
    Read,
    /// A list of contradictions between a text and memory, found by rules without a model.
    Check,
    /// A text composed of what a plan says about its unit.
    Retell,
    /// An unchanged copy of a text, with notes that nothing was changed.
    Edit,
    /// A review of all units together.
    Audit,
    /// A page made from a text.
    Typeset,
    /// A check whether a page contains what its text contains.
    Inspect,
    /// Scores for one aspect of a text, in the form of a report.
    Score,
    /// A weighted summary of all such reports.
    Weigh,
    /// A one-page summary of the outcome.
    SumUp,
    /// The facts of a text, each with its place.
    Extract,
    /// A list of what was read.
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
