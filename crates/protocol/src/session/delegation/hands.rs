//! Attributes each part of an order's file to its author.
//!
//! The author of an order and its child write to the same file. An agent that starts on the order
//! must see which part is by which author.

use quipu_contract::ProjectPath;
use quipu_store::{At, PathEvent, Who};

use super::order::events_of;
use crate::project::open::Project;
use crate::session::error::WorkError;

/// A part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub text: String,
    /// The author of the part: `outside` for an external edit, `?` if the journal does not record
    /// it. None if the order's author or a person wrote it.
    pub by: Option<String>,
}

/// Returns the parts of the file, oldest first.
pub(crate) fn parts_of(project: &Project, path: &ProjectPath) -> Result<Vec<Part>, WorkError> {
    let events = events_of(project, path)?;
    let mut parts: Vec<Part> = Vec::new();
    let Some(author) = events.last().map(|first| first.who.clone()) else {
        return Ok(parts);
    };
    let mut before: Vec<u8> = Vec::new();
    let mut is_unknown = false;
    for (number, event) in events.iter().rev().enumerate() {
        let Ok((text, _)) = project.store.text_at(path, &At::Seq(event.seq)) else {
            // Its text is part of the next readable version, but cannot be separated from it.
            is_unknown = true;
            continue;
        };
        let by = match std::mem::take(&mut is_unknown) {
            true => Some("?".to_owned()),
            false => (number > 0).then(|| other_hand(event, &author)).flatten(),
        };
        let added = match text.strip_prefix(before.as_slice()) {
            Some(added) => String::from_utf8_lossy(added).into_owned(),
            None => {
                parts.clear();
                String::from_utf8_lossy(&text).into_owned()
            }
        };
        parts.push(Part { text: added, by });
        before = text;
    }
    Ok(parts)
}

/// Returns the writer's name, or None if the writer is the author or a person.
fn other_hand(event: &PathEvent, author: &Who) -> Option<String> {
    let who = &event.who;
    // Anyone may make an external edit, even if the order itself is an external edit.
    let is_same = who.kind != "external"
        && (&who.kind, &who.role, &who.unit) == (&author.kind, &author.role, &author.unit);
    if is_same || who.kind == "person" || who.kind == "quipu" {
        return None;
    }
    let names: Vec<&str> = [&who.agent, &who.role, &who.unit]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    Some(if names.is_empty() {
        who.kind.clone()
    } else {
        names.join("/")
    })
}
