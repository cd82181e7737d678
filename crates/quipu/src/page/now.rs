//! The current activity: running attempts, jobs that wait for a person, failed jobs, leases.

use std::path::Path;

use quipu_protocol::flow::{
    RunningAttempt, State as Stand, attempts_under_way, flow_now, folder_of,
};
use quipu_store::Kind;
use quipu_web::axum::extract::State;
use quipu_web::axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::journal;
use super::reply::reply;
use crate::answer::Failure;

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
        let mut flow_json = Value::Null;
        if !project.contract.steps.is_empty() {
            let (flow, _) = flow_now(&project, &page.memory)?;
            let of = |state: Stand| -> Vec<Value> {
                let found = flow.jobs.iter().zip(&flow.statuses).filter(|(_, s)| s.state == state).take(MOST);
                found.map(|(planned, status)| super::flow::to_json(&project.contract, planned, status)).collect()
            };
            let counts: Vec<Value> = Stand::ALL.iter().map(|s| json!([s.as_str(), flow.count(*s)])).collect();
            flow_json = json!({
                "counts": counts,
                "waiting": of(Stand::Waiting),
                "failed": of(Stand::Failed),
                "blocked": of(Stand::Blocked),
                "stale": of(Stand::Stale),
                "ready": of(Stand::Ready),
            });
        }
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
        let recent: Vec<Value> = store.recent(LOOKED)?.iter().filter(|entry| entry.kind != Kind::Lease).take(RECENT).map(journal::to_json).collect();
        let attempts: Vec<Value> = attempts_under_way(store.root()).iter().map(|attempt| to_json(store.root(), attempt)).collect();
        Ok::<Value, Failure>(json!({
            "flow": flow_json,
            "attempts": attempts,
            // The page also works while the shared server is down.
            "workers": store.registered().unwrap_or_default(),
            "leases": leases,
            "sessions": sessions,
            "flagged": flagged,
            "recent": recent,
            "files": scan.files.len(),
        }))
    })
    .await
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
