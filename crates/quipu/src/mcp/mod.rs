//! The door for MCP clients: JSON-RPC over stdio, one line a message, or over HTTP, one request a
//! message.
//!
//! Both eras are spoken: the handshake of 2025 and the stateless requests of 2026-07-28. No project
//! is opened before something asks for its files, so a handshake is answered at once. Tools are
//! rows of the table of operations.

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
