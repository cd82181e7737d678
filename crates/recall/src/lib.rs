//! Recall: finds the sections of a project's files that answer a question.
//!
//! The input is plain sections. The output is hits with file, line, heading path, tier and version.
//! The index is derived data: it may be deleted at any time, and a rebuilt index gives the same
//! answers, independent of the order of updates. This crate starts threads only to encode
//! sections, and never syncs. The caller parses Markdown, decides which files a role may see, and
//! detects changed files.
//!
//! | file | owns |
//! |---|---|
//! | `terms`, `languages` | words, stems, Chinese pairs |
//! | `signs`, `when` | dates, times, numbers, questions |
//! | `dialogue` | files whose sections are turns |
//! | `segment`, `manifest`, `bytes` | the index on disk |
//! | `index`, `writer` | reading and changing it |
//! | `scope`, `question`, `pool` | the candidates for a question |
//! | `rank`, `weights` | their order |
//! | `encoder`, `parts`, `vectors`, `direction`, `nearest`, `meaning` | semantic similarity |
//! | `texts` | vectors of single texts |
//! | `wide` | vectorised arithmetic |
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod background;
mod bytes;
mod dialogue;
mod direction;
#[cfg(feature = "model")]
mod encoder;
#[cfg(not(feature = "model"))]
#[path = "no_encoder.rs"]
mod encoder;
mod index;
mod languages;
mod manifest;
mod meaning;
mod nearest;
mod parts;
mod pool;
mod question;
mod rank;
mod scope;
mod segment;
mod signs;
mod snippet;
mod terms;
#[cfg(test)]
mod tests;
mod texts;
mod vectors;
mod weights;
mod when;
mod wide;
mod writer;

use std::path::PathBuf;

pub use jiff::civil::Date;

pub use index::{Index, Overlay};
pub use signs::date_of;
pub use terms::differ_in_script;
pub use texts::{encode_texts, encoder_name};
pub use writer::{Receipt, Writer};

/// The distance of a file from the agent's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The index: short and always in context.
    L0,
    /// Memory: looked up by section.
    L1,
    /// Manuscripts and other bulk.
    L2,
}

impl Tier {
    fn number(self) -> u8 {
        self as u8
    }

    fn of_number(number: u8) -> Option<Self> {
        [Self::L0, Self::L1, Self::L2]
            .into_iter()
            .find(|tier| tier.number() == number)
    }
}

/// A part of a file under one heading: the unit of recall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The line it starts on, counted from 1.
    pub line: u32,
    /// The headings above it, outermost first, and its own last.
    pub heading_path: Vec<String>,
    /// Its text without the heading.
    pub text: String,
}

/// One version of a file as an ordered list of sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// The path relative to the project.
    pub path: String,
    /// The version of the file. Recall only compares it.
    pub version: String,
    pub tier: Tier,
    /// All its sections, in file order.
    pub sections: Vec<Section>,
}

/// A filter for files, called with path and tier.
pub type Visible<'a> = &'a dyn Fn(&str, Tier) -> bool;

#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The maximum number of hits.
    pub k: usize,
    /// The files to search; `None` searches all. The answer is the same as in a project of only
    /// these files.
    pub visible: Option<Visible<'a>>,
    /// Use the sentence encoder. If false, only words count.
    pub use_model: bool,
    /// The day on which the question is asked. "Last week" is in relation to it.
    pub as_of: Option<Date>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            k: 10,
            visible: None,
            use_model: true,
            as_of: None,
        }
    }
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("k", &self.k)
            .field("visible", &self.visible.is_some())
            .field("use_model", &self.use_model)
            .field("as_of", &self.as_of)
            .finish()
    }
}

/// A section that may answer the question.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub path: String,
    pub line: u32,
    pub heading_path: Vec<String>,
    pub tier: Tier,
    /// The score, comparable only within one answer.
    pub score: f32,
    /// True if questions that nothing answers have first hits like this one. The limit is fitted:
    /// `docs/performance-recall.md`.
    pub weak: bool,
    /// The part of its text that matches best.
    pub snippet: String,
    /// The version of the file that was searched.
    pub version: String,
    /// The index of the section in the file, counted from 0.
    pub ordinal: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The best sections, best first.
    pub hits: Vec<Hit>,
    /// The number of files that were searched.
    pub files: usize,
    /// The number of sections that were searched.
    pub sections: usize,
    /// The number of those sections that are encoded. If lower than `sections`, semantic similarity
    /// is incomplete.
    pub encoded: usize,
}

impl Answer {
    /// Returns true if no hit is better than those for a question that nothing answers.
    #[must_use]
    pub fn is_weak(&self) -> bool {
        self.hits.iter().all(|hit| hit.weak)
    }
}

/// Returns true if a question contains a letter or digit of any script.
#[must_use]
pub fn has_words(question: &str) -> bool {
    question.contains(char::is_alphanumeric)
}

/// A ranked section with its feature values.
#[derive(Debug)]
pub struct Candidate {
    pub path: String,
    pub line: u32,
    pub features: Vec<f32>,
    /// True for a turn of a dialogue.
    pub is_turn: bool,
}

/// The candidates of a question, for fitting the weights.
#[derive(Debug)]
pub struct Explained {
    /// The share of the question's words, by weight, that occur in the searched files.
    pub known: f32,
    /// The number of its words, each by its rarity in general language.
    pub weight: f32,
    pub candidates: Vec<Candidate>,
}

/// The kind of damage of an index. The fix is always to rebuild it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("bytes are missing")]
    Short,
    /// Bytes changed after they were written.
    #[error("a checksum does not match")]
    Checksum,
    /// Another version of Quipu wrote it, or it is not an index.
    #[error("it has another format")]
    Format,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder has no index yet.
    #[error("no recall index in {}", .0.display())]
    Missing(PathBuf),
    /// The index cannot be trusted and must be rebuilt.
    #[error("the recall index in {} is damaged: {damage}", .folder.display())]
    Damaged {
        /// The folder of the index.
        folder: PathBuf,
        /// The kind of damage.
        damage: Damage,
    },
    #[error("recall index: {0}")]
    Io(#[from] std::io::Error),
}

impl Error {
    /// Returns true if rebuilding the index fixes the error.
    #[must_use]
    pub fn needs_rebuild(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Damaged { .. })
    }
}
