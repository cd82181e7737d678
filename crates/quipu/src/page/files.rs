//! Files by class, one window at a time. The server filters and sorts, so that a browser never
//! holds a hundred thousand files.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::Class;
use quipu_store::FileStatus;
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::reply::reply;

/// Maximum size of a window.
const MOST: usize = 500;

#[derive(Debug, Deserialize)]
pub struct Parameters {
    class: Option<String>,
    #[serde(default)]
    q: String,
    #[serde(default)]
    offset: usize,
    #[serde(default = "window")]
    limit: usize,
    #[serde(default)]
    order: String,
    /// With the order `folders`: the folder to list, with a slash at its end; empty for the root.
    #[serde(default)]
    under: String,
}

fn window() -> usize {
    200
}

/// A file as the list shows it.
struct Listed<'s> {
    path: &'s str,
    class: &'static str,
    seq: u64,
    len: u64,
    flag: Option<&'s str>,
}

pub async fn list(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let scan = page.kept.scan(&project)?;
        let ruled = scan.files.iter().map(|f| Listed {
            path: &f.path,
            class: f.class.as_str(),
            seq: f.seq,
            len: f.len,
            flag: f.flag.as_ref().map(|flag| flag.what.as_str()),
        });
        let journalled: BTreeMap<&str, &FileStatus> = scan.free_journalled.iter().map(|f| (f.path.as_str(), f)).collect();
        let flagged_free: BTreeSet<&str> = scan.files.iter().filter(|f| f.class == Class::Free).map(|f| f.path.as_str()).collect();
        let free = scan.free.iter().filter(|path| !flagged_free.contains(path.as_str())).map(|path| {
            let (seq, len) = journalled.get(path.as_str()).map_or((0, 0), |f| (f.seq, f.len));
            Listed { path, class: "free", seq, len, flag: None }
        });
        let wanted = asked.q.to_lowercase();
        let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
        let mut flagged = 0;
        let mut files: Vec<Listed<'_>> = Vec::new();
        for file in ruled.chain(free) {
            if !wanted.is_empty() && !file.path.to_lowercase().contains(&wanted) {
                continue;
            }
            *classes.entry(file.class).or_default() += 1;
            flagged += usize::from(file.flag.is_some());
            if asked.class.as_deref().is_none_or(|class| class == file.class || class == "flagged" && file.flag.is_some()) {
                files.push(file);
            }
        }
        let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
        if asked.order == "folders" {
            files.retain(|file| {
                let Some(rest) = file.path.strip_prefix(asked.under.as_str()) else {
                    return false;
                };
                let Some(end) = rest.find('/') else {
                    return true;
                };
                *folders.entry(&file.path[..=asked.under.len() + end]).or_default() += 1;
                false
            });
        }
        match asked.order.as_str() {
            "newest" => files.sort_by(|a, b| b.seq.cmp(&a.seq).then_with(|| a.path.cmp(b.path))),
            _ => files.sort_by(|a, b| a.path.cmp(b.path)),
        }
        let inner = folders.iter().map(|(path, number)| json!({"folder": path, "files": number}));
        let own = files.iter().map(|f| json!({"path": f.path, "class": f.class, "seq": f.seq, "len": f.len, "flag": f.flag}));
        let shown: Vec<Value> = inner.chain(own).skip(asked.offset).take(asked.limit.min(MOST)).collect();
        Ok(json!({"total": folders.len() + files.len(), "offset": asked.offset, "classes": classes, "flagged": flagged, "files": shown}))
    })
    .await
}
