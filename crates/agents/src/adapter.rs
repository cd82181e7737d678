//! The `Adapter` trait that every agent implements, the handle that stops an agent, and the
//! deadline.

use crate::assignment::Assignment;
use crate::outcome::{Event, Outcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// An agent that can carry out an assignment: a program, a model over HTTP, a person, a rehearsal.
pub trait Adapter: Send + Sync {
    /// The name that the caller selected the agent by.
    fn name(&self) -> &str;

    /// Checks, before any work is planned, what can be known about whether it can start: the program
    /// is installed, the variable of the key is set.
    fn ready(&self) -> Result<(), String> {
        Ok(())
    }

    /// Prepares for an assignment. The deadline starts here; the agent starts with `first`.
    fn open<'a>(&'a self, assignment: &'a Assignment, watch: Watch<'a>) -> Box<dyn Turns + 'a>;
}

/// The turns of one agent on one assignment. Dropping the value ends any process that still runs.
pub trait Turns {
    /// Sends the brief and waits for the end of the turn.
    fn first(&mut self) -> Outcome;

    /// Sends the exact fault of the work back, in the same session if the agent has one.
    fn again(&mut self, fault: &str) -> Outcome;
}

/// The caller's callbacks and stop handle while an agent works.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    pub events: &'a (dyn Fn(Event) + Sync),
    pub stop: &'a Stop,
}

impl Watch<'_> {
    pub(crate) fn progress(&self, line: impl Into<String>) {
        (self.events)(Event::Progress(line.into()));
    }

    pub(crate) fn retry(&self, why: impl Into<String>) {
        (self.events)(Event::Retry(why.into()));
    }
}

/// Ends an agent from another thread, as on Ctrl-C. Clones stop the same agents.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// Wraps a flag that another owner sets.
impl From<Arc<AtomicBool>> for Stop {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Stop(flag)
    }
}

impl Stop {
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The deadline of an assignment.
#[derive(Clone, Copy, Debug)]
pub struct Limit(Instant);

impl Limit {
    pub fn after(time: Duration) -> Self {
        let now = Instant::now();
        // `Instant` cannot represent a deadline this far away; a year serves as well.
        Limit(
            now.checked_add(time)
                .unwrap_or(now + Duration::from_secs(365 * 24 * 3600)),
        )
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.0
    }

    pub fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}
