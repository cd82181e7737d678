//! Whole flows with a scripted performer: to the end, through objections and failures, killed and
//! started again.

#![allow(clippy::unwrap_used)]

mod book;
mod disasters;
mod escapes;
mod fleet;
mod guide;
mod hired;
mod hosts;
mod killed;
mod order;
mod recorded;
mod rehearsed;
mod review;
#[path = "../../../agents/tests/agents/server.rs"]
#[allow(dead_code, reason = "shared with the tests of adapters")]
mod server;
mod stage;
mod standing;
