//! The state file: the current status of the project, as JSON.

mod closing;
mod lists;
mod schema;
mod value;

pub use closing::Blocked;
pub(crate) use closing::{add_completed, close_state, drop_next_steps};
pub(crate) use lists::read_list;
pub use lists::{List, change_list};
pub(crate) use schema::{check_state, phases};
pub use value::{get_state, merge_state, set_state};
