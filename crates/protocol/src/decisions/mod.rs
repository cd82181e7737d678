//! Decisions: one section each, never edited; a new one supersedes an old one by name.

mod entry;
mod record;

pub use entry::{Decision, load_decisions, parse_decisions};
pub(crate) use record::close_decisions;
pub use record::{NewDecision, decide};
