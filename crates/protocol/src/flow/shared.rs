//! Support for a shared store: applies other workers' commits, sends heartbeats, and retries while
//! the store is unreachable.
//!
//! Only temporary errors are retried. A refusal is final.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use quipu_store::StoreError;

use super::attempt::AttemptError;
use super::commit::{Wanted, commit};
use super::engine::{Ended, Engine, FlowError, Shift};
use super::event::Event;
use super::worker_loop::Until;
use crate::project::open::ProjectError;

/// The heartbeat interval. Other workers consider a worker dead after five missed heartbeats.
const BEAT: Duration = Duration::from_secs(2);
/// How long to wait for a notification from the shared store at a time.
const LISTEN: Duration = Duration::from_millis(500);
/// The pause between two connection attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether the error is temporary, so that a retry may help.
fn passes(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unreachable { remedy: None, .. } | StoreError::Busy { .. }
    )
}

impl FlowError {
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, FlowError::Store(error) | FlowError::Project(ProjectError::Store(error)) if passes(error))
    }
}

impl AttemptError {
    pub(super) fn is_passing(&self) -> bool {
        match self {
            AttemptError::Store(error) => passes(error),
            AttemptError::Flow(error) => error.is_passing(),
            _ => false,
        }
    }
}

impl Engine<'_> {
    /// Applies other workers' commits and sends heartbeats until the flow ends.
    pub(super) fn keep_up(&self, over: &AtomicBool) {
        let store = &self.project.store;
        let mut told = Instant::now();
        while !over.load(Ordering::Relaxed) {
            match store.wait(LISTEN) {
                // If this fails, the next iteration or the next commit applies them.
                Ok(true) => drop(store.sync()),
                Ok(false) => {}
                Err(_) => std::thread::sleep(LISTEN),
            }
            if told.elapsed() >= BEAT {
                told = Instant::now();
                let _ = self.registration.heartbeat();
            }
        }
    }

    /// Retries while the shared store is unreachable, so that an agent's work is not discarded. If
    /// the lease expires in the meantime, the store refuses the commit.
    pub(super) fn patiently<T>(
        &self,
        mut work: impl FnMut() -> Result<T, FlowError>,
    ) -> Result<T, FlowError> {
        let mut told = false;
        loop {
            match work() {
                Err(error) if error.is_passing() && !self.stop.is_asked() => {
                    if !told {
                        self.tell(Event::Waiting {
                            why: error.to_string(),
                        });
                        told = true;
                    }
                    std::thread::sleep(PAUSE);
                }
                other => return other,
            }
        }
    }

    /// Commits the results of a job and retries as long as necessary. Returns the sealed files that
    /// were not changed. A try without an answer may have been accepted, so the journal is checked
    /// before the next one.
    pub(super) fn commit_patiently(&self, wanted: &Wanted<'_>) -> Result<Vec<String>, FlowError> {
        let mut again = false;
        self.patiently(|| {
            if again {
                self.project.store.sync()?;
                if self
                    .memory
                    .facts(self.project)?
                    .iter()
                    .any(|fact| fact.note.attempt == wanted.note.attempt)
                {
                    return Ok(Vec::new());
                }
            }
            again = true;
            commit(self.project, &self.memory, wanted).map(|done| done.sealed)
        })
    }

    /// Whether a staying worker waits for this error to pass.
    pub(super) fn bears(&self, error: &FlowError) -> bool {
        self.leave_rule.until == Until::Done && error.is_passing() && !self.is_leaving()
    }

    /// Waits for a while and handles jobs that end in the meantime.
    pub(super) fn rest(&self, error: &FlowError, receiver: &Receiver<Ended>, shift: &mut Shift) {
        self.say_once(error.to_string(), shift);
        if let Ok(ended) = receiver.recv_timeout(PAUSE) {
            self.settle(ended, shift);
        }
    }
}
