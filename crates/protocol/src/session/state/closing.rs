//! Applies a finish to the state file.
//!
//! The new state must satisfy the schema (`schema.rs`), else the finish is refused.

use quipu_contract::{Form, in_one_line};
use quipu_text::json::{JsonPointer, append_item, parse_json, remove_value, set_value};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::lists::{List, edit_list};
use super::schema::{check_state, phases};
use super::value::refuse_bad_state;
use crate::files::edit::Draft;
use crate::project::forms::{label, resolve_form};
use crate::project::times::{now, render_moment};
use crate::session::error::WorkError;
use crate::session::finish::{Closing, Closure, may_write};

/// A blocked item and the reason.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocked {
    pub item: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub since: Option<String>,
}

pub(crate) fn close_state(
    draft: &mut Draft<'_>,
    closing: &Closing<'_>,
) -> Result<Closure, WorkError> {
    let path = resolve_form(draft.project, draft.actor, Form::State)?;
    let file = WorkError::in_file(&path);
    let said = closing.material;
    let old = draft.text(&path)?;
    let mut text = if old.trim().is_empty() {
        "{\n}\n".replace("{\n}", "{}")
    } else {
        old.clone()
    };
    let moment = render_moment(now(&draft.project.store));
    let at = |parts: &[&str]| {
        parts
            .iter()
            .fold(JsonPointer::default(), |pointer, part| pointer.child(part))
    };
    let task = current_text(&text, &at(&["current_task"]));
    check_phase(draft, said.phase.as_deref())?;
    let plain = [
        (at(&["phase"]), &said.phase),
        (at(&["current_task"]), &said.task),
    ];
    for (pointer, value) in plain {
        if let Some(value) = value {
            text = set_value(&text, &pointer, &value.clone().into()).map_err(&file)?;
        }
    }
    for did in &said.did {
        text = append_item(&text, &at(&["progress", "completed"]), &did.clone().into())
            .map_err(&file)?;
    }
    if !said.next.is_empty() || said.none.iter().any(|name| name == "next") {
        let mut dropped = next_steps(&text);
        dropped.retain(|step| !said.next.contains(step) && !said.did.contains(step));
        draft.dropped_steps = dropped;
        text = set_value(
            &text,
            &at(&["progress", "next_steps"]),
            &said.next.clone().into(),
        )
        .map_err(&file)?;
    }
    // A finish that lists completed work but no work in progress leaves nothing in progress.
    let in_progress = said
        .in_progress
        .clone()
        .or((!said.did.is_empty() || closing.abandoned.is_some()).then(String::new));
    if let Some(in_progress) = in_progress {
        text = set_value(
            &text,
            &at(&["progress", "in_progress"]),
            &in_progress.into(),
        )
        .map_err(&file)?;
    }
    let mut blocks = said.blocked.clone();
    if let Some(why) = &closing.abandoned {
        let item = task
            .filter(|t| !t.is_empty())
            .unwrap_or_else(|| label(draft.actor));
        blocks.push(Blocked {
            item,
            reason: why.clone(),
            since: None,
        });
    }
    for block in blocks {
        let since = block.since.unwrap_or_else(|| moment.clone());
        let value = json!({"item": block.item, "reason": block.reason, "since": since});
        text = append_item(&text, &at(&["progress", "blocked"]), &value).map_err(&file)?;
    }
    for item in &said.unblocked {
        text = unblock(&text, &at(&["progress", "blocked"]), item)
            .map_err(&file)?
            .ok_or_else(|| {
                WorkError::not_found(
                    format!("no blocked item `{item}`"),
                    "quipu state get /progress/blocked",
                )
            })?;
    }
    text = edit_list(&path, text, List::Notes, &said.remove_notes, &said.notes)?;
    text = edit_list(&path, text, List::Facts, &said.remove_facts, &said.facts)?;
    for (pointer, value) in &said.state {
        let pointer = JsonPointer::parse(pointer)
            .map_err(|e| WorkError::usage(e.to_string(), "--state /notes=…"))?;
        text = set_value(&text, &pointer, value).map_err(&file)?;
    }
    // Update the timestamps only if the session changed the state.
    if text != old || closing.has_changed(draft, &path)? {
        text = set_value(&text, &at(&["last_update"]), &moment.into()).map_err(&file)?;
        let session = closing
            .session
            .map_or_else(|| label(draft.actor), |s| s.id.clone());
        text = remove_value(&text, &at(&["session_id"])).map_err(&file)?;
        text = set_value(&text, &at(&["last_session"]), &session.into()).map_err(&file)?;
    }
    if text != old {
        // If the state was valid before, the finish is at fault, not an earlier edit by hand.
        let was_sound = check_state(&draft.project.contract, &path, &old).is_ok();
        if was_sound {
            refuse_bad_state(draft, &path, &text)?
        } else {
            check_state(&draft.project.contract, &path, &text)?
        }
        draft.replace(&path, text)?;
    }
    Ok(Closure::Left)
}

fn next_steps(text: &str) -> Vec<String> {
    let steps = JsonPointer::default().child("progress").child("next_steps");
    let root = parse_json(text).ok();
    let items = root.as_ref().and_then(|root| root.at(&steps));
    items
        .map(|steps| steps.items())
        .unwrap_or_default()
        .iter()
        .filter_map(|step| step.to_value().as_str().map(str::to_owned))
        .collect()
}

/// Adds lines to the completed work.
pub(crate) fn add_completed(draft: &mut Draft<'_>, lines: &[String]) -> Result<(), WorkError> {
    let path = resolve_form(draft.project, draft.actor, Form::State)?;
    let old = draft.text(&path)?;
    let mut text = if old.trim().is_empty() {
        "{}\n".to_owned()
    } else {
        old
    };
    let completed = JsonPointer::default().child("progress").child("completed");
    for line in lines {
        text = append_item(&text, &completed, &line.clone().into())
            .map_err(WorkError::in_file(&path))?;
    }
    draft.replace(&path, text)
}

/// Removes next steps that only name a todo that is now closed: by its id among the first words, or
/// by its title.
pub(crate) fn drop_next_steps(
    draft: &mut Draft<'_>,
    names: &[&str],
    title: &str,
) -> Result<(), WorkError> {
    /// In `Finish k7q2m: wire the reader in`, the todo's id is within this many words.
    const FIRST_WORDS: usize = 3;
    if !may_write(draft.project, draft.actor, Form::State) {
        return Ok(());
    }
    // An unreadable state is reported where it is used.
    let Ok(path) = resolve_form(draft.project, draft.actor, Form::State) else {
        return Ok(());
    };
    let Ok(mut text) = draft.text(&path) else {
        return Ok(());
    };
    let Ok(root) = parse_json(&text) else {
        return Ok(());
    };
    let steps = JsonPointer::default().child("progress").child("next_steps");
    let is_about = |step: &str| {
        let is_name =
            |word: &str| names.contains(&word.trim_matches(|c: char| !c.is_alphanumeric()));
        let is_title = step
            .trim()
            .trim_end_matches(['.', '。'])
            .eq_ignore_ascii_case(title.trim());
        is_title || step.split_whitespace().take(FIRST_WORDS).any(is_name)
    };
    let all: Vec<Value> = root
        .at(&steps)
        .map(|node| node.items().iter().map(|item| item.to_value()).collect())
        .unwrap_or_default();
    let closed =
        |(index, step): (usize, &Value)| step.as_str().is_some_and(is_about).then_some(index);
    let gone: Vec<usize> = all.iter().enumerate().filter_map(closed).collect();
    for index in gone.iter().rev() {
        text = remove_value(&text, &steps.child(index)).map_err(WorkError::in_file(&path))?;
    }
    if gone.is_empty() {
        Ok(())
    } else {
        draft.replace(&path, text)
    }
}

/// Refuses an unknown phase as the caller's mistake, because the file itself is valid.
fn check_phase(draft: &Draft<'_>, said: Option<&str>) -> Result<(), WorkError> {
    let known = phases(&draft.project.contract);
    match said {
        Some(phase)
            if !known.is_empty() && !phase.is_empty() && !known.iter().any(|p| p == phase) =>
        {
            let allowed = known
                .iter()
                .map(|phase| format!("--phase {phase}"))
                .collect::<Vec<_>>()
                .join(", ");
            Err(WorkError::usage(
                format!("`--phase {}`: unknown phase", in_one_line(phase)),
                format!("use one of {allowed}"),
            ))
        }
        _ => Ok(()),
    }
}

fn current_text(text: &str, pointer: &JsonPointer) -> Option<String> {
    match parse_json(text).ok()?.at(pointer)?.to_value() {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Removes a blocked item by name. None if there is no such item.
fn unblock(
    text: &str,
    list: &JsonPointer,
    item: &str,
) -> Result<Option<String>, quipu_text::json::JsonError> {
    let root = parse_json(text)?;
    let blocks = root.at(list).map(|n| n.items()).unwrap_or_default();
    let name = |block: &Value| {
        block
            .as_str()
            .or(block["item"].as_str())
            .unwrap_or_default()
            .trim()
            .to_lowercase()
    };
    let asked = item.trim().to_lowercase();
    match blocks.iter().position(|b| name(&b.to_value()) == asked) {
        Some(index) => remove_value(text, &list.child(index)).map(Some),
        None => Ok(None),
    }
}
