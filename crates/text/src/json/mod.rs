//! In-place edits of JSON files that preserve all other bytes.
//!
//! `parse` finds the position of each value and `edit` plans the replacement. The parser accepts
//! only strict JSON, because any program must be able to read a memory file. Errors name the line,
//! so that people can fix them by hand.

mod edit;
mod parse;
mod pointer;

pub use edit::{append_item, remove_value, set_value};
pub use parse::{JsonError, Member, Node, Shape, parse_json};
pub use pointer::{BadPointer, JsonPointer};
