//! The store: the only writer of memory files.
//!
//! The contract validates a change, the journal records it with one synced write, and only then are
//! the files changed. Every acknowledged commit can be redone from the journal.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod apply;
mod change;
mod clock;
mod commit;
mod current;
mod error;
mod files;
mod history;
mod ident;
mod index;
mod journal;
mod lease;
mod lock;
mod options;
mod recovery;
mod replica;
mod rules;
mod settings;
mod store;
mod version;
mod worktree;

pub use apply::conflict_copies::{ConflictCopy, conflict_names, take_conflict_copies};
pub use change::{Change, Expect, Op};
pub use clock::{Clock, Instant, parse_time, render_second, render_time};
pub use commit::merge::merge_object;
pub use commit::publish::{Receipt, Validated};
pub use error::{Refused, StoreError, Unwritable};
pub use files::disk::{Step, StepVerdict, Watch};
pub use files::open_folder::{Entry, OpenFolder};
pub use files::regular_file::{open_regular, read_regular, read_regular_text};
pub use history::blame::BlameLine;
pub use history::events::PathEvent;
pub use history::head::{ExpectedHead, HeadFound, HeadsFound, JournalHead};
pub use history::log::{At, LogEntry, LogPage, Noted, NotedFile};
pub use history::prune::{Pruned, PrunedFile};
pub use ident::fresh_bytes;
pub use journal::body::{Body, Cut};
pub use journal::lease::{Lease, LeaseToken};
pub use journal::record::{ChainHash, FORMAT, Kind, LeaseEvent, OpKind, Record, RecordOp, Who};
pub use lease::session::{OpenSession, session_id};
pub use lease::worker::{Claim, RegisteredWorker, Worker, WorkerRegistration};
pub use options::Options;
pub use recovery::rebuild::Repair;
pub use recovery::verify::{Problem, Verification, held_notice};
pub use replica::commit_log::{
    CommitLog, CommitRequest, CommitResult, LogCursor, LogDescription, LogHash, Offline, SHARED,
    Verdict, WaitPolicy, WorkerReport, register_commit_logs,
};
pub use replica::compare::ComparedLog;
pub use replica::working_copy::{Conflict, HELD_BACK, Synced};
pub use rules::flag::{Flag, repair_losses};
pub use rules::form_fault::FormFault;
pub use rules::guards::validate_merge;
pub use rules::rule_book::{Changed, RuleBook};
pub use store::Store;
pub use version::Version;
pub use worktree::create::create_files;
pub use worktree::external_edit::Adopted;
pub use worktree::scan_result::{FileStatus, StatusScan};
pub use worktree::walk::TreeFingerprint;
