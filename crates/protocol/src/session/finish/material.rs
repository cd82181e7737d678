//! The material of a finish, merged from a text, a JSON file and flags.
//!
//! The module only parses and merges; the closers turn the material into edits.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::CLOSERS;
use crate::session::decisions::NewDecision;
use crate::session::error::WorkError;
use crate::session::state::Blocked;
use crate::session::todos::TodoMoves;

/// The material of a finish. Keys of other forms stay in `rest` for their closers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Material {
    /// Completed work.
    pub did: Vec<String>,
    /// The complete list of next steps.
    pub next: Vec<String>,
    pub task: Option<String>,
    pub phase: Option<String>,
    /// Unfinished work.
    pub in_progress: Option<String>,
    /// Notes to keep until they are removed.
    #[serde(deserialize_with = "texts")]
    pub notes: Vec<String>,
    /// Notes to remove, each by its number or by part of its text.
    #[serde(deserialize_with = "texts")]
    pub remove_notes: Vec<String>,
    /// People, external systems, dates: kept until they are removed.
    #[serde(deserialize_with = "texts")]
    pub facts: Vec<String>,
    #[serde(deserialize_with = "texts")]
    pub remove_facts: Vec<String>,
    pub blocked: Vec<Blocked>,
    pub unblocked: Vec<String>,
    /// Further values of the state, by JSON pointer.
    pub state: Map<String, Value>,
    pub decisions: Vec<NewDecision>,
    pub todos: TodoMoves,
    /// Unfinished sessions of other agents that this finish takes over.
    pub takes_over: Vec<String>,
    /// The reason for which the task is abandoned.
    pub abandon: Option<String>,
    /// Checklist items answered with "none".
    pub none: Vec<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Material {
    pub(crate) fn says_state(&self) -> bool {
        let lists = [
            &self.did,
            &self.next,
            &self.unblocked,
            &self.notes,
            &self.remove_notes,
            &self.facts,
            &self.remove_facts,
        ];
        let texts = [&self.task, &self.phase, &self.in_progress]
            .iter()
            .any(|t| t.is_some());
        texts
            || lists.iter().any(|list| !list.is_empty())
            || !self.blocked.is_empty()
            || !self.state.is_empty()
    }

    pub(crate) fn says_decisions(&self) -> bool {
        !self.decisions.is_empty()
    }

    pub(crate) fn says_todos(&self) -> bool {
        let moves = &self.todos;
        let named = [
            &moves.done,
            &moves.cancel,
            &moves.leave,
            &moves.start,
            &moves.unblock,
        ]
        .iter()
        .any(|list| !list.is_empty());
        named || !moves.block.is_empty() || !moves.add.is_empty() || moves.reviewed
    }

    /// Whether the material is empty.
    pub fn is_empty(&self) -> bool {
        let says = self.says_state()
            || self.says_decisions()
            || self.says_todos()
            || self.abandon.is_some();
        !says && self.none.is_empty() && self.rest.is_empty() && self.takes_over.is_empty()
    }

    pub(crate) fn says_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.rest.contains_key(*key))
    }

    /// Merges the flags into the file's material. For single values, the flags win.
    pub fn join(&mut self, flags: Material) {
        self.did.extend(flags.did);
        self.next.extend(flags.next);
        self.blocked.extend(flags.blocked);
        self.unblocked.extend(flags.unblocked);
        self.notes.extend(flags.notes);
        self.remove_notes.extend(flags.remove_notes);
        self.facts.extend(flags.facts);
        self.remove_facts.extend(flags.remove_facts);
        self.takes_over.extend(flags.takes_over);
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
        self.abandon = flags.abandon.or(self.abandon.take());
        let (mine, theirs) = (&mut self.todos, flags.todos);
        mine.done.extend(theirs.done);
        mine.cancel.extend(theirs.cancel);
        mine.leave.extend(theirs.leave);
        mine.block.extend(theirs.block);
        mine.start.extend(theirs.start);
        mine.unblock.extend(theirs.unblock);
        mine.comments.extend(theirs.comments);
        mine.add.extend(theirs.add);
        mine.reviewed |= theirs.reviewed;
    }
}

/// The keys available in every project.
const TYPED: &str = "did, next, task, phase, in_progress, notes, remove_notes, facts, remove_facts, blocked, unblocked, state, decisions, \
                     todos, takes_over, abandon, none";

/// Accepts a list of texts or a single text. A number refers to an entry by its number.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let found = match Value::deserialize(deserializer)? {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(text).collect(),
        other => text(&other).map(|text| vec![text]),
    };
    found.ok_or_else(|| serde::de::Error::custom("expected a text or a list of texts"))
}

/// Parses a material file. Unknown keys are an error, because their content would be lost.
pub fn parse_material(file: &str, text: &str) -> Result<Material, WorkError> {
    let known = || {
        CLOSERS
            .iter()
            .flat_map(|c| c.keys)
            .fold(TYPED.to_owned(), |list, key| format!("{list}, {key}"))
    };
    let material: Material = serde_json::from_str(text).map_err(|e| {
        WorkError::usage(
            format!("`{file}`, line {}: {e}", e.line()),
            format!("use an object with {}", known()),
        )
    })?;
    let is_read = |key: &String| CLOSERS.iter().any(|c| c.keys.contains(&key.as_str()));
    match material.rest.keys().find(|key| !is_read(key)) {
        Some(key) => Err(WorkError::usage(
            format!("`{file}`: unknown key `{key}`"),
            format!("known keys are {}", known()),
        )),
        None => Ok(material),
    }
}
