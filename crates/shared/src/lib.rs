//! A project's order kept in PostgreSQL, for working copies on many machines.
//!
//! This is the second backend behind the store's port (`quipu_store::Order`). It knows no files:
//! what it accepts, the store writes. Nothing here is needed by a project of its own, and nothing
//! is connected before something is asked.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod attach;
mod link;
mod migrate;
mod moving;
mod password;
mod postgres;
mod tls;
mod wire;

pub use address::Address;
pub use attach::{Attachment, MayContact, register};
pub use link::keep_connections;
pub use migrate::{SCHEMA, roles};
pub use moving::{Moved, checkout, detach, push};
pub use postgres::{Postgres, SeenProject};
