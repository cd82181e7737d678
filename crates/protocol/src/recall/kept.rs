//! The recall index of an opened project: opened once, and again when someone changed it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use quipu_text::recall::{Error, Index};

/// Which manifest an index was opened with: a change replaces the file.
type Stamp = (u64, u64, i64, i64);

/// What a running process keeps between questions.
#[derive(Debug, Default)]
pub(crate) struct KeptIndex(Mutex<Option<(Stamp, Arc<Index>)>>);

impl KeptIndex {
    /// The index in a folder as it is now.
    pub fn open(&self, folder: &Path) -> Result<Arc<Index>, Error> {
        // Looked at before it is opened: a change in between is seen by the next question.
        let stamp = std::fs::metadata(folder.join("manifest")).ok().map(|m| (m.ino(), m.len(), m.mtime(), m.mtime_nsec()));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some((known, index)), Some(stamp)) = (&*kept, stamp)
            && *known == stamp
        {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(Index::open(folder)?);
        *kept = stamp.map(|stamp| (stamp, Arc::clone(&index)));
        Ok(index)
    }
}
