//! Imports memory from other tools: once, complete, with its provenance.
//!
//! `source.rs` and one file per kind read a source into pieces. Each piece gets a path and its
//! provenance, and all of them become one change that the contract judges like any other. The
//! journal's note of an import maps pieces to files, so a second import of the same source adds
//! nothing.

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
