//! Keyed Markdown: sections of lines such as `- key: value`, `- **键**：值` and table rows.
//!
//! The grammar that lets two agents write one state file at once: what has a key is merged by it,
//! everything else is kept as it stands. Parsing accounts for every byte, so that an edit changes
//! its own place and nothing else.

mod edit;
mod history;
mod merge;
mod missing;
mod parse;
#[cfg(test)]
mod tests;

pub use edit::{Fact, KeyedError, Was, add_note, facts, set_fact};
pub use merge::merge_keyed;
pub(crate) use missing::missing_facts;
pub use parse::open_at_end;
