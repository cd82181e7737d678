//! Sessions: who is working, so that the next agent sees a session that never finished.
//!
//! A session is a lease without paths. It is journalled like every lease and blocks nobody. It ends
//! in the record of the commit that finishes the work; without such a commit it stays open and
//! visible.

use quipu_contract::Actor;
use serde::Serialize;

use crate::error::{Result, StoreError};
use crate::journal::lease::Lease;
use crate::journal::record::{LeaseEvent, Who};
use crate::store::Store;

/// A session that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenSession {
    pub id: String,
    pub who: Who,
    /// The time when it began, and the record of that.
    pub since: String,
    pub seq: u64,
    /// It has exceeded the limit of a session: its agent is considered dead.
    pub over: bool,
}

impl OpenSession {
    fn of(lease: Lease, over: bool) -> OpenSession {
        OpenSession {
            id: lease.id,
            who: lease.holder,
            since: lease.since,
            seq: lease.seq,
            over,
        }
    }
}

/// The session id of a host's conversation: the same for every call from it.
pub fn session_id(who: &Who, conversation: &str) -> String {
    let named = [&who.role, &who.unit, &who.agent].map(|name| name.as_deref().unwrap_or_default());
    let name = [&named[..], &[conversation]].concat().join("\0");
    format!("s-{}", &blake3::hash(name.as_bytes()).to_hex()[..12])
}

impl Store {
    /// Begins a session.
    pub fn begin_session(&self, actor: &Actor, seconds: u64) -> Result<OpenSession> {
        self.begin_session_as(
            actor,
            &format!("s-{}", crate::ident::short_id()),
            seconds,
            None,
        )
    }

    /// Begins a session with a given id and a note. An open session with that id continues
    /// unchanged.
    pub fn begin_session_as(
        &self,
        actor: &Actor,
        id: &str,
        seconds: u64,
        note: Option<&serde_json::Value>,
    ) -> Result<OpenSession> {
        let begun = self.lease_event_with(actor, note, |leases, fence| {
            match leases.iter().find(|l| l.id == id) {
                Some(_) => Err(StoreError::LeaseLost {
                    what: format!("session `{id}` is already open"),
                }),
                None => Ok(self.event("take", id, &[], fence, seconds)),
            }
        });
        match begun {
            Ok(lease) => Ok(OpenSession::of(lease, false)),
            Err(error) => match self.sessions()?.into_iter().find(|s| s.id == id && !s.over) {
                Some(open) => Ok(open),
                None => Err(error),
            },
        }
    }

    /// The sessions that have not ended, oldest first.
    pub fn sessions(&self) -> Result<Vec<OpenSession>> {
        self.settle()?;
        let (now, boot) = (self.replica.lease_now(), &self.settings.boot);
        let all = self.index.sound(|| self.index.open()?.leases())?;
        let open = |lease: Lease| {
            let over = lease.is_over(now, boot);
            OpenSession::of(lease, over)
        };
        let mut sessions: Vec<OpenSession> = all
            .into_iter()
            .filter(Lease::is_session)
            .map(open)
            .collect();
        sessions.sort_by_key(|s| s.seq);
        Ok(sessions)
    }

    /// Ends a session without a commit, after its work was taken over.
    pub fn end_session(&self, actor: &Actor, id: &str) -> Result<()> {
        let end = |leases: &[Lease], _: u64| {
            let fence = leases.iter().find(|l| l.id == id).map_or(0, |l| l.fence);
            Ok(self.event("release", id, &[], fence, 0))
        };
        self.lease_event(actor, end).map(|_| ())
    }

    /// The event that ends a session within a commit; none if it has already ended.
    pub(crate) fn ending_of(
        &self,
        leases: &[Lease],
        id: &str,
        actor: &Actor,
    ) -> Result<Option<LeaseEvent>> {
        let Some(lease) = leases.iter().find(|l| l.id == id && l.is_session()) else {
            return Ok(None);
        };
        if lease.holder != Who::from(actor) && *actor != Actor::Person {
            let what = format!("session `{id}` was started by {}", lease.holder);
            return Err(StoreError::refused(
                what,
                "quipu start     (opens a session of your own)",
            ));
        }
        Ok(Some(self.event("release", id, &[], lease.fence, 0)))
    }
}
