//! One file: its text at any version, its history, and the author of each line.

use quipu_contract::ProjectPath;
use quipu_protocol::{Project, ReadError, Reading, read_pointer};
use quipu_store::{At, PathEvent};
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::colour::colour_lines;
use super::journal::is_restorable;
use super::markdown::parse_tree;
use super::picture::is_picture;
use super::reply::{both, reply};
use super::{Shared, editing, flagged};
use crate::answer::Failure;
use crate::session::Session;

/// A longer text is shown as lines, one window at a time.
const TREE_BYTES: usize = 256 << 10;
/// Maximum size of a window of lines, and maximum length of one line.
const LINES: usize = 1_000;
const LINE_CHARS: usize = 2_000;
/// Maximum number of versions on the slider.
const EVENTS: usize = 400;

#[derive(Debug, Deserialize)]
pub struct Parameters {
    path: String,
    at: Option<String>,
}

pub async fn file(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let session = page.session();
        let project = session.project()?;
        let path = Session::path(&asked.path)?;
        let at = asked.at.as_deref().filter(|at| !at.is_empty());
        let flag = flagged::find(&page, &project, &path)?;
        let (bytes, version) = match read_pointer(&project, &session.actor, path.as_str(), at) {
            Ok(Reading { bytes, version, .. }) => (Some(bytes), Some(version)),
            // Nothing of the file was ever accepted. What is on disk is shown as a difference.
            Err(ReadError::NotFound { .. }) if at.is_none() && !flag.is_null() => (None, None),
            Err(error) => return Err(error.into()),
        };
        let events = project.store.events(&path)?;
        let rule = project.contract.rule(&path);
        let length = bytes.as_ref().map_or(0, Vec::len);
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let markdown = path.as_str().ends_with(".md") && length <= TREE_BYTES;
        let tree = text
            .as_deref()
            .filter(|_| markdown)
            .map(|text| parse_tree(text, path.as_str(), &|p| is_file(&project, p)));
        let last = events.first().map(event);
        Ok::<Value, Failure>(json!({
            "path": path,
            "class": project.contract.class(&path).as_str(),
            "about": rule.map(|rule| both(&rule.about)),
            "rule": rule.map(|rule| rule.place.to_string()),
            "version": version,
            "bytes": length,
            "lines": text.as_deref().map(|text| text.lines().count()),
            "is_text": text.is_some(),
            "is_picture": version.is_some() && is_picture(path.as_str()),
            "tree": tree,
            "events": events.iter().take(EVENTS).map(event).collect::<Vec<_>>(),
            "versions": events.len(),
            "last": last,
            "flag": flag,
            "restorable": is_restorable(&project, &path),
            "edit": editing::operation(&project, &path).filter(|_| text.is_some()),
        }))
    })
    .await
}

pub fn event(event: &PathEvent) -> Value {
    json!({"seq": event.seq, "at": event.at, "kind": event.kind.as_str(), "op": event.op, "who": event.who.to_string(), "why": event.why, "version": event.version, "len": event.len})
}

fn is_file(project: &Project, path: &str) -> bool {
    ProjectPath::parse(path).is_ok_and(|path| {
        project
            .store
            .stat_text(&path)
            .is_ok_and(|look| look.is_some())
    })
}

#[derive(Debug, Deserialize)]
pub struct Window {
    path: String,
    at: Option<String>,
    #[serde(default)]
    from: usize,
    #[serde(default = "window")]
    count: usize,
    /// Adds the author of each line.
    #[serde(default)]
    blame: bool,
}

fn window() -> usize {
    400
}

pub async fn lines(State(page): Shared, Query(asked): Query<Window>) -> Response {
    reply(move || {
        let session = page.session();
        let project = session.project()?;
        let path = Session::path(&asked.path)?;
        let count = asked.count.min(LINES);
        let at = asked.at.as_deref().filter(|at| !at.is_empty());
        if asked.blame {
            let blame = match at.map(|at| At::parse(at).ok_or(at)) {
                None => project.store.blame(&path)?,
                Some(Ok(at)) => project.store.blame_at(&path, &at)?,
                Some(Err(at)) => {
                    let at = at.to_owned();
                    return Err(ReadError::BadVersion { path, at }.into());
                }
            };
            let shown: Vec<Value> = blame
                .iter()
                .skip(asked.from)
                .take(count)
                .map(|line| json!({"line": line.line, "text": short(&line.text), "seq": line.seq, "who": line.who.to_string(), "at": line.at}))
                .collect();
            return Ok(json!({"total": blame.len(), "from": asked.from, "lines": shown}));
        }
        let reading = read_pointer(&project, &session.actor, path.as_str(), at)?;
        let text = String::from_utf8_lossy(&reading.bytes);
        let coloured = (text.len() <= TREE_BYTES).then(|| colour_lines(path.as_str(), &text)).flatten();
        let tokens = |nth: usize, line: &str| coloured.as_ref().filter(|_| line.len() <= LINE_CHARS)?.get(nth);
        let shown: Vec<Value> = text
            .lines()
            .enumerate()
            .skip(asked.from)
            .take(count)
            .map(|(nth, line)| json!({"line": nth + 1, "text": short(line), "tokens": tokens(nth, line)}))
            .collect();
        Ok(json!({"total": text.lines().count(), "from": asked.from, "lines": shown}))
    })
    .await
}

/// Shortens a line, because very long lines freeze a browser.
fn short(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
