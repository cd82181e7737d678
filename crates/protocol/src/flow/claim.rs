//! Claims a job: one lease per job, announced before it is taken. The job is checked again once the
//! lease is held.
//!
//! Any number of workers derive the same flow and see the same ready jobs. The worker that gets the
//! lease does the job; the others take the next one. Any worker that notices a dead worker releases
//! its leases.

use std::time::{Duration, Instant};

use quipu_contract::Actor;
use quipu_store::{Lease, StoreError};

use super::attempt::ChosenJob;
use super::engine::{Engine, FlowError, Shift, flow_beside};
use super::event::Event;
use super::job::Job;

/// How often workers on other machines are checked.
const LOOK: Duration = Duration::from_secs(2);

impl Engine<'_> {
    /// Takes the lease of a job, or returns its holder.
    pub(super) fn claim(
        &self,
        job: &Job,
        actor: &Actor,
        paths: &[String],
        seconds: u64,
    ) -> Result<std::result::Result<Lease, String>, StoreError> {
        let unit = job.unit.as_ref().map(ToString::to_string);
        let name = self.registration.claim(&job.step, unit.as_deref())?;
        match self
            .project
            .store
            .take_lease_as(actor, &name, paths, seconds)
        {
            Ok(lease) => Ok(Ok(lease)),
            Err(StoreError::LeaseLost { what }) => {
                self.registration.unclaim(&name).map(|()| Err(what))
            }
            Err(refused @ StoreError::Refused(_)) => {
                self.registration.unclaim(&name).and(Err(refused))
            }
            Err(error) => {
                // The lease may have been taken despite the error.
                self.registration.doubt(&name);
                Err(error)
            }
        }
    }

    /// Releases a claim. If this fails now, the release is retried later.
    pub(super) fn give_back(&self, actor: &Actor, lease: &Lease) -> Result<(), FlowError> {
        match self
            .project
            .store
            .release_lease(actor, &lease.id, Some(lease.fence))
        {
            Ok(_) | Err(StoreError::NotFound { .. } | StoreError::LeaseLost { .. }) => {
                Ok(self.registration.unclaim(&lease.id)?)
            }
            Err(error) => {
                self.registration.doubt(&lease.id);
                let error = FlowError::from(error);
                if error.is_passing() {
                    Ok(())
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Whether a claimed job still has to be done in the form in which it was chosen. Other workers
    /// may have changed the flow in the meantime.
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

    /// Like `release_dead`, where a temporary error may wait: a later call tries again.
    pub(super) fn try_release_dead(&self, shift: &mut Shift) -> Result<bool, FlowError> {
        match self.release_dead(shift) {
            Err(error) if error.is_passing() => Ok(false),
            other => other,
        }
    }

    /// Releases the leases of dead workers. Returns whether there were any.
    pub(super) fn release_dead(&self, shift: &mut Shift) -> Result<bool, FlowError> {
        // Listing the workers of other machines needs a request, so limit its rate.
        let pause = if self.project.store.commit_log().is_some() {
            LOOK
        } else {
            Duration::ZERO
        };
        if shift.released_at.is_some_and(|at| at.elapsed() < pause) {
            return Ok(false);
        }
        shift.released_at = Some(Instant::now());
        let leases = self.registration.hand_back()?;
        let paths: Vec<String> = leases.into_iter().flat_map(|lease| lease.paths).collect();
        let any = !paths.is_empty();
        if any {
            self.tell(Event::Released { paths });
        }
        Ok(any)
    }
}
