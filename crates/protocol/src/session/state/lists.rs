//! Notes and facts: texts that are kept in the state until they are removed.
//!
//! Entries that are not texts stay unchanged.

use quipu_contract::{Actor, Form, ProjectPath, in_one_line};
use quipu_store::{LeaseToken, Receipt};
use quipu_text::json::{JsonPointer, append_item, parse_json, set_value};
use serde_json::Value;

use super::schema::check_state;
use crate::files::edit::{Terms, revise};
use crate::project::forms::resolve_form;
use crate::project::open::Project;
use crate::session::error::WorkError;

/// The kind of list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Anything the next session should know.
    Notes,
    /// People, external systems, dates.
    Facts,
}

impl List {
    pub const fn key(self) -> &'static str {
        match self {
            List::Notes => "notes",
            List::Facts => "facts",
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            List::Notes => "note",
            List::Facts => "fact",
        }
    }
}

/// The entries of a list in a state. An older state has a single text instead of a list.
pub(crate) fn read_list(state: &Value, list: List) -> Vec<String> {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    match &state[list.key()] {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().map(text).collect(),
        Value::String(text) if text.trim().is_empty() => Vec::new(),
        other => vec![text(other)],
    }
}

/// Removes and adds entries in the text of a state. Existing entries are not added again.
pub(super) fn edit_list(
    path: &ProjectPath,
    text: String,
    list: List,
    removed: &[String],
    added: &[String],
) -> Result<String, WorkError> {
    if removed.is_empty() && added.is_empty() {
        return Ok(text);
    }
    let file = WorkError::in_file(path);
    let state = parse_json(&text).map_err(&file)?.to_value();
    let old = read_list(&state, list);
    let mut gone = Vec::new();
    for asked in removed {
        gone.push(find_entry(&old, list, asked)?);
    }
    let at = JsonPointer::default().child(list.key());
    let new: Vec<&String> = added.iter().filter(|text| !old.contains(text)).collect();
    if gone.is_empty() && new.is_empty() {
        return Ok(text);
    }
    if gone.is_empty() && state[list.key()].is_array() {
        return new
            .into_iter()
            .try_fold(text, |text, entry| {
                append_item(&text, &at, &entry.clone().into())
            })
            .map_err(&file);
    }
    // Entries that are not texts belong to other tools and stay unchanged.
    let kept: Vec<Value> = match &state[list.key()] {
        Value::Array(items) => items.clone(),
        _ => old.iter().map(|text| text.clone().into()).collect(),
    };
    let kept = kept
        .into_iter()
        .enumerate()
        .filter(|(index, _)| !gone.contains(index))
        .map(|(_, value)| value);
    let all: Vec<Value> = kept
        .chain(new.into_iter().map(|text| text.clone().into()))
        .collect();
    set_value(&text, &at, &all.into()).map_err(&file)
}

/// Finds an entry by its number, by its text, or as the only one that contains the text.
fn find_entry(entries: &[String], list: List, asked: &str) -> Result<usize, WorkError> {
    let number = asked
        .trim()
        .parse::<usize>()
        .ok()
        .filter(|n| (1..=entries.len()).contains(n));
    let wanted = asked.trim().to_lowercase();
    let same = || {
        entries
            .iter()
            .position(|entry| entry.trim().to_lowercase() == wanted)
    };
    let only = || {
        let mut found = entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.to_lowercase().contains(&wanted))
            .map(|(index, _)| index);
        found
            .next()
            .filter(|_| found.next().is_none() && !wanted.is_empty())
    };
    number
        .map(|n| n - 1)
        .or_else(same)
        .or_else(only)
        .ok_or_else(|| {
            let listed = (1..)
                .zip(entries)
                .map(|(n, entry)| format!("{n} {}", in_one_line(entry)))
                .collect::<Vec<_>>()
                .join("; ");
            let listed = if listed.is_empty() {
                "none".to_owned()
            } else {
                listed
            };
            let what = format!(
                "`{1}` does not match exactly one {0}; there are: {listed}",
                list.word(),
                in_one_line(asked)
            );
            WorkError::not_found(
                what,
                format!(
                    "- remove N     (its number), or: quipu {} --remove N",
                    list.word()
                ),
            )
        })
}

/// Adds and removes entries of a list outside a finish. Returns the new list.
pub fn change_list(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    list: List,
    removed: &[String],
    added: &[String],
) -> Result<(Vec<String>, Receipt), WorkError> {
    let path = resolve_form(project, actor, Form::State)?;
    let said = added
        .first()
        .or(removed.first())
        .map(String::as_str)
        .unwrap_or_default();
    let why = format!(
        "{} {}{said}",
        list.word(),
        if added.is_empty() { "remove " } else { "" }
    );
    revise(project, actor, |draft| {
        let old = draft.text(&path)?;
        let old = if old.trim().is_empty() {
            "{}\n".to_owned()
        } else {
            old
        };
        let text = edit_list(&path, old, list, removed, added)?;
        check_state(&project.contract, &path, &text)?;
        let entries = parse_json(&text)
            .map(|root| read_list(&root.to_value(), list))
            .unwrap_or_default();
        draft.replace(&path, text)?;
        Ok((
            entries,
            Terms {
                why: why.clone(),
                lease: lease.cloned(),
                ends: None,
            },
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_until_they_are_removed() {
        let path = ProjectPath::parse("state.json").unwrap();
        let edit = |text: &str, removed: &[&str], added: &[&str]| {
            let owned = |list: &[&str]| list.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
            let text = edit_list(
                &path,
                text.to_owned(),
                List::Notes,
                &owned(removed),
                &owned(added),
            )?;
            Ok::<_, WorkError>(read_list(
                &parse_json(&text).unwrap().to_value(),
                List::Notes,
            ))
        };
        assert_eq!(edit("{}", &[], &["a", "b"]).unwrap(), ["a", "b"]);
        assert_eq!(
            edit("{\"notes\": \"old\"}", &[], &["new"]).unwrap(),
            ["old", "new"]
        );
        assert_eq!(edit("{\"notes\": \"\"}", &[], &["new"]).unwrap(), ["new"]);
        assert_eq!(
            edit("{\"notes\": [\"a\", \"b\"]}", &["1"], &["b", "c"]).unwrap(),
            ["b", "c"]
        );
        assert_eq!(
            edit("{\"notes\": [\"ask Mira\", \"b\"]}", &["mira"], &[]).unwrap(),
            ["b"]
        );
        assert_eq!(
            edit("{\"notes\": [\"a\", {\"k\": 1}, \"b\"]}", &["3"], &[]).unwrap(),
            ["a", "{\"k\":1}"]
        );
        assert!(
            edit("{\"notes\": [\"a1\", \"a2\"]}", &["a"], &[])
                .unwrap_err()
                .to_string()
                .contains("1 a1; 2 a2")
        );
    }
}
