//! The recall index of an opened project: opened once, and again when someone changed it; and for
//! which sight of the files it is known to be complete.
//!
//! Comparing the version of every file with the index costs more than most questions. So it is
//! noted, in memory and in a small file beside the index, that an index with this mark covers
//! exactly the files of this sight under this contract. Any other sight, contract or index, or no
//! note at all: everything is compared as ever.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_store::Sight;
use quipu_text::recall::{Error, Index};

/// Which manifest an index was opened with: a change replaces the file.
type Stamp = (u64, u64, i64, i64);

/// With a manifest of so many bytes, an index covers some thousand files; in a test of this crate,
/// some.
const LARGE: u64 = if cfg!(test) { 512 } else { 128 << 10 };

const NOTE: &str = "complete";
/// Raised when what counts as memory changes, so that notes of an older program are not believed.
const FORMAT: u32 = 2;

/// What a running process keeps between questions.
#[derive(Debug, Default)]
pub(crate) struct KeptIndex(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    index: Option<(Stamp, Arc<Index>)>,
    /// What the last note said.
    complete: Option<String>,
}

impl KeptIndex {
    /// The index in a folder as it is now.
    pub fn open(&self, folder: &Path) -> Result<Arc<Index>, Error> {
        // Looked at before it is opened: a change in between is seen by the next question.
        let stamp = std::fs::metadata(folder.join("manifest"))
            .ok()
            .map(|m| (m.ino(), m.len(), m.mtime(), m.mtime_nsec()));
        let mut kept = self.kept();
        if let (Some((known, index)), Some(stamp)) = (&kept.index, stamp)
            && *known == stamp
        {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(Index::open(folder)?);
        kept.index = stamp.map(|stamp| (stamp, Arc::clone(&index)));
        Ok(index)
    }

    /// Whether the index in a folder covers so many files that looking at them takes longer than
    /// starting a thread.
    pub fn is_large(folder: &Path) -> bool {
        std::fs::metadata(folder.join("manifest")).is_ok_and(|manifest| manifest.len() >= LARGE)
    }

    /// Whether an index is known to cover exactly the files of a sight.
    pub fn is_complete(&self, folder: &Path, index: &Index, sight: Sight, contract: u64) -> bool {
        let note = note(index, sight, contract);
        let mut kept = self.kept();
        if kept.complete.as_ref() == Some(&note) {
            return true;
        }
        let found = std::fs::read_to_string(folder.join(NOTE)).is_ok_and(|text| text == note);
        if found {
            kept.complete = Some(note);
        }
        found
    }

    /// Notes that an index was found to cover exactly the files of a sight.
    pub fn set_complete(&self, folder: &Path, index: &Index, sight: Sight, contract: u64) {
        let note = note(index, sight, contract);
        let mut kept = self.kept();
        if kept.complete.as_ref() != Some(&note) {
            // A note that cannot be written, or is overwritten by another process, costs time only.
            let _ = std::fs::write(folder.join(NOTE), &note);
            kept.complete = Some(note);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(index: &Index, Sight(sight): Sight, contract: u64) -> String {
    format!(
        "quipu recall {FORMAT}: index {:016x} covers files {sight:016x} under contract {contract:016x}\n",
        index.mark()
    )
}
