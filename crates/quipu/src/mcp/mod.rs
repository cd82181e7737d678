//! The door for MCP clients, over stdio: JSON-RPC in, one line a message, nothing else on stdout.
//!
//! Both eras are spoken: the handshake of 2025 and the stateless requests of 2026-07-28. No project is opened before
//! something asks for its files, so a handshake is answered at once. Tools are rows of the table of operations.

mod brief;
mod files;
pub mod schema;
mod serve;
mod tools;
mod wire;

pub use serve::serve;
