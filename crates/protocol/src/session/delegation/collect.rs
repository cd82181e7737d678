//! Collects the progress of every delegation and updates the state to match.
//!
//! Progress is read from the order files, the sessions and the clock; the state's list is only a
//! copy.

use quipu_contract::{Actor, Form, ProjectPath, UnitId};
use quipu_store::{LeaseToken, Receipt};
use quipu_text::json::{JsonPointer, parse_json};
use serde::Serialize;

use super::hand_out::set_in_state;
use super::order::{Delegation, Progress, parse_delegation};
use crate::files::edit::{Draft, Terms, revise};
use crate::files::read::may_read_whole;
use crate::project::forms::{list_form, resolve_form};
use crate::project::ids::find_name;
use crate::project::open::Project;
use crate::project::times::now;
use crate::session::error::WorkError;

/// All delegations, and the updates made to the state.
#[derive(Debug, Clone, Serialize)]
pub struct Collected {
    pub delegations: Vec<Delegation>,
    /// Ids of the orders updated in the state.
    pub noted: Vec<String>,
    /// None if the state was already up to date.
    pub receipt: Option<Receipt>,
}

/// Reads the progress of the orders and records it in the state.
pub fn collect(
    project: &Project,
    actor: &Actor,
    lease: Option<&LeaseToken>,
    only: Option<&str>,
) -> Result<Collected, WorkError> {
    let mut delegations = survey_delegations(project, actor)?;
    if let Some(id) = only {
        delegations.retain(|d| d.id == id);
        if delegations.is_empty() {
            return Err(WorkError::not_found(
                format!("unknown delegation `{id}`"),
                "quipu collect",
            ));
        }
    }
    let stale = |draft: &mut Draft<'_>| -> Result<Vec<(String, Progress)>, WorkError> {
        let told = told_in_state(draft)?;
        let differs = |d: &&Delegation| {
            told.iter()
                .any(|(id, status)| *id == d.id && *status != d.progress.as_str())
        };
        Ok(delegations
            .iter()
            .filter(differs)
            .map(|d| (d.id.clone(), d.progress))
            .collect())
    };
    if stale(&mut Draft::new(project, actor))?.is_empty() {
        return Ok(Collected {
            delegations,
            noted: Vec::new(),
            receipt: None,
        });
    }
    let (noted, receipt) = revise(project, actor, |draft| {
        let stale = stale(draft)?;
        for (id, progress) in &stale {
            set_in_state(draft, id, |entry| {
                drop(entry.insert("status".into(), progress.as_str().into()))
            })?;
        }
        let ids: Vec<String> = stale.into_iter().map(|(id, _)| id).collect();
        let why = format!("collect {}", ids.join(", "));
        Ok((
            ids,
            Terms {
                why,
                lease: lease.cloned(),
                ends: None,
            },
        ))
    })?;
    Ok(Collected {
        delegations,
        noted,
        receipt: Some(receipt),
    })
}

/// Reads the progress of every order that has a file and that the actor reads.
pub fn survey_delegations(project: &Project, actor: &Actor) -> Result<Vec<Delegation>, WorkError> {
    let (sessions, moment) = (project.store.sessions()?, now(&project.store));
    let mut found = Vec::new();
    for path in list_form(project, actor, Form::Delegation) {
        if may_read_whole(project, actor, &path).is_err() {
            continue;
        }
        let text = Draft::new(project, actor).text(&path)?;
        found.push(parse_delegation(
            &id_of(project, &path),
            &path,
            &text,
            &sessions,
            moment,
        ));
    }
    Ok(found)
}

/// Resolves an id from a full id or its ending. Ids that are unknown, or of orders that the actor
/// does not read, are returned unchanged.
pub fn find_delegation(project: &Project, actor: &Actor, asked: &str) -> String {
    let ids: Vec<String> = list_form(project, actor, Form::Delegation)
        .iter()
        .map(|path| (path, id_of(project, path)))
        .filter(|(path, id)| may_read_whole(project, &for_order(actor, id), path).is_ok())
        .map(|(_, id)| id)
        .collect();
    find_name(ids.iter().map(String::as_str), asked)
        .unwrap_or(asked)
        .to_owned()
}

/// The actor as it would work on an order, if it does not work on another.
fn for_order(actor: &Actor, id: &str) -> Actor {
    let mut actor = actor.clone();
    if let Actor::Agent { unit, .. } = &mut actor
        && unit.is_none()
    {
        *unit = UnitId::parse(id).ok();
    }
    actor
}

/// The unit in the path of a delegation file. A file that matches no rule is identified by its own
/// name.
fn id_of(project: &Project, path: &ProjectPath) -> String {
    let unit = project
        .contract
        .of_form(Form::Delegation)
        .find_map(|rule| rule.path.matches(path.as_str())?.get("unit").cloned());
    unit.unwrap_or_else(|| {
        let name = path.as_str().rsplit('/').next().unwrap_or_default();
        name.trim_end_matches(".md").to_owned()
    })
}

fn told_in_state(draft: &mut Draft<'_>) -> Result<Vec<(String, String)>, WorkError> {
    let Ok(path) = resolve_form(draft.project, draft.actor, Form::State) else {
        return Ok(Vec::new());
    };
    let text = draft.text(&path)?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let root = parse_json(&text).map_err(WorkError::in_file(&path))?;
    let entries = root
        .at(&JsonPointer::default().child("delegations"))
        .map(|n| n.to_value())
        .unwrap_or_default();
    let told = |e: &serde_json::Value| {
        Some((
            e["id"].as_str()?.to_owned(),
            e["status"].as_str().unwrap_or_default().to_owned(),
        ))
    };
    Ok(entries
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(told)
        .collect())
}
