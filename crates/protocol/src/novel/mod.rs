//! The constraint query: check a draft, ask, and learn facts from manuscripts.

pub(crate) mod ask;
pub(crate) mod check;
pub(crate) mod judged_file;
pub mod judging;
pub(crate) mod learn;
pub(crate) mod memory_check;
pub(crate) mod memory_files;
pub(crate) mod merges;
pub(crate) mod size;
pub(crate) mod tier_counts;
