//! What a finish does to the todos, and what it must not leave behind.

use std::collections::BTreeMap;

use quipu_contract::{Actor, Form};
use serde::{Deserialize, Serialize};

use super::list::{NewTodo, Status, Todo, Todos, parse_todos};
use super::moves::{Move, draft_move, draft_new, draft_review};
use crate::draft::Draft;
use crate::finish::{Closing, Closure};
use crate::forms::{label, resolve_form};
use crate::work::WorkError;

/// The todos part of what is said at a finish.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TodoMoves {
    pub done: Vec<String>,
    pub cancel: Vec<String>,
    /// Stays as it is, for the next session.
    pub leave: Vec<String>,
    /// Is begun, and goes on in the next session.
    pub start: Vec<String>,
    pub unblock: Vec<String>,
    /// What is said beside a todo that is done or cancelled, by its id.
    pub comments: BTreeMap<String, String>,
    pub block: Vec<TodoBlock>,
    pub add: Vec<NewTodo>,
    /// All of them were looked at.
    pub reviewed: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TodoBlock {
    pub id: String,
    pub reason: String,
}

impl From<(String, String)> for TodoBlock {
    fn from((id, reason): (String, String)) -> TodoBlock {
        TodoBlock { id, reason }
    }
}

/// This actor's items that are still in progress.
pub(crate) fn hanging<'t>(todos: &'t Todos, actor: &Actor) -> Vec<&'t Todo> {
    let mine = label(actor);
    let is_mine =
        |t: &&Todo| t.status == Status::InProgress && t.assignee.as_deref() == Some(mine.as_str());
    todos.todos.iter().filter(is_mine).collect()
}

/// Whether a todo is already where a step leads: a finish may repeat what was done during the
/// session.
fn is_there_already(todo: &Todo, step: &Move) -> bool {
    match step {
        Move::Done { .. } => todo.status == Status::Completed,
        Move::Cancel { .. } => todo.status == Status::Cancelled,
        Move::Start => todo.status == Status::InProgress,
        Move::Leave => todo.status != Status::InProgress,
        Move::Unblock => todo.status != Status::Blocked,
        Move::Block { .. } => false,
    }
}

pub(crate) fn close_todos(
    draft: &mut Draft<'_>,
    closing: &Closing<'_>,
) -> Result<Closure, WorkError> {
    let path = resolve_form(draft.project, draft.actor, Form::Todos)?;
    let said = &closing.material.todos;
    let comment = |id: &String| said.comments.get(id).cloned();
    let steps = (said.unblock.iter().map(|id| (id, Move::Unblock)))
        .chain(
            said.done
                .iter()
                .map(|id| (id, Move::Done { note: comment(id) })),
        )
        .chain(said.cancel.iter().map(|id| {
            (
                id,
                Move::Cancel {
                    reason: comment(id),
                },
            )
        }))
        .chain(said.start.iter().map(|id| (id, Move::Start)))
        .chain(
            said.leave
                .iter()
                .chain(&said.start)
                .map(|id| (id, Move::Leave)),
        )
        .chain(said.block.iter().map(|b| {
            (
                &b.id,
                Move::Block {
                    reason: b.reason.clone(),
                    by: Vec::new(),
                },
            )
        }));
    for (id, step) in steps {
        let todos = parse_todos(&path, &draft.text(&path)?)?;
        if !is_there_already(todos.find(id, draft.project.contract.language)?, &step) {
            draft_move(draft, &path, id, &step)?;
        }
    }
    if let Some(why) = &closing.abandoned {
        let text = draft.text(&path)?;
        let todos = parse_todos(&path, &text)?;
        for todo in hanging(&todos, draft.actor) {
            draft_move(
                draft,
                &path,
                &todo.id,
                &Move::Block {
                    reason: why.clone(),
                    by: Vec::new(),
                },
            )?;
        }
    }
    for new in &said.add {
        draft_new(draft, &path, new)?;
    }
    if said.reviewed {
        draft_review(draft, &path)?;
    }
    Ok(Closure::Left)
}
