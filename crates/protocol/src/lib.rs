//! The operations that users perform, built on the contract, the store and the text crates.
//!
//! This crate has no terminal and no socket: the program provides both.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod chinese;
mod files;
pub mod flow;
mod import;
mod novel;
mod project;
mod publish;
mod recall;
pub mod review;
mod session;
mod view;
pub mod worldlog;

pub use files::change_file::{ChangeFileError, parse_change};
pub use files::difference::render_difference;
pub use files::edit::{Formed, Made, Terms, change_formed, load_formed};
pub use files::git_merge::{MergeCall, MergeError, merge_for_git};
pub use files::index_file::refresh_index;
pub use files::links::{LinkMap, MoveError, Moved, link_graph, map_links, most_links, move_file};
pub use files::picture::{PictureError, lay_picture};
pub use files::quote::{headline, quoted};
pub use files::read::{
    ReadError, Reading, may_expect, may_read_whole, may_restore, not_found, read_pointer,
};
pub use files::read_scope::ReadScope;
pub use files::source_file::{SourceError, Sources};
pub use files::split_page::{Grown, GrowthError, split_page};
pub use import::{
    Act as ImportAct, Import, ImportError, ImportSource, Imported, ImportedFile, LeftOut, import,
};
pub use novel::ask::{AskError, Asking, MOST_ANSWER_CHARS, Reader, ask_leaf};
pub use novel::check::{
    Blocking, CheckError, CheckRequest, Checking, Draft, Kept, Unwaived, check_draft,
    conflicts_in_progress, find_blocking, last_chapter, open_conflicts, revoke_waiver, waive,
    waivers_for,
};
pub use novel::judged_file::{AnswersKept, keep_answers};
pub use novel::judging::{Accept, SceneJudge, ScenePrompt};
pub use novel::learn::{
    AcceptedFact, KnownLine, LearnError, Learned, PosedQuestion, Wanted, accept_proposal,
    find_obstacle, learn, proposals, question_of, reject_proposal,
};
pub use novel::memory_check::{MemoryChecking, check_changed_memory, check_own_memory};
pub use novel::merges::{accept_merge, merges};
pub use novel::size::{MemorySize, memory_size};
pub use novel::tier_counts::{AskedCounts, asked_counts, note_asked};
pub use project::eject::{EjectError, Ejected, eject_profile};
pub use project::foreign::Foreign;
pub use project::forms::resolve_form;
pub use project::ids::short_name;
pub use project::init::{FilledIn, InitError, Laid, Layout, lay_out};
pub use project::kept::KeptProject;
pub use project::library::{Library, ProfileSummary};
pub use project::open::{Project, ProjectError, RulesOnDisk, read_manifest};
pub use project::repository::Repository;
pub use project::rules::is_of_faulty_rules;
pub use project::template::{TemplateError, render_template};
pub use project::times::{now, render_moment};
pub use project::trust::{
    Power, Setting, TRUST_COMMAND, TrustError, is_trusted, revoke_trust, trust, trust_only,
};
pub use project::untrusted_git::{StandIn, UntrustedRepository};
pub use project::user_folder::{make_state_folder, state_file, state_folder, write_state};
pub use publish::{BookPublisher, Draw, PublishError, PublishRequest, Publishing, publish};
pub use quipu_recall::Tier;
pub use recall::{
    ANSWER_TOKENS, Ask, CANDIDATES, Kind, RecallError, Recalled, Shown, recall, shown_hits,
};
pub use session::capture::{
    Captured, Request, load_captured, record_changed, record_compaction, record_delegating,
    record_gate, record_last_message, record_request,
};
pub use session::conversation::{
    Caller, HostProcess, begin_or_continue, find_host_session, find_session, record_call,
};
pub use session::decisions::{Decision, NewDecision, decide, load_decisions, parse_decisions};
pub use session::delegation::{
    Again, Collected, Delegation, NewDelegation, Progress, Report, collect, delegate,
    delegate_again, find_delegation, report, survey_delegations,
};
pub use session::error::WorkError;
pub use session::finish::{
    Closed, Finish, FinishText, Material, Missing, finish, finish_template, is_in_journal_only,
    parse_finish_text, parse_material,
};
pub use session::start::{Awake, Block, StartRequest, Surroundings, look_around, start};
pub use session::state::{Blocked, List, change_list, get_state, merge_state, set_state};
pub use session::subagent::{find_parent, register_subagent, subagent_of, subagent_text};
pub use session::todos::{
    LATER, Move, NewTodo, Priority, Status, Todo, TodoEdit, TodoMoves, Todos, add_todo, edit_todo,
    load_todos, move_todo, parse_todos, review_todos,
};
pub use view::brief::{Brief, BriefError, BriefOptions, make_brief, render_brief};
pub use view::pages::{Gathered, gather};
pub use view::{
    Absent, Denied, Drift, FolderError, Lexical, Manifest, PointerOrder, Relevance, Repeated, Seen,
    ShownFile, StageView, Topic, Unreadable, Verdict, View, ViewError, ViewRequest, Writer,
    lay_view, make_view, render_explanation, verify_view,
};
