//! The link graph, limited to a displayable size, and the links of one file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quipu_claims::{Edge, Fate, Graph};
use quipu_contract::ProjectPath;
use quipu_protocol::Project;
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::reply::reply;
use crate::answer::Failure;
use crate::session::Session;

/// Maximum number of nodes in a readable picture. Beyond it, the nodes nearest to the focus, or the
/// best linked, are shown.
const NODES: usize = 1_200;
/// Maximum number of links listed per file.
const LINKS: usize = 200;

#[derive(Debug, Deserialize)]
pub struct Parameters {
    /// Shows only pages near this one …
    #[serde(default)]
    focus: String,
    /// … within this many links.
    #[serde(default)]
    depth: usize,
}

pub async fn graph(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let map = page.kept.links(&project)?;
        let graph = &map.graph;
        let mut near: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for edge in graph.edges.iter().filter(|e| e.from.path != e.to) {
            near.entry(&edge.from.path).or_default().insert(&edge.to);
            near.entry(&edge.to).or_default().insert(&edge.from.path);
        }
        let chosen = choose(graph, &near, &asked, map.root.as_deref());
        let shown: Vec<usize> = (0..graph.pages.len()).filter(|nth| chosen.contains(graph.pages[*nth].as_str())).collect();
        let index: BTreeMap<&str, usize> = shown.iter().enumerate().map(|(at, nth)| (graph.pages[*nth].as_str(), at)).collect();
        let orphans: BTreeMap<&str, bool> = graph.orphans.iter().map(|o| (o.path.as_str(), o.is_memory)).collect();
        let mut dense: BTreeMap<&str, usize> = BTreeMap::new();
        for one in &graph.dense {
            let most = dense.entry(&one.at.path).or_default();
            *most = one.links.max(*most);
        }
        let node = |nth: &usize| {
            let path = graph.pages[*nth].as_str();
            json!({
                "path": path,
                "class": ProjectPath::parse(path).map_or("free", |p| project.contract.class(&p).as_str()),
                "level": map.levels[*nth].map(|level| level.name()),
                "orphan": orphans.get(path).copied().unwrap_or(false),
                "dense": dense.get(path),
                "degree": near.get(path).map_or(0, BTreeSet::len),
                "root": map.root.as_deref() == Some(path),
            })
        };
        let mut bundles: BTreeMap<(usize, usize), (usize, bool)> = BTreeMap::new();
        let mut broken: BTreeMap<usize, usize> = BTreeMap::new();
        for edge in &graph.edges {
            let Some(from) = index.get(edge.from.path.as_str()) else { continue };
            if edge.fate != Fate::Fine {
                *broken.entry(*from).or_default() += 1;
            }
            if let Some(to) = index.get(edge.to.as_str()).filter(|to| *to != from) {
                let bundle = bundles.entry((*from, *to)).or_default();
                bundle.0 += 1;
                bundle.1 |= edge.presses;
            }
        }
        let links: Vec<Value> = bundles.iter().map(|((from, to), (count, presses))| json!([from, to, count, presses])).collect();
        Ok(json!({
            "nodes": shown.iter().map(node).collect::<Vec<_>>(),
            "links": links,
            "broken": broken,
            "pages": graph.pages.len(),
            "links_all": graph.edges.len(),
            "broken_all": graph.broken().count(),
            "orphans_all": graph.orphans.iter().filter(|o| o.is_memory).count(),
            "dense_all": graph.dense.len(),
            "root": map.root,
            "focus": asked.focus,
        }))
    })
    .await
}

/// Selects the pages to draw: all, those near the focus, or those with the most neighbours. The
/// index leads everywhere, so it is near only if it is the focus itself.
fn choose<'g>(
    graph: &'g Graph,
    near: &BTreeMap<&'g str, BTreeSet<&'g str>>,
    asked: &Parameters,
    root: Option<&str>,
) -> BTreeSet<&'g str> {
    let known = graph.pages.iter().find(|page| **page == asked.focus);
    if let Some(focus) = known {
        let depth = if asked.depth == 0 {
            usize::MAX
        } else {
            asked.depth
        };
        let (mut seen, mut next) = (
            BTreeSet::from([focus.as_str()]),
            VecDeque::from([(focus.as_str(), 0)]),
        );
        while let Some((path, far)) = next.pop_front() {
            for other in near.get(path).into_iter().flatten().filter(|_| far < depth) {
                if root != Some(*other) && seen.len() < NODES && seen.insert(other) {
                    next.push_back((other, far + 1));
                }
            }
        }
        return seen;
    }
    let mut pages: Vec<&str> = graph.pages.iter().map(String::as_str).collect();
    if pages.len() > NODES {
        pages.sort_by_key(|page| std::cmp::Reverse(near.get(page).map_or(0, BTreeSet::len)));
        pages.truncate(NODES);
    }
    pages.into_iter().collect()
}

#[derive(Debug, Deserialize)]
pub struct OfFile {
    path: String,
}

/// Returns the targets of a file's links and the files that link to it, with the lines.
pub async fn of_file(State(page): Shared, Query(asked): Query<OfFile>) -> Response {
    reply(move || {
        let path = Session::path(&asked.path)?;
        let project = page.session().project()?;
        let map = page.kept.links(&project)?;
        let out = map.graph.out_of(path.as_str()).take(LINKS);
        let out: Vec<Value> = out
            .map(|e| json!({"to": e.to, "anchor": e.anchor, "line": e.from.line, "presses": e.presses, "fine": e.fate == Fate::Fine, "near": nearest(e)}))
            .collect();
        let mut texts = BTreeMap::new();
        let mut cited = Vec::new();
        for edge in map.graph.leading_to(path.as_str()).take(LINKS) {
            let line = line_of(&project, &mut texts, edge)?;
            cited.push(
                json!({"path": edge.from.path, "line": edge.from.line, "section": edge.section, "anchor": edge.anchor, "presses": edge.presses, "text": line}),
            );
        }
        Ok(json!({"out": out, "in": cited}))
    })
    .await
}

fn nearest(edge: &Edge) -> Option<&String> {
    match &edge.fate {
        Fate::Fine | Fate::Unread(_) => None,
        Fate::NoFile(near) | Fate::NoSection(near) => near.as_ref(),
    }
}

/// Returns the line that contains a link.
fn line_of<'e>(
    project: &Project,
    texts: &mut BTreeMap<&'e str, String>,
    edge: &'e Edge,
) -> Result<String, Failure> {
    let path = edge.from.path.as_str();
    if !texts.contains_key(path) {
        let read = project.store.read(&Session::path(path)?)?;
        texts.insert(
            path,
            read.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
                .unwrap_or_default(),
        );
    }
    let line = texts[path]
        .lines()
        .nth(edge.from.line.saturating_sub(1))
        .unwrap_or_default();
    Ok(line.trim().chars().take(300).collect())
}
