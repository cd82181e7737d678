//! A disk that stops at a chosen write step, as a crash would, or fails at it and lives on.

use std::sync::Mutex;

use quipu_store::{Step, StepVerdict, Watch};

/// How the chosen step goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Nothing of it happens, and nothing after it.
    Stop,
    /// Half of its bytes are written, and nothing after it.
    Torn,
    /// It fails with "no space left" and everything after it works again.
    Full,
}

/// Counts write steps and fails at one of them.
pub struct FailingDisk {
    at: usize,
    failure: Failure,
    seen: Mutex<Vec<Step>>,
    /// Called before each sync of the journal: what stands there then will last.
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

    /// Tells whenever the journal is about to be synced and the sync will happen.
    pub fn on_sync(mut self, told: impl Fn() + Send + Sync + 'static) -> FailingDisk {
        self.at_sync = Some(Box::new(told));
        self
    }

    /// A disk that never fails but counts.
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
