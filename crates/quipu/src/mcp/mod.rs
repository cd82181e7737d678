//! The MCP server: JSON-RPC over stdio, one message per line, or over HTTP, one message per
//! request.
//!
//! It supports both the handshake revisions up to 2025 and the stateless requests of 2026-07-28. A
//! project is opened only when a request needs its files, so the handshake is answered at once. The
//! tools are rows of the table of operations.

mod brief;
mod files;
#[cfg(feature = "fixture-door")]
mod fixture;
mod http;
mod room;
pub mod schema;
mod serve;
mod tools;
mod wire;

pub use http::{Opening, PATH, open};
pub use room::RoomDoor;
#[cfg(test)]
pub use serve::Door;
pub use serve::{serve, serve_room};
pub use tools::is_tool;
