//! How long a worker stays, and how it waits: for its own jobs to end, for others to go on, for a
//! person.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::engine::{Ended, Engine, FlowError, Shift};
use super::event::Event;
use super::job::Job;
use super::state::{Flow, State};
use crate::project::read_manifest;

/// How often a worker that has room for more looks whether there is any news: a look costs a few
/// reads of small files.
const TICK: Duration = Duration::from_millis(150);
/// Without any news the flow is derived again after so long: a lease may have ended by the clock.
const LONGEST: Duration = Duration::from_secs(5);
/// A worker that stays tries again after so long what could not be done: a person may have fixed
/// it.
const AGAIN: Duration = Duration::from_secs(30);

/// What a worker waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Until {
    /// Until there is nothing that it can do, and no other worker is at anything that might change
    /// that.
    #[default]
    Idle,
    /// Until everything that was asked for is done, whoever does it; people may take their time.
    Done,
}

/// How long a worker stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stay {
    pub until: Until,
    /// It begins nothing after that.
    pub leave_at: Option<Instant>,
}

impl Engine<'_> {
    /// Whether nothing new is to be begun.
    pub(super) fn is_leaving(&self) -> bool {
        self.stop.is_asked()
            || self.stay.leave_at.is_some_and(|at| Instant::now() >= at)
            || self.rules_changed()
    }

    /// Whether the contract is another by now: whoever works by the old one ends what was begun,
    /// and looks again.
    pub(super) fn rules_changed(&self) -> bool {
        let now = read_manifest(self.project.store.root());
        now.is_ok_and(|text| quipu_store::Version::of(&text) != self.rules)
    }

    pub(super) fn has_given_up(&self, shift: &Shift, job: &Job) -> bool {
        shift
            .given_up
            .get(job)
            .is_some_and(|at| self.stay.until == Until::Idle || at.elapsed() < AGAIN)
    }

    /// Whether to wait, when nothing can be begun and nothing is running here. `seen` is the
    /// journal's end before the look.
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
        if self.stay.until == Until::Done {
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
        let mine = self.seat.id();
        let others = self.project.store.seated()?;
        if others
            .iter()
            .any(|s| s.alive && s.worker.id != mine && !s.worker.claims.is_empty())
        {
            self.say_waiting(&states, shift);
            return Ok(true);
        }
        // Whoever was at something may have ended, or died, between the look at the flow and the
        // look at the workers. What a dead worker held would otherwise count as begun, with nobody
        // left to end it.
        shift.handed_back = None;
        Ok(self.hand_back(shift)? || self.project.store.pulse()? != seen)
    }

    /// Says once what it waits for.
    fn say_waiting(&self, states: &[State], shift: &mut Shift) {
        let count = |state: State| states.iter().filter(|s| **s == state).count();
        let parts = [
            (State::Running, "done by others"),
            (State::Waiting, "for a person to approve"),
            (State::Failed, "failed: a person must look"),
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

    /// Returns when a job of its own has ended, or when there is news and room to begin something.
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
            if self.hand_back(shift)?
                || self.project.store.pulse()? != seen
                || begun.elapsed() >= LONGEST
            {
                return Ok(());
            }
        }
    }
}
