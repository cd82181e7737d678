//! Notifies the page of changes. While the page listens, it polls the end of the journal, the
//! running attempts, the workers and the files on disk.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use quipu_protocol::Project;
use quipu_protocol::flow::attempts_under_way;
use quipu_web::axum::extract::State;
use quipu_web::axum::response::Response;
use quipu_web::watch;
use serde_json::json;

use super::{Page, Shared};

/// Polling interval: short enough to seem immediate, and a poll reads only a few small files.
const LOOK: Duration = Duration::from_millis(400);

pub async fn listen(State(page): Shared) -> Response {
    let mut told = String::new();
    watch(LOOK, move || {
        let session = page.session();
        let project = session.project().ok();
        // Scanned first: an allowed edit is adopted, and the journal then has it.
        let files = project.as_ref().and_then(|project| files(&page, project));
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
        let news = json!({"seq": seq, "files": files, "attempts": running, "workers": workers, "run": page.runs.state()})
            .to_string();
        (news != told).then(|| {
            told.clone_from(&news);
            news
        })
    })
}

/// Returns a fingerprint of what the journal does not tell about the files: which are flagged, with
/// their stats, and which are outside the contract. All listeners share one scan, whose interval
/// grows with its duration.
fn files(page: &Page, project: &Project) -> Option<String> {
    let scan = page.kept.scan(project).ok()?;
    let mut hasher = DefaultHasher::new();
    for file in scan.flagged() {
        let flag = file.flag.as_ref().map(|flag| (&flag.what, flag.line));
        let stat = std::fs::symlink_metadata(project.store.root().join(&file.path)).ok();
        let stat = stat.map(|stat| (stat.len(), stat.modified().ok()));
        (&file.path, flag, stat).hash(&mut hasher);
    }
    (&scan.free, &scan.strange).hash(&mut hasher);
    Some(format!("{:x}", hasher.finish()))
}
