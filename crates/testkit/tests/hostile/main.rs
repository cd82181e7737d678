//! Every parser of hostile input, fed with mutated samples: none panics, none invents, none loses what was there.
//!
//! The parsers of the program itself (MCP messages, hook input) have theirs in `crates/quipu/src/hostile_tests.rs`.

#![allow(clippy::unwrap_used)]

mod change_file;
mod contract;
mod import;
mod journal;
mod json;
mod markdown;
