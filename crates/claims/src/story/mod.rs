//! What a novelist asks of a book: where someone appears, what changes when, who stands how to whom.
//!
//! Facts come from memory, appearances from the final chapters. Nothing here is stored.

mod presence;
mod relations;
mod scene;
mod things;
mod timeline;

pub use relations::{Relation, read_relations, render_relations_dot, render_relations_mermaid};
pub use scene::{Appearances, Scene, appearances, cut_scenes, last_met};
pub use things::{About, facts_about};
pub use timeline::{Change, Moment, read_timeline};
