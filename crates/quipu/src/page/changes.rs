//! Lines added and removed by each version of a file.

use std::time::Duration;

use quipu_contract::ProjectPath;
use quipu_protocol::Project;
use quipu_store::{At, OpKind, PathEvent};
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::Shared;
use super::reading::event;
use super::reply::reply;
use crate::answer::Failure;
use crate::session::Session;

/// Versions counted at once.
const MOST: usize = 40;
/// Larger texts are not compared.
const BYTES: usize = 512 << 10;
/// One comparison ends after this time with a count that is only about right.
const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Debug, Deserialize)]
pub struct Parameters {
    path: String,
    /// The first of the versions, counted from the newest.
    #[serde(default)]
    from: usize,
    /// Only the version of this commit.
    seq: Option<u64>,
}

pub async fn changes(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let path = Session::path(&asked.path)?;
        let events = project.store.events(&path)?;
        let (from, most) = match asked.seq {
            Some(seq) => (
                events
                    .iter()
                    .position(|e| e.seq == seq)
                    .unwrap_or(events.len()),
                1,
            ),
            None => (asked.from, MOST),
        };
        let mut newer: Option<Option<String>> = None;
        let mut shown = Vec::new();
        for nth in from..events.len().min(from + most) {
            let own = newer
                .take()
                .unwrap_or_else(|| text(&project, &path, events.get(nth)));
            let older = text(&project, &path, events.get(nth + 1));
            let mut json = event(&events[nth]);
            json["lines"] = json!(
                own.as_ref()
                    .zip(older.as_ref())
                    .map(|(new, old)| count(old, new))
            );
            shown.push(json);
            newer = Some(older);
        }
        Ok::<Value, Failure>(json!({"versions": shown, "all": events.len()}))
    })
    .await
}

/// The text of a version, empty before the first one. None if it cannot be compared.
fn text(project: &Project, path: &ProjectPath, event: Option<&PathEvent>) -> Option<String> {
    let Some(event) = event.filter(|event| event.op != OpKind::Remove) else {
        return Some(String::new());
    };
    let (bytes, _) = project.store.text_at(path, &At::Seq(event.seq)).ok()?;
    String::from_utf8(bytes)
        .ok()
        .filter(|text| text.len() <= BYTES)
}

/// Lines added and removed.
fn count(old: &str, new: &str) -> (usize, usize) {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let of = |tag| diff.iter_all_changes().filter(|c| c.tag() == tag).count();
    (of(ChangeTag::Insert), of(ChangeTag::Delete))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted() {
        assert_eq!(count("", "a\nb\n"), (2, 0));
        assert_eq!(count("a\nb\nc\n", "a\nx\nc\n"), (1, 1));
    }
}
