//! What users do, built from the contract, the store and the text: no terminal, no socket.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod asked;
mod asking;
mod brief;
mod capture;
mod change_file;
mod checking;
mod conversation;
mod decisions;
mod delegation;
mod difference;
mod draft;
mod eject;
mod finish;
pub mod flow;
mod foreign;
mod forms;
mod gather;
mod growth;
mod import;
mod index_file;
mod init;
mod kept_json;
mod learning;
mod library;
mod links;
mod merging;
mod moment;
mod naming;
pub mod panel;
mod picture;
mod project;
mod publish;
mod quoting;
mod read_scope;
mod reading;
mod recall;
mod repository;
mod rules;
mod source_file;
mod source_map;
mod start;
mod state;
mod state_folder;
mod template;
mod todos;
mod trust;
mod untrusted_git;
mod usual;
mod view;
mod work;
pub mod worldlog;

pub use asked::{AskedCounts, asked_counts, note_asked};
pub use asking::{AskError, Asking, MOST_ANSWER_CHARS, Reader, ask_leaf};
pub use brief::{Brief, BriefError, BriefOptions, make_brief, render_brief};
pub use capture::{
    Captured, Request, load_captured, record_changed, record_gate, record_last_message,
    record_request,
};
pub use change_file::{ChangeFileError, parse_change};
pub use checking::{
    Blocking, CheckError, CheckRequest, Checking, ClaimJudge, Draft, Ruling, Unwaived, check_draft,
    find_blocking, last_chapter, revoke_waiver, waive, waivers_for,
};
pub use conversation::{Caller, HostProcess, begin_or_continue, find_session};
pub use decisions::{Decision, NewDecision, decide, load_decisions, parse_decisions};
pub use delegation::{
    Again, Collected, Delegation, NewDelegation, Progress, Report, collect, delegate,
    delegate_again, find_delegation, report,
};
pub use difference::render_difference;
pub use draft::{Formed, Made, Terms, change_formed, load_formed};
pub use eject::{EjectError, Ejected, eject_profile};
pub use finish::{
    Closed, Finish, FinishText, Material, Missing, finish, finish_template, is_in_journal_only,
    parse_finish_text, parse_material,
};
pub use foreign::Foreign;
pub use forms::resolve_form;
pub use gather::{Gathered, gather};
pub use growth::{Grown, GrowthError, split_page};
pub use import::{
    Act as ImportAct, Import, ImportError, ImportSource, Imported, ImportedFile, LeftOut, import,
};
pub use index_file::refresh_index;
pub use init::{FilledIn, InitError, Laid, Layout, lay_out};
pub use learning::{
    LearnError, Learned, Wanted, accept_proposal, learn, proposals, reject_proposal,
};
pub use library::{Library, ProfileSummary};
pub use links::{LinkMap, MoveError, Moved, link_graph, map_links, most_links, move_file};
pub use merging::{MergeCall, MergeError, merge_for_git};
pub use moment::{now, render_moment};
pub use naming::short_name;
pub use picture::{PictureError, lay_picture};
pub use project::{Project, ProjectError, read_manifest};
pub use publish::{Draw, HousePress, PublishError, PublishRequest, Publishing, publish};
pub use quipu_text::recall::Tier;
pub use quoting::{headline, quoted};
pub use read_scope::ReadScope;
pub use reading::{
    ReadError, Reading, may_expect, may_read_whole, may_restore, not_found, read_pointer,
};
pub use recall::{Ask, RecallError, Recalled, recall};
pub use repository::Repository;
pub use rules::is_of_faulty_rules;
pub use source_file::{SourceError, Sources};
pub use start::{Awake, Block, StartRequest, Surroundings, look_around, start};
pub use state::{Blocked, List, change_list, get_state, merge_state, set_state};
pub use state_folder::{make_state_folder, state_folder};
pub use template::{TemplateError, render_template};
pub use todos::{
    LATER, Move, NewTodo, Priority, Status, Todo, TodoEdit, TodoMoves, Todos, add_todo, edit_todo,
    load_todos, move_todo, parse_todos, review_todos,
};
pub use trust::{
    Power, Setting, TRUST_COMMAND, TrustError, is_trusted, revoke_trust, trust, trust_only,
};
pub use untrusted_git::{StandIn, UntrustedRepository};
pub use view::{
    Absent, Denied, Drift, FolderError, Lexical, Manifest, Order, Relevance, Repeated, Seen,
    ShownFile, StageView, Topic, Unreadable, Verdict, View, ViewError, ViewRequest, Writer,
    lay_view, make_view, render_explanation, verify_view,
};
pub use work::WorkError;
