//! Feeds every parser of untrusted input with mutated samples: none may panic, invent content or
//! lose content.
//!
//! The targets for the program's own parsers (MCP messages, hook input, captured conversations) are
//! in `crates/quipu/src/hostile_tests.rs`.

#![allow(clippy::unwrap_used)]

mod change_file;
mod contract;
mod finish;
mod import;
mod journal;
mod json;
mod markdown;
