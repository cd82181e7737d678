//! Applies a finish to the todos, and finds todos that it must not leave in progress.
//!
//! `moves.rs` applies the transitions.

use std::collections::BTreeMap;

use quipu_contract::{Actor, Form, ProjectPath};
use serde::{Deserialize, Serialize};

use super::list::{NewTodo, Status, Todo, Todos, parse_todos};
use super::moves::{Move, draft_move, draft_new, draft_note, draft_review};
use crate::files::edit::Draft;
use crate::project::forms::{label, resolve_form};
use crate::project::ids::find_name;
use crate::session::error::WorkError;
use crate::session::finish::{Closing, Closure};

/// The todo part of a finish.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TodoMoves {
    pub done: Vec<String>,
    pub cancel: Vec<String>,
    /// Left in progress, with their owners, for the next session.
    pub leave: Vec<String>,
    /// Begun, and continued in the next session.
    pub start: Vec<String>,
    pub unblock: Vec<String>,
    /// Comments on todos that are named here, by id.
    pub comments: BTreeMap<String, String>,
    pub block: Vec<TodoBlock>,
    pub add: Vec<NewTodo>,
    /// All todos were reviewed.
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

/// This actor's todos that are still in progress.
pub(crate) fn hanging<'t>(todos: &'t Todos, actor: &Actor) -> Vec<&'t Todo> {
    let mine = label(actor);
    let is_mine =
        |t: &&Todo| t.status == Status::InProgress && t.assignee.as_deref() == Some(mine.as_str());
    todos.todos.iter().filter(is_mine).collect()
}

/// This actor's todos in progress that a finish has to settle: those that it does not leave, if the
/// list changed since the session began. Todos that an earlier finish left are not asked for again
/// by a session that changes none.
pub(crate) fn unsettled<'t>(
    draft: &Draft<'_>,
    closing: &Closing<'_>,
    path: &ProjectPath,
    todos: &'t Todos,
) -> Result<Vec<&'t Todo>, WorkError> {
    if closing.session.is_some() && !closing.has_changed(draft, path)? {
        return Ok(Vec::new());
    }
    let said = &closing.material.todos;
    let ids = || todos.todos.iter().map(|todo| todo.id.as_str());
    let kept: Vec<&str> = (said.leave.iter().chain(&said.start))
        .filter_map(|id| find_name(ids(), id))
        .collect();
    let mut open = hanging(todos, draft.actor);
    open.retain(|todo| !kept.contains(&todo.id.as_str()));
    Ok(open)
}

/// Whether a todo already has the status that a step leads to. A finish may repeat steps of the
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
    // A comment on a completed or cancelled todo is part of its step.
    let others = [&said.start, &said.leave, &said.unblock];
    for id in others.into_iter().flatten() {
        if let Some(note) = comment(id) {
            draft_note(draft, &path, id, &note)?;
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
