//! The interface for the hooks of agent hosts: a host's JSON in, a verdict out.
//!
//! It contains no rules. An edit becomes a change that the store judges and nobody publishes; a
//! stop becomes a finish that is only checked. Exit code 2 with the reason on stderr is a denial,
//! and nothing else exits with 2. A host that reads denials from JSON fields (`manner.rs`) gets
//! them there.

mod after;
mod call;
mod capture;
mod edit;
mod events;
mod gate;
mod intent;
mod manner;
mod names;
mod patch;
mod shell;
mod subagent;
mod verdict;

pub use events::{Event, HookArguments, hear};
pub use verdict::resolve as follow_links;

/// The exit code that hosts read as a denial.
pub const DENIED: u8 = 2;
/// An error occurred, and the host continues.
pub const UNJUDGED: u8 = 1;
