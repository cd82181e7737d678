//! A lease as the records of the journal define it: holder, paths, fence and expiry.
//!
//! Within one boot a lease ends by a clock that cannot jump; after a reboot by the wall clock.
//! `lease/leases.rs` takes, renews and checks leases.

use quipu_contract::{Actor, Pattern, ProjectPath};
use serde::{Deserialize, Serialize};

use crate::clock::{AHEAD_US, Instant, parse_time};
use crate::journal::record::{LeaseEvent, Record, Who};

/// A lease that was taken and not released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub id: String,
    pub holder: Who,
    pub paths: Vec<String>,
    pub fence: u64,
    pub until: String,
    /// When it was taken or last renewed, and the record that says so.
    #[serde(default)]
    pub since: String,
    #[serde(default)]
    pub seq: u64,
    #[serde(default)]
    pub(crate) boot: String,
    #[serde(default)]
    pub(crate) boot_until_us: i64,
}

/// The token that the holder presents with each commit: `ID:FENCE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseToken {
    pub id: String,
    pub fence: u64,
}

impl LeaseToken {
    pub fn parse(text: &str) -> Option<LeaseToken> {
        let (id, fence) = text.rsplit_once(':')?;
        Some(LeaseToken {
            id: id.to_owned(),
            fence: fence.parse().ok()?,
        })
    }
}

impl std::fmt::Display for LeaseToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.id, self.fence)
    }
}

impl Lease {
    pub fn token(&self) -> LeaseToken {
        LeaseToken {
            id: self.id.clone(),
            fence: self.fence,
        }
    }

    pub fn covers(&self, path: &ProjectPath) -> bool {
        self.paths
            .iter()
            .any(|p| Pattern::parse(p).is_ok_and(|p| p.matches(path.as_str()).is_some()))
    }

    pub(crate) fn overlaps(&self, other: &Lease) -> bool {
        let patterns = |lease: &Lease| -> Vec<Pattern> {
            lease
                .paths
                .iter()
                .filter_map(|p| Pattern::parse(p).ok())
                .collect()
        };
        let theirs = patterns(other);
        patterns(self)
            .iter()
            .any(|p| theirs.iter().any(|q| p.overlaps(q)))
    }

    pub(crate) fn is_over(&self, now: Instant, boot: &str) -> bool {
        if self.boot == boot {
            return now.boot_us >= self.boot_until_us;
        }
        // A lease of an earlier boot that was taken in the future was taken by a wrong clock. It
        // would hold for as long as that clock was wrong. The clock of a shared store is not this
        // machine's.
        let is_ahead = self.boot != SHARED_BOOT
            && parse_time(&self.since)
                .is_some_and(|since| since.saturating_sub(now.wall_us) > AHEAD_US);
        is_ahead || parse_time(&self.until).is_none_or(|until| now.wall_us >= until)
    }

    pub(crate) fn apply(record: &Record, event: &LeaseEvent) -> Lease {
        Lease {
            id: event.id.clone(),
            holder: record.who.clone(),
            paths: event.paths.clone(),
            fence: event.fence,
            until: event.until.clone(),
            since: record.at.clone(),
            seq: record.seq,
            boot: event.boot.clone(),
            boot_until_us: event.boot_until_us,
        }
    }

    /// Whether an actor may show it: every name that its holder has is the actor's, too. A person
    /// may use anyone's, and so may Quipu itself, which gives back what the dead held.
    pub(crate) fn is_of(&self, actor: &Actor) -> bool {
        let Actor::Agent { .. } = actor else {
            return true;
        };
        let (holder, shown) = (&self.holder, Who::from(actor));
        let agrees =
            |held: &Option<String>, shown: &Option<String>| held.is_none() || held == shown;
        holder.kind == shown.kind
            && agrees(&holder.role, &shown.role)
            && agrees(&holder.unit, &shown.unit)
            && agrees(&holder.agent, &shown.agent)
    }

    /// A lease on no path is a session: it says that someone is at work and keeps no one out.
    pub(crate) fn is_session(&self) -> bool {
        self.paths.is_empty()
    }
}

/// Replaces the boot id where the clock of a shared store counts.
const SHARED_BOOT: &str = "shared";
