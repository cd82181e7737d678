//! The journal, searched from its end, one window at a time.

use quipu_contract::{Act, Actor, ProjectPath};
use quipu_protocol::Project;
use quipu_store::{Kind, LogEntry};
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::reply::reply;

/// Maximum size of a window.
const MOST: usize = 200;
/// Maximum number of paths listed per commit; the rest is counted.
const PATHS: usize = 12;

#[derive(Debug, Deserialize)]
pub struct Parameters {
    #[serde(default)]
    q: String,
    #[serde(default)]
    actor: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    kind: String,
    before: Option<u64>,
    #[serde(default = "window")]
    limit: usize,
}

fn window() -> usize {
    60
}

pub async fn search(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let (text, actor, path) = (
            asked.q.to_lowercase(),
            asked.actor.to_lowercase(),
            asked.path.to_lowercase(),
        );
        let wanted = |entry: &LogEntry| {
            let who = entry.who.to_string().to_lowercase();
            let named = |part: &str| entry.paths.iter().any(|p| p.to_lowercase().contains(part));
            let why = entry.why.as_deref().unwrap_or_default().to_lowercase();
            let kind = match asked.kind.as_str() {
                // Every run takes and releases leases, so they are shown only on request.
                "" => entry.kind != Kind::Lease,
                "all" => true,
                kind => entry.kind.as_str() == kind,
            };
            kind && (actor.is_empty() || who.contains(&actor))
                && (path.is_empty() || named(&path))
                && (text.is_empty()
                    || why.contains(&text)
                    || who.contains(&text)
                    || named(&text)
                    || entry.id.starts_with(&text))
        };
        let found = project
            .store
            .log_before(asked.before, asked.limit.min(MOST), &wanted)?;
        let entries: Vec<Value> = found
            .entries
            .iter()
            .map(|entry| to_json(&project, entry))
            .collect();
        Ok(json!({"entries": entries, "next": found.next, "newest": project.store.pulse()?}))
    })
    .await
}

/// Whether the class of a file lets a person bring an older version back.
pub fn is_restorable(project: &Project, path: &ProjectPath) -> bool {
    let class = project.contract.class(path);
    let allowed = class.allows(Act::RestoreOlder, &Actor::Person, true);
    allowed.is_ok() && !project.store.is_read_only()
}

/// Returns a commit as JSON.
pub fn to_json(project: &Project, entry: &LogEntry) -> Value {
    let shown: Vec<&String> = entry.paths.iter().take(PATHS).collect();
    let has_texts = !matches!(entry.kind, Kind::Lease | Kind::Note | Kind::ConflictCopy);
    let restorable = shown.iter().filter(|path| {
        let parsed = ProjectPath::parse(path);
        has_texts
            && !entry.removed.contains(path)
            && parsed.is_ok_and(|path| is_restorable(project, &path))
    });
    let restorable: Vec<&&String> = restorable.collect();
    json!({
        "seq": entry.seq,
        "at": entry.at,
        "kind": entry.kind.as_str(),
        "who": entry.who.to_string(),
        "why": entry.why,
        "paths": shown,
        "restorable": restorable,
        "more": entry.paths.len() - shown.len(),
    })
}
