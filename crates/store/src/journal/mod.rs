//! The journal: records, segments and watermarks.

pub(crate) mod archive;
pub(crate) mod backwards;
pub(crate) mod body;
pub(crate) mod chain;
#[cfg(test)]
mod decoding_tests;
pub(crate) mod delta;
pub(crate) mod durable;
pub(crate) mod end;
pub(crate) mod lease;
pub(crate) mod record;
pub(crate) mod record_cache;
pub(crate) mod segment;
pub(crate) mod segments;
pub(crate) mod watermarks;
