//! Flows: steps over units. Progress is never stored: it is derived elsewhere, from markers.

use serde::{Deserialize, Serialize};

use crate::fault::Place;
use crate::language::Said;

/// Over what a step repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Each {
    #[default]
    Once,
    Unit,
}

/// Steps that Quipu does itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Builtin {
    /// Joins several outputs into one, when all their markers are there.
    Merge,
    /// Appends to the long-term memory.
    Remember,
    /// Rewrites derived files.
    Derive,
    /// Makes the published form.
    Publish,
    /// Waits for a person.
    Gate,
}

/// One step of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    pub name: String,
    pub about: Said,
    /// The role that does it, or none for a built-in step.
    pub role: Option<String>,
    pub builtin: Option<Builtin>,
    pub each: Each,
    pub after: Vec<String>,
    /// Steps whose objection sends the work back, and how often.
    pub rounds: Option<u32>,
    /// Files a built-in step reads and writes.
    pub reads: Vec<String>,
    pub writes: Vec<String>,
    pub marker: Option<String>,
    pub place: Place,
}
