//! The contract: the classes of a project's files, who may read and write them, and how each may
//! change.
//!
//! This crate is pure: no I/O, no clock, no async. The store asks it for a verdict and enforces it;
//! the interfaces only print the verdict.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod actor;
mod below_dir;
mod budget;
mod capture;
mod characters;
mod class;
mod contract;
mod contract_errors;
mod credential;
mod external_edit;
mod fault;
mod finish;
mod flow;
mod form;
mod guard;
mod hooks;
mod ignore;
mod keyed;
mod language;
mod listing;
mod loss;
mod manifest;
mod merge;
mod naming;
mod near_name;
mod nearest;
mod order;
mod path;
mod pattern;
mod placeholder;
pub mod plan;
mod pointer;
mod precompile;
mod precompiled;
mod rehearsal;
mod resolve;
mod resolve_names;
mod resolve_step;
mod retention;
mod role;
mod scene;
mod schema;
mod source;
mod tokens;
mod unit;

pub use access::{Closed, Denial, Grant, Privilege, Readable, Withheld};
pub use actor::{Actor, ActorName, BadName, is_taken};
pub use budget::{Budget, Budgets};
pub use capture::Capture;
pub use characters::{
    NotOneLine, check_one_line, in_one_line, is_invisible, is_line_break, printable, quotable,
};
pub use class::{Act, Class, Refusal};
pub use contract::{Contract, FileRule, Profile, Var};
pub use credential::{find_credentials, may_continue_credential};
pub use external_edit::{Outside, is_loss, judge_outside};
pub use fault::{Fault, Faults, Place};
pub use finish::{Condition, FinishItem, Occasion};
pub use flow::{
    AttemptsKept, Builtin, Declare, Each, Merge, MergePart, Objection, PanelPart, Price, Remember,
    RememberItem, RememberKind, RowCheck, Shape, Step, When, WordsIn, parse_span,
};
pub use form::{Form, bad_line};
pub use guard::{Finding, GuardRules, find_shrink, says_nothing};
pub use hooks::Fail;
pub use ignore::CACHE_MARKS;
pub use keyed::{Fact, KeyedError, Was, add_note, facts, merge_keyed, open_at_end, set_fact};
pub use language::{Language, Localized};
pub use listing::{Listing, first_line};
pub use manifest::{Manifest, ProfileFile};
pub use merge::{Merged, Way, merge_branches};
pub use naming::NamesNothing;
pub use nearest::{did_you_mean, nearest, unknown};
pub use path::{BadPath, HOST_FILES, MANIFEST, ProjectPath, RESERVED, normal_form};
pub use pattern::{Binding, Pattern};
pub use placeholder::find_placeholder;
pub use pointer::{AskPointer, Need, Pointer, Shrink, WritePointer};
pub use precompile::SyntaxError;
pub use rehearsal::{Rehearsal, Rehearsed};
pub use resolve::resolve_contract;
pub use retention::{Keep, NoKeep};
pub use role::{AgentKind, Role};
pub use scene::{Moment, Next, Paragraph, Scene};
pub use schema::{manifest_schema, profile_schema};
pub use source::Source;
pub use tokens::Tokens;
pub use unit::{Unit, UnitId, UnitKind};
