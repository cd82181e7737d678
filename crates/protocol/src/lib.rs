//! What users do, built from the contract, the store and the text: no terminal, no socket.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod asked;
mod asking;
mod brief;
mod change_file;
mod checking;
mod difference;
mod eject;
mod gather;
mod growth;
mod index_file;
mod init;
mod learning;
mod library;
mod links;
mod project;
mod reading;
mod recall;
mod template;
mod view;

pub use asked::{AskedCounts, asked_counts, note_asked};
pub use asking::{AskError, Asking, Reader, ask_leaf};
pub use brief::{Brief, BriefError, BriefOptions, make_brief, render_brief};
pub use change_file::{ChangeFileError, parse_change};
pub use checking::{
    CheckError, CheckRequest, Checking, ClaimJudge, Draft, Ruling, Unwaived, check_draft, last_chapter, revoke_waiver, waive, waivers,
};
pub use difference::render_difference;
pub use eject::{EjectError, Ejected, eject_profile};
pub use gather::{Gathered, gather};
pub use growth::{Grown, GrowthError, split_page};
pub use index_file::refresh_index;
pub use init::{InitError, Laid, Layout, lay_out};
pub use learning::{LearnError, Learned, Wanted, accept_proposal, learn, proposals, reject_proposal};
pub use library::{Library, ProfileSummary};
pub use links::{MoveError, Moved, link_graph, most_links, move_file};
pub use project::{Project, ProjectError};
pub use quipu_text::recall::Tier;
pub use reading::{ReadError, Reading, may_read_whole, read_pointer};
pub use recall::{Ask, RecallError, Recalled, recall};
pub use template::{TemplateError, render_template};
pub use view::{
    Absent, Denied, Drift, FolderError, Lexical, Manifest, Order, Relevance, Seen, ShownFile, StageView, Topic, Verdict, View, ViewError,
    ViewRequest, Writer, make_view, materialise_view, render_explanation, verify_view,
};
