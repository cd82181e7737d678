//! The flow as a board of units and steps, and the details of one job.

use std::path::Path;

use quipu_contract::{Builtin, Contract, Each, UnitId};
use quipu_protocol::flow::{
    Job, JobStatus, PlannedJob, State as Stand, attempts_under_way, flow_now, folder_of, replay,
};
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::failure::failure_json;
use super::now::{causes_json, read_tail};
use super::reply::{both, reply};
use crate::answer::{Failure, exit};
use crate::session::{Names, Session};
use crate::table::TABLE;

/// Bytes shown from the end of a transcript, and from the beginning of other texts.
const TRANSCRIPT: u64 = 96 << 10;
const TEXT: usize = 96 << 10;

pub async fn board(State(page): Shared) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let contract = &project.contract;
        let (flow, snapshot) = flow_now(&project, &page.memory)?;
        let mut steps: Vec<Value> = Vec::new();
        for planned in flow.jobs.iter() {
            let step = planned.step;
            if !steps.iter().any(|s| s["name"] == step.name.as_str()) {
                steps.push(json!({
                    "name": step.name,
                    "about": both(&step.about),
                    "each": step.each == Each::Unit,
                    "gate": planned.is_builtin(Builtin::Gate),
                    "builtin": step.builtin.is_some(),
                    "role": step.role,
                    "phase": step.phase,
                }));
            }
        }
        let mut units: Vec<Value> = Vec::new();
        for unit in &contract.units {
            if flow.jobs.iter().any(|t| t.job.unit.as_ref() == Some(&unit.id)) {
                units.push(json!({"id": unit.id, "title": both(&unit.title)}));
            }
        }
        let cells: Vec<Value> = flow.jobs.iter().zip(&flow.statuses).map(|(planned, s)| to_json(contract, planned, s)).collect();
        let (causes, _) = causes_json(&project, &flow, &snapshot.facts);
        Ok::<Value, Failure>(json!({"causes": causes, "steps": steps, "units": units, "cells": cells, "attempts": attempts_under_way(project.store.root())}))
    })
    .await
}

/// Returns a job with its status as JSON.
pub fn to_json(contract: &Contract, planned: &PlannedJob<'_>, status: &JobStatus) -> Value {
    let title = planned.job.unit.as_ref().and_then(|id| contract.unit(id));
    json!({
        "step": planned.job.step,
        "unit": planned.job.unit,
        "title": title.map(|unit| both(&unit.title)),
        "about": both(&planned.step.about),
        "state": status.state,
        "why": status.why,
        "through": status.through.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "gate": planned.is_builtin(Builtin::Gate),
        "objects": status.objects,
        // A failed report of a panel can be left out, because others are averaged with it.
        "excusable": status.state == Stand::Failed && planned.step.domain.is_some(),
        "failures": status.failures,
        "reads": planned.reads().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "outputs": planned.outputs.iter().map(|o| o.path.to_string()).collect::<Vec<_>>(),
        "seq": status.seq,
    })
}

#[derive(Debug, Deserialize)]
pub struct Parameters {
    step: String,
    unit: Option<String>,
    /// An older attempt of the same job.
    attempt: Option<String>,
}

pub async fn job(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let session = page.session();
        let project = session.project()?;
        let unit = asked.unit.as_deref().filter(|u| !u.is_empty()).map(UnitId::parse).transpose();
        let unit = unit.map_err(|e| Failure::usage(e.to_string(), ""))?;
        let job = Job { step: asked.step.clone(), unit };
        let (flow, snapshot) = flow_now(&project, &page.memory)?;
        let Some(at) = flow.find(&job) else {
            return Err(Failure::new(exit::NOT_FOUND, format!("unknown job `{job}`"), "quipu status"));
        };
        let (planned, status) = (&flow.jobs[at], &flow.statuses[at]);
        let root = project.store.root();
        let running =
            attempts_under_way(root).into_iter().find(|r| r.step == job.step && r.unit == job.unit.as_ref().map(ToString::to_string));
        let past = replay(&project, asked.attempt.as_deref().unwrap_or(&job.to_string())).ok().filter(|r| r.fact.note.job() == job);
        let attempt = match (&asked.attempt, &running, &past) {
            (None, Some(running), _) => Some(running.attempt.clone()),
            (_, _, Some(past)) => Some(past.fact.note.attempt.clone()),
            _ => None,
        };
        let folder = attempt.as_ref().map(|attempt| folder_of(root, attempt)).filter(|folder| folder.is_dir());
        let read = |name: &str| folder.as_deref().and_then(|folder| load(folder, name));
        let parsed = |name: &str| read(name).and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let (mut plan, mut brief) = (parsed("plan.json"), read("brief.md").or_else(|| read("brief-1.md")));
        // A job without an attempt is shown as it would run now.
        let foreseen = folder.is_none() && past.is_none() && planned.role.is_some();
        if let (true, Some(role)) = (foreseen, &planned.step.role) {
            let own = planned.job.unit.as_ref().map(ToString::to_string);
            plan = ask(&session, "view", role, own.clone()).ok().map(|view| {
                let shares: Vec<Value> = view["stages"].as_array().into_iter().flatten().map(|stage| stage["shares"].clone()).collect();
                json!({"budget": view["budget"], "pointers": view["pointers"], "shares": shares, "absent": view["absent"]})
            });
            brief = ask(&session, "brief", role, own).ok().and_then(|brief| brief["text"].as_str().map(str::to_owned));
        }
        let attempts: Vec<String> =
            past.as_ref().map(|p| std::iter::once(&p.fact.note.attempt).chain(&p.others).cloned().collect()).unwrap_or_default();
        Ok(json!({
            "job": to_json(&project.contract, planned, status),
            "attempt": attempt,
            "attempts": attempts,
            "running": running,
            "fact": past.map(|p| p.fact),
            "plan": plan,
            "brief": brief.map(|text| cut(&text)),
            "foreseen": foreseen,
            "verdict": parsed("verdict.json"),
            "failure": failure_json(root, &snapshot.facts, status),
            "fault": read("fault.txt").map(|text| cut(&text)),
            "transcript": folder.as_deref().map(transcript),
        }))
    })
    .await
}

/// Returns the view or the brief that a role would get now.
fn ask(
    session: &Session,
    operation: &str,
    role: &str,
    unit: Option<String>,
) -> Result<Value, Failure> {
    let row = TABLE
        .iter()
        .find(|row| row.name == operation)
        .expect("the table has views and briefs");
    let words = [
        "--partial".to_owned(),
        "--counter=estimate".to_owned(),
        "--".to_owned(),
        role.to_owned(),
    ];
    let matches =
        crate::mcp::schema::matches(row, &words).map_err(|what| Failure::usage(what, ""))?;
    let caller = Session::new(
        session.folder.clone(),
        Names {
            unit,
            ..Names::default()
        },
        Names::default(),
    )?;
    (row.call)(&matches, &caller).map(|answer| answer.json)
}

fn load(folder: &Path, name: &str) -> Option<String> {
    quipu_store::read_regular(&folder.join(name))
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Returns the last lines of a transcript, verbatim.
fn transcript(folder: &Path) -> Vec<Value> {
    let tail = read_tail(&folder.join("transcript.jsonl"), TRANSCRIPT).unwrap_or_default();
    tail.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|line| json!({"ms": line["ms"], "who": line["who"], "text": line["text"].as_str().map(cut)}))
        .collect()
}
