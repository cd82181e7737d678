//! Claiming a job: one lease for one job, announced before it is taken, and the job looked at
//! again once it is held.
//!
//! Any number of workers derive the same flow and see the same jobs ready. Whoever gets the lease
//! has the job; the others take the next. What a worker holds when it dies is given back by
//! whoever notices.

use std::time::{Duration, Instant};

use quipu_contract::Actor;
use quipu_store::{Lease, StoreError};

use super::attempt::ChosenJob;
use super::engine::{Engine, FlowError, Shift, flow_beside};
use super::event::Event;
use super::job::Job;

/// How often the workers of other machines are looked at.
const LOOK: Duration = Duration::from_secs(2);

impl Engine<'_> {
    /// Takes the lease of a job, or says who is in the way.
    pub(super) fn claim(
        &self,
        job: &Job,
        actor: &Actor,
        paths: &[String],
        seconds: u64,
    ) -> Result<std::result::Result<Lease, String>, StoreError> {
        let unit = job.unit.as_ref().map(ToString::to_string);
        let name = self.seat.claim(&job.step, unit.as_deref())?;
        match self
            .project
            .store
            .take_lease_as(actor, &name, paths, seconds)
        {
            Ok(lease) => Ok(Ok(lease)),
            Err(StoreError::LeaseLost { what }) => self.seat.unclaim(&name).map(|()| Err(what)),
            Err(refused @ StoreError::Refused(_)) => self.seat.unclaim(&name).and(Err(refused)),
            Err(error) => {
                // It may have been taken all the same.
                self.seat.doubt(&name);
                Err(error)
            }
        }
    }

    /// Ends a claim. A lease that cannot be given back now is given back later.
    pub(super) fn give_back(&self, actor: &Actor, lease: &Lease) -> Result<(), FlowError> {
        match self
            .project
            .store
            .release_lease(actor, &lease.id, Some(lease.fence))
        {
            Ok(_) | Err(StoreError::NotFound { .. } | StoreError::LeaseLost { .. }) => {
                Ok(self.seat.unclaim(&lease.id)?)
            }
            Err(error) => {
                self.seat.doubt(&lease.id);
                let error = FlowError::from(error);
                if error.is_passing() {
                    Ok(())
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Whether a claimed job is still to be done as it was when it was chosen: others may have
    /// gone on meanwhile.
    pub(super) fn is_wanted(
        &self,
        chosen: &ChosenJob<'_>,
        lease: &Lease,
    ) -> Result<bool, FlowError> {
        let facts = self.memory.facts(self.project)?;
        if facts.last().map_or(0, |f| f.seq) == chosen.facts {
            return Ok(true);
        }
        let (flow, _) = flow_beside(self.project, &self.memory, &chosen.jobs, Some(&lease.id))?;
        let now = flow
            .find(&chosen.planned.job)
            .map(|index| &flow.statuses[index]);
        let then = &chosen.status;
        Ok(now.is_some_and(|now| {
            (now.state, now.seq, now.failures, &now.sent_back)
                == (then.state, then.seq, then.failures, &then.sent_back)
        }))
    }

    /// Gives back what dead workers held. Returns whether there was anything.
    pub(super) fn hand_back(&self, shift: &mut Shift) -> Result<bool, FlowError> {
        // Workers of other machines are told of in a list that has to be asked for.
        let pause = if self.project.store.order().is_some() {
            LOOK
        } else {
            Duration::ZERO
        };
        if shift.handed_back.is_some_and(|at| at.elapsed() < pause) {
            return Ok(false);
        }
        shift.handed_back = Some(Instant::now());
        let leases = match self.seat.hand_back().map_err(FlowError::from) {
            Err(error) if error.is_passing() => return Ok(false),
            other => other?,
        };
        let paths: Vec<String> = leases.into_iter().flat_map(|lease| lease.paths).collect();
        let any = !paths.is_empty();
        if any {
            self.tell(Event::Released { paths });
        }
        Ok(any)
    }
}
