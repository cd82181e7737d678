//! Scenes: the variants of `quipu start`, and the paragraphs that each shows.

use serde::{Deserialize, Serialize};

use crate::fault::Place;
use crate::language::Localized;

/// A variant of `quipu start`.
#[derive(Debug, Clone, Serialize)]
pub struct Scene {
    pub name: String,
    /// The role of the scene. A caller in that role gets this scene by default.
    pub role: Option<String>,
    pub show: Vec<Paragraph>,
    /// The next steps, in the order of the profiles, each for the role of its profile's scene.
    pub next: Vec<Next>,
    pub place: Place,
}

/// A next step suggested by a profile.
#[derive(Debug, Clone, Serialize)]
pub struct Next {
    pub role: Option<String>,
    pub when: Moment,
    pub text: Localized,
    /// A shorter form, for a small budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<Localized>,
}

/// When a step applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    #[default]
    Always,
    /// A session was started and not finished.
    Unfinished,
    /// The last review of the todos is older than the contract allows.
    ReviewDue,
    /// There are delegations that are not settled.
    Delegations,
    /// There is no unfinished session, no open todo and no next step.
    NothingOpen,
}

impl Scene {
    /// Appends another profile's part of the same scene.
    pub(crate) fn join(&mut self, other: Scene) {
        self.role = self.role.take().or(other.role);
        let new: Vec<Paragraph> = other
            .show
            .into_iter()
            .filter(|p| !self.show.contains(p))
            .collect();
        self.show.extend(new);
        self.next.extend(other.next);
    }
}

/// A section of the start text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Paragraph {
    /// The identity of the project: files of the form `identity`.
    Identity,
    /// The current state.
    State,
    /// Sessions that were started and never finished.
    Unfinished,
    /// Changes by others since the agent's last session.
    Others,
    /// The open todos, by priority.
    Todos,
    /// Decisions in force, newest first.
    Decisions,
    /// Facts about people, external systems and dates.
    Facts,
    /// Notes, which are shown until they are removed.
    Notes,
    /// Delegations and their status.
    Delegations,
    /// The delegation of this subagent.
    Delegation,
    /// The shared world state.
    World,
    /// The knowledge of this agent.
    Knowledge,
    /// This agent's current task.
    Task,
    /// Patterns and past sessions that match the current task.
    Matches,
    /// The newest sessions.
    Sessions,
    /// The progress of a flow: what waits for a person, what failed, what comes next.
    Flow,
    /// Story threads that are due.
    Threads,
    /// The path and first line of each file.
    Index,
    /// The messages of the last finishes, if no file stores them.
    Finished,
}

impl Paragraph {
    pub const ALL: [Paragraph; 19] = [
        Paragraph::Identity,
        Paragraph::State,
        Paragraph::Unfinished,
        Paragraph::Others,
        Paragraph::Todos,
        Paragraph::Decisions,
        Paragraph::Facts,
        Paragraph::Notes,
        Paragraph::Delegations,
        Paragraph::Delegation,
        Paragraph::World,
        Paragraph::Knowledge,
        Paragraph::Task,
        Paragraph::Matches,
        Paragraph::Sessions,
        Paragraph::Flow,
        Paragraph::Threads,
        Paragraph::Index,
        Paragraph::Finished,
    ];

    /// The name in the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Paragraph::Identity => "identity",
            Paragraph::State => "state",
            Paragraph::Unfinished => "unfinished",
            Paragraph::Others => "others",
            Paragraph::Todos => "todos",
            Paragraph::Decisions => "decisions",
            Paragraph::Facts => "facts",
            Paragraph::Notes => "notes",
            Paragraph::Delegations => "delegations",
            Paragraph::Delegation => "delegation",
            Paragraph::World => "world",
            Paragraph::Knowledge => "knowledge",
            Paragraph::Task => "task",
            Paragraph::Matches => "matches",
            Paragraph::Sessions => "sessions",
            Paragraph::Flow => "flow",
            Paragraph::Threads => "threads",
            Paragraph::Index => "index",
            Paragraph::Finished => "finished",
        }
    }
}
