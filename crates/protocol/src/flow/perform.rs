//! Whoever performs a job: an agent behind an adapter, a person, a rehearsal, a script.
//!
//! A agent reads the view folder and writes the out folder; nothing else of the project
//! concerns it. What it says of itself is not believed: its outputs are looked at.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_contract::AgentKind;

use super::job::{Job, Output};
use super::note::Usage;

/// Asks everyone to end. Shared by whoever may say so and whoever must listen.
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

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Task {
    /// The name of the run; its folder in `.quipu/attempts/`.
    pub attempt: String,
    pub job: Job,
    pub role: String,
    pub kind: AgentKind,
    /// The prompt, for an agent that reads files.
    pub brief: String,
    /// The prompt with the contents of the view, for one that does not.
    pub inline: String,
    /// What the role may see, under the paths of the project.
    pub view: PathBuf,
    /// Where outputs go, under the same paths. What is sent back or salvaged lies there already.
    pub out: PathBuf,
    pub outputs: Vec<Output>,
    pub deadline: Duration,
    /// Where a transcript may be left.
    pub record: PathBuf,
    pub stop: Stop,
    /// Everything of the project, which nothing but the view is to be seen of.
    pub root: PathBuf,
}

/// How it ended, by the agent's own word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Done,
    Failed(String),
    /// It ran out of time and was ended.
    Overdue,
    /// It was asked to stop.
    Stopped,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Ended {
    pub ending: Ending,
    /// The last thing it said: the file itself, for agents that cannot write.
    pub message: Option<String>,
    pub usage: Option<Usage>,
    /// What the sandbox refused.
    pub denied: Vec<String>,
    /// What kept it to its folders; none if nothing had to.
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

/// What is told while someone performs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// One line on what is going on.
    Progress(String),
    /// Something that the sandbox refused.
    Denied(String),
    /// Nothing but a look at the outputs keeps the agent to its folders, and why.
    VerificationOnly(String),
}

/// How the flow takes part while someone performs.
pub struct Watch<'w> {
    pub told: &'w (dyn Fn(Told) + Sync),
    /// Looks at what was written. A fault goes back to whoever wrote it, in the same session where
    /// there is one.
    pub look: &'w mut dyn FnMut(&Ended) -> Option<String>,
}

/// Something that performs a job.
pub trait Agent: Sync {
    /// The name under which it is priced and recorded.
    fn name(&self) -> &str;

    /// Performs, lets the work be looked at, and goes on for as long as a fault comes back. What
    /// was written lies in the out folder.
    fn perform(&self, task: &Task, watch: Watch<'_>) -> Ended;
}
