//! Options for opening a store.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::Unwritable;
use crate::files::disk::Watch;
use crate::replica::commit_log::CommitLog;
use crate::rules::rule_book::RuleBook;

/// How long a command waits for another process before it fails with that process's name.
const WAIT: Duration = Duration::from_secs(10);
/// A segment of this size is closed, and the next one begins.
const SEGMENT_BYTES: u64 = 16 << 20;

/// Options for opening a store. The defaults are for ordinary use.
#[derive(Clone)]
pub struct Options {
    pub clock: Clock,
    pub wait: Duration,
    pub segment_bytes: u64,
    pub watch: Option<Arc<dyn Watch>>,
    /// The boot id, if it does not come from the kernel.
    pub boot: Option<String>,
    /// The shared commit log, if it does not come from the project's folder or the environment.
    pub commit_log: Option<Arc<dyn CommitLog>>,
    /// Open as a local project, regardless of the environment and the contract.
    pub alone: bool,
    /// Open a working copy without contacting its shared store: reads use the local state, and
    /// nothing can be committed.
    pub offline: bool,
    /// The interface that the caller uses, stored in every record that it makes: `page`.
    pub door: Option<&'static str>,
    /// Checks whether a changed contract is valid, and texts are valid in their form.
    pub rules: Option<Arc<dyn RuleBook>>,
    /// The contract cannot be read and the given one is empty: files have the classes in the
    /// journal.
    pub unruled: bool,
    /// Open for reading only, because nothing can be written; the reason.
    pub unwritable: Option<Unwritable>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            clock: Clock::system(),
            wait: WAIT,
            segment_bytes: SEGMENT_BYTES,
            watch: None,
            boot: None,
            commit_log: None,
            alone: false,
            offline: false,
            door: None,
            rules: None,
            unruled: false,
            unwritable: None,
        }
    }
}
