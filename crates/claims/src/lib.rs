//! The links between the pages of a memory, and contradictions between memory and a new text.
//!
//! The crate is pure: it does no I/O and reads no clock. A page is a text with its path, tier and
//! form. The caller decides which pages exist and which of them an actor may see.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod claim;
mod graph;
mod graph_picture;
mod judges;
mod learn;
mod lint;
mod memory;
mod page;
mod passages;
mod query;
mod rename;
mod split;
mod tension;
mod tension_picture;
mod threads;
mod waiver;
mod words;

pub use claim::{Claim, cut_claims};
pub use graph::{Dense, Edge, Fate, Graph, Orphan, resolve_link};
pub use graph_picture::{render_dot, render_svg};
pub use judges::Finding;
pub use learn::{Proposal, best_sentence, read_offers, read_proposals, speaks_of, with_entry};
pub use lint::{Lint, lint};
pub use memory::{Entity, Fact, Memory, Mention, Metaphor, Rule, Term};
pub use page::{Page, Place};
pub use passages::{Passage, Passages};
pub use query::{Asked, Bounds, Checked, Evidence, Judged, Verdict, check};
pub use rename::{FixedPage, plan_rename};
pub use split::{Split, plan_split};
pub use tension::{Press, Pressed, read_tension, threshold};
pub use tension_picture::{render_bars, render_tension_svg};
pub use threads::{Standing, Thread, chapter_number};
pub use waiver::{Waiver, finding_id, read_waivers, render_revocation, render_waiver};
