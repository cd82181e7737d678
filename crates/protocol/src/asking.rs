//! A question to one leaf: whoever asks gets one sentence with its line, and nothing else of the text.

use quipu_claims::{Page, Place, best_sentence};
use quipu_contract::{Actor, BadPath, ProjectPath};
use quipu_text::recall::Tier;
use serde::Serialize;
use thiserror::Error;

use crate::project::Project;
use crate::reading::{ReadError, read_pointer};

/// A leaf may ask about another leaf, but not without end.
pub const DEEPEST: usize = 3;

#[derive(Debug, Error)]
pub enum AskError {
    #[error("questions are nested {0} deep: answer from what is there")]
    TooDeep(usize),
    #[error("`{0}` does not say")]
    Silent(String),
    #[error("the reader failed: {0}")]
    Reader(String),
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// One sentence, and where it comes from.
#[derive(Debug, Clone, Serialize)]
pub struct Asking {
    pub answer: String,
    pub at: Place,
    /// Who answered: `extract`, or the reader's name.
    pub by: String,
}

/// Whoever reads a leaf: text in with its first line, one sentence and its line out.
pub type Reader<'a> = &'a dyn Fn(&str, usize, &str) -> Result<(String, usize), String>;

/// Asks the text that a pointer names. A role may ask about a manuscript that it may not read: that is what asking is for.
pub fn ask_leaf(
    project: &Project,
    actor: &Actor,
    pointer: &str,
    question: &str,
    depth: usize,
    reader: Option<(&str, Reader<'_>)>,
) -> Result<Asking, AskError> {
    if depth >= DEEPEST {
        return Err(AskError::TooDeep(depth));
    }
    let path = ProjectPath::parse(pointer.split('#').next().unwrap_or(pointer))?;
    let leaf = project.contract.rule(&path).is_some_and(|rule| rule.tier.as_deref() == Some("L2"));
    let reading = read_pointer(project, if leaf { &Actor::Person } else { actor }, pointer, None)?;
    let text = String::from_utf8_lossy(&reading.bytes).into_owned();
    if let Some((name, read)) = reader {
        let (answer, line) = read(&text, reading.line, question).map_err(AskError::Reader)?;
        let answer = quipu_text::first_sentence(&answer).to_owned();
        return Ok(Asking { answer, at: Place::new(path.as_str(), line), by: name.to_owned() });
    }
    let page = Page { path: path.as_str().to_owned(), tier: Tier::L2, is_memory: true, form: None, text };
    let (answer, at) = best_sentence(&page, question).ok_or_else(|| AskError::Silent(pointer.to_owned()))?;
    Ok(Asking { answer, at: Place::new(&at.path, at.line + reading.line - 1), by: "extract".into() })
}
