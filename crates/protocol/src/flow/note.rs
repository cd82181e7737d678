//! What a run leaves in the journal beside its files: what it had read, for whom it was, how it
//! ended.
//!
//! This is all that a flow remembers. It travels in the record of the commit, so a run and its
//! outputs are acknowledged together or not at all.

use quipu_store::{Noted, NotedFile, Version};
use serde::{Deserialize, Serialize};

use super::job::Job;
use quipu_contract::UnitId;

/// The format of a note.
const FORMAT: u32 = 1;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruling {
    /// Its outputs were accepted.
    Accepted,
    /// They were not, twice.
    Failed,
    /// A person approved.
    Approved,
    /// A person rejected.
    Rejected,
}

/// A text that a run had read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadNote {
    pub path: String,
    /// The version of the whole file.
    pub version: Version,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// A hash of the section, where only that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Version>,
}

/// The note of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptNote {
    /// Version of this format.
    pub flow: u32,
    /// The name of its folder in `.quipu/attempts/`.
    #[serde(alias = "run")]
    pub attempt: String,
    pub step: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    pub ruling: Ruling,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Which answer to objections this is; 0 is the first draft.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// The step whose objection sent the work back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<String>,
    /// The steps that objected: only they look again.
    #[serde(default, alias = "mends", skip_serializing_if = "Vec::is_empty")]
    pub objectors: Vec<String>,
    /// The jobs before a gate that were stale when a person approved all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub despite: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ReadNote>,
    /// Tokens read and written, as the agent counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why it failed or was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How its agent ended, if not by itself and well, although what it left was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What its agent tried and was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// What it wrote that nobody had asked for: it was dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// Warnings: suspicious, and accepted all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What kept the agent's program to its folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}

/// What an agent used: tokens as it counted them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    /// By the contract's prices at that time; none if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// With what another run or answer used.
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
    pub fn new(attempt: &str, job: &Job, ruling: Ruling) -> AttemptNote {
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

/// A note with its place in the journal and what the commit did.
#[derive(Debug, Clone, Serialize)]
pub struct AttemptFact {
    pub seq: u64,
    pub at: String,
    pub note: AttemptNote,
    pub files: Vec<NotedFile>,
}

impl AttemptFact {
    /// The fact in a record, if its note is one of a flow.
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
