//! Memory that was kept elsewhere: taken over once, whole, with a word on where it comes from.
//!
//! A source is read into pieces (`source.rs`, and a file for each kind), each piece gets its place
//! and its provenance, and all of them become one change that the contract judges like any other.
//! The journal's note of an import says which piece became which file, so a second import of the
//! same source adds nothing.

mod claude;
mod error;
mod folder;
mod graph;
mod plan;
mod provenance;
mod source;
mod wikilink;

pub use error::ImportError;
pub use plan::{Act, Import, Imported, ImportedFile, LeftOut, import};
pub use source::ImportSource;
