//! Recall: which sections of a project's files answer a question.
//!
//! Sections go in as plain data, hits come out with file, line, heading path, tier and version. The
//! index is derived: it may be deleted at any time, and what it answers after a rebuild is what it
//! answered before, whatever the order of updates. It starts no threads and never syncs. Reading
//! Markdown, deciding which files a role may see and noticing that files changed are the caller's.
//!
//! | file | owns |
//! |---|---|
//! | `terms` | words, stems, Chinese pairs |
//! | `signs` | dates, times, questions |
//! | `segment`, `manifest`, `bytes` | the index on disk |
//! | `index`, `writer` | reading and changing it |
//! | `scope`, `question`, `pool` | which sections a question may mean |
//! | `rank`, `weights` | their order |
//! | `encoder`, `parts`, `vectors`, `direction`, `nearest`, `meaning` | meaning beyond words |
//! | `wide` | arithmetic on many numbers |

mod background;
mod bytes;
mod direction;
#[cfg(feature = "model")]
mod encoder;
#[cfg(not(feature = "model"))]
#[path = "no_encoder.rs"]
mod encoder;
mod index;
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
mod vectors;
mod weights;
mod wide;
mod writer;

use std::path::PathBuf;

pub use index::{Index, Overlay};
pub use writer::{Receipt, Writer};

/// How close a file is to the agent: what it always sees, what it looks up, what it rarely opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The index: short, always in view.
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

/// A piece of a file under one heading: the unit of recall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The line it starts on, counted from 1.
    pub line: u32,
    /// The headings above it, outermost first, its own last.
    pub heading_path: Vec<String>,
    /// Its text without its heading.
    pub text: String,
}

/// One file as recall sees it: sections in order, at one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// Where the file is, relative to the project.
    pub path: String,
    /// The version these sections were read from; recall only compares it.
    pub version: String,
    /// How close the file is to the agent.
    pub tier: Tier,
    /// All its sections, in the order of the file.
    pub sections: Vec<Section>,
}

/// Which files a question is asked of: called with path and tier.
pub type Visible<'a> = &'a dyn Fn(&str, Tier) -> bool;

/// How to ask.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// How many hits at most.
    pub k: usize,
    /// Files to ask; `None` asks all. The answer is what a project of only these files would give.
    pub visible: Option<Visible<'a>>,
    /// Whether the sentence encoder takes part. Without it, words alone decide.
    pub use_model: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            k: 10,
            visible: None,
            use_model: true,
        }
    }
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("k", &self.k)
            .field("visible", &self.visible.is_some())
            .field("use_model", &self.use_model)
            .finish()
    }
}

/// A section that may answer the question.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The file it is in.
    pub path: String,
    /// The line it starts on.
    pub line: u32,
    /// The headings above it.
    pub heading_path: Vec<String>,
    /// The tier of its file.
    pub tier: Tier,
    /// How well it matches; comparable within one answer only.
    pub score: f32,
    /// The part of its text that matches best.
    pub snippet: String,
    /// The version of the file that was searched.
    pub version: String,
    /// Which section of the file it is, counted from 0.
    pub ordinal: u32,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The best sections, best first.
    pub hits: Vec<Hit>,
    /// How many files and sections were searched.
    pub files: usize,
    /// How many sections were searched.
    pub sections: usize,
    /// How many of them the encoder has seen; fewer than `sections` means its part is incomplete.
    pub encoded: usize,
}

/// What is wrong with a damaged index. The fix is always the same: rebuild it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Bytes are missing.
    #[error("bytes are missing")]
    Short,
    /// Bytes changed after they were written.
    #[error("a checksum does not match")]
    Checksum,
    /// Another version of Quipu wrote it, or it is no index.
    #[error("it has another format")]
    Format,
}

/// Why the index gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no index in the folder yet.
    #[error("there is no recall index in {}", .0.display())]
    Missing(PathBuf),
    /// The index cannot be trusted and must be rebuilt.
    #[error("the recall index in {} is damaged: {damage}", .folder.display())]
    Damaged {
        /// Where it is.
        folder: PathBuf,
        /// What is wrong.
        damage: Damage,
    },
    /// The file system refused.
    #[error("recall index: {0}")]
    Io(#[from] std::io::Error),
}

impl Error {
    /// Whether building the index anew fixes it.
    #[must_use]
    pub fn needs_rebuild(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Damaged { .. })
    }
}
