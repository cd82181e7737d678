//! A guarded HTTP server for local use by one person.
//!
//! The crate owns access control, request limits and the async runtime of the server. It knows
//! nothing about projects. The caller supplies a router and a [`Policy`], [`guard`] puts the checks
//! in front of the router, and [`serve`] answers requests until a signal arrives.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod code;
mod guard;
mod host;
mod policy;
mod serve;
mod stream;
mod token;

pub use axum;
pub use code::OneTimeCode;
pub use guard::{Site, guard};
pub use policy::Policy;
pub use serve::{Plan, ServeError, blocking, serve};
pub use stream::watch;
pub use token::Token;
