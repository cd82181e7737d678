//! Memory for AI agents: plain Markdown and JSON files under a contract, with a journal of every
//! change.
//!
//! [`Memory`] is a project for one actor. Every read checks what the actor's role may read, and
//! every write is one commit that the contract validates. This crate is the public surface of
//! Quipu for Rust programs; the other crates of the workspace are internal and change without
//! notice.
//!
//! ```
//! use quipu_memory::{Error, Memory};
//!
//! # fn main() -> Result<(), Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! let memory = Memory::create(folder.path(), "relay")?.agent("ada")?;
//!
//! // `decisions.md` is append-only: text is added, and nothing is ever replaced.
//! let receipt = memory.append("decisions.md", "- We keep times in UTC.")?;
//! assert!(receipt.commit > 1);
//! let refused = memory.write("decisions.md", "nothing", None).unwrap_err();
//! assert!(matches!(refused, Error::Refused { .. }));
//!
//! let found = memory.recall("Which time zone do we use?")?;
//! assert_eq!(found.hits[0].path, "decisions.md");
//!
//! // A state file is replaced only by a writer that knows its version.
//! let state = memory.read("state.json")?;
//! let newer = state.text.replace("\"planning\"", "\"testing\"");
//! memory.write("state.json", &newer, Some(&state.version))?;
//! let stale = memory.write("state.json", "{}", Some(&state.version)).unwrap_err();
//! assert!(matches!(stale, Error::Stale { .. } | Error::Refused { .. }));
//! # Ok(())
//! # }
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![warn(missing_docs)]

mod error;
mod memory;

pub use error::Error;
pub use memory::{Flagged, Hit, Memory, Recalled, Receipt, Text};
