//! Keyed Markdown: sections of lines such as `- key: value`, `- **键**：值` and table rows.
//!
//! This grammar lets two agents write one state file concurrently: entries with a key are merged by
//! key, and all other text is kept unchanged. The parser accounts for every byte, so an edit
//! changes only its own line.

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
