//! Paragraphs from the state file: current status, facts, notes.
//!
//! An invalid file is reported, and the last committed text is shown.

use quipu_contract::{Form, Paragraph, ProjectPath, in_one_line};
use quipu_text::json::parse_json;
use serde_json::{Value, json};

use super::gather::repair;
use super::relay::flagged_line;
use super::{Block, Waking};
use crate::files::edit::Draft;
use crate::files::quote::{as_entry_value, quoted};
use crate::project::forms::template_of;
use crate::session::error::WorkError;
use crate::session::state::{List, check_state, read_list};

/// The number of completed steps shown.
const COMPLETED_SHOWN: usize = 5;

/// The last valid state, and the fault of the file, if any.
fn load(waking: &Waking<'_>, path: &ProjectPath) -> Result<(String, Option<WorkError>), WorkError> {
    match Draft::new(waking.project, waking.actor).text(path) {
        Err(error @ WorkError::Malformed { .. }) => {
            let last = waking
                .project
                .store
                .read(path)?
                .map(|(bytes, _)| bytes)
                .unwrap_or_default();
            Ok((String::from_utf8_lossy(&last).into_owned(), Some(error)))
        }
        Err(other) => Err(other),
        Ok(text) => {
            let fault = check_state(&waking.project.contract, path, &text).err();
            Ok((text, fault))
        }
    }
}

/// Renders the current status.
pub(super) fn state(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(path) = waking.readable(Form::State) else {
        return Ok(None);
    };
    let mut block = Block::new(
        Paragraph::State,
        waking.say("Current state", "当前状态"),
        "quipu state get",
    );
    let flagged = flagged_line(waking, &path)?;
    let (text, fault) = load(waking, &path)?;
    // Flagged text is not shown. A fault of the committed text is reported separately.
    if let Some(error) = fault.as_ref().filter(|_| flagged.is_none()) {
        block.entries.push(repair(waking, error));
    }
    block.entries.extend(flagged);
    if text.trim().is_empty() && block.entries.is_empty() {
        return Ok(None);
    }
    let Ok(root) = parse_json(&text) else {
        if fault.is_none() {
            block.entries.push(quoted(&text));
        }
        return Ok(Some(block));
    };
    let value = root.to_value();
    // A state that no session has written still has the template's content.
    let is_fresh = value["last_session"].is_null()
        && template_of(waking.project, &path).is_ok_and(|fresh| says_the_same(&fresh, &value));
    if !is_fresh {
        block.entries.extend(lines(waking, &value));
    }
    block.data = value;
    Ok((!block.entries.is_empty()).then_some(block))
}

/// Whether a state equals the template, ignoring its timestamp.
fn says_the_same(template: &str, state: &Value) -> bool {
    let without_moment = |mut value: Value| {
        if let Some(keys) = value.as_object_mut() {
            keys.remove("last_update");
        }
        value
    };
    parse_json(template)
        .is_ok_and(|root| without_moment(root.to_value()) == without_moment(state.clone()))
}

/// People, external systems, dates.
pub(super) fn facts(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    listed(
        waking,
        Paragraph::Facts,
        waking.say("People and facts", "人员与事实"),
        List::Facts,
    )
}

/// Notes that are kept until they are removed.
pub(super) fn notes(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    listed(
        waking,
        Paragraph::Notes,
        waking.say("Notes", "备注"),
        List::Notes,
    )
}

/// A list with the numbers used to remove its entries.
fn listed(
    waking: &Waking<'_>,
    paragraph: Paragraph,
    title: &str,
    list: List,
) -> Result<Option<Block>, WorkError> {
    let Some(path) = waking.readable(Form::State) else {
        return Ok(None);
    };
    let (text, _) = load(waking, &path)?;
    let state = parse_json(&text)
        .map(|root| root.to_value())
        .unwrap_or_default();
    let entries = read_list(&state, list);
    let mut block = Block::new(paragraph, title, format!("quipu state get /{}", list.key()));
    block.entries = (1..)
        .zip(&entries)
        .map(|(number, entry)| format!("{number}. {}", as_entry_value(entry.trim())))
        .collect();
    block.data = json!(entries);
    Ok((!block.entries.is_empty()).then_some(block))
}

fn lines(waking: &Waking<'_>, value: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut put = |key: &str, value: &Value| {
        let text = told(value);
        if !text.is_empty() {
            lines.push(format!(
                "- {}{}{text}",
                in_one_line(key),
                waking.say(": ", "：")
            ));
        }
    };
    let progress = &value["progress"];
    put(
        waking.say("in progress", "进行中"),
        &progress["in_progress"],
    );
    for step in progress["next_steps"].as_array().into_iter().flatten() {
        put(waking.say("next", "下一步"), step);
    }
    for block in progress["blocked"].as_array().into_iter().flatten() {
        put(waking.say("blocked", "阻塞"), &json!(blocked(block)));
    }
    put(waking.say("task", "当前任务"), &value["current_task"]);
    put(waking.say("phase", "阶段"), &value["phase"]);
    let done = progress["completed"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let earlier = done.len().saturating_sub(COMPLETED_SHOWN);
    for step in done[earlier..].iter().rev() {
        put(waking.say("done", "已完成"), step);
    }
    if earlier > 0 {
        put(
            waking.say("done", "已完成"),
            &json!(format!(
                "(+{earlier} {})",
                waking.say(
                    "earlier: quipu state get /progress/completed",
                    "项更早：quipu state get /progress/completed"
                )
            )),
        );
    }
    const KNOWN: [&str; 9] = [
        "phase",
        "current_task",
        "progress",
        "notes",
        "facts",
        "last_update",
        "last_session",
        "session_id",
        "delegations",
    ];
    for (key, other) in value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !KNOWN.contains(&key.as_str()))
    {
        put(key, other);
    }
    if !lines.is_empty() {
        let mut put = |key: &str, value: &Value| {
            lines.push(format!("- {key}{}{}", waking.say(": ", "："), told(value)))
        };
        if value["last_update"]
            .as_str()
            .is_some_and(|moment| !moment.is_empty())
        {
            put(waking.say("updated", "更新于"), &value["last_update"]);
        }
    }
    lines
}

fn blocked(block: &Value) -> String {
    match block {
        Value::String(text) => text.clone(),
        block => {
            let part = |key: &str| block[key].as_str().unwrap_or_default();
            let since = part("since").get(..10).unwrap_or_default();
            format!(
                "{} ({}{}{since})",
                part("item"),
                part("reason"),
                if since.is_empty() { "" } else { ", " }
            )
        }
    }
}

fn told(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => as_entry_value(text.trim()),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Object(keys) if keys.is_empty() => String::new(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().map(told).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}
