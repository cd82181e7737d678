//! Roles: the duty of an agent, and the pointers that limit it.

use serde::{Deserialize, Serialize};

use crate::fault::Place;
use crate::language::Localized;
use crate::pointer::{AskPointer, Pointer, WritePointer};
use crate::rehearsal::Rehearsed;

/// The kind of agent that a role needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AgentKind {
    /// Reads much and writes little; in some hosts it cannot write files at all.
    Explore,
    /// Reasons and writes at length.
    #[default]
    GeneralPurpose,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Role {
    pub name: String,
    pub title: Localized,
    /// Completes "You are the {title}, responsible for …".
    pub duty: Localized,
    pub kind: AgentKind,
    /// Further roles that it includes, if the contract has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    pub reads: Vec<Pointer>,
    pub writes: Vec<WritePointer>,
    /// Paths that the role must not read, with the reason. The refusal shows the reason.
    pub denies: Vec<Pointer>,
    /// Files that the role may query one question at a time but does not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskPointer>,
    pub standards: Vec<Localized>,
    /// Score names, if the role scores.
    pub metrics: Vec<Localized>,
    /// The rehearsal behaviour of the built-in agent in this role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearse: Option<Rehearsed>,
    /// The profile that declares it, for its brief template.
    pub profile: String,
    pub place: Place,
}
