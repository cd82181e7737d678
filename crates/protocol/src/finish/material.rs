//! What is said at a finish: a JSON file, flags, or both.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::CLOSERS;
use crate::decisions::NewDecision;
use crate::state::Blocked;
use crate::todos::TodoMoves;
use crate::work::WorkError;

/// The material of a finish. Keys of forms beyond these stay in `rest` for their closers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Material {
    /// What was completed.
    pub did: Vec<String>,
    /// What comes next: the whole list.
    pub next: Vec<String>,
    pub task: Option<String>,
    pub phase: Option<String>,
    /// What is half done.
    pub in_progress: Option<String>,
    /// What one would tell a colleague in the doorway.
    pub notes: Option<String>,
    pub blocked: Vec<Blocked>,
    pub unblocked: Vec<String>,
    /// Further values of the state, by JSON pointer.
    pub state: Map<String, Value>,
    pub decisions: Vec<NewDecision>,
    pub todos: TodoMoves,
    /// Checklist items of which it is said that there is nothing.
    pub none: Vec<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Material {
    pub(crate) fn says_state(&self) -> bool {
        let lists = !self.did.is_empty() || !self.next.is_empty() || !self.blocked.is_empty() || !self.unblocked.is_empty();
        let texts = [&self.task, &self.phase, &self.in_progress, &self.notes].iter().any(|t| t.is_some());
        lists || texts || !self.state.is_empty()
    }

    pub(crate) fn says_decisions(&self) -> bool {
        !self.decisions.is_empty()
    }

    pub(crate) fn says_todos(&self) -> bool {
        let moves = &self.todos;
        let named = [&moves.done, &moves.cancel, &moves.leave].iter().any(|list| !list.is_empty());
        named || !moves.block.is_empty() || !moves.add.is_empty() || moves.reviewed
    }

    pub(crate) fn says_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.rest.contains_key(*key))
    }

    /// What the flags say, added to what the file says; of single values the flags hold.
    pub fn join(&mut self, flags: Material) {
        self.did.extend(flags.did);
        self.next.extend(flags.next);
        self.blocked.extend(flags.blocked);
        self.unblocked.extend(flags.unblocked);
        self.decisions.extend(flags.decisions);
        self.none.extend(flags.none);
        self.state.extend(flags.state);
        for (key, value) in flags.rest {
            match (self.rest.get_mut(&key), value) {
                (Some(Value::Array(mine)), Value::Array(more)) => mine.extend(more),
                (_, value) => drop(self.rest.insert(key, value)),
            }
        }
        self.task = flags.task.or(self.task.take());
        self.phase = flags.phase.or(self.phase.take());
        self.in_progress = flags.in_progress.or(self.in_progress.take());
        self.notes = flags.notes.or(self.notes.take());
        let (mine, theirs) = (&mut self.todos, flags.todos);
        mine.done.extend(theirs.done);
        mine.cancel.extend(theirs.cancel);
        mine.leave.extend(theirs.leave);
        mine.block.extend(theirs.block);
        mine.add.extend(theirs.add);
        mine.reviewed |= theirs.reviewed;
    }
}

/// The keys that every project's material may have.
const TYPED: &str = "did, next, task, phase, in_progress, notes, blocked, unblocked, state, decisions, todos, none";

/// Reads a file of material. A key that no one reads would be lost, so it is a fault.
pub fn parse_material(file: &str, text: &str) -> Result<Material, WorkError> {
    let known = || CLOSERS.iter().flat_map(|c| c.keys).fold(TYPED.to_owned(), |list, key| format!("{list}, {key}"));
    let material: Material = serde_json::from_str(text)
        .map_err(|e| WorkError::usage(format!("`{file}`, line {}: {e}", e.line()), format!("an object with {}", known())))?;
    let is_read = |key: &String| CLOSERS.iter().any(|c| c.keys.contains(&key.as_str()));
    match material.rest.keys().find(|key| !is_read(key)) {
        Some(key) => Err(WorkError::usage(format!("`{file}`: nothing reads `{key}`"), format!("known are {}", known()))),
        None => Ok(material),
    }
}
