//! Sessions: who is at work, so that whoever dies without finishing is seen by the next.
//!
//! A session is a lease on no path. It is journalled like every lease and keeps no one out. It ends
//! in the record of the commit that finishes the work, or, if that never comes, it stays and tells.

use quipu_contract::Actor;
use serde::Serialize;

use crate::error::{Result, StoreError};
use crate::lease::{Lease, event};
use crate::record::{LeaseEvent, Who};
use crate::store::Store;

/// A session that was begun and has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenSession {
    pub id: String,
    pub who: Who,
    /// When it began, and the record that says so.
    pub since: String,
    pub seq: u64,
    /// It lasts longer than a session may: its agent is taken for dead.
    pub over: bool,
}

/// The id of the session that a conversation of a host is: the same for every call from it.
pub fn session_id(who: &Who, conversation: &str) -> String {
    let named = [&who.role, &who.unit, &who.agent].map(|name| name.as_deref().unwrap_or_default());
    let told = [&named[..], &[conversation]].concat().join("\0");
    format!("s-{}", &blake3::hash(told.as_bytes()).to_hex()[..12])
}

impl Store {
    /// Notes that someone begins to work.
    pub fn begin_session(&self, actor: &Actor, seconds: u64) -> Result<OpenSession> {
        self.begin_session_as(
            actor,
            &format!("s-{}", crate::ident::short_id()),
            seconds,
            None,
        )
    }

    /// The same under an id that the caller has, with a note. A session of that id that is open
    /// already goes on as it is.
    pub fn begin_session_as(
        &self,
        actor: &Actor,
        id: &str,
        seconds: u64,
        note: Option<&serde_json::Value>,
    ) -> Result<OpenSession> {
        let begun =
            self.lease_event_of(
                actor,
                Vec::new(),
                note,
                |leases, fence, now, boot| match leases.iter().find(|l| l.id == id) {
                    Some(_) => Err(StoreError::LeaseLost {
                        what: format!("session `{id}` is open already"),
                    }),
                    None => Ok(event("take", id, &[], fence, seconds, now, boot)),
                },
            );
        match begun {
            Ok(lease) => Ok(OpenSession {
                id: lease.id,
                who: lease.holder,
                since: lease.since,
                seq: lease.seq,
                over: false,
            }),
            Err(error) => match self.sessions()?.into_iter().find(|s| s.id == id && !s.over) {
                Some(open) => Ok(open),
                None => Err(error),
            },
        }
    }

    /// The sessions that have not ended, oldest first.
    pub fn sessions(&self) -> Result<Vec<OpenSession>> {
        self.settle()?;
        let (now, boot) = (self.lease_now(), self.boot.clone());
        let all = self.with_sound_heads(|| self.heads()?.leases())?;
        let open = |lease: Lease| {
            let over = lease.is_over(now, &boot);
            OpenSession {
                over,
                id: lease.id,
                who: lease.holder,
                since: lease.since,
                seq: lease.seq,
            }
        };
        let mut sessions: Vec<OpenSession> = all
            .into_iter()
            .filter(Lease::is_session)
            .map(open)
            .collect();
        sessions.sort_by_key(|s| s.seq);
        Ok(sessions)
    }

    /// Ends a session without a commit of its own: a predecessor whose work was taken over.
    pub fn end_session(&self, actor: &Actor, id: &str) -> Result<()> {
        let end = |leases: &[Lease], _: u64, now, boot: &str| {
            let fence = leases.iter().find(|l| l.id == id).map_or(0, |l| l.fence);
            Ok(event("release", id, &[], fence, 0, now, boot))
        };
        self.lease_event(actor, end).map(|_| ())
    }

    /// The event that ends a session within a commit; none if it has ended already.
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
            let what = format!("session `{id}` was begun by {}", lease.holder);
            return Err(StoreError::refused(
                what,
                "quipu start     (a session of your own)",
            ));
        }
        Ok(Some(event(
            "release",
            id,
            &[],
            lease.fence,
            0,
            self.lease_now(),
            &self.boot,
        )))
    }
}
