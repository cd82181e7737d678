//! Settings that are fixed while a store is open: its folder, clock and boot, and whether it can be written.

use std::path::PathBuf;
use std::time::Duration;

use crate::clock::{Clock, Instant};
use crate::error::Unwritable;
use crate::files::disk::Disk;
use crate::lock::KernelLock;

/// How long a command of a working copy waits for another process, which may wait for a server.
pub(crate) const SHARED_WAIT: Duration = Duration::from_secs(90);
/// Suffix of the boot id in a working copy.
const OF_SHARED: &str = "s";

/// Built when the store is opened, and never changed.
pub(crate) struct Settings {
    pub root: PathBuf,
    pub clock: Clock,
    pub boot: String,
    pub disk: Disk,
    pub wait: Duration,
    /// The project is on a disk or in a folder that cannot be written.
    pub read_only: bool,
    /// The reason why the store was opened for reading only.
    pub unwritable: Option<Unwritable>,
    /// It is a local project, regardless of the environment and the contract.
    pub alone: bool,
    /// The interface that the caller uses, stored in every record that it makes.
    pub door: Option<&'static str>,
}

/// The boot id of a working copy. A working copy and a local project have different ones, so that a
/// process with the old state of the project finds no watermarks and takes a new snapshot (see
/// `find_end`).
pub(crate) fn shared_boot(boot: &str) -> String {
    format!("{boot}{OF_SHARED}")
}

impl Settings {
    pub fn quipu(&self) -> PathBuf {
        self.root.join(".quipu")
    }

    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// A lock between the processes of this project.
    pub fn lock(&self, name: &str) -> KernelLock {
        KernelLock::new(self.quipu().join(name), self.wait, self.unwritable.clone())
    }
}
