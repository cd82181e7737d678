//! Applies journalled records to the files: after a commit, after a crash and after a power cut.

pub(crate) mod append;
pub(crate) mod applier;
pub(crate) mod conflict_copies;
pub(crate) mod gather;
pub(crate) mod redo;
