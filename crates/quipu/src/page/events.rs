//! Notifies the page of changes. While the page listens, it polls the end of the journal, the
//! running attempts and the workers.

use std::time::Duration;

use quipu_protocol::flow::attempts_under_way;
use quipu_web::axum::extract::State;
use quipu_web::axum::response::Response;
use quipu_web::watch;
use serde_json::json;

use super::Shared;

/// Polling interval: short enough to seem immediate, and a poll reads only a few small files.
const LOOK: Duration = Duration::from_millis(400);

pub async fn listen(State(page): Shared) -> Response {
    let mut told = String::new();
    watch(LOOK, move || {
        let session = page.session();
        let project = session.project().ok();
        let seq = project
            .as_ref()
            .and_then(|project| project.store.pulse().ok());
        let attempts = attempts_under_way(&session.folder);
        let running: Vec<_> = attempts
            .iter()
            .map(|attempt| json!([attempt.attempt, attempt.said]))
            .collect();
        let workers = project
            .as_ref()
            .and_then(|project| project.store.registered().ok())
            .unwrap_or_default();
        let workers: Vec<_> = workers
            .iter()
            .map(|w| json!([w.worker.id, w.alive, w.worker.claims.len()]))
            .collect();
        let news = json!({"seq": seq, "attempts": running, "workers": workers}).to_string();
        (news != told).then(|| {
            told.clone_from(&news);
            news
        })
    })
}
