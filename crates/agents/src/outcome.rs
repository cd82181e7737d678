//! How an agent's turn ended, and what was seen of it on the way.
//!
//! `Ending::Finished` means that the agent says so. Whether its work is there and right is for the
//! caller to judge.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is known after a turn.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub ending: Ending,
    /// The last thing the agent said, where it can be told from the rest.
    pub final_message: Option<String>,
    pub usage: Usage,
    /// What the agent tried and was denied, in the order first tried.
    pub denied: Vec<Attempt>,
    /// What kept the agent to its folders.
    pub confinement: Confinement,
    /// Processes that the agent left behind and that were ended.
    pub left_behind: Vec<String>,
    /// What was said, in JSON lines.
    pub transcript: PathBuf,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum Ending {
    /// The agent ended its turn by itself.
    Finished { exit: Option<i32> },
    /// Time was up; everything it had started was ended.
    Deadline,
    /// The caller stopped it.
    Stopped,
    /// It never ran.
    NotStarted { why: String },
    /// The model's server, or the host before it, said no: credentials, rights, quota, a request it
    /// rejects.
    Refused { status: Option<u16>, why: String },
    /// It ended, or its answer ended, in a way that cannot be worked with.
    Broken { why: String },
    /// It produced more than the bounds allow, or its answer was cut at a limit.
    TooLong { what: String },
}

impl Ending {
    /// Whether the agent ended its turn by itself and nothing is known against it.
    pub fn is_finished(&self) -> bool {
        matches!(
            self,
            Ending::Finished {
                exit: None | Some(0)
            }
        )
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Finished {
                exit: None | Some(0),
            } => write!(f, "finished"),
            Ending::Finished { exit: Some(code) } => write!(f, "ended with exit code {code}"),
            Ending::Deadline => write!(f, "deadline passed"),
            Ending::Stopped => write!(f, "stopped"),
            Ending::NotStarted { why } => write!(f, "could not start: {why}"),
            Ending::Refused {
                status: Some(status),
                why,
            } => write!(f, "refused with status {status}: {why}"),
            Ending::Refused { status: None, why } => write!(f, "refused: {why}"),
            Ending::Broken { why } => write!(f, "broke off: {why}"),
            Ending::TooLong { what } => write!(f, "too long: {what}"),
        }
    }
}

/// Tokens, as far as the agent or its server told. `None` is unknown, not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    pub input: Option<u64>,
    pub output: Option<u64>,
}

impl Usage {
    /// Adds what another call used.
    pub fn add(&mut self, other: Usage) {
        let sum = |mine: Option<u64>, more: Option<u64>| match (mine, more) {
            (None, None) => None,
            (mine, more) => Some(mine.unwrap_or(0).saturating_add(more.unwrap_or(0))),
        };
        self.input = sum(self.input, other.input);
        self.output = sum(self.output, other.output);
    }
}

/// Something the agent tried and was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// What it wanted: `read`, `write`, `make`, `remove`, `rename`, `link`, `run`, `list`,
    /// `connect`, or a tool's name.
    pub act: String,
    /// The path as the program gave it, made absolute where its folder was known.
    pub path: String,
    /// Where that path leads, if through a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// The short name of the program that tried.
    pub program: String,
    /// Who said no: `kernel`, or `adapter` for a tool call.
    pub by: String,
    /// How often.
    pub times: u64,
}

/// What kept the agent's program to its folders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum Confinement {
    /// The kernel refused everything else. `observed` says whether refusals are in the record.
    Kernel { abi: i32, observed: bool },
    /// The kernel could not confine it. Only the collected files can be verified.
    VerificationOnly { why: String },
    /// No program of the agent's ran on this machine: its tools are those of the adapter.
    ToolsOnly,
    /// A person works where they please.
    Person,
}

/// What is told while an agent works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// One line on what is going on.
    Progress(String),
    /// Tokens used so far in this turn.
    Usage(Usage),
    /// Something was denied.
    Denied(Attempt),
}
