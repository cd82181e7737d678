//! Settings that are fixed while a store is open: its folder, clock and boot, and whether it can be written.

use std::path::{Path, PathBuf};
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
    pub read_only: bool,
    pub unwritable: Option<Unwritable>,
    pub alone: bool,
    pub door: Option<&'static str>,
}

/// The boot id of a working copy. A working copy and a local project have different ones, so that a
/// process with the old state of the project finds no watermarks and takes a new snapshot (see
/// `find_end`).
pub(crate) fn shared_boot(boot: &str) -> String {
    format!("{boot}{OF_SHARED}")
}

impl Settings {
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn quipu(&self) -> PathBuf {
        self.root.join(".quipu")
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    pub fn boot(&self) -> &str {
        &self.boot
    }

    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Whether the project is on a disk or in a folder that cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The reason why the store was opened for reading only.
    pub fn unwritable(&self) -> Option<&Unwritable> {
        self.unwritable.as_ref()
    }

    /// Whether it is a local project, regardless of the environment and the contract.
    pub fn alone(&self) -> bool {
        self.alone
    }

    /// The interface that the caller uses, stored in every record that it makes.
    pub fn door(&self) -> Option<&'static str> {
        self.door
    }

    /// A lock between the processes of this project.
    pub fn lock(&self, name: &str) -> KernelLock {
        KernelLock::new(self.quipu().join(name), self.wait).barred(self.unwritable.clone())
    }
}
