//! The door for the hooks of agent hosts: a host's JSON in, a verdict out.
//!
//! No rule lives here. An edit becomes a change that the store judges and nobody publishes; a stop
//! is a finish that nobody carries out. Exit 2 with the reason on stderr is a denial, and nothing
//! else ever exits so; a host that reads denials from fields of JSON (`manner.rs`) gets them there.

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
mod verdict;

pub use events::{Asked, Event, hear};

/// What hosts read as a denial.
pub const DENIED: u8 = 2;
/// Something went wrong, and the host goes on.
pub const UNJUDGED: u8 = 1;
