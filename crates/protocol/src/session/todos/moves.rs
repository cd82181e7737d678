//! Changes the todo list: adds items and applies status transitions.
//!
//! A transition that the current status does not allow is refused. Unknown fields stay unchanged.

use quipu_contract::{Actor, Form, Language, ProjectPath, check_one_line};
use quipu_store::{LeaseToken, Receipt};
use quipu_text::json::{JsonPointer, append_item, parse_json, remove_value, set_value};
use serde_json::{Map, Value, json};

use super::list::{LATER, NewTodo, Status, Todo, parse_todos};
use crate::files::edit::{Draft, Made, Terms, revise};
use crate::project::forms::{label, resolve_form};
use crate::project::ids::{fresh_name, short_name};
use crate::project::open::Project;
use crate::project::times::{now, parse_moment, render_moment};
use crate::session::error::{WorkError, in_language};
use crate::session::state::drop_next_steps;

/// A transition of a todo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    Start,
    Block {
        reason: String,
        by: Vec<String>,
    },
    Unblock,
    Done {
        note: Option<String>,
    },
    Cancel {
        reason: Option<String>,
    },
    /// Stays in progress with its owner, for the next session.
    Leave,
}

impl Move {
    const fn verb(&self) -> &'static str {
        match self {
            Move::Start => "start",
            Move::Block { .. } => "block",
            Move::Unblock => "unblock",
            Move::Done { .. } => "done",
            Move::Cancel { .. } => "cancel",
            Move::Leave => "leave",
        }
    }

    const fn leads_to(&self) -> Status {
        match self {
            Move::Start | Move::Leave => Status::InProgress,
            Move::Block { .. } => Status::Blocked,
            Move::Unblock => Status::Pending,
            Move::Done { .. } => Status::Completed,
            Move::Cancel { .. } => Status::Cancelled,
        }
    }
}

/// The transitions that a status allows.
const fn legal(status: Status) -> &'static [&'static str] {
    match status {
        Status::Pending => &["start", "done", "block", "cancel"],
        Status::InProgress => &["done", "block", "cancel"],
        Status::Blocked => &["unblock", "start", "done", "cancel"],
        Status::Completed => &["cancel"],
        Status::Cancelled => &[],
    }
}

fn check_move(todo: &Todo, step: &Move, language: Language) -> Result<(), WorkError> {
    let allowed = legal(todo.status);
    if allowed.contains(&step.verb()) || (*step == Move::Leave && todo.status == Status::InProgress)
    {
        return Ok(());
    }
    let (verb, id, status) = (step.verb(), &todo.id, todo.status.as_str());
    let what = in_language(
        language,
        format!("cannot `{verb}` todo `{id}`: it is {status}"),
        format!("不能对待办 `{id}` 执行 `{verb}`：它是 {status}"),
    );
    let command = |verb: &&str| {
        let reason = if *verb == "block" {
            " --reason \"…\""
        } else {
            ""
        };
        format!("quipu todo {verb} {}{reason}", todo.id)
    };
    let remedy = match allowed {
        [] => {
            let why = in_language(
                language,
                "a cancelled todo cannot be reopened",
                "已取消的待办不能重新打开",
            );
            format!("quipu todo add \"…\"     ({why})")
        }
        allowed => allowed
            .iter()
            .map(command)
            .collect::<Vec<_>>()
            .join("; or "),
    };
    Err(WorkError::refused(what, remedy))
}

/// Adds a todo and returns its id.
pub fn add_todo(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    new: &NewTodo,
) -> Result<(String, Receipt), WorkError> {
    let path = resolve_form(project, actor, Form::Todos)?;
    revise(project, actor, |draft| {
        let id = draft_new(draft, &path, new)?;
        Ok((
            id.clone(),
            Terms {
                why: format!("todo add {id}: {}", new.title),
                lease: lease.cloned(),
                ends: None,
            },
        ))
    })
}

/// Applies a transition to a todo.
pub fn move_todo(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    asked: &str,
    step: &Move,
) -> Result<(Todo, Receipt), WorkError> {
    let path = resolve_form(project, actor, Form::Todos)?;
    revise(project, actor, |draft| {
        let todo = draft_move(draft, &path, asked, step)?;
        let why = format!("todo {} {}: {}", step.verb(), todo.id, todo.title);
        Ok((
            todo,
            Terms {
                why,
                lease: lease.cloned(),
                ends: None,
            },
        ))
    })
}

/// Records that all todos were reviewed.
pub fn review_todos(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
) -> Result<Receipt, WorkError> {
    let path = resolve_form(project, actor, Form::Todos)?;
    let ((), receipt) = revise(project, actor, |draft| {
        draft_review(draft, &path)?;
        Ok((
            (),
            Terms {
                why: "todo review".into(),
                lease: lease.cloned(),
                ends: None,
            },
        ))
    })?;
    Ok(receipt)
}

pub(super) fn draft_new(
    draft: &mut Draft<'_>,
    path: &ProjectPath,
    new: &NewTodo,
) -> Result<String, WorkError> {
    let text = draft.text(path)?;
    let list = parse_todos(path, &text)?;
    let (moment, language) = (now(&draft.project.store), draft.project.contract.language);
    let is_taken = |name: &str| list.todos.iter().any(|t| t.id == name);
    let id = match &new.id {
        Some(id) if is_taken(id) => {
            let what = in_language(
                language,
                format!("todo `{id}` already exists"),
                format!("待办 `{id}` 已经存在"),
            );
            return Err(WorkError::refused(what, format!("quipu todo show {id}")));
        }
        Some(id) if id.trim().is_empty() || id.chars().any(char::is_whitespace) => {
            let what = in_language(
                language,
                format!("`{id}` is not a valid id"),
                format!("`{id}` 不是有效编号：编号须为一个词"),
            );
            return Err(WorkError::usage(what, "--id TODO-7"));
        }
        Some(id) => id.clone(),
        None => fresh_name("TODO", moment, is_taken),
    };
    if new.title.trim().is_empty() {
        return Err(WorkError::usage(
            in_language(language, "a todo needs a title", "待办需要标题"),
            "quipu todo add \"…\"",
        ));
    }
    let fields = [
        ("a title", Some(&new.title)),
        ("an assignee", new.assignee.as_ref()),
        ("a category", new.category.as_ref()),
    ];
    let named = fields
        .into_iter()
        .filter_map(|(what, text)| Some((what, text?)));
    let lists = new
        .tags
        .iter()
        .map(|tag| ("a tag", tag))
        .chain(new.blocked_by.iter().map(|id| ("an id", id)));
    for (what, text) in named.chain(lists) {
        check_one_line(what, text).map_err(|error| {
            WorkError::usage(
                error.to_string(),
                "quipu todo add \"…\"     (more lines: --notes \"…\")",
            )
        })?;
    }
    if let Some(due) = new.due.as_ref().filter(|d| parse_moment(d).is_none()) {
        let what = in_language(
            language,
            format!("`{due}` is not a date or a time"),
            format!("`{due}` 不是日期或时间"),
        );
        return Err(WorkError::usage(
            what,
            "--due 2026-01-31     (or 2026-01-31T12:00:00Z)",
        ));
    }
    let mut item = Map::new();
    let mut put = |key: &str, value: Value| drop(item.insert(key.into(), value));
    put("id", id.clone().into());
    put("title", new.title.trim().into());
    let told = [
        ("description", &new.description),
        ("category", &new.category),
        ("due", &new.due),
        ("assignee", &new.assignee),
    ];
    if let Some(description) = &new.description {
        put("description", description.clone().into());
    }
    put("priority", new.priority.as_str().into());
    put("status", Status::Pending.as_str().into());
    for (key, value) in &told[1..] {
        if let Some(value) = value {
            put(key, value.clone().into());
        }
    }
    for (key, values) in [("tags", &new.tags), ("blocked_by", &new.blocked_by)] {
        if !values.is_empty() {
            put(key, values.clone().into());
        }
    }
    put("created", render_moment(moment).into());
    put("updated", Value::Null);
    put("notes", new.notes.clone().unwrap_or_default().into());
    let file = WorkError::in_file(path);
    let text = if text.trim().is_empty() {
        "{\n  \"todos\": []\n}\n".to_owned()
    } else {
        text
    };
    let text = append_item(&text, &pointer(&["todos"]), &Value::Object(item)).map_err(&file)?;
    let text = set_value(
        &text,
        &pointer(&["metadata", "total_created"]),
        &json!(list.total_created + 1),
    )
    .map_err(&file)?;
    draft.replace(path, text)?;
    draft.made.push(Made {
        form: Form::Todos,
        id: id.clone(),
        title: new.title.trim().to_owned(),
    });
    Ok(id)
}

pub(super) fn draft_move(
    draft: &mut Draft<'_>,
    path: &ProjectPath,
    asked: &str,
    step: &Move,
) -> Result<Todo, WorkError> {
    let mut text = draft.text(path)?;
    let list = parse_todos(path, &text)?;
    let language = draft.project.contract.language;
    let todo = list.find(asked, language)?.clone();
    check_move(&todo, step, language)?;
    let moment = render_moment(now(&draft.project.store));
    let at = pointer(&["todos"]).child(todo.index);
    let file = WorkError::in_file(path);
    let mut set = |key: &str, value: Value| {
        text = set_value(&text, &at.child(key), &value).map_err(&file)?;
        Ok::<(), WorkError>(())
    };
    set("status", step.leads_to().as_str().into())?;
    set("updated", moment.clone().into())?;
    match step {
        Move::Start => {
            set("assignee", label(draft.actor).into())?;
            // A started todo is no longer postponed.
            if todo.tags.iter().any(|tag| tag == LATER) {
                set(
                    "tags",
                    todo.tags
                        .iter()
                        .filter(|tag| *tag != LATER)
                        .cloned()
                        .collect::<Vec<_>>()
                        .into(),
                )?;
            }
        }
        Move::Done { .. } => set("completed_at", moment.clone().into())?,
        Move::Block { by, .. } if !by.is_empty() => set("blocked_by", by.clone().into())?,
        Move::Leave | Move::Unblock | Move::Block { .. } | Move::Cancel { .. } => {}
    }
    if todo.status == Status::Blocked && !todo.blocked_by.is_empty() {
        set("blocked_by", json!([]))?;
    }
    let note = match step {
        Move::Block { reason, .. } if reason.trim().is_empty() => {
            let what = in_language(language, "a block needs a reason", "阻塞需要写明原因");
            return Err(WorkError::usage(
                what,
                format!("quipu todo block {} --reason \"…\"", todo.id),
            ));
        }
        Move::Block { reason, .. } => Some(reason.clone()),
        Move::Done { note } => note.clone(),
        Move::Cancel { reason } => reason.clone(),
        Move::Start => earlier_owner(&todo, draft.actor).map(|owner| {
            in_language(
                language,
                format!("taken over from {owner}"),
                format!("接手自 {owner}"),
            )
        }),
        Move::Leave | Move::Unblock => None,
    };
    if let Some(note) = note {
        let line = format!(
            "{} {}: {}",
            &moment[..10],
            step.leads_to().as_str(),
            note.trim()
        );
        text = add_note(&text, &at.child("notes"), &line).map_err(&file)?;
    }
    if matches!(step, Move::Done { .. }) {
        text = set_value(
            &text,
            &pointer(&["metadata", "total_completed"]),
            &json!(list.total_completed + 1),
        )
        .map_err(&file)?;
    }
    // A completed todo that is cancelled no longer counts as completed.
    if todo.status == Status::Completed {
        text = remove_value(&text, &at.child("completed_at")).map_err(&file)?;
        let left = list.total_completed.saturating_sub(1);
        text = set_value(
            &text,
            &pointer(&["metadata", "total_completed"]),
            &json!(left),
        )
        .map_err(&file)?;
    }
    let moved = parse_todos(path, &text)?.todos.swap_remove(todo.index);
    draft.replace(path, text)?;
    if !moved.status.is_open() {
        let short = short_name(list.todos.iter().map(|t| t.id.as_str()), &moved.id);
        drop_next_steps(draft, &[moved.id.as_str(), short], &moved.title)?;
    }
    Ok(moved)
}

/// The owner whom somebody else replaces by starting a todo.
fn earlier_owner<'t>(todo: &'t Todo, actor: &Actor) -> Option<&'t str> {
    let owner = todo.assignee.as_deref().unwrap_or_default();
    (!owner.is_empty() && owner != label(actor)).then_some(owner)
}

/// Adds a dated note to a todo, whatever its status is.
pub(super) fn draft_note(
    draft: &mut Draft<'_>,
    path: &ProjectPath,
    asked: &str,
    note: &str,
) -> Result<(), WorkError> {
    let text = draft.text(path)?;
    let language = draft.project.contract.language;
    let index = parse_todos(path, &text)?.find(asked, language)?.index;
    let moment = render_moment(now(&draft.project.store));
    let at = pointer(&["todos"]).child(index).child("notes");
    let line = format!("{} {}", &moment[..10], note.trim());
    let text = add_note(&text, &at, &line).map_err(WorkError::in_file(path))?;
    draft.replace(path, text)
}

pub(super) fn draft_review(draft: &mut Draft<'_>, path: &ProjectPath) -> Result<(), WorkError> {
    let text = draft.text(path)?;
    parse_todos(path, &text)?;
    let file = WorkError::in_file(path);
    let text = if text.trim().is_empty() {
        "{\n  \"todos\": []\n}\n".to_owned()
    } else {
        text
    };
    let moment = render_moment(now(&draft.project.store));
    // Remove the older field, which would contradict the new one.
    let text = remove_value(&text, &pointer(&["last_review"])).map_err(&file)?;
    let text = set_value(
        &text,
        &pointer(&["metadata", "last_review"]),
        &moment.into(),
    )
    .map_err(&file)?;
    draft.replace(path, text)
}

/// Adds a line to the notes, which may be a text, a list or missing.
pub(super) fn add_note(
    text: &str,
    at: &JsonPointer,
    line: &str,
) -> Result<String, quipu_text::json::JsonError> {
    let old = parse_json(text)?.at(at).map(|n| n.to_value());
    match old {
        Some(Value::Array(_)) => append_item(text, at, &line.into()),
        Some(Value::String(old)) if !old.is_empty() => {
            set_value(text, at, &format!("{old}\n{line}").into())
        }
        _ => set_value(text, at, &line.into()),
    }
}

pub(super) fn pointer(parts: &[&str]) -> JsonPointer {
    parts
        .iter()
        .fold(JsonPointer::default(), |pointer, part| pointer.child(part))
}
