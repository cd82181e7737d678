//! What a finish writes into the state.

use quipu_contract::Form;
use quipu_text::json::{JsonPointer, append_item, parse_json, remove_value, set_value};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::schema::check_state;
use crate::draft::Draft;
use crate::finish::{Closing, Closure};
use crate::forms::{label, resolve_form};
use crate::moment::{now, render_moment};
use crate::work::WorkError;

/// Something that cannot go on, and why.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocked {
    pub item: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub since: Option<String>,
}

pub(crate) fn close_state(draft: &mut Draft<'_>, closing: &Closing<'_>) -> Result<Closure, WorkError> {
    let path = resolve_form(draft.project, draft.actor, Form::State)?;
    let file = WorkError::in_file(&path);
    let said = closing.material;
    let old = draft.text(&path)?;
    let mut text = if old.trim().is_empty() { "{\n}\n".replace("{\n}", "{}") } else { old.clone() };
    let moment = render_moment(now(&draft.project.store));
    let at = |parts: &[&str]| parts.iter().fold(JsonPointer::default(), |pointer, part| pointer.child(part));
    let task = current_text(&text, &at(&["current_task"]));
    let plain = [(at(&["phase"]), &said.phase), (at(&["current_task"]), &said.task), (at(&["notes"]), &said.notes)];
    for (pointer, value) in plain {
        if let Some(value) = value {
            text = set_value(&text, &pointer, &value.clone().into()).map_err(&file)?;
        }
    }
    for did in &said.did {
        text = append_item(&text, &at(&["progress", "completed"]), &did.clone().into()).map_err(&file)?;
    }
    if !said.next.is_empty() {
        text = set_value(&text, &at(&["progress", "next_steps"]), &said.next.clone().into()).map_err(&file)?;
    }
    // Whoever says what was done and not what is half done leaves nothing half done.
    let in_progress = said.in_progress.clone().or((!said.did.is_empty() || closing.abandoned.is_some()).then(String::new));
    if let Some(in_progress) = in_progress {
        text = set_value(&text, &at(&["progress", "in_progress"]), &in_progress.into()).map_err(&file)?;
    }
    let mut blocks = said.blocked.clone();
    if let Some(why) = &closing.abandoned {
        let item = task.filter(|t| !t.is_empty()).unwrap_or_else(|| label(draft.actor));
        blocks.push(Blocked { item, reason: why.clone(), since: None });
    }
    for block in blocks {
        let since = block.since.unwrap_or_else(|| moment.clone());
        let value = json!({"item": block.item, "reason": block.reason, "since": since});
        text = append_item(&text, &at(&["progress", "blocked"]), &value).map_err(&file)?;
    }
    for item in &said.unblocked {
        text = unblock(&text, &at(&["progress", "blocked"]), item)
            .map_err(&file)?
            .ok_or_else(|| WorkError::not_found(format!("nothing is blocked under `{item}`"), "quipu state get /progress/blocked"))?;
    }
    for (pointer, value) in &said.state {
        let pointer = JsonPointer::parse(pointer).map_err(|e| WorkError::usage(e.to_string(), "--state /notes=…"))?;
        text = set_value(&text, &pointer, value).map_err(&file)?;
    }
    // The times are of a session that had something to say about the state.
    if text != old || closing.has_changed(draft, &path)? {
        text = set_value(&text, &at(&["last_update"]), &moment.into()).map_err(&file)?;
        let session = closing.session.map_or_else(|| label(draft.actor), |s| s.id.clone());
        text = remove_value(&text, &at(&["session_id"])).map_err(&file)?;
        text = set_value(&text, &at(&["last_session"]), &session.into()).map_err(&file)?;
    }
    if text != old {
        check_state(&draft.project.contract, &path, &text)?;
        draft.replace(&path, text)?;
    }
    Ok(Closure::Left)
}

fn current_text(text: &str, pointer: &JsonPointer) -> Option<String> {
    match parse_json(text).ok()?.at(pointer)?.to_value() {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The text without the block of that name; none if there is no such.
fn unblock(text: &str, list: &JsonPointer, item: &str) -> Result<Option<String>, quipu_text::json::JsonError> {
    let root = parse_json(text)?;
    let blocks = root.at(list).map(|n| n.items()).unwrap_or_default();
    let named = |block: &Value| block.as_str() == Some(item) || block["item"].as_str() == Some(item);
    match blocks.iter().position(|b| named(&b.to_value())) {
        Some(index) => remove_value(text, &list.child(index)).map(Some),
        None => Ok(None),
    }
}
