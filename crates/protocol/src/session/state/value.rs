//! Reads and changes single values of the state. An edit keeps the rest of the text as it is,
//! except `last_update`.

use quipu_contract::{Actor, Form, ProjectPath};
use quipu_store::{LeaseToken, Receipt};
use quipu_text::json::{JsonPointer, Shape, parse_json, remove_value, set_value};
use serde_json::Value;

use super::schema::check_state;
use crate::files::edit::{Draft, Terms, revise};
use crate::project::forms::resolve_form;
use crate::project::open::Project;
use crate::project::times::{now, render_moment};
use crate::session::error::WorkError;

/// The value at a pointer, or the whole state without one.
pub fn get_state(project: &Project, actor: &Actor, pointer: &str) -> Result<Value, WorkError> {
    let path = resolve_form(project, actor, Form::State)?;
    let pointer = parse_pointer(pointer)?;
    let text = Draft::new(project, actor).text(&path)?;
    let root = parse_json(&text).map_err(WorkError::in_file(&path))?;
    match root.at(&pointer) {
        Some(node) => Ok(node.to_value()),
        None => {
            let known = match root.at(&JsonPointer::default()).map(|n| &n.shape) {
                Some(Shape::Object(members)) => members
                    .iter()
                    .map(|m| format!("/{}", m.key))
                    .collect::<Vec<_>>()
                    .join(", "),
                _ => String::new(),
            };
            Err(WorkError::not_found(
                format!("`{path}` has nothing at `{pointer}`; its keys are {known}"),
                "quipu state get",
            ))
        }
    }
}

/// Sets the value at a pointer. Apart from `last_update`, all other bytes stay unchanged.
pub fn set_state(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    pointer: &str,
    value: &Value,
) -> Result<Receipt, WorkError> {
    let pointer = parse_pointer(pointer)?;
    if pointer.parts().is_empty() {
        return Err(WorkError::usage(
            "the whole state cannot be set at once",
            "quipu state merge",
        ));
    }
    change_state(
        project,
        actor,
        lease,
        format!("state set {pointer}"),
        |text| set_value(text, &pointer, value),
    )
}

/// Merges an object key by key (RFC 7396): `null` removes a key, lists are replaced.
pub fn merge_state(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    patch: &Value,
) -> Result<Receipt, WorkError> {
    let Value::Object(keys) = patch else {
        return Err(WorkError::usage(
            "only an object can be merged",
            "quipu state merge --text '{\"phase\": \"testing\"}'",
        ));
    };
    let named = keys.keys().cloned().collect::<Vec<_>>().join(", ");
    change_state(
        project,
        actor,
        lease,
        format!("state merge {named}"),
        |text| merge(text.to_owned(), &JsonPointer::default(), patch),
    )
}

fn merge(
    text: String,
    at: &JsonPointer,
    patch: &Value,
) -> Result<String, quipu_text::json::JsonError> {
    let Value::Object(keys) = patch else {
        return set_value(&text, at, patch);
    };
    let is_object = |text: &str| match parse_json(text) {
        Ok(root) => root
            .at(at)
            .is_some_and(|n| matches!(n.shape, Shape::Object(_))),
        Err(_) => false,
    };
    let mut text = text;
    if !text.trim().is_empty() && !is_object(&text) {
        text = set_value(&text, at, &Value::Object(serde_json::Map::new()))?;
    }
    for (key, value) in keys {
        let inner = at.child(key);
        text = match value {
            Value::Null if text.trim().is_empty() => text,
            Value::Null => remove_value(&text, &inner)?,
            value => merge(text, &inner, value)?,
        };
    }
    Ok(text)
}

fn change_state(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    why: String,
    edit: impl Fn(&str) -> Result<String, quipu_text::json::JsonError>,
) -> Result<Receipt, WorkError> {
    let path = resolve_form(project, actor, Form::State)?;
    let ((), receipt) = revise(project, actor, |draft| {
        let old = draft.text(&path)?;
        let new = edit(&old).map_err(|error| match parse_json(&old) {
            // The state is valid, so the caller's request is at fault.
            Ok(_) => WorkError::usage(
                format!("`{path}`, line {}: {}", error.line, error.what),
                "quipu state get     (prints the state)",
            ),
            Err(_) => WorkError::in_file(&path)(error),
        })?;
        refuse_bad_state(draft, &path, &new)?;
        let new = if new == old {
            new
        } else {
            stamped(project, &path, &old, &new)?
        };
        draft.replace(&path, new)?;
        Ok((
            (),
            Terms {
                why: why.clone(),
                lease: lease.cloned(),
                ends: None,
            },
        ))
    })?;
    Ok(receipt)
}

/// Refuses a value that the schema does not allow. This is not reported as a fault of the file,
/// because the new text was never written.
pub(super) fn refuse_bad_state(
    draft: &Draft<'_>,
    path: &ProjectPath,
    new: &str,
) -> Result<(), WorkError> {
    check_state(&draft.project.contract, path, new).map_err(|error| match error {
        WorkError::Malformed {
            what,
            allowed,
            line,
            ..
        } => WorkError::refused(
            format!("this would make `{path}` invalid: {what} (line {line})"),
            format!("allowed: {allowed}"),
        ),
        other => other,
    })
}

/// Updates `last_update`, if the state has one and the change did not set it.
fn stamped(
    project: &Project,
    path: &ProjectPath,
    old: &str,
    new: &str,
) -> Result<String, WorkError> {
    let pointer = JsonPointer::default().child("last_update");
    let read = |text: &str| {
        parse_json(text)
            .ok()
            .and_then(|root| root.at(&pointer).map(|n| n.to_value()))
    };
    match (read(old), read(new)) {
        (Some(before), Some(after)) if before == after => {
            set_value(new, &pointer, &render_moment(now(&project.store)).into())
                .map_err(WorkError::in_file(path))
        }
        _ => Ok(new.to_owned()),
    }
}

fn parse_pointer(text: &str) -> Result<JsonPointer, WorkError> {
    JsonPointer::parse(text)
        .map_err(|e| WorkError::usage(e.to_string(), "quipu state get /progress/next_steps"))
}
