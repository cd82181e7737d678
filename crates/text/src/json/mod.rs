//! JSON files as people keep them: edited in place, every byte that is not meant stays.
//!
//! `parse` finds where each value stands, `edit` plans what replaces it. Strict JSON only: a memory
//! file must be readable by any program. Positions are told as lines, so that a hand can fix them.

mod edit;
mod parse;
mod pointer;

pub use edit::{append_item, remove_value, set_value};
pub use parse::{JsonError, Member, Node, Shape, parse_json};
pub use pointer::{BadPointer, JsonPointer};
