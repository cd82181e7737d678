//! One session of an agent: start, work, finish.

pub(crate) mod capture;
pub(crate) mod conversation;
pub(crate) mod decisions;
pub(crate) mod delegation;
pub(crate) mod error;
pub(crate) mod finish;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod subagent;
pub(crate) mod todos;
