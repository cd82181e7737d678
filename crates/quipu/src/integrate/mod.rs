//! Writing the files that agent hosts want: MCP servers, hooks, skills, and the text that agents
//! read first.
//!
//! What is written for which host is data (`hosts/hosts.toml`). Whatever else stands in a file
//! stays, byte for byte; writing twice changes nothing, and what was written can be taken away
//! again.

mod block;
mod hosts;
mod keys;
mod plan;
#[cfg(test)]
mod plugin;

pub use hosts::{Fillings, Host, hosts};
pub use plan::{Planned, apply, open, plan, read_text, unreached};
