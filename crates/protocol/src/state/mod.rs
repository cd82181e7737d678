//! The state file: where things stand, as JSON.

mod closing;
mod lists;
mod schema;
mod value;

pub use closing::Blocked;
pub(crate) use closing::close_state;
pub use lists::{List, change_list};
pub(crate) use schema::{check_state, phases};
pub use value::{get_state, merge_state, set_state};
