//! The schema of a state file. Unknown fields belong to other tools and are always allowed.
//!
//! This module only checks; `value.rs`, `lists.rs` and `closing.rs` edit.

use quipu_contract::{Contract, ProjectPath, in_one_line};
use quipu_text::json::{Node, Shape, parse_json};
use serde_json::Value;

use crate::project::times::parse_moment;
use crate::session::error::WorkError;

/// Checks the text of a state. An empty text is valid.
pub(crate) fn check_state(
    contract: &Contract,
    path: &ProjectPath,
    text: &str,
) -> Result<(), WorkError> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let root = parse_json(text).map_err(WorkError::in_file(path))?;
    let fault = |node: &Node, what: String, allowed: &str| {
        Err(WorkError::Malformed {
            path: path.clone(),
            line: node.line(text),
            what,
            allowed: allowed.to_owned(),
        })
    };
    if !matches!(root.shape, Shape::Object(_)) {
        return fault(
            &root,
            "the state must be an object".into(),
            "{\"phase\": …, \"current_task\": …, \"progress\": {…}}",
        );
    }
    let phases = phases(contract);
    if let Some(node) = root.get("phase") {
        match as_text(node) {
            Some(phase)
                if phases.is_empty() || phase.is_empty() || phases.iter().any(|p| p == phase) => {}
            Some(phase) => {
                return fault(
                    node,
                    format!("unknown phase `{}`", in_one_line(phase)),
                    &phases.join(", "),
                );
            }
            None => return fault(node, "`phase` is not a text".into(), &phases.join(", ")),
        }
    }
    for (key, place) in [
        ("current_task", &root),
        ("last_session", &root),
        ("session_id", &root),
    ] {
        if let Some(node) = place.get(key)
            && !is_text_or_null(node)
        {
            return fault(node, format!("`{key}` is not a text"), "a text, or null");
        }
    }
    if let Some(node) = root.get("last_update")
        && !is_moment_or_null(node)
    {
        return fault(
            node,
            "`last_update` is not a date or a time".into(),
            "2026-01-31T12:00:00Z, or null",
        );
    }
    if let Some(progress) = root.get("progress") {
        check_progress(progress).or_else(|(node, what, allowed)| fault(node, what, allowed))?;
    }
    if let Some(orders) = root.get("delegations") {
        if !matches!(orders.shape, Shape::List(_)) {
            return fault(
                orders,
                "`delegations` is not a list".into(),
                "[{\"id\": …, \"task\": …, \"status\": …, \"deadline\": …}]",
            );
        }
        for order in orders.items() {
            if order.get("id").and_then(as_text).is_none() {
                return fault(
                    order,
                    "a delegation has no `id`".into(),
                    "{\"id\": …, \"task\": …, \"status\": …, \"deadline\": …}",
                );
            }
        }
    }
    Ok(())
}

/// The faulty value, the fault, and the allowed values.
type Fault<'n> = (&'n Node, String, &'static str);

fn check_progress(progress: &Node) -> Result<(), Fault<'_>> {
    const ALLOWED: &str =
        "{\"completed\": [], \"in_progress\": \"\", \"blocked\": [], \"next_steps\": []}";
    if !matches!(progress.shape, Shape::Object(_)) {
        return Err((progress, "`progress` is not an object".into(), ALLOWED));
    }
    for key in ["completed", "blocked", "next_steps"] {
        let Some(list) = progress.get(key) else {
            continue;
        };
        if !matches!(list.shape, Shape::List(_)) {
            return Err((list, format!("`{key}` is not a list"), ALLOWED));
        }
    }
    if let Some(node) = progress.get("in_progress")
        && !is_text_or_null(node)
    {
        return Err((
            node,
            "`in_progress` is not a text".into(),
            "a text, or null",
        ));
    }
    for item in progress.get("blocked").map(Node::items).unwrap_or_default() {
        if as_text(item).is_none() && item.get("item").and_then(as_text).is_none() {
            return Err((
                item,
                "a blocked entry must be a text or have an `item`".into(),
                "{\"item\": …, \"reason\": …, \"since\": …}",
            ));
        }
    }
    Ok(())
}

/// The phases listed in the contract's variable.
pub(crate) fn phases(contract: &Contract) -> Vec<String> {
    let said = contract
        .vars
        .get("phases")
        .and_then(|v| v.value.clone())
        .unwrap_or_default();
    said.split([',', '，', '、'])
        .map(|p| p.trim().to_owned())
        .filter(|p| !p.is_empty())
        .collect()
}

fn as_text(node: &Node) -> Option<&str> {
    match &node.shape {
        Shape::Plain(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn is_text_or_null(node: &Node) -> bool {
    matches!(node.shape, Shape::Plain(Value::String(_) | Value::Null))
}

fn is_moment_or_null(node: &Node) -> bool {
    match &node.shape {
        Shape::Plain(Value::String(text)) => text.is_empty() || parse_moment(text).is_some(),
        Shape::Plain(Value::Null) => true,
        _ => false,
    }
}
