//! Exact text in every file, newest versions.

use std::time::{Duration, Instant};

use quipu_contract::ProjectPath;
use quipu_protocol::Project;
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::reply::reply;
use crate::answer::Failure;

/// Maximum number of lines listed, in all and of one file.
const MOST: usize = 60;
const OF_FILE: usize = 5;
/// Files read at once. Reading many costs less than reading each.
const BATCH: usize = 64;
/// Larger files are not searched.
const BYTES: u64 = 8 << 20;
/// A search ends after this time, and says how many files it has read.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Characters shown before the text that was found, and of the whole line.
const BEFORE: usize = 60;
const LINE: usize = 240;

#[derive(Debug, Deserialize)]
pub struct Parameters {
    q: String,
}

pub async fn text(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let scan = page.kept.scan(&project)?;
        let files = scan.files.iter().chain(&scan.free_journalled);
        let mut paths: Vec<ProjectPath> = files
            .filter(|file| file.len <= BYTES)
            .filter_map(|file| ProjectPath::parse(&file.path).ok())
            .collect();
        paths.sort_unstable();
        paths.dedup();
        find(&project, &paths, &asked.q.to_lowercase())
    })
    .await
}

/// Searches files in the order of their paths until there are enough lines, or no time is left.
fn find(project: &Project, paths: &[ProjectPath], wanted: &str) -> Result<Value, Failure> {
    let (begun, mut hits, mut searched) = (Instant::now(), Vec::new(), 0);
    if !wanted.trim().is_empty() {
        for batch in paths.chunks(BATCH) {
            if hits.len() >= MOST || begun.elapsed() > PATIENCE {
                break;
            }
            for (path, text) in batch.iter().zip(project.store.read_all(batch)?) {
                let text = text.and_then(|(bytes, _)| String::from_utf8(bytes).ok());
                lines_with(path, &text.unwrap_or_default(), wanted, &mut hits);
            }
            searched += batch.len();
        }
    }
    hits.truncate(MOST);
    Ok(json!({"hits": hits, "searched": searched, "files": paths.len()}))
}

fn lines_with(path: &ProjectPath, text: &str, wanted: &str, hits: &mut Vec<Value>) {
    let found = text.lines().enumerate().filter_map(|(number, line)| {
        let at = line.to_lowercase().find(wanted)?;
        // Lowering may change lengths, so the place is only about right, and a whole character.
        let skipped = line.to_lowercase()[..at].chars().count();
        let from = skipped.saturating_sub(BEFORE);
        let shown: String = line.chars().skip(from).take(LINE).collect();
        let start = if from > 0 { "…" } else { "" };
        let shown = format!("{start}{}", shown.trim());
        Some(json!({"path": path, "line": number + 1, "text": shown}))
    });
    hits.extend(found.take(OF_FILE));
}
