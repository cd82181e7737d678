//! Roles: who does what, and the pointers that bound it.

use serde::{Deserialize, Serialize};

use crate::fault::Place;
use crate::language::Localized;
use crate::pointer::{AskPointer, Pointer, WritePointer};
use crate::rehearsal::Rehearsed;

/// What kind of agent a role wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AgentKind {
    /// Reads much, writes little; in some hosts it cannot write files at all.
    Explore,
    /// Reasons and writes at length.
    #[default]
    GeneralPurpose,
}

/// A role of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Role {
    pub name: String,
    pub title: Localized,
    /// Completes "You are the {title}, responsible for …".
    pub duty: Localized,
    pub kind: AgentKind,
    /// Roles that it is as well, where the contract has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    pub reads: Vec<Pointer>,
    pub writes: Vec<WritePointer>,
    /// What the role must not read, with the reason; shown when it asks for it all the same.
    pub denies: Vec<Pointer>,
    /// What the role may ask one question at a time, although it does not read it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskPointer>,
    pub standards: Vec<Localized>,
    /// Score names, where the role scores.
    pub metrics: Vec<Localized>,
    /// What the built-in agent does in this role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearse: Option<Rehearsed>,
    /// The profile that declares it, for its brief template.
    pub profile: String,
    pub place: Place,
}
