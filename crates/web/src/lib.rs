//! A guarded HTTP server for one person's machine: who may call it, from where, with what, for how
//! long.
//!
//! It knows nothing of projects. A door brings its own router and a [`Policy`]; [`guard`] puts the
//! checks in front of it and [`serve`] answers until a signal ends it. This is the only place where
//! an async runtime starts.

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
