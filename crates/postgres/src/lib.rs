//! The commit log of a project in PostgreSQL, for working copies on many machines.
//!
//! This is the second backend behind the store's interface (`quipu_store::CommitLog`). It does not know
//! files: the store writes what the log accepts. A project without a shared store uses nothing of
//! this crate, and no connection is opened before the first request.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod attach;
mod commit_log;
mod link;
mod migrate;
mod moving;
mod password;
mod tls;
mod wire;

pub use address::Address;
pub use attach::{Attachment, MayContact, register};
pub use commit_log::{Postgres, SeenProject};
pub use link::keep_connections;
pub use migrate::{SCHEMA, roles};
pub use moving::{Moved, checkout, detach, push};
