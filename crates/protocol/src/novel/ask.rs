//! Answers a question about one leaf with a single sentence and its line.
//!
//! A role may ask about a text that it may not read, so nothing else of the text is returned: no
//! headings, and no sentence beyond a fixed length.

use quipu_claims::{Page, Place, best_sentence};
use quipu_contract::{Actor, AskPointer, BadPath, Place as Rule, ProjectPath, is_line_break};
use quipu_recall::Tier;
use serde::Serialize;
use thiserror::Error;

use crate::files::read::{ReadError, read_pointer, split_pointer};
use crate::project::open::Project;

/// A leaf may ask about another leaf; this bounds the nesting.
pub const DEEPEST: usize = 3;

/// Answers are cut to this length. Few sentences are longer. Without the cut, a role that may only
/// ask could read a whole text that has no full stop.
pub const MOST_ANSWER_CHARS: usize = 500;

#[derive(Debug, Error)]
pub enum AskError {
    #[error("questions are nested {0} levels deep: answer from the text you have")]
    TooDeep(usize),
    #[error("`{0}` does not answer the question")]
    Silent(String),
    #[error("the agent failed: {0}")]
    Reader(String),
    /// The contract, not the role, chooses the agent that reads a text for a role without read
    /// access.
    #[error(
        "role `{role}` may not read this text; only an agent of the contract may read it for the \
         role, not `{reader}`"
    )]
    ForeignReader {
        role: String,
        reader: String,
        rule: Rule,
    },
    #[error("`{path}` has no section `{anchor}`")]
    NoSection { path: ProjectPath, anchor: String },
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// One sentence and its place.
#[derive(Debug, Clone, Serialize)]
pub struct Asking {
    pub answer: String,
    pub at: Place,
    /// The source of the answer: `extract`, or the reader's name.
    pub by: String,
    /// Whether the sentence was cut; it then ends in `…`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl Asking {
    /// Joins the sentence into one line and cuts it to `MOST_ANSWER_CHARS`.
    fn of(sentence: &str, at: Place, by: &str) -> Asking {
        let line = sentence
            .split(is_line_break)
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        let cut = line.char_indices().nth(MOST_ANSWER_CHARS);
        let answer = cut.map_or_else(
            || line.clone(),
            |(end, _)| format!("{}…", line[..end].trim_end()),
        );
        Asking {
            answer,
            at,
            by: by.to_owned(),
            cut: cut.is_some(),
        }
    }
}

/// Reads a leaf for the caller. Arguments: the text, its first line number, the question. Returns
/// one sentence and its line.
pub type Reader<'a> = &'a dyn Fn(&str, usize, &str) -> Result<(String, usize), String>;

/// Asks the text that a pointer names. A role may ask about texts that it reads, and about those
/// that the contract lets it ask without reading.
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
    let (path, _) = split_pointer(project, pointer)?;
    let reading = match read_pointer(project, actor, pointer, None) {
        Err(refused @ (ReadError::Denied(_) | ReadError::OnlySections { .. })) => {
            match may_ask(project, actor, &path) {
                None => return Err(refused.into()),
                Some(ask) => {
                    let role = actor.role().map(ToString::to_string).unwrap_or_default();
                    let foreign = reader
                        .map(|(name, _)| name)
                        .filter(|name| !project.contract.agents.contains_key(*name));
                    if let Some(reader) = foreign {
                        return Err(AskError::ForeignReader {
                            role,
                            reader: reader.to_owned(),
                            rule: ask.place.clone(),
                        });
                    }
                    read_pointer(project, &Actor::Person, pointer, None)
                        .map_err(without_sections)?
                }
            }
        }
        other => other?,
    };
    let text = String::from_utf8_lossy(&reading.bytes).into_owned();
    if let Some((name, read)) = reader {
        let (answer, line) = read(&text, reading.line, question).map_err(AskError::Reader)?;
        return Ok(Asking::of(
            quipu_text::first_sentence(&answer),
            Place::new(path.as_str(), line),
            name,
        ));
    }
    let page = Page {
        path: path.as_str().to_owned(),
        tier: Tier::L2,
        is_memory: true,
        form: None,
        text,
    };
    let (answer, at) =
        best_sentence(&page, question).ok_or_else(|| AskError::Silent(pointer.to_owned()))?;
    Ok(Asking::of(
        &answer,
        Place::new(&at.path, at.line + reading.line - 1),
        "extract",
    ))
}

fn may_ask<'p>(project: &'p Project, actor: &Actor, path: &ProjectPath) -> Option<&'p AskPointer> {
    project
        .contract
        .grant(actor)
        .ok()?
        .may_ask(path, &project.contract.actor_binding(actor))
}

/// Drops the list of headings from the error: headings are part of a text that the role may not
/// read.
fn without_sections(error: ReadError) -> AskError {
    match error {
        ReadError::NoSection { path, miss, .. } => AskError::NoSection {
            path,
            anchor: miss.anchor,
        },
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_line_of_bounded_length() {
        let at = || Place::new("a.md", 3);
        let short = Asking::of("Otto came\nhome.", at(), "extract");
        assert_eq!(
            (short.answer.as_str(), short.cut),
            ("Otto came home.", false)
        );
        let long = Asking::of(&"word, ".repeat(10_000), at(), "extract");
        assert_eq!(
            (
                long.answer.chars().count() <= MOST_ANSWER_CHARS + 1,
                long.answer.ends_with('…'),
                long.cut
            ),
            (true, true, true)
        );
        assert!(
            Asking::of(&"字".repeat(501), at(), "x").cut
                && !Asking::of(&"字".repeat(500), at(), "x").cut
        );
    }
}
