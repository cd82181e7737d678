//! Decisions: one section each, never edited. A new decision supersedes an old one by id.

mod entry;
mod record;

pub use entry::{Decision, load_decisions, parse_decisions};
pub(crate) use record::close_decisions;
pub use record::{NewDecision, decide};
