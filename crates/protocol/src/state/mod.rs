//! The state file: where things stand, as JSON.

mod closing;
mod schema;
mod value;

pub use closing::Blocked;
pub(crate) use closing::close_state;
pub(crate) use schema::check_state;
pub use value::{get_state, merge_state, set_state};
