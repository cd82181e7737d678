//! The store: the only writer of memory files.
//!
//! The contract judges a change, the journal records it with one synced write, and only then are
//! the files changed. Every acknowledged commit can be redone from the journal.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod adopt;
mod append;
mod apply;
mod archive;
mod below;
mod blame;
mod body;
mod capture;
mod change;
mod clock;
mod compare;
#[cfg(test)]
mod decoding_tests;
mod delta;
mod disk;
mod ending;
mod error;
mod events;
mod form_fault;
mod guarding;
mod head;
mod heads;
mod heal;
mod history;
mod ident;
mod journal;
mod judge;
mod lay;
mod lease;
mod leftover;
mod list;
mod live;
mod loaded;
mod lock;
mod merge;
mod names;
mod open_block;
mod order;
mod prepare;
mod prune;
mod publish;
mod record;
mod recover;
mod redo;
mod regular;
mod replica;
mod restore;
mod room;
mod row_sum;
mod rulebook;
mod salvage;
mod seat;
mod segment;
mod session;
mod store;
mod survey;
mod tree;
mod verify;
mod version;
mod walk;

pub use adopt::{Adopted, Flag, mend_losses};
pub use below::{Below, Entry};
pub use blame::BlameLine;
pub use body::{Body, Cut};
pub use capture::SessionNote;
pub use change::{Change, Expect, Op};
pub use clock::{Clock, Instant, parse_time, render_second, render_time};
pub use compare::ComparedLog;
pub use disk::{Step, StepVerdict, Watch};
pub use error::{Refused, StoreError, Unwritable};
pub use events::PathEvent;
pub use form_fault::FormFault;
pub use guarding::judge_merge;
pub use head::{ExpectedHead, HeadFound, HeadsFound, JournalHead};
pub use history::{At, LogEntry, LogPage, Noted, NotedFile};
pub use ident::fresh_bytes;
pub use lay::lay_files;
pub use lease::{Lease, LeaseToken};
pub use merge::merge_object;
pub use order::{
    Bid, Described, LogHash, Mark, Offline, Order, Patience, Ruling, SHARED, Said, Verdict,
    register_orders,
};
pub use prune::{Pruned, PrunedFile};
pub use publish::{Judged, Receipt};
pub use record::{FORMAT, Kind, LeaseEvent, OpKind, Record, RecordOp, Sum, Who};
pub use recover::Repair;
pub use regular::{open_regular, read_regular, read_regular_text};
pub use replica::{Conflict, HELD_BACK, Synced, conflict_names};
pub use restore::{Kept, Restored, take_set_aside};
pub use rulebook::{Changed, RuleBook};
pub use seat::{Claim, Seat, Seated, Worker};
pub use session::{OpenSession, session_id};
pub use store::{Options, Store};
pub use survey::{Standing, Survey};
pub use verify::{Problem, Verification, held_notice};
pub use version::Version;
pub use walk::Sight;
