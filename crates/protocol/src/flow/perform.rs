//! Whoever performs a turn: an agent behind an adapter, a person, a rehearsal, a script.
//!
//! A performer reads the view folder and writes the out folder; nothing else of the project concerns it. What it says
//! of itself is not believed: its outputs are looked at.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_contract::AgentKind;

use super::note::Usage;
use super::turn::{Output, Turn};

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
    /// The name of the run; its folder in `.quipu/runs/`.
    pub run: String,
    pub turn: Turn,
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
}

/// How it ended, by the performer's own word.
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
}

impl Ended {
    pub fn done() -> Ended {
        Ended { ending: Ending::Done, message: None, usage: None, denied: Vec::new() }
    }
}

/// Something that performs a turn.
pub trait Performer: Sync {
    /// The name under which it is priced and recorded.
    fn name(&self) -> &str;

    fn perform(&self, task: &Task) -> Ended;

    /// The same task once more: the outputs had this fault. What was written lies in the out folder.
    fn again(&self, task: &Task, fault: &str) -> Ended;
}
