//! Tests of whole flows with a scripted agent: completion, objections and failures, kills and
//! restarts.

#![allow(clippy::unwrap_used)]

mod book;
mod disasters;
mod escapes;
mod external;
mod fleet;
mod guide;
mod hosts;
mod killed;
mod order;
mod recorded;
mod rehearsal;
mod review;
#[path = "../../../agents/tests/agents/server.rs"]
#[allow(dead_code, reason = "shared with the tests of adapters")]
mod server;
mod stage;
mod status;
