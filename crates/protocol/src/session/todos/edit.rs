//! Edits the texts of a todo: title, description, priority, and progress notes.
//!
//! Status changes are in `moves.rs`.

use quipu_contract::{Actor, Form, check_one_line};
use quipu_store::{LeaseToken, Receipt};
use quipu_text::json::set_value;

use super::list::{Priority, Todo, parse_todos};
use super::moves::{add_note, pointer};
use crate::files::edit::{Terms, revise};
use crate::project::forms::resolve_form;
use crate::project::open::Project;
use crate::project::times::{now, render_moment};
use crate::session::error::{WorkError, in_language};

/// The fields to change; others stay unchanged.
#[derive(Debug, Clone, Default)]
pub struct TodoEdit {
    pub title: Option<String>,
    pub description: Option<String>,
    pub priority: Option<Priority>,
    /// Appended to the notes, with the date.
    pub note: Option<String>,
}

/// Edits the texts of a todo in any status.
pub fn edit_todo(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    asked: &str,
    edit: &TodoEdit,
) -> Result<(Todo, Receipt), WorkError> {
    let language = project.contract.language;
    let help =
        format!("quipu todo edit {asked} --note \"…\"     (--title, --description, --priority)");
    if edit.title.is_none()
        && edit.description.is_none()
        && edit.priority.is_none()
        && edit.note.is_none()
    {
        return Err(WorkError::usage(
            in_language(language, "nothing to change", "没有要修改的内容"),
            help,
        ));
    }
    if let Some(title) = &edit.title {
        if title.trim().is_empty() {
            return Err(WorkError::usage(
                in_language(language, "a todo needs a title", "待办需要标题"),
                help,
            ));
        }
        check_one_line("a title", title)
            .map_err(|error| WorkError::usage(error.to_string(), help.clone()))?;
    }
    let path = resolve_form(project, actor, Form::Todos)?;
    revise(project, actor, |draft| {
        let mut text = draft.text(&path)?;
        let todo = parse_todos(&path, &text)?.find(asked, language)?.clone();
        let moment = render_moment(now(&project.store));
        let at = pointer(&["todos"]).child(todo.index);
        let fields = [
            (
                "title",
                edit.title.as_ref().map(|title| title.trim().to_owned()),
            ),
            ("description", edit.description.clone()),
            (
                "priority",
                edit.priority.map(|priority| priority.as_str().to_owned()),
            ),
            ("updated", Some(moment.clone())),
        ];
        let file = WorkError::in_file(&path);
        for (key, value) in fields {
            if let Some(value) = value {
                text = set_value(&text, &at.child(key), &value.into()).map_err(&file)?;
            }
        }
        if let Some(note) = &edit.note {
            text = add_note(
                &text,
                &at.child("notes"),
                &format!("{} {}", &moment[..10], note.trim()),
            )
            .map_err(&file)?;
        }
        let edited = parse_todos(&path, &text)?.todos.swap_remove(todo.index);
        draft.replace(&path, text)?;
        let why = format!("todo edit {}: {}", edited.id, edited.title);
        Ok((
            edited,
            Terms {
                why,
                lease: lease.cloned(),
                ends: None,
            },
        ))
    })
}
