//! Detects existing files that belong to another application, such as a `state.json`, at paths that
//! a profile uses.
//!
//! The check applies only to a folder that is not a project yet. A file that does not parse as the
//! expected form is not adopted.

use std::path::Path;

use quipu_contract::{Class, Contract, Form, Listing, ProjectPath};
use quipu_store::OpenFolder;
use quipu_text::Document;
use serde_json::Value;

use crate::session::decisions::parse_decisions;
use crate::session::state::check_state;
use crate::session::todos::parse_todos;

/// Keys of a state file that another application is unlikely to have with the same types.
const STATE_KEYS: [&str; 5] = [
    "phase",
    "current_task",
    "progress",
    "delegations",
    "last_session",
];

/// A file that does not belong to Quipu, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    pub path: String,
    pub why: &'static str,
}

/// Finds all files that the contract would create but that already serve another purpose.
pub(crate) fn find_foreign(root: &Path, contract: &Contract) -> Vec<Foreign> {
    let created = contract.files.iter().filter(|rule| rule.create);
    let mut found = Vec::new();
    for (rule, path) in
        created.filter_map(|rule| Some((rule, ProjectPath::parse(rule.path.as_literal()?).ok()?)))
    {
        // A link or a folder is reported with its own message when the file is created.
        let Ok(Some(bytes)) = OpenFolder::read_in(root, path.as_str()) else {
            continue;
        };
        if let Some(why) = tell(contract, &path, rule.form, rule.class, bytes) {
            found.push(Foreign {
                path: path.as_str().to_owned(),
                why,
            });
        }
    }
    found
}

/// The reason why a text is not of its form; None if it may be.
fn tell(
    contract: &Contract,
    path: &ProjectPath,
    form: Option<Form>,
    class: Class,
    bytes: Vec<u8>,
) -> Option<&'static str> {
    let form = form?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Some("it is not UTF-8 text");
    };
    if text.trim().is_empty() {
        return None;
    }
    let json = || serde_json::from_str::<Value>(&text).ok();
    let has = |keys: &[&str]| {
        json().is_some_and(|value| keys.iter().any(|key| value.get(*key).is_some()))
    };
    match form {
        Form::State if !has(&STATE_KEYS) => {
            Some("it has none of the keys `phase`, `current_task`, `progress`")
        }
        Form::State => check_state(contract, path, &text)
            .err()
            .map(|_| "its keys have other values than a state file of Quipu"),
        Form::Todos => (parse_todos(path, &text).is_err() || !is_todo_list(json()))
            .then_some("it is not a list of todos in Quipu's format"),
        Form::Decisions => (!has_decisions(&text))
            .then_some("none of its sections is a decision (`## ADR-001: title`)"),
        Form::Index => Listing::from_first_row(&text)
            .is_empty()
            .then_some("it is not an index in Quipu's format"),
        Form::Panel => (!has(&["review_progress"])).then_some("it is not the state of a review"),
        _ if class == Class::Derived => Some("Quipu would replace it"),
        _ => None,
    }
}

/// Whether it has Quipu's metadata, or a status on every item.
fn is_todo_list(value: Option<Value>) -> bool {
    let Some(value) = value else { return false };
    let items = value.get("todos").and_then(Value::as_array);
    let has_status = |items: &Vec<Value>| {
        !items.is_empty()
            && items
                .iter()
                .all(|item| item.get("status").is_some_and(Value::is_string))
    };
    value.get("metadata").is_some()
        || value.get("last_review").is_some()
        || items.is_some_and(has_status)
}

/// Whether a text has numbered decisions or sections with their fields. A file without sections may
/// be a new decision file.
fn has_decisions(text: &str) -> bool {
    let document = Document::parse(text);
    if !document.sections().iter().any(|section| section.level == 2) {
        return document
            .sections()
            .iter()
            .all(|section| document.slice(&section.body).trim().is_empty());
    }
    let is_numbered = |id: &str| {
        id.ends_with(|c: char| c.is_ascii_digit())
            && id.starts_with(|c: char| c.is_ascii_uppercase())
    };
    parse_decisions(text).iter().any(|entry| {
        is_numbered(&entry.id) && entry.id != entry.title
            || entry.decision.is_some()
            || entry.context.is_some()
    })
}
