//! Agents behind one trait, and the sandbox that their programs run in.
//!
//! An agent gets a folder to read, a folder to write and a brief. This crate does not know the
//! store, the contract or a profile: the caller decides which files the agent sees and judges the
//! files it wrote. An agent's claim that it finished is never accepted as proof.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod acp;
mod adapter;
mod assignment;
mod beneath;
mod collect;
mod command;
mod host;
mod http;
mod outcome;
mod person;
mod program;
mod questions;
mod registry;
mod sandbox;
mod transcript;
mod workspace;

pub use adapter::{Adapter, Limit, Stop, Turns, Watch};
pub use assignment::{Assignment, Bounds, Language, Names};
pub use collect::{Collected, Unfit, collect};
pub use host::{Host, HostError, Hosts, Via};
pub use http::{call_workspace_tool, workspace_tools};
pub use outcome::{Attempt, Confinement, Ending, Event, Outcome, Usage};
pub use questions::{ASK, CHECK, answer_questions};
pub use registry::{Setting, resolve_agent};
pub use sandbox::{SANDBOX_COMMAND, Sandbox, sandbox_main};
#[cfg(target_os = "linux")]
pub use sandbox::{probe_landlock, probe_seccomp};
pub use transcript::Transcript;
pub use workspace::{Workspace, WorkspaceError};
