//! Shows an earlier attempt from the journal's note, and from its folder if it still exists.
//!
//! Reading only. The journal is authoritative, and the folder may have been deleted.

use std::collections::BTreeSet;
use std::path::Path;

use quipu_contract::plan::MOST_STAGES;
use quipu_store::StoreError;
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::folder::folder_of;
use super::note::AttemptFact;
use crate::project::open::Project;

/// An earlier attempt.
#[derive(Debug, Clone, Serialize)]
pub struct Replay {
    pub fact: AttemptFact,
    /// The folder of the attempt; None if it was deleted.
    #[serde(serialize_with = "folder_text")]
    pub folder: Option<std::path::PathBuf>,
    /// The brief sent to the agent; all parts if there were several.
    pub brief: Option<String>,
    /// Other attempts of the same job, newest first.
    pub others: Vec<String>,
}

/// A path need not be UTF-8, but JSON must be.
fn folder_text<S: Serializer>(
    folder: &Option<std::path::PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    folder
        .as_ref()
        .map(|folder| folder.display().to_string())
        .serialize(serializer)
}

#[derive(Debug, Error)]
pub enum ReplayError {
    #[error("unknown attempt `{0}`")]
    NoRun(String),
    #[error("`{asked}` matches {} attempts: {}", attempts.len(), render_attempts(attempts))]
    Ambiguous {
        asked: String,
        attempts: Vec<String>,
    },
    #[error("`{path}` at `{at}` was not written by an attempt")]
    NotMade { path: String, at: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Shorter prefixes are ambiguous, because the name begins with a date.
const SHORTEST_BEGINNING: usize = 8;

/// At most this many attempts are named; the rest are counted.
const NAMED_ATTEMPTS: usize = 12;

fn render_attempts(attempts: &[String]) -> String {
    let named = attempts
        .iter()
        .take(NAMED_ATTEMPTS)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match attempts.len().checked_sub(NAMED_ATTEMPTS) {
        Some(more) if more > 0 => format!("{named} and {more} more"),
        _ => named,
    }
}

/// Loads the brief, part by part. The transcript is preferred because it includes the folders; else
/// the stored brief files are used.
fn load_brief(folder: &Path) -> Option<String> {
    let mut parts = load_sent(folder).unwrap_or_default();
    if parts.is_empty() {
        let made = |name: &str| quipu_store::read_regular_text(&folder.join(name)).ok();
        parts = match made("brief.md") {
            Some(brief) => vec![brief],
            None => (1..=MOST_STAGES)
                .map_while(|number| made(&format!("brief-{number}.md")))
                .collect(),
        };
    }
    match parts.as_slice() {
        [] => None,
        [brief] => Some(brief.clone()),
        many => {
            let told = |(index, brief): (usize, &String)| {
                format!("══ {} of {}\n{}\n", index + 1, many.len(), brief.trim_end())
            };
            Some(
                many.iter()
                    .enumerate()
                    .map(told)
                    .collect::<Vec<_>>()
                    .join("\n"),
            )
        }
    }
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    who: String,
    #[serde(default)]
    text: String,
    /// The number of bytes that were cut off.
    cut: Option<u64>,
}

/// The briefs in a transcript. None if one of them was cut.
fn load_sent(folder: &Path) -> Option<Vec<String>> {
    let transcript = quipu_store::read_regular_text(&folder.join("transcript.jsonl")).ok()?;
    let lines = transcript
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok())
        .filter(|line| line.who == "brief");
    lines
        .map(|line| line.cut.is_none().then_some(line.text))
        .collect()
}

/// Finds an attempt by its name or a prefix of it, or by a file that it made: `PATH@VERSION`,
/// `PATH`.
pub fn replay(project: &Project, asked: &str) -> Result<Replay, ReplayError> {
    let facts: Vec<AttemptFact> = project
        .store
        .noted(0)?
        .into_iter()
        .filter_map(AttemptFact::of)
        .collect();
    let exact = facts.iter().rev().find(|f| f.note.attempt == asked);
    let by_name = match exact {
        Some(fact) => Some(fact),
        None if asked.len() < SHORTEST_BEGINNING => None,
        None => {
            let begun: BTreeSet<&str> = facts
                .iter()
                .map(|f| f.note.attempt.as_str())
                .filter(|attempt| attempt.starts_with(asked))
                .collect();
            if begun.len() > 1 {
                return Err(ReplayError::Ambiguous {
                    asked: asked.to_owned(),
                    attempts: begun.into_iter().rev().map(str::to_owned).collect(),
                });
            }
            facts
                .iter()
                .rev()
                .find(|f| f.note.attempt.starts_with(asked))
        }
    };
    let by_job = || {
        facts
            .iter()
            .rev()
            .find(|f| f.note.job().to_string() == asked)
    };
    let by_file = || {
        let (path, version) = asked.rsplit_once('@').unwrap_or((asked, ""));
        facts.iter().rev().find(|f| {
            f.files
                .iter()
                .any(|file| file.path == path && file.version.as_str().starts_with(version))
        })
    };
    let Some(fact) = by_name.or_else(by_job).or_else(by_file) else {
        return Err(match asked.rsplit_once('@') {
            Some((path, at)) => ReplayError::NotMade {
                path: path.to_owned(),
                at: at.to_owned(),
            },
            None => ReplayError::NoRun(asked.to_owned()),
        });
    };
    let folder = Some(folder_of(project.store.root(), &fact.note.attempt)).filter(|f| f.is_dir());
    let brief = folder.as_deref().and_then(load_brief);
    let same = facts
        .iter()
        .rev()
        .filter(|f| f.note.job() == fact.note.job() && f.note.attempt != fact.note.attempt);
    let others = same.map(|f| f.note.attempt.clone()).collect();
    Ok(Replay {
        folder,
        brief,
        others,
        fact: fact.clone(),
    })
}
