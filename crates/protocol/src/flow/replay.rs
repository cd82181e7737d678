//! What did it see? A run from the journal's note, with its folder if that is still there.

use quipu_store::StoreError;
use serde::Serialize;
use thiserror::Error;

use super::folder::folder_of;
use super::note::RunFact;
use crate::project::Project;

/// A run, told again.
#[derive(Debug, Clone, Serialize)]
pub struct Replay {
    pub fact: RunFact,
    /// The folder of the run; none if it was deleted.
    pub folder: Option<std::path::PathBuf>,
    pub brief: Option<String>,
    /// Other runs of the same turn, newest first.
    pub others: Vec<String>,
}

#[derive(Debug, Error)]
pub enum ReplayError {
    #[error("no run `{0}` is in the journal")]
    NoRun(String),
    #[error("`{path}` at `{at}` was made by no run")]
    NotMade { path: String, at: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Finds a run by its name (or its beginning), or by a file and version it made: `PATH@VERSION`, `PATH`.
pub fn replay(project: &Project, asked: &str) -> Result<Replay, ReplayError> {
    let facts: Vec<RunFact> = project.store.noted(0)?.into_iter().filter_map(RunFact::of).collect();
    let by_name = facts
        .iter()
        .rev()
        .find(|f| f.note.run == asked)
        .or_else(|| facts.iter().rev().find(|f| asked.len() >= 8 && f.note.run.starts_with(asked)));
    let by_turn = || facts.iter().rev().find(|f| f.note.turn().to_string() == asked);
    let by_file = || {
        let (path, version) = asked.rsplit_once('@').unwrap_or((asked, ""));
        facts.iter().rev().find(|f| f.files.iter().any(|file| file.path == path && file.version.as_str().starts_with(version)))
    };
    let Some(fact) = by_name.or_else(by_turn).or_else(by_file) else {
        return Err(match asked.rsplit_once('@') {
            Some((path, at)) => ReplayError::NotMade { path: path.to_owned(), at: at.to_owned() },
            None => ReplayError::NoRun(asked.to_owned()),
        });
    };
    let folder = Some(folder_of(project.store.root(), &fact.note.run)).filter(|f| f.is_dir());
    let brief = folder
        .as_ref()
        .and_then(|f| std::fs::read_to_string(f.join("brief.md")).or_else(|_| std::fs::read_to_string(f.join("brief-1.md"))).ok());
    let same = facts.iter().rev().filter(|f| f.note.turn() == fact.note.turn() && f.note.run != fact.note.run);
    let others = same.map(|f| f.note.run.clone()).collect();
    Ok(Replay { folder, brief, others, fact: fact.clone() })
}
