//! Test support: a project in a temporary folder, a failing disk, a PostgreSQL server, hosts, and
//! hostile input.
//!
//! Internal to Quipu: programs use `quipu-memory`.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod failing;
mod hostile;
mod hosts;
mod playground;
pub mod postgres;
mod sample;
mod script;

pub use failing::{FailingDisk, Failure, PausedDisk};
pub use hostile::{mutated, mutated_bytes};
pub use hosts::{Host, Network};
pub use playground::{
    CONTRACT, Playground, Restore, contract, copy_folder, open_store, temp_folder,
};
pub use sample::{SampleBook, Tongue};
pub use script::{RESEARCH_PARTS, Script, draft, new_items, page, report};
