//! The worker loop: how long a worker stays, and how it waits for its own jobs, for other workers
//! and for a person.
//!
//! `engine.rs` starts the jobs.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::engine::{Ended, Engine, FlowError, Shift};
use super::event::Event;
use super::job::Job;
use super::state::{Flow, State};
use crate::project::open::RulesOnDisk;

/// How often a worker with free capacity polls for news. A poll reads a few small files.
const TICK: Duration = Duration::from_millis(150);
/// Without news, the flow is derived again after this time, because a lease may have expired.
const LONGEST: Duration = Duration::from_secs(5);
/// A staying worker retries a stuck job after this time: a person may have fixed it.
const AGAIN: Duration = Duration::from_secs(30);

/// The condition for a worker to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Until {
    /// Until it can do nothing, and no other worker is doing a job that might change that.
    #[default]
    Idle,
    /// Until all selected jobs are done by any worker. Decisions by people may take any time.
    Done,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct LeaveRule {
    pub until: Until,
    /// No job is started after this time.
    pub leave_at: Option<Instant>,
}

impl Engine<'_> {
    /// Whether no further job may be started.
    pub(super) fn is_leaving(&self) -> bool {
        self.stop.is_asked()
            || self
                .leave_rule
                .leave_at
                .is_some_and(|at| Instant::now() >= at)
            || self.rules_changed()
    }

    /// Whether the contract has changed. A worker under the old contract finishes its running jobs,
    /// then reloads.
    pub(super) fn rules_changed(&self) -> bool {
        self.project.compare_rules() == RulesOnDisk::Changed
    }

    pub(super) fn has_given_up(&self, shift: &Shift, job: &Job) -> bool {
        shift
            .given_up
            .get(job)
            .is_some_and(|at| self.leave_rule.until == Until::Idle || at.elapsed() < AGAIN)
    }

    /// Whether to wait when nothing can be started and nothing runs here. `seen` is the journal's
    /// position before the flow was derived.
    pub(super) fn stays(
        &self,
        flow: &Flow<'_>,
        seen: u64,
        shift: &mut Shift,
    ) -> Result<bool, FlowError> {
        if self.is_leaving() {
            return Ok(false);
        }
        let asked = flow
            .statuses
            .iter()
            .filter(|s| self.choice.allows(self.project, &s.job));
        let states: Vec<State> = asked.map(|s| s.state).collect();
        if self.leave_rule.until == Until::Done {
            let open = states
                .iter()
                .any(|s| !matches!(s, State::Done | State::Skipped | State::Stale));
            if open {
                self.say_waiting(&states, shift);
            }
            return Ok(open);
        }
        if !states
            .iter()
            .any(|s| matches!(s, State::Pending | State::Running | State::Ready))
        {
            return Ok(false);
        }
        let mine = self.registration.id();
        let others = self.project.store.registered()?;
        if others
            .iter()
            .any(|s| s.alive && s.worker.id != mine && !s.worker.claims.is_empty())
        {
            self.say_waiting(&states, shift);
            return Ok(true);
        }
        // Another worker may have finished or died between the derivation of the flow and the check
        // of the workers, so check once more. Without this, the lease of a dead worker would count
        // as running work that nobody completes. An error here must not be taken for an answer.
        shift.released_at = None;
        Ok(self.release_dead(shift)? || self.project.store.pulse()? != seen)
    }

    /// Reports once what the worker waits for.
    fn say_waiting(&self, states: &[State], shift: &mut Shift) {
        let count = |state: State| states.iter().filter(|s| **s == state).count();
        let parts = [
            (State::Running, "done by others"),
            (State::Waiting, "for a person to approve"),
            (State::Failed, "failed: needs a person"),
            (State::Ready, "stuck"),
            (State::Stale, "stale: redone by quipu run --stale"),
        ];
        let said = parts
            .iter()
            .filter(|(state, _)| count(*state) > 0)
            .map(|(state, what)| format!("{} {what}", count(*state)));
        self.say_once(said.collect::<Vec<_>>().join(", "), shift);
    }

    pub(super) fn say_once(&self, why: String, shift: &mut Shift) {
        if shift.waiting.as_ref() != Some(&why) {
            self.tell(Event::Waiting { why: why.clone() });
            shift.waiting = Some(why);
        }
    }

    /// Returns when a job of this worker has ended, or when there is news and capacity to start a
    /// job.
    pub(super) fn wait(
        &self,
        receiver: &Receiver<Ended>,
        seen: u64,
        shift: &mut Shift,
    ) -> Result<(), FlowError> {
        let begun = Instant::now();
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(ended) => {
                    self.settle(ended, shift);
                    while let Ok(ended) = receiver.try_recv() {
                        self.settle(ended, shift);
                    }
                    return Ok(());
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.is_leaving() {
                if shift.running.is_empty() {
                    return Ok(());
                }
                continue;
            }
            if shift.running.len() >= self.choice.jobs.max(1) {
                continue;
            }
            if self.try_release_dead(shift)?
                || self.project.store.pulse()? != seen
                || begun.elapsed() >= LONGEST
            {
                return Ok(());
            }
        }
    }
}
