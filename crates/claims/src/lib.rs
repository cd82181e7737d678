//! What the pages of a memory say of each other: links between them, and whether a new text can stand beside them.
//!
//! Pure: pages in, values out; no I/O, no clock. A page is a text with its path, tier and form. Whoever
//! calls decides which pages there are and who may see them.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod graph;
mod graph_picture;
mod page;
mod rename;

pub use graph::{Dense, Edge, Fate, Graph, Orphan};
pub use graph_picture::{render_dot, render_svg};
pub use page::{Page, Place};
pub use rename::{Mended, plan_rename};
