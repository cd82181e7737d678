//! View plans: which parts of which texts an agent is shown within a budget.
//!
//! This module is pure. Texts come as pieces with token counts, never as text; the caller supplies
//! ages and scores. The same input always gives the same plan. Invariants: a plan never exceeds its
//! budget, every `must` is in it in some form, and a larger budget never shows less of a `must`
//! (see `ladder`). If that is impossible, the result is an [`Overflow`] that names the pointers
//! in the way.

mod ladder;
mod overflow;
mod stages;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

use crate::class::Class;
use crate::pointer::{Need, Shrink};
use crate::tokens::Tokens;

pub use ladder::plan_view;
pub use overflow::{Overflow, Stuck};

/// Maximum number of stages. Beyond it, splitting a task costs more than it shows.
pub const MOST_STAGES: usize = 24;

/// With `auto`, this many of the newest sections of a growing file stay whole.
pub const AUTO_RECENT: u32 = 3;

/// A piece matters if it scores at least the best score divided by this.
pub const MATTERS: u32 = 3;

/// One pointer with the files it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The name in messages: `meta/glossary.md`, `outline-final.md#ch10`.
    pub name: String,
    pub class: Class,
    pub need: Need,
    pub shrink: Shrink,
    /// The files it names, in order; one unless the pointer has a wildcard.
    pub files: Vec<AskFile>,
}

/// One file of a pointer, or the section that the pointer names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskFile {
    /// Tokens of the whole text.
    pub whole: Tokens,
    /// Tokens of the note about cuts, at its longest. The note is shown with every cut.
    pub note: Tokens,
    pub pieces: Vec<Piece>,
}

/// The smallest unit of showing and cutting: a section, a table row, a paragraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub tokens: Tokens,
    /// Its heading and first sentence as one line; `None` if that would be empty.
    pub overview: Option<Tokens>,
    /// Title, preamble, table header: shown with any part of the file.
    pub frame: bool,
    /// 0 is the newest of the pointer.
    pub age: u32,
    /// Relevance to the unit; 0 is none.
    pub score: u32,
}

/// How a piece is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shown {
    Whole,
    Overview,
    Hidden,
}

/// The strategy that fitted a pointer's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Strategy {
    /// Nothing was cut.
    Whole,
    /// Only the section that the pointer names, complete.
    Section,
    /// The newest sections whole, one sentence of each older one.
    Recent {
        whole: usize,
        overview: usize,
        hidden: usize,
    },
    /// The sections relevant to the unit.
    Relevant { shown: usize, of: usize },
    /// From the beginning.
    Head { shown: usize, of: usize },
    /// A part for this stage; other stages show other parts.
    Stage {
        number: usize,
        of: usize,
        shown: usize,
    },
    /// Left out: `if-room` without room.
    Trimmed,
}

impl Strategy {
    /// Whether some of the text is missing.
    pub fn cuts(self) -> bool {
        !matches!(self, Strategy::Whole | Strategy::Section)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::Whole => f.write_str("whole"),
            Strategy::Section => f.write_str("section, in full"),
            Strategy::Recent {
                whole,
                overview,
                hidden,
            } => {
                write!(f, "recent({whole}): {overview} older as one sentence")?;
                if *hidden > 0 {
                    write!(f, ", {hidden} not shown")
                } else {
                    Ok(())
                }
            }
            Strategy::Relevant { shown, of } => write!(f, "relevant: {shown} of {of}"),
            Strategy::Head { shown, of } => write!(f, "head: first {shown} of {of}"),
            Strategy::Stage { number, of, shown } => {
                write!(f, "stage {number} of {of}: {shown} here")
            }
            Strategy::Trimmed => f.write_str("trimmed: no room"),
        }
    }
}

/// The plan of each stage. One stage is the usual case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub budget: Tokens,
    pub stages: Vec<Stage>,
}

/// One stage: a share for each pointer, in the order of the pointers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stage {
    pub shares: Vec<Share>,
    pub tokens: Tokens,
}

/// The contribution of one pointer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Share {
    pub strategy: Strategy,
    /// Tokens of the pointer's whole text.
    pub whole: Tokens,
    /// Tokens shown, including the notes about cuts.
    pub shown: Tokens,
    /// For each file, how each of its pieces is shown.
    #[serde(skip)]
    pub files: Vec<Vec<Shown>>,
}

impl Ask {
    pub fn whole(&self) -> Tokens {
        self.files.iter().map(|f| f.whole).sum()
    }

    /// Returns the pieces that may be cut, as (file, piece).
    fn entries(&self) -> impl Iterator<Item = (usize, usize)> {
        self.files
            .iter()
            .enumerate()
            .flat_map(|(f, file)| file.entries().map(move |p| (f, p)))
    }

    fn piece(&self, (file, piece): (usize, usize)) -> &Piece {
        &self.files[file].pieces[piece]
    }
}

impl AskFile {
    /// Returns the pieces that may be cut. A file that consists of frame only is one piece.
    fn entries(&self) -> impl Iterator<Item = usize> {
        let all_frame = self.pieces.iter().all(|p| p.frame);
        (0..self.pieces.len()).filter(move |p| all_frame || !self.pieces[*p].frame)
    }
}
