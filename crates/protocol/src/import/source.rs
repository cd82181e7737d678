//! The kinds of import source, and the pieces that a source is read into.
//!
//! Reading a source changes nothing; `plan.rs` commits the pieces.

use std::path::Path;

use super::error::ImportError;
use super::plan::LeftOut;
use super::{claude, folder, graph, wikilink};
use crate::files::source_file::Sources;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportSource {
    /// A folder of notes with `[[links]]` between them.
    BasicMemory,
    /// The folder in which Claude Code stores its memory of a project.
    ClaudeMemory,
    /// A CLAUDE.md with its imports and the rules beside it.
    ClaudeMd,
    /// The JSON lines of the MCP memory server: entities and relations.
    McpMemory,
    /// Any folder of Markdown, or one file.
    Markdown,
}

impl ImportSource {
    pub const ALL: [ImportSource; 5] = [
        Self::BasicMemory,
        Self::ClaudeMemory,
        Self::ClaudeMd,
        Self::McpMemory,
        Self::Markdown,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::BasicMemory => "basic-memory",
            Self::ClaudeMemory => "claude-memory",
            Self::ClaudeMd => "claude-md",
            Self::McpMemory => "mcp-memory",
            Self::Markdown => "markdown",
        }
    }

    pub fn parse(name: &str) -> Result<ImportSource, ImportError> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|source| source.name() == name)
            .ok_or_else(|| ImportError::NoSource(name.to_owned(), known()))
    }

    /// Reads all pieces of the source. `except` is a folder to skip: the target of the import.
    pub(super) fn take(
        self,
        place: &Path,
        except: &Path,
        sources: Sources<'_>,
    ) -> Result<Taken, ImportError> {
        let mut taken = match self {
            Self::BasicMemory | Self::Markdown => folder::take(place, except, sources)?,
            Self::ClaudeMemory => folder::take(&claude::memory_folder(place)?, except, sources)?,
            Self::ClaudeMd => claude::take(place, sources)?,
            Self::McpMemory => graph::take(place, sources)?,
        };
        if matches!(self, Self::BasicMemory | Self::Markdown) {
            wikilink::lead(&mut taken.pieces);
        }
        Ok(taken)
    }
}

/// One unit of imported memory.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// Its name in the source.
    pub from: String,
    /// Its path below the target folder.
    pub to: String,
    /// The bytes in the source.
    pub original: Vec<u8>,
    /// The bytes to be written, without the provenance.
    pub bytes: Vec<u8>,
}

impl Piece {
    /// A file that is imported unchanged.
    pub fn of_file(name: &str, bytes: Vec<u8>) -> Piece {
        Piece {
            from: name.to_owned(),
            to: place_of(name),
            original: bytes.clone(),
            bytes,
        }
    }

    pub fn is_markdown(&self) -> bool {
        self.to.ends_with(".md")
    }
}

#[derive(Debug, Default)]
pub(super) struct Taken {
    pub pieces: Vec<Piece>,
    pub left_out: Vec<LeftOut>,
}

impl Taken {
    pub fn leave_out(&mut self, name: impl Into<String>, why: impl Into<String>) {
        self.left_out.push(LeftOut {
            from: name.into(),
            why: why.into(),
        });
    }
}

/// Converts a name to a valid project path: nothing hidden, no characters that some file systems
/// reject.
pub(super) fn place_of(name: &str) -> String {
    name.split('/')
        .map(plain_part)
        .collect::<Vec<_>>()
        .join("/")
}

/// The maximum length of a file name, with room for an extension.
const LONGEST: usize = 120;

pub(super) fn plain_part(part: &str) -> String {
    let odd = |c: char| {
        c.is_control()
            || r#"\/:*?"<>|"#.contains(c)
            || ('\u{200b}'..='\u{200f}').contains(&c)
            || c == '\u{feff}'
    };
    let plain: String = quipu_contract::normal_form(part)
        .chars()
        .map(|c| if odd(c) { '-' } else { c })
        .collect();
    let (stem, ending) = plain
        .rsplit_once('.')
        .map_or((plain.as_str(), ""), |(stem, ending)| (stem, ending));
    let mut end = stem.len().min(LONGEST);
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    let short = if ending.is_empty() {
        stem[..end].to_owned()
    } else {
        format!("{}.{ending}", &stem[..end])
    };
    let trimmed = short
        .trim_start_matches(['.', ' '])
        .trim_end_matches(['.', ' ']);
    if trimmed.is_empty() {
        "_".to_owned()
    } else {
        trimmed.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_contract::ProjectPath;

    #[test]
    fn every_name_has_a_place() {
        for (name, wanted) in [
            ("notes/Coffee: brewing?.md", "notes/Coffee- brewing-.md"),
            (".claude/rules/a.md", "claude/rules/a.md"),
            ("记忆/第一章.md", "记忆/第一章.md"),
            ("cafe\u{301}.md", "café.md"),
            ("...", "_"),
            (" a ", "a"),
        ] {
            assert_eq!(place_of(name), wanted);
            ProjectPath::parse(wanted).unwrap();
        }
        ProjectPath::parse(&place_of(&"长".repeat(300))).unwrap();
    }
}
