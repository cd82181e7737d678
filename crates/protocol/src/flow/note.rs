//! The note of an attempt in the journal: its inputs, its job and its result.
//!
//! Notes are the only persistent state of a flow. A note is part of the commit's record, so an
//! attempt and its outputs are acknowledged together or not at all.

use quipu_store::{Noted, NotedFile, Version};
use serde::{Deserialize, Serialize};

use super::job::Job;
use quipu_contract::UnitId;

/// The format version of a note.
const FORMAT: u32 = 1;

/// The result of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptResult {
    /// Its outputs were accepted.
    Accepted,
    /// The attempt failed: its outputs were not accepted.
    Failed,
    /// A person approved.
    Approved,
    /// A person rejected.
    Rejected,
}

/// A text that an attempt read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadNote {
    pub path: String,
    /// The version of the whole file.
    pub version: Version,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// A hash of the section, if only a section was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Version>,
}

/// The note of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptNote {
    /// The format version.
    pub flow: u32,
    /// The name of its folder in `.quipu/attempts/`.
    #[serde(alias = "run")]
    pub attempt: String,
    pub step: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    pub ruling: AttemptResult,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The number of the answer to objections; 0 is the first draft.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// The step that objected and sent the work back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<String>,
    /// The steps that objected: only they look again.
    #[serde(default, alias = "mends", skip_serializing_if = "Vec::is_empty")]
    pub objectors: Vec<String>,
    /// Jobs before a gate that were stale when a person approved it anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub despite: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ReadNote>,
    /// Tokens read and written, as reported by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The reason for a failure or a rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The ending, if the agent did not end normally but its outputs were accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Accesses by the agent that were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Files that were not requested and were dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// Warnings: suspicious, but accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The mechanism that confined the agent's program to its folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}

/// The usage of an agent, in tokens as reported by the agent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    /// At the contract's prices at that time; None if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// Adds the usage of another attempt or answer.
    pub fn add(&mut self, more: Usage) {
        self.input += more.input;
        self.output += more.output;
        self.cost = match (self.cost, more.cost) {
            (None, None) => None,
            (mine, more) => Some(mine.unwrap_or(0.0) + more.unwrap_or(0.0)),
        };
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl AttemptNote {
    pub fn new(attempt: &str, job: &Job, ruling: AttemptResult) -> AttemptNote {
        AttemptNote {
            flow: FORMAT,
            attempt: attempt.to_owned(),
            step: job.step.clone(),
            unit: job.unit.as_ref().map(ToString::to_string),
            ruling,
            agent: None,
            round: 0,
            sent_by: None,
            objectors: Vec::new(),
            despite: Vec::new(),
            reads: Vec::new(),
            usage: None,
            why: None,
            ended: None,
            denied: Vec::new(),
            dropped: Vec::new(),
            warnings: Vec::new(),
            held_by: None,
        }
    }

    pub fn job(&self) -> Job {
        Job {
            step: self.step.clone(),
            unit: self.unit.as_deref().and_then(|u| UnitId::parse(u).ok()),
        }
    }

    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("a note has only strings and numbers")
    }
}

/// A note with its sequence number in the journal and the committed files.
#[derive(Debug, Clone, Serialize)]
pub struct AttemptFact {
    pub seq: u64,
    pub at: String,
    pub note: AttemptNote,
    pub files: Vec<NotedFile>,
}

impl AttemptFact {
    /// Parses the note of a record. None if it is not a flow note.
    pub fn of(noted: Noted) -> Option<AttemptFact> {
        let note: AttemptNote = serde_json::from_value(noted.note).ok()?;
        (note.flow == FORMAT).then_some(AttemptFact {
            seq: noted.seq,
            at: noted.at,
            note,
            files: noted.files,
        })
    }
}
