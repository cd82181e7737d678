//! Hands out an order to a child, and hands it out again.
//!
//! An order is never rewritten: handing it out again appends a section to the same file. The file
//! and the state's list change in one commit.

use std::collections::BTreeMap;

use quipu_contract::{Actor, Form, Language, UnitId, check_one_line};
use quipu_store::{LeaseToken, Receipt};
use quipu_text::json::{JsonPointer, append_item, parse_json, set_value};
use serde_json::{Value, json};

use super::order::{load_delegation, names_a_file, pointer_of};
use crate::files::edit::{Draft, Terms, revise};
use crate::files::quote::{as_paragraph, headline};
use crate::files::read::{ReadError, may_read_whole, read_pointer};
use crate::project::forms::{label, resolve_form, resolve_unit_form};
use crate::project::ids::fresh_name;
use crate::project::library::Library;
use crate::project::open::Project;
use crate::project::template::render_template;
use crate::project::times::{now, parse_deadline, render_moment};
use crate::session::error::WorkError;
use crate::session::state::check_state;

/// An order to a child.
#[derive(Debug, Clone, Default)]
pub struct NewDelegation {
    pub id: Option<String>,
    pub task: String,
    pub expect: String,
    /// Pointers that the child may read: `path#section: why`.
    pub inputs: Vec<String>,
    /// A timestamp, a date, or a duration such as `2h`.
    pub deadline: Option<String>,
}

/// Hands an existing order to another child.
#[derive(Debug, Clone, Default)]
pub struct Again {
    pub id: String,
    pub why: Option<String>,
    pub deadline: Option<String>,
}

/// Used if the profile has no template.
const PLAIN: &str = "# {{ id }}\n\n## Task\n\n{{ task }}\n\n## Expected output\n\n{{ expect }}\n\n## Inputs\n\n{{ inputs }}\n\n## Deadline\n\n{{ deadline }}\n";

/// Creates the child's file and lists it in the state, in one commit.
pub fn delegate(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    new: &NewDelegation,
) -> Result<(String, Receipt), WorkError> {
    if new.task.trim().is_empty() || new.expect.trim().is_empty() {
        let remedy =
            "quipu delegate --task \"…\" --expect \"…\" [--input path#section] [--deadline 2h]";
        return Err(WorkError::usage(
            "a delegation needs a task and the expected result",
            remedy,
        ));
    }
    let moment = now(&project.store);
    let deadline = parse_until(new.deadline.as_deref(), moment)?;
    for input in &new.inputs {
        check_one_line("an input", input).map_err(|error| {
            WorkError::usage(error.to_string(), "--input path#section, once for each")
        })?;
        may_give(project, actor, input)?;
    }
    if let Some(id) = &new.id {
        UnitId::parse(id).map_err(|e| WorkError::usage(e.to_string(), "--id docs"))?;
    }
    revise(project, actor, |draft| {
        let is_there = |id: &str| {
            resolve_unit_form(project, Form::Delegation, id)
                .is_ok_and(|p| project.store.root().join(p.as_str()).exists())
        };
        if let Some(id) = &new.id {
            // Before anything is said of the file.
            let path = resolve_unit_form(project, Form::Delegation, id)?;
            may_read_whole(project, actor, &path)?;
        }
        let id = match &new.id {
            Some(id) if is_there(id) => {
                let remedy = format!("quipu delegate --again {id}; or use another --id");
                return Err(WorkError::refused(
                    format!("delegation `{id}` already exists: each subagent needs its own"),
                    remedy,
                ));
            }
            Some(id) => id.clone(),
            None => fresh_name("D", moment, is_there),
        };
        let path = resolve_unit_form(project, Form::Delegation, &id)?;
        let text = render_order(project, actor, &id, new, deadline.as_deref())?;
        draft.replace(&path, text)?;
        let entry =
            json!({"id": id, "task": headline(&new.task), "status": "open", "deadline": deadline});
        list_in_state(draft, |text| {
            append_item(text, &JsonPointer::default().child("delegations"), &entry)
        })?;
        let why = format!("delegate {id}: {}", headline(&new.task));
        Ok((
            id,
            Terms {
                why,
                lease: lease.cloned(),
                ends: None,
            },
        ))
    })
}

/// Hands an order out again: appends a section with the reason to its file.
pub fn delegate_again(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    again: &Again,
) -> Result<Receipt, WorkError> {
    let moment = now(&project.store);
    let deadline = parse_until(again.deadline.as_deref(), moment)?;
    if let Some(why) = &again.why {
        let remedy = format!("quipu delegate --again {} --why \"…\"", again.id);
        check_one_line("a reason", why)
            .map_err(|error| WorkError::usage(error.to_string(), remedy))?;
    }
    let ((), receipt) = revise(project, actor, |draft| {
        let order = load_delegation(project, actor, &again.id, moment)?;
        let path = resolve_unit_form(project, Form::Delegation, &again.id)?;
        let why = again.why.as_deref().unwrap_or(order.progress.as_str());
        let (at, by) = (render_moment(moment), label(actor));
        let text = match project.contract.language {
            Language::En => format!(
                "\n## Handed out again\n\n- At: {at}, by {by}\n- Why: {why}\n{}",
                deadline
                    .as_ref()
                    .map(|d| format!("- Deadline: {d}\n"))
                    .unwrap_or_default()
            ),
            Language::Zh => format!(
                "\n## 重新派出\n\n- 时间：{at}，由 {by}\n- 原因：{why}\n{}",
                deadline
                    .as_ref()
                    .map(|d| format!("- 期限：{d}\n"))
                    .unwrap_or_default()
            ),
        };
        draft.append(&path, &text)?;
        let (status, until) = (json!("open"), deadline.clone());
        set_in_state(draft, &again.id, |entry| {
            entry.insert("status".into(), status.clone());
            if let Some(until) = &until {
                entry.insert("deadline".into(), until.clone().into());
            }
        })?;
        Ok((
            (),
            Terms {
                why: format!("delegate again {}", again.id),
                lease: lease.cloned(),
                ends: None,
            },
        ))
    })?;
    Ok(receipt)
}

/// Checks that the parent may read each input that it gives to its child, whether the file exists
/// or not. Inputs that do not name a file of the project are passed on as text.
fn may_give(project: &Project, actor: &Actor, input: &str) -> Result<(), WorkError> {
    let pointer = pointer_of(input);
    match read_pointer(project, actor, pointer, None) {
        Err(denied @ (ReadError::Denied(_) | ReadError::OnlySections { .. }))
            if names_a_file(project, pointer) =>
        {
            Err(denied.into())
        }
        Err(ReadError::Store(error)) => Err(error.into()),
        _ => Ok(()),
    }
}

fn parse_until(text: Option<&str>, moment: jiff::Timestamp) -> Result<Option<String>, WorkError> {
    let Some(text) = text else { return Ok(None) };
    let found = parse_deadline(text, moment).map(render_moment);
    found.map(Some).ok_or_else(|| {
        WorkError::usage(
            format!("`{text}` is not a deadline"),
            "--deadline 2h, 3d or 2026-01-31T12:00:00Z",
        )
    })
}

fn render_order(
    project: &Project,
    actor: &Actor,
    id: &str,
    new: &NewDelegation,
    deadline: Option<&str>,
) -> Result<String, WorkError> {
    let contract = &project.contract;
    let rule = contract
        .of_form(Form::Delegation)
        .find(|r| r.path.variables().any(|h| h == "unit"));
    let named = rule.and_then(|rule| {
        let profile = rule.profile.as_ref()?;
        let file = contract.template_path(contract.language, rule.path.as_str());
        Some((
            Library::shown(profile, &file),
            project.library.read(profile, &file)?,
        ))
    });
    let (file, template) = named.unwrap_or_else(|| ("delegation".into(), PLAIN.into()));
    let none = if contract.language == Language::Zh {
        "无"
    } else {
        "none"
    };
    let inputs = new
        .inputs
        .iter()
        .map(|i| format!("- {i}\n"))
        .collect::<String>();
    let values: BTreeMap<&str, String> = [
        ("id", id.to_owned()),
        ("parent", label(actor)),
        ("task", as_paragraph(new.task.trim()).into_owned()),
        ("expect", as_paragraph(new.expect.trim()).into_owned()),
        (
            "inputs",
            if inputs.is_empty() {
                none.to_owned()
            } else {
                inputs.trim_end().to_owned()
            },
        ),
        ("deadline", deadline.unwrap_or(none).to_owned()),
    ]
    .into();
    Ok(render_template(&file, &template, &values)?)
}

/// Edits the state's list, if the project has a state file.
fn list_in_state(
    draft: &mut Draft<'_>,
    edit: impl Fn(&str) -> Result<String, quipu_text::json::JsonError>,
) -> Result<(), WorkError> {
    let Ok(path) = resolve_form(draft.project, draft.actor, Form::State) else {
        return Ok(());
    };
    let text = draft.text(&path)?;
    let text = edit(&text).map_err(WorkError::in_file(&path))?;
    check_state(&draft.project.contract, &path, &text)?;
    draft.replace(&path, text)
}

/// Edits one entry of the state's list. Does nothing if the entry is missing.
pub(super) fn set_in_state(
    draft: &mut Draft<'_>,
    id: &str,
    change: impl Fn(&mut serde_json::Map<String, Value>),
) -> Result<(), WorkError> {
    list_in_state(draft, |text| {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        let list = JsonPointer::default().child("delegations");
        let entries = parse_json(text)?
            .at(&list)
            .map(|n| n.to_value())
            .unwrap_or_default();
        let Some(index) = entries
            .as_array()
            .and_then(|e| e.iter().position(|e| e["id"].as_str() == Some(id)))
        else {
            return Ok(text.to_owned());
        };
        let Value::Object(old) = &entries[index] else {
            return Ok(text.to_owned());
        };
        let mut new = old.clone();
        change(&mut new);
        let at = list.child(index);
        new.iter()
            .filter(|(key, value)| old.get(*key) != Some(value))
            .try_fold(text.to_owned(), |text, (key, value)| {
                set_value(&text, &at.child(key), value)
            })
    })
}
