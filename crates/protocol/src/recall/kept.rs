//! Caches the recall index of an open project, and records the tree fingerprint for which it is
//! complete.
//!
//! Comparing the version of every file with the index costs more than most queries. A note, in
//! memory and in a small file beside the index, therefore records that this index covers exactly
//! the files with this tree fingerprint under this contract. If any of the three differs, or there
//! is no note, all files are compared. The index is reopened when another process has changed it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_recall::{Error, Index};
use quipu_store::TreeFingerprint;

/// The file stat of the manifest that an index was opened with. A change replaces the file.
type Stamp = (u64, u64, i64, i64);

/// An index with a manifest of this size covers some thousand files (in tests of this crate: a
/// few).
const LARGE: u64 = if cfg!(test) { 512 } else { 128 << 10 };

const NOTE: &str = "complete";
/// Increment this when the definition of memory changes, to invalidate notes of older programs.
const FORMAT: u32 = 3;

/// State that a running process keeps between questions.
#[derive(Debug, Default)]
pub(crate) struct KeptIndex(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    index: Option<(Stamp, Arc<Index>)>,
    /// The content of the last note.
    complete: Option<String>,
}

impl KeptIndex {
    /// Opens the current index in a folder.
    pub fn open(&self, folder: &Path) -> Result<Arc<Index>, Error> {
        // Read the file stat before opening, so that the next question detects a change in between.
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

    /// Whether the index covers so many files that checking them takes longer than starting a
    /// thread.
    pub fn is_large(folder: &Path) -> bool {
        std::fs::metadata(folder.join("manifest")).is_ok_and(|manifest| manifest.len() >= LARGE)
    }

    /// Whether an index is known to cover exactly the files of a tree fingerprint.
    pub fn is_complete(
        &self,
        folder: &Path,
        index: &Index,
        sight: TreeFingerprint,
        contract: u64,
    ) -> bool {
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

    /// Records that an index covers exactly the files of a tree fingerprint.
    pub fn set_complete(
        &self,
        folder: &Path,
        index: &Index,
        sight: TreeFingerprint,
        contract: u64,
    ) {
        let note = note(index, sight, contract);
        let mut kept = self.kept();
        if kept.complete.as_ref() != Some(&note) {
            // If the note cannot be written, or another process overwrites it, only time is lost.
            let _ = std::fs::write(folder.join(NOTE), &note);
            kept.complete = Some(note);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(index: &Index, TreeFingerprint(sight): TreeFingerprint, contract: u64) -> String {
    format!(
        "quipu recall {FORMAT}: index {:016x} covers files {sight:016x} under contract {contract:016x}\n",
        index.mark()
    )
}
