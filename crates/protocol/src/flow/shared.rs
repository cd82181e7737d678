//! Working in a shared store: following what others commit, saying that one lives, and bearing that
//! it cannot be reached.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use quipu_store::StoreError;

use super::attempt::AttemptError;
use super::commit::{Wanted, commit};
use super::engine::{Ended, Engine, FlowError, Shift};
use super::event::Event;
use super::worker_loop::Until;
use crate::project::ProjectError;

/// A worker says so often that it lives; after five times as long in silence others take it for
/// dead.
const BEAT: Duration = Duration::from_secs(2);
/// How long the shared store is listened to at a time.
const LISTEN: Duration = Duration::from_millis(500);
/// The pause between two tries to reach it.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether trying again later may help: nobody did anything wrong.
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
    /// Takes over what others commit, and says that this worker lives, until the flow is left.
    pub(super) fn keep_up(&self, over: &AtomicBool) {
        let store = &self.project.store;
        let mut told = Instant::now();
        while !over.load(Ordering::Relaxed) {
            match store.wait(LISTEN) {
                // What cannot be taken over now is taken over at the next try, or by the next
                // commit.
                Ok(true) => drop(store.sync()),
                Ok(false) => {}
                Err(_) => std::thread::sleep(LISTEN),
            }
            if told.elapsed() >= BEAT {
                told = Instant::now();
                let _ = self.seat.beat();
            }
        }
    }

    /// Tries again for as long as the shared store cannot be reached: what an agent made is not
    /// thrown away for that. A lease that ended meanwhile is refused by the store itself.
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

    /// Commits what a job made, for as long as it takes. Returns the sealed files that stay as
    /// they are. A try whose answer never came may have been accepted: before the next one it is
    /// looked for.
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

    /// Whether a worker that stays waits for this to pass.
    pub(super) fn bears(&self, error: &FlowError) -> bool {
        self.stay.until == Until::Done && error.is_passing() && !self.is_leaving()
    }

    /// Lets some time pass, and hears what ended meanwhile.
    pub(super) fn rest(&self, error: &FlowError, receiver: &Receiver<Ended>, shift: &mut Shift) {
        self.say_once(error.to_string(), shift);
        if let Ok(ended) = receiver.recv_timeout(PAUSE) {
            self.settle(ended, shift);
        }
    }
}
