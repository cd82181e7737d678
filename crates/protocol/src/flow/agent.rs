//! The interface to agents: an external agent, a person, a rehearsal agent, a script.
//!
//! An agent reads the view folder and writes the out folder; it uses nothing else of the project.
//! Its own statements are not trusted: only its outputs are checked.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_contract::AgentKind;
use serde_json::Value;

use super::job::{Job, Output};
use super::note::Usage;

/// A stop flag, shared by all threads that may set or check it.
#[derive(Debug, Clone, Default)]
pub struct Stop(pub Arc<AtomicBool>);

impl Stop {
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The task for an agent.
#[derive(Debug, Clone)]
pub struct Task {
    /// The id of the attempt: the name of its folder in `.quipu/attempts/`.
    pub attempt: String,
    pub job: Job,
    pub role: String,
    pub kind: AgentKind,
    /// The prompt for an agent that reads files.
    pub brief: String,
    /// The prompt including the contents of the view, for an agent that cannot read files.
    pub inline: String,
    /// The files that the role may see, under their project paths.
    pub view: PathBuf,
    /// The folder for outputs, under the same paths. Files that were sent back or salvaged are
    /// already there.
    pub out: PathBuf,
    pub outputs: Vec<Output>,
    /// The questions that the role may put: `ask`, `check`.
    pub questions: Vec<String>,
    pub deadline: Duration,
    /// The folder for a transcript.
    pub record: PathBuf,
    pub stop: Stop,
    /// The project root. The agent must see none of it except the view.
    pub root: PathBuf,
}

/// The ending, as reported by the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Done,
    Failed(String),
    /// It exceeded its time and was stopped.
    Overdue,
    /// A stop was requested.
    Stopped,
}

/// The result of an agent.
#[derive(Debug, Clone)]
pub struct Ended {
    pub ending: Ending,
    /// The final message. For agents that cannot write files, it is the file itself.
    pub message: Option<String>,
    pub usage: Option<Usage>,
    /// Accesses refused by the sandbox.
    pub denied: Vec<String>,
    /// The mechanism that confined it to its folders; None if confinement was not needed.
    pub held_by: Option<String>,
}

impl Ended {
    pub fn done() -> Ended {
        Ended {
            ending: Ending::Done,
            message: None,
            usage: None,
            denied: Vec::new(),
            held_by: None,
        }
    }

    pub fn failed(why: impl Into<String>) -> Ended {
        Ended {
            ending: Ending::Failed(why.into()),
            ..Ended::done()
        }
    }
}

/// A report from a running agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentReport {
    /// One line about its progress.
    Progress(String),
    /// A failure that it retries.
    Retry(String),
    /// An access refused by the sandbox.
    Denied(String),
    /// No sandbox confines the agent, only the check of its outputs. Contains the reason.
    VerificationOnly(String),
}

/// The flow's callbacks while an agent works.
pub struct Watch<'w> {
    pub told: &'w (dyn Fn(AgentReport) + Sync),
    /// Answers a question of the agent, as far as its role may know the answer.
    pub answer: &'w (dyn Fn(&str, &Value) -> Result<String, String> + Sync),
    /// Checks the outputs. A fault goes back to the agent, in the same session if it has one.
    pub look: &'w mut dyn FnMut(&Ended) -> Option<String>,
}

/// Performs a job.
pub trait Agent: Sync {
    /// The name for prices and records.
    fn name(&self) -> &str;

    /// Performs the task, calls `look`, and continues while a fault is returned. The outputs are in
    /// the out folder.
    fn perform(&self, task: &Task, watch: Watch<'_>) -> Ended;
}
