//! Markdown parsing for memory files: sections, anchors, entries, links, markers, sentences, edits
//! and token counts.
//!
//! Everything is pure: no I/O, no clock, no async. `Document::parse` gives access to the contents of
//! a file, `splice` plans edits that keep every other byte, and `tokens` counts.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod anchor;
mod blocks;
mod document;
mod entry;
mod front;
mod html;
pub mod json;
mod keyed;
mod lines;
mod link;
mod marker;
mod open_block;
mod passage;
mod place;
mod plain;
mod scan;
mod section;
mod sentence;
mod sign;
mod splice;
pub mod tokens;
mod words;
mod yaml;

pub use anchor::{Miss, Slugger, slug};
pub use blocks::{Blocks, CodeBlock, split_blocks};
pub use document::Document;
pub use entry::{Cell, Item, Placed, Row, Strike, Table, Task};
pub use front::{FrontError, FrontMatter, Syntax};
pub use keyed::Keyed;
pub use lines::LineIndex;
pub use link::{Level, LevelTag, Link, LinkKind, is_external, parse_target};
pub use marker::{Marker, marker, render_marker};
pub use open_block::{OpenBlock, covered_line, hidden_line, may_open_block, open_block};
pub use passage::{find_stray_sign, passages_with};
pub use place::{SourcePlace, find_source_places, parse_source_place};
pub use plain::{Comments, blank_comments, link_labels, rendered_text, visible};
pub use section::{Section, SectionId};
pub use sentence::first_sentence;
pub use splice::{Place, Splice, SpliceError, splice_all};
pub use tokens::{Counter, Tokens};
pub use words::count_words;
