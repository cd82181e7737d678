//! The MCP server: JSON-RPC over stdio, one message per line, or over HTTP, one message per
//! request.
//!
//! It supports both the handshake revisions up to 2025 and the stateless requests of 2026-07-28. A
//! project is opened when the first request needs its files, so the handshake is answered at once,
//! and stays open for the requests after it. The tools are rows of the table of operations.

mod brief;
mod command;
mod files;
#[cfg(feature = "fixture-door")]
mod fixture;
mod http;
mod remedy;
pub mod schema;
mod serve;
mod tool_table;
mod tools;
mod wire;
mod workspace;

pub use http::{Opening, PATH, open};
#[cfg(test)]
pub use serve::Answers;
pub use serve::{Door, serve};
pub use tools::is_tool;
pub use workspace::WorkspaceServer;
