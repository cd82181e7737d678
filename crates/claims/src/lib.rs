//! The links between the pages of a memory, and contradictions between memory and a new text.
//!
//! The crate is pure: it does no I/O and reads no clock. A page is a text with its path, tier and
//! form. The caller decides which pages exist and which of them an actor may see.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod claim;
mod evidence;
mod facts_in_prose;
mod graph;
mod graph_picture;
mod holdings;
mod injury;
mod judgement;
mod judges;
mod keys;
mod learn;
mod lint;
mod memory;
mod merges;
mod page;
mod passages;
mod period;
mod pool;
mod prompt;
mod pronouns;
mod query;
mod question;
mod relevance;
mod rename;
mod roster;
mod ruling;
mod scene;
mod self_check;
mod split;
mod state;
mod story;
mod supersede;
mod tension;
mod tension_picture;
mod threads;
mod titles;
mod waiver;
mod words;

pub use claim::{Claim, cut_claims};
pub use evidence::{Evidence, SceneEvidence};
pub use graph::{Dense, Edge, Fate, Graph, Orphan, resolve_link};
pub use graph_picture::{render_dot, render_svg};
pub use judgement::{
    Judgement, KeptConflict, KeptJudgements, find_unreadable, kept_judgements, render_judged_scene,
    render_judgement, scene_id,
};
pub use judges::Finding;
pub use keys::is_same_key;
pub use learn::{
    FactsReport, Proposal, best_sentence, read_offers, read_proposals, read_report, speaks_of,
};
pub use lint::{Lint, lint};
pub use memory::{Entity, Fact, Memory, Mention, Metaphor, Rule, Term, is_alias};
pub use merges::{Merge, find_merges};
pub use page::{Page, Place};
pub use passages::{Passage, Passages};
pub use period::{Period, Point, Scenes, has_ended};
pub use prompt::{
    PromptLanguage, is_prompt, question_id, render_evidence, render_evidence_by_line, render_prompt,
};
pub use query::{Asked, Bounds, Checked, Corpus, Judged, Verdict, check, judge_claims};
pub use question::Question;
pub use rename::{FixedPage, plan_rename};
pub use ruling::{Answered, Ruling, read_rulings};
pub use scene::Scene as DraftScene;
pub use self_check::{Inconsistency, check_memory};
pub use split::{Split, plan_split};
pub use state::{Kind, is_dead, kind_of};
pub use story::{
    About, Appearances, Change, Moment, Relation, Scene, appearances, cut_scenes, facts_about,
    last_met, read_relations, read_timeline, render_relations_dot, render_relations_mermaid,
};
pub use supersede::{ClosedFact, PlaceError, PlacedFact, place_fact};
pub use tension::{Press, Pressed, read_tension, threshold};
pub use tension_picture::{render_bars, render_tension_svg};
pub use threads::{Standing, Thread, chapter_number};
pub use waiver::{Waiver, conflict_id, read_waivers, render_revocation, render_waiver};
