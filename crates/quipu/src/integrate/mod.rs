//! Writes the configuration of agent hosts: MCP servers, hooks, skills, and instruction files.
//!
//! The files per host are data (`hosts/hosts.toml`). Invariants: foreign content stays byte for
//! byte, writing twice changes nothing, and everything written can be removed again.

mod block;
mod hosts;
mod keys;
mod plan;
#[cfg(test)]
mod plugin;
mod record;

pub use hosts::{Fillings, Host, find_program, hosts};
pub use plan::{Planned, apply, change_host, open, plan, read_text, unreached};
pub use record::{Loss, Record, losses, notices};
