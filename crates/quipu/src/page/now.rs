//! The current activity: running attempts, jobs that wait for a person, failed jobs, leases.

use std::path::Path;

use quipu_contract::{Each, ProjectPath};
use quipu_protocol::Project;
use quipu_protocol::flow::{
    AttemptFact, Flow, Job, RunningAttempt, State as Stand, attempts_under_way, flow_now,
    folder_of, retry_command,
};
use quipu_store::Kind;
use quipu_web::axum::extract::State;
use quipu_web::axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::book;
use super::causes::root_causes;
use super::failure::failure_json;
use super::journal;
use super::reply::reply;
use crate::answer::Failure;
use crate::integrate::losses;

/// Maximum number listed per kind; the rest is counted.
const MOST: usize = 40;
const RECENT: usize = 8;
/// Number of recent records to search, including leases.
const LOOKED: usize = 60;
/// Bytes searched at the end of a transcript for its last line, and characters shown of that line.
const TAIL: u64 = 8 << 10;
const LINE: usize = 240;

pub async fn now(State(page): Shared) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let store = &project.store;
        let flow = match project.contract.steps.is_empty() {
            true => Value::Null,
            false => {
                let (flow, snapshot) = flow_now(&project, &page.memory)?;
                flow_json(&project, &flow, &snapshot.facts)
            }
        };
        let scan = page.kept.scan(&project)?;
        let flagged: Vec<Value> = scan
            .flagged()
            .take(MOST)
            .map(|f| json!({"path": f.path, "class": f.class.as_str(), "what": f.flag.as_ref().map(|x| &x.what)}))
            .collect();
        let (leases, sessions) = if store.is_read_only() { (Vec::new(), Vec::new()) } else { (store.leases()?, store.sessions()?) };
        let leases: Vec<Value> = leases
            .iter()
            .map(|l| json!({"token": l.token().to_string(), "holder": l.holder.to_string(), "paths": l.paths, "since": l.since, "until": l.until}))
            .collect();
        let sessions: Vec<Value> =
            sessions.iter().map(|s| json!({"id": s.id, "who": s.who.to_string(), "since": s.since, "over": s.over})).collect();
        let recent = store.recent(LOOKED)?;
        let recent = recent.iter().filter(|entry| entry.kind != Kind::Lease).take(RECENT);
        let recent: Vec<Value> = recent.map(|entry| journal::to_json(&project, entry)).collect();
        let attempts: Vec<Value> = attempts_under_way(store.root()).iter().map(|attempt| to_json(store.root(), attempt)).collect();
        Ok::<Value, Failure>(json!({
            "flow": flow,
            "attempts": attempts,
            // The page also works while the shared server is down.
            "workers": store.registered().unwrap_or_default(),
            "leases": leases,
            "sessions": sessions,
            "flagged": flagged,
            "losses": losses(&project),
            "flagged_all": scan.flagged().count(),
            "recent": recent,
            "files": scan.files.len(),
            "book": book::to_json(&project, &scan, &page.book_key),
        }))
    })
    .await
}

/// Returns what the flow needs: decisions, jobs that need a person with those that wait for them,
/// and stale jobs.
fn flow_json(project: &Project, flow: &Flow<'_>, facts: &[AttemptFact]) -> Value {
    let contract = &project.contract;
    let job = |at: usize| super::flow::to_json(contract, &flow.jobs[at], &flow.statuses[at]);
    let of = |state: Stand| -> Vec<Value> {
        let found = (0..flow.jobs.len()).filter(|at| flow.statuses[*at].state == state);
        found.take(MOST).map(job).collect()
    };
    let (causes, causes_all) = causes_json(project, flow, facts);
    // Steps for each unit have no jobs while no unit is declared.
    let steps = contract.steps.iter().filter(|step| step.each == Each::Unit);
    let idle = steps.filter(|step| flow.jobs.iter().all(|job| job.step.name != step.name));
    let gate = contract.steps.iter().find(|step| step.declare.is_some());
    json!({
        "counts": Stand::ALL.iter().map(|s| json!([s.as_str(), flow.count(*s)])).collect::<Vec<_>>(),
        "waiting": of(Stand::Waiting),
        "causes": causes,
        "causes_all": causes_all,
        "stale": of(Stand::Stale),
        "ready": of(Stand::Ready),
        "made": made(flow),
        "without_units": idle.map(|step| &step.name).collect::<Vec<_>>(),
        "declared_by": gate.map(|gate| &gate.name),
    })
}

/// The jobs that need a person, each with those that wait for it, and how many there are.
pub fn causes_json(
    project: &Project,
    flow: &Flow<'_>,
    facts: &[AttemptFact],
) -> (Vec<Value>, usize) {
    let (contract, root) = (&project.contract, project.store.root());
    let causes = root_causes(&flow.statuses);
    let shown = causes.iter().take(MOST).map(|cause| {
        let status = &flow.statuses[cause.job];
        let mut json = super::flow::to_json(contract, &flow.jobs[cause.job], status);
        let blocked = cause.blocked.iter().take(MOST);
        let blocked: Vec<&Job> = blocked.map(|at| &flow.statuses[*at].job).collect();
        json["blocks"] = json!({"all": cause.blocked.len(), "shown": blocked});
        json["failure"] = failure_json(root, facts, status);
        json["retry"] = json!((status.state == Stand::Failed).then(|| retry_command(status)));
        json
    });
    (shown.collect(), causes.len())
}

/// The outputs of done steps that no other step waits for: what the flow is for.
fn made<'f>(flow: &'f Flow<'_>) -> Vec<&'f ProjectPath> {
    let is_last = |name: &str| {
        flow.jobs
            .iter()
            .all(|job| !job.step.after.iter().any(|a| a == name))
    };
    let done = flow.jobs.iter().zip(&flow.statuses);
    done.filter(|(job, status)| status.state == Stand::Done && is_last(&job.step.name))
        .flat_map(|(job, _)| job.outputs.iter().map(|output| &output.path))
        .take(MOST)
        .collect()
}

/// Returns an attempt with its agent's last line and the texts it was given.
fn to_json(root: &Path, attempt: &RunningAttempt) -> Value {
    let folder = folder_of(root, &attempt.attempt);
    let plan = quipu_store::read_regular_text(&folder.join("plan.json"))
        .ok()
        .and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let shown = |share: &Value| share["shown"].as_u64().unwrap_or(0);
    let reads = plan.as_ref().map(|plan| {
        let stages = plan["shares"].as_array().into_iter().flatten();
        stages
            .flat_map(|stage| stage.as_array().into_iter().flatten())
            .map(shown)
            .sum::<u64>()
    });
    json!({
        "attempt": attempt.attempt, "step": attempt.step, "unit": attempt.unit, "agent": attempt.agent, "at": attempt.at,
        "reads": reads, "budget": plan.map(|plan| plan["budget"].clone()), "last": last_line(&folder.join("transcript.jsonl")),
    })
}

fn last_line(path: &Path) -> Option<String> {
    let tail = read_tail(path, TAIL)?;
    let line = tail.lines().rev().find_map(|line| {
        serde_json::from_str::<Value>(line).ok()?["text"]
            .as_str()
            .map(str::to_owned)
    })?;
    Some(line.trim().chars().take(LINE).collect())
}

/// Returns the last bytes of a file, starting at a character boundary.
pub fn read_tail(path: &Path, most: u64) -> Option<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = quipu_store::open_regular(path).ok()?;
    let from = file.metadata().ok()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
