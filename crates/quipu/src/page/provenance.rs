//! The origin of a version of a file: the texts that an attempt read to write it, and the files
//! that later attempts made from it.

use std::collections::{BTreeMap, BTreeSet};

use quipu_protocol::flow::AttemptFact;
use quipu_protocol::{ReadError, read_pointer};
use quipu_store::Version;
use quipu_web::axum::extract::{Query, State};
use quipu_web::axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::reading::event;
use super::reply::reply;
use crate::answer::Failure;
use crate::session::Session;

/// Attempts between the chosen version and the farthest one shown, in each direction.
const FAR: i32 = 2;
/// Maximum number of versions in the picture.
const NODES: usize = 120;

#[derive(Debug, Deserialize)]
pub struct Parameters {
    path: String,
    at: Option<String>,
}

/// A file at a version.
type Text<'f> = (&'f str, &'f Version);

pub async fn provenance(State(page): Shared, Query(asked): Query<Parameters>) -> Response {
    reply(move || {
        let session = page.session();
        let project = session.project()?;
        let path = Session::path(&asked.path)?;
        let at = asked.at.as_deref().filter(|at| !at.is_empty());
        let version = match read_pointer(&project, &session.actor, path.as_str(), at) {
            Ok(reading) => reading.version,
            // Nothing of it was ever accepted, or it was removed: it has no origin.
            Err(ReadError::NotFound { .. }) => return Ok(json!({"version": null})),
            Err(error) => return Err(error.into()),
        };
        let facts: Vec<AttemptFact> = project
            .store
            .noted(0)?
            .into_iter()
            .filter_map(AttemptFact::of)
            .collect();
        let mut picture = Picture::of(&facts);
        picture.grow((path.as_str(), &version));
        let events = project.store.events(&path)?;
        let written = events.iter().find(|one| one.version == version);
        let mut answer = picture.to_json();
        answer["version"] = json!(version);
        answer["event"] = json!(written.map(event));
        Ok::<Value, Failure>(answer)
    })
    .await
}

/// The texts around one text, and the attempts that lead from one to another.
struct Picture<'f> {
    facts: &'f [AttemptFact],
    made_by: BTreeMap<Text<'f>, usize>,
    read_by: BTreeMap<Text<'f>, Vec<usize>>,
    nodes: Vec<(Text<'f>, i32)>,
    known: BTreeMap<Text<'f>, usize>,
    edges: BTreeSet<(usize, usize, usize)>,
    /// Attempts that read the chosen text, whether they made a file or decided something.
    uses: Vec<usize>,
    /// Texts were left out, because the picture is full.
    is_cut: bool,
}

impl<'f> Picture<'f> {
    fn of(facts: &'f [AttemptFact]) -> Picture<'f> {
        let (mut made_by, mut read_by) = (BTreeMap::new(), BTreeMap::<_, Vec<usize>>::new());
        for (at, fact) in facts.iter().enumerate() {
            for file in &fact.files {
                made_by.insert((file.path.as_str(), &file.version), at);
            }
            for read in &fact.note.reads {
                let readers = read_by
                    .entry((read.path.as_str(), &read.version))
                    .or_default();
                if readers.last() != Some(&at) {
                    readers.push(at);
                }
            }
        }
        Picture {
            facts,
            made_by,
            read_by,
            nodes: Vec::new(),
            known: BTreeMap::new(),
            edges: BTreeSet::new(),
            uses: Vec::new(),
            is_cut: false,
        }
    }

    fn grow(&mut self, chosen: (&str, &Version)) {
        // The text that the facts name, because it lives as long as they do.
        let known = self.made_by.keys().chain(self.read_by.keys());
        let own = known.copied().find(|text| *text == chosen);
        let Some(own) = own else { return };
        self.add(own, 0);
        self.uses = self.read_by.get(&own).cloned().unwrap_or_default();
        for direction in [-1, 1] {
            let mut front = vec![0];
            for far in 1..=FAR {
                front = front
                    .into_iter()
                    .flat_map(|node| self.step(node, direction, far))
                    .collect();
            }
        }
    }

    /// Adds the texts one attempt before or after a node; returns those that are new.
    fn step(&mut self, node: usize, direction: i32, far: i32) -> Vec<usize> {
        let text = self.nodes[node].0;
        let facts = self.facts;
        let attempts = match direction {
            -1 => self.made_by.get(&text).copied().into_iter().collect(),
            _ => self.read_by.get(&text).cloned().unwrap_or_default(),
        };
        let mut new = Vec::new();
        for attempt in attempts {
            let fact = &facts[attempt];
            let reads = fact
                .note
                .reads
                .iter()
                .map(|r| (r.path.as_str(), &r.version));
            let files = fact.files.iter().map(|f| (f.path.as_str(), &f.version));
            let others: BTreeSet<Text<'f>> = match direction {
                -1 => reads.collect(),
                _ => files.collect(),
            };
            for other in others.into_iter().filter(|other| *other != text) {
                let is_known = self.known.contains_key(&other);
                let Some(at) = self.add(other, direction * far) else {
                    continue;
                };
                let (from, to) = if direction < 0 {
                    (at, node)
                } else {
                    (node, at)
                };
                self.edges.insert((from, to, attempt));
                new.extend((!is_known).then_some(at));
            }
        }
        new
    }

    fn add(&mut self, text: Text<'f>, level: i32) -> Option<usize> {
        if let Some(known) = self.known.get(&text) {
            return Some(*known);
        }
        if self.nodes.len() == NODES {
            self.is_cut = true;
            return None;
        }
        self.nodes.push((text, level));
        self.known.insert(text, self.nodes.len() - 1);
        Some(self.nodes.len() - 1)
    }

    fn to_json(&self) -> Value {
        let mut newest: BTreeMap<&str, &Version> = BTreeMap::new();
        for fact in self.facts {
            newest.extend(fact.files.iter().map(|f| (f.path.as_str(), &f.version)));
        }
        let made = self.nodes.first();
        let made = made.and_then(|(text, _)| self.made_by.get(text).copied());
        let used: BTreeSet<usize> = self.edges.iter().map(|(_, _, attempt)| *attempt).collect();
        let used = used.into_iter().chain(self.uses.clone()).chain(made);
        let attempts: BTreeMap<usize, Value> =
            used.map(|at| (at, to_json(&self.facts[at]))).collect();
        let nodes = self.nodes.iter().map(|((path, version), level)| {
            let seq = self.made_by.get(&(*path, *version));
            let is_old = newest.get(path).is_some_and(|newest| newest != version);
            json!({"path": path, "version": version, "level": level, "seq": seq.map(|at| self.facts[*at].seq), "old": is_old})
        });
        json!({
            "nodes": nodes.collect::<Vec<_>>(),
            "edges": self.edges,
            "attempts": attempts,
            "made_by": made,
            "reads": made.map(|at| &self.facts[at].note.reads),
            "uses": self.uses,
            "cut": self.is_cut,
        })
    }
}

fn to_json(fact: &AttemptFact) -> Value {
    let note = &fact.note;
    json!({
        "attempt": note.attempt, "step": note.step, "unit": note.unit, "agent": note.agent, "ruling": note.ruling,
        "at": fact.at, "seq": fact.seq, "usage": note.usage, "files": fact.files.iter().map(|f| &f.path).collect::<Vec<_>>(),
    })
}
