//! A disk that stops at a chosen write step, as in a crash, or fails there once and continues.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_store::{Step, StepVerdict, StoreError, Validated, Watch};

/// The failure at the chosen step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The step and all later ones do nothing.
    Stop,
    /// The step writes half of its bytes; all later ones do nothing.
    Torn,
    /// The step fails with "no space left"; all later ones work.
    Full,
}

/// Counts write steps and fails at one of them.
pub struct FailingDisk {
    at: usize,
    failure: Failure,
    seen: Mutex<Vec<Step>>,
    /// Called before each sync of the journal, when the written bytes are about to become durable.
    at_sync: Option<Box<dyn Fn() + Send + Sync>>,
}

impl FailingDisk {
    pub fn at(at: usize, failure: Failure) -> FailingDisk {
        FailingDisk {
            at,
            failure,
            seen: Mutex::new(Vec::new()),
            at_sync: None,
        }
    }

    /// Registers a callback that runs before each sync of the journal that will happen.
    pub fn on_sync(mut self, told: impl Fn() + Send + Sync + 'static) -> FailingDisk {
        self.at_sync = Some(Box::new(told));
        self
    }

    /// Returns a disk that counts and never fails.
    pub fn counting() -> FailingDisk {
        FailingDisk::at(usize::MAX, Failure::Stop)
    }

    pub fn steps(&self) -> Vec<Step> {
        self.seen.lock().unwrap().clone()
    }
}

impl Watch for FailingDisk {
    fn before(&self, step: Step, bytes: usize) -> StepVerdict {
        let mut seen = self.seen.lock().unwrap();
        let index = seen.len();
        seen.push(step);
        let verdict = match (index.cmp(&self.at), self.failure) {
            (std::cmp::Ordering::Less, _) => StepVerdict::Go,
            (std::cmp::Ordering::Equal, Failure::Full) => StepVerdict::Fail,
            (std::cmp::Ordering::Equal, Failure::Torn) => StepVerdict::Torn(bytes / 2),
            (std::cmp::Ordering::Greater, Failure::Full) => StepVerdict::Go,
            _ => StepVerdict::Stop,
        };
        if step == Step::JournalSync
            && verdict == StepVerdict::Go
            && let Some(told) = &self.at_sync
        {
            told();
        }
        verdict
    }
}

/// A disk that writes and syncs the journal as usual, and refuses to write files while a commit is
/// published through [`PausedDisk::publish`]. The commit is durable and not applied, as when its
/// program is killed after the sync.
#[derive(Default)]
pub struct PausedDisk(AtomicBool);

impl PausedDisk {
    /// Publishes a change and leaves its files as they were.
    pub fn publish(&self, judged: Validated<'_>) {
        self.0.store(true, Ordering::SeqCst);
        let published = judged.publish();
        self.0.store(false, Ordering::SeqCst);
        assert!(
            matches!(published, Err(StoreError::Unfinished { .. })),
            "{published:?}"
        );
    }
}

impl Watch for PausedDisk {
    fn before(&self, step: Step, _: usize) -> StepVerdict {
        use Step::{Append, Exchange, HeadsCommit, MakeFolder, Place, Remove, Reorder, TempWrite};
        let writes_files = matches!(
            step,
            Append | Exchange | HeadsCommit | MakeFolder | Place | Remove | Reorder | TempWrite
        );
        if writes_files && self.0.load(Ordering::SeqCst) {
            StepVerdict::Stop
        } else {
            StepVerdict::Go
        }
    }
}
