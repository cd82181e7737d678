//! Every parser of hostile input, fed with mutated samples: none panics, none invents, none loses
//! what was there.
//!
//! The parsers of the program itself (MCP messages, hook input, what is recorded of a conversation)
//! have theirs in `crates/quipu/src/hostile_tests.rs`.

#![allow(clippy::unwrap_used)]

mod change_file;
mod contract;
mod finish;
mod import;
mod journal;
mod json;
mod markdown;
