//! The outcome of an agent's turn, and the events reported during it.
//!
//! `Ending::Finished` means that the agent reports success. The caller judges whether its work
//! exists and is correct.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The result of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub ending: Ending,
    /// The agent's last message, if it can be separated from the rest of the output.
    pub final_message: Option<String>,
    pub usage: Usage,
    /// Denied attempts, in the order of the first try.
    pub denied: Vec<Attempt>,
    /// The mechanism that confined the agent to its folders.
    pub confinement: Confinement,
    /// Processes that the agent left running and that were ended.
    pub left_behind: Vec<String>,
    /// The path of the transcript, in JSON lines.
    pub transcript: PathBuf,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum Ending {
    /// The agent ended its turn by itself.
    Finished { exit: Option<i32> },
    /// The deadline passed; every process it started was ended.
    Deadline,
    /// The caller stopped it.
    Stopped,
    /// The agent did not start.
    NotStarted { why: String },
    /// The model's server, or the host, refused: credentials, permissions, quota, an invalid
    /// request.
    Refused { status: Option<u16>, why: String },
    /// The program or its answer ended in a way that cannot be used.
    Broken { why: String },
    /// The output exceeded a bound, or the answer was cut at a limit.
    TooLong { what: String },
}

impl Ending {
    /// Whether the agent ended its turn by itself, without a sign of failure.
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
            Ending::Broken { why } => write!(f, "stopped early: {why}"),
            Ending::TooLong { what } => write!(f, "too long: {what}"),
        }
    }
}

/// Token counts reported by the agent or its server. `None` is unknown, not zero.
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

/// Access that the agent tried and was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The operation: `read`, `write`, `make`, `remove`, `rename`, `link`, `run`, `list`,
    /// `connect`, or a tool's name.
    pub act: String,
    /// The path as the program gave it, made absolute if its folder was known.
    pub path: String,
    /// The target of that path, if it goes through a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// The short name of the program that tried.
    pub program: String,
    /// The refusing side: `kernel`, or `adapter` for a tool call.
    pub by: String,
    /// Number of tries.
    pub times: u64,
}

/// The mechanism that confined the agent's program to its folders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum Confinement {
    /// The kernel refused everything else. `observed` says whether refusals are in the record.
    Kernel { abi: i32, observed: bool },
    /// The kernel could not confine the program. Only the collected files can be verified.
    VerificationOnly { why: String },
    /// The agent ran no program on this machine; it only had the adapter's tools.
    ToolsOnly,
    /// A person is not confined.
    Person,
}

/// Events reported while an agent works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// One line of progress.
    Progress(String),
    /// A failure that is retried. People should see it, because the wait may be long.
    Retry(String),
    /// Tokens used so far in this turn.
    Usage(Usage),
    /// An access was denied.
    Denied(Attempt),
}
