//! Delegations: one file per child, with its order on top and its reports below.
//!
//! An order is never rewritten, and parallel children share no file. The parent's state lists the
//! orders; their progress is read from the files, the sessions and the clock.

mod collect;
mod hand_out;
mod hands;
mod order;
mod report;

pub use collect::{Collected, collect, find_delegation, survey_delegations};
pub use hand_out::{Again, NewDelegation, delegate, delegate_again};
pub(crate) use hands::{Part, parts_of};
pub use order::{Delegation, Progress, load_delegation};
pub(crate) use order::{child_of, names_a_file, pointer_of};
pub use report::{Report, report};
