//! Caches token counts of texts and their pieces by content.
//!
//! The counts of longer texts are stored under `.quipu/tokens/`, named by a hash of the text and of
//! its cuts, so that counting the same text again costs one small read. The folder is derived:
//! deleting it costs only time.

use std::path::{Path, PathBuf};

use quipu_contract::Tokens;
use quipu_store::Version;
use quipu_text::Counter;
use serde::{Deserialize, Serialize};

use super::pieces::PieceText;
use crate::project::json_cache::{load_kept, save_kept};

/// Counting a shorter text is faster than reading its cached counts.
const KEPT_BYTES: usize = 4096;

/// Increment this when the counting changes.
const SCHEME: &str = "3";

/// The counts of one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub whole: Tokens,
    pub pieces: Vec<Tokens>,
    pub overviews: Vec<Option<Tokens>>,
}

/// A counter with its cache.
#[derive(Debug, Clone)]
pub struct CountKeeper {
    pub counter: Counter,
    folder: Option<PathBuf>,
}

impl CountKeeper {
    /// Stores counts below a project's `.quipu`, or nowhere if the project is read-only.
    pub fn new(counter: Counter, root: &Path, read_only: bool) -> CountKeeper {
        let folder = root.join(".quipu").join("tokens").join(counter.name());
        CountKeeper {
            counter,
            folder: (!read_only).then_some(folder),
        }
    }

    pub fn count(&self, text: &str, pieces: &[PieceText]) -> Counts {
        let kept = if text.len() < KEPT_BYTES {
            None
        } else {
            self.folder.as_ref().map(|f| f.join(name(text, pieces)))
        };
        if let Some(counts) = kept.as_ref().and_then(|file| load_kept::<Counts>(file))
            && counts.pieces.len() == pieces.len()
            && counts.overviews.len() == pieces.len()
        {
            return counts;
        }
        let whole = self.counter.count(text);
        let counts = Counts {
            whole,
            pieces: match pieces {
                [_] => vec![whole],
                many => many
                    .iter()
                    .map(|p| self.counter.count(&text[p.range.clone()]))
                    .collect(),
            },
            // Include the line break, as rendered in the view.
            overviews: pieces
                .iter()
                .map(|p| {
                    p.overview
                        .as_ref()
                        .map(|line| self.counter.count(&format!("{line}\n")))
                })
                .collect(),
        };
        if let Some(file) = kept {
            // If the cache cannot be written, the text is counted again next time.
            let _ = save_kept(&file, &counts);
        }
        counts
    }
}

/// The same text is cut differently under different file names, and each way has its own counts.
fn name(text: &str, pieces: &[PieceText]) -> String {
    let cut: String = pieces
        .iter()
        .map(|p| {
            format!(
                "{} {}\n",
                p.range.end,
                p.overview.as_deref().unwrap_or("\t")
            )
        })
        .collect();
    format!(
        "{}-{SCHEME}-{}.json",
        Version::of(text.as_bytes()),
        Version::of(cut.as_bytes())
    )
}
