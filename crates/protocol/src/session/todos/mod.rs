//! Todos across sessions: a JSON list of items with checked status transitions.

mod closing;
mod edit;
mod list;
mod moves;

pub use closing::{TodoBlock, TodoMoves};
pub(crate) use closing::{close_todos, hanging, unsettled};
pub use edit::{TodoEdit, edit_todo};
pub(crate) use list::is_review_due;
pub use list::{LATER, NewTodo, Priority, Status, Todo, Todos, load_todos, parse_todos};
pub use moves::{Move, add_todo, move_todo, review_todos};
