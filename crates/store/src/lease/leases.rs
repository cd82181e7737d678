//! Leases: a run's right to write some paths for longer than one commit.
//!
//! A lease is journalled, so its fencing number only ever grows. Within one boot it ends by a clock
//! that cannot jump; after a reboot by the wall clock. It is checked inside every commit.

use quipu_contract::{Actor, HOST_FILES, Pattern, ProjectPath};

use crate::clock::render_time;
use crate::error::{Result, StoreError};
use crate::journal::lease::{Lease, LeaseToken};
use crate::journal::record::{Kind, LeaseEvent, Record, Who};
use crate::replica::commit_log::WaitPolicy;
use crate::replica::link::Submitted;
use crate::rules::guards::{denied, guard_actor, guard_words, refused_by};
use crate::store::Store;

/// The longest a lease may last without renewal.
const LONGEST_SECONDS: u64 = 24 * 60 * 60;

impl Store {
    /// The leases that still hold.
    pub fn leases(&self) -> Result<Vec<Lease>> {
        self.settle()?;
        let mut all = self.index.sound(|| self.index.open()?.leases())?;
        all.retain(|lease| !lease.is_session());
        Ok(self.held(&all))
    }

    /// Takes a lease on paths that no one else holds.
    pub fn take_lease(&self, actor: &Actor, paths: &[String], seconds: u64) -> Result<Lease> {
        self.take_lease_as(actor, &crate::ident::short_id(), paths, seconds)
    }

    /// The same under a name that the caller made, and wrote down before: so that others can give
    /// it back if the caller dies.
    pub fn take_lease_as(
        &self,
        actor: &Actor,
        id: &str,
        paths: &[String],
        seconds: u64,
    ) -> Result<Lease> {
        let patterns = self.check_leasable(actor, paths)?;
        self.lease_event(actor, |leases, fence| {
            if let Some(held) = leases.iter().find(|l| {
                l.paths.iter().any(|p| {
                    Pattern::parse(p).is_ok_and(|p| patterns.iter().any(|q| q.overlaps(&p)))
                })
            }) {
                return Err(StoreError::LeaseLost {
                    what: held_by(held),
                });
            }
            Ok(self.event("take", id, &spelled(&patterns), fence + 1, seconds))
        })
    }

    /// Whether an actor may lease some paths at all, and how they are spelled: `./a.md` is `a.md`.
    fn check_leasable(&self, actor: &Actor, paths: &[String]) -> Result<Vec<Pattern>> {
        if paths.is_empty() {
            return Err(StoreError::refused(
                "a lease needs at least one path",
                "quipu lease take PATH",
            ));
        }
        // An actor can lease only what it may write: a role cannot lock others out of what is not its
        // own.
        let grant = self
            .contract()
            .grant(actor)
            .map_err(|what| StoreError::refused(what, "quipu contract show"))?;
        let binding = self.contract().actor_binding(actor);
        let mut patterns = Vec::new();
        for path in paths {
            guard_words(&self.contract().guards, path, "path of the lease", "PATH")?;
            let pattern = self.leasable(path)?;
            match pattern.as_literal().map(ProjectPath::parse) {
                Some(Ok(literal)) => grant
                    .may_write(&literal, &binding)
                    .map_err(|denial| denied(denial, "quipu contract show"))?,
                _ if grant.role.is_some() => {
                    return Err(StoreError::refused(
                        format!("`{path}`: a role may only lease single paths, without wildcards"),
                        "quipu lease take PATH",
                    ));
                }
                _ => {}
            }
            self.check_holds_nothing_of_people(actor, path, &pattern)?;
            patterns.push(pattern);
        }
        Ok(patterns)
    }

    /// An agent cannot lock people out of what only they may change.
    fn check_holds_nothing_of_people(
        &self,
        actor: &Actor,
        path: &str,
        pattern: &Pattern,
    ) -> Result<()> {
        if !matches!(actor, Actor::Agent { .. }) {
            return Ok(());
        }
        let contract = self
            .contract()
            .files
            .iter()
            .find(|rule| rule.people_only && rule.path.overlaps(pattern));
        let literal = pattern
            .as_literal()
            .and_then(|literal| ProjectPath::parse(literal).ok());
        let of_people = literal.is_some_and(|path| path.begins_a_project() || path.sets_up_hosts());
        let of_gate = self.contract().made_by_gate(pattern);
        let settings = HOST_FILES
            .into_iter()
            .find(|file| pattern.matches(file).is_some());
        if contract.is_none() && settings.is_none() && of_gate.is_none() && !of_people {
            return Ok(());
        }
        let held = contract
            .map(|rule| rule.path.to_string())
            .or(settings.map(str::to_owned))
            .or(of_gate.map(|made| made.to_string()))
            .filter(|held| held != path);
        let what = match held {
            Some(held) => {
                format!("`{path}` would also lease `{held}`, which only a person may change")
            }
            None => format!("`{path}` may be changed by people only: an agent cannot lease it"),
        };
        Err(refused_by(
            what,
            contract,
            "quipu lease take PATH     (a path that you may write)".into(),
        ))
    }

    /// A path or pattern that a lease can be on: it names something, and is spelled as the contract
    /// spells it.
    fn leasable(&self, path: &str) -> Result<Pattern> {
        let refused = |what: String| StoreError::refused(what, "quipu lease take PATH");
        let pattern = Pattern::parse(path.strip_prefix("./").unwrap_or(path)).map_err(refused)?;
        if pattern.variables().next().is_some() {
            return Err(refused(format!(
                "`{path}`: a lease needs concrete paths, without `{{}}`"
            )));
        }
        pattern.can_name().map_err(|nothing| {
            let meant = nothing.instead.as_deref().unwrap_or("PATH");
            StoreError::refused(nothing.bad.to_string(), format!("quipu lease take {meant}"))
        })?;
        let some =
            ProjectPath::parse(&pattern.stand_in()).map_err(|bad| refused(bad.to_string()))?;
        if let Some(meant) = self.contract().look_alike(&some) {
            let what = format!(
                "`{path}` looks like `{}` but is spelled differently",
                meant.path
            );
            return Err(refused_by(
                what,
                Some(meant),
                format!("quipu lease take {}", meant.path),
            ));
        }
        Ok(pattern)
    }

    /// Makes a lease last longer. A lease that is over is gone: someone else may have written
    /// since.
    pub fn renew_lease(&self, actor: &Actor, token: &LeaseToken, seconds: u64) -> Result<Lease> {
        self.lease_event(actor, |leases, _| {
            let lease = current(leases, token, actor)?;
            Ok(self.event("renew", &lease.id, &lease.paths, lease.fence, seconds))
        })
    }

    /// Ends a lease. A person may end anyone's, by its id alone.
    pub fn release_lease(&self, actor: &Actor, id: &str, fence: Option<u64>) -> Result<Lease> {
        self.lease_event(actor, |leases, _| {
            let lease = leases
                .iter()
                .find(|l| l.id == id && !l.is_session())
                .ok_or_else(|| {
                    StoreError::not_found(format!("unknown lease `{id}`"), "quipu lease list")
                })?;
            match (fence, actor) {
                (Some(fence), _) if fence == lease.fence && lease.is_of(actor) => {}
                (None, Actor::Person) => {}
                _ => {
                    return Err(StoreError::LeaseLost {
                        what: format!("lease `{id}` belongs to another: {}", held_by(lease)),
                    });
                }
            }
            Ok(self.event("release", &lease.id, &lease.paths, lease.fence, 0))
        })
    }

    /// Those leases that are not over.
    fn held(&self, leases: &[Lease]) -> Vec<Lease> {
        let (now, boot) = (self.replica.lease_now(), &self.settings.boot);
        let held = leases.iter().filter(|lease| !lease.is_over(now, boot));
        held.cloned().collect()
    }

    /// An event of a lease that lasts for some seconds from now on.
    pub(crate) fn event(
        &self,
        act: &str,
        id: &str,
        paths: &[String],
        fence: u64,
        seconds: u64,
    ) -> LeaseEvent {
        let now = self.replica.lease_now();
        let length = i64::try_from(seconds.min(LONGEST_SECONDS) * 1_000_000).unwrap_or(0);
        LeaseEvent {
            act: act.into(),
            id: id.into(),
            paths: paths.to_vec(),
            fence,
            until: render_time(now.wall_us + length),
            boot: self.settings.boot.clone(),
            boot_until_us: now.boot_us + length,
            length_us: length,
        }
    }

    pub(crate) fn lease_event(
        &self,
        actor: &Actor,
        decide: impl Fn(&[Lease], u64) -> Result<LeaseEvent>,
    ) -> Result<Lease> {
        self.lease_event_with(actor, None, decide)
    }

    /// The same with a note in the record.
    pub(crate) fn lease_event_with(
        &self,
        actor: &Actor,
        note: Option<&serde_json::Value>,
        decide: impl Fn(&[Lease], u64) -> Result<LeaseEvent>,
    ) -> Result<Lease> {
        guard_actor(&self.contract().guards, actor)?;
        for fresh in [false, true] {
            let (held, snapshot, all, fence) = self.index.sound(|| {
                let held = self.journal.lock()?;
                let snapshot = self.snapshot()?;
                let (all, fence) = snapshot.leases(self)?;
                Ok((held, snapshot, all, fence))
            })?;
            let leases = self.held(&all);
            let event = match (decide(&leases, fence), self.commit_log()) {
                (Ok(event), _) => event,
                // This copy's list of leases may be old.
                (Err(error), Some(commit_log)) if !fresh => {
                    drop(held);
                    match self.pull(commit_log, WaitPolicy::Retry) {
                        Ok(0) => return Err(error),
                        Ok(_) => continue,
                        Err(other) => return Err(other),
                    }
                }
                (Err(error), _) => return Err(error),
            };
            let mut record = snapshot.next_record(self, Kind::Lease, Who::from(actor));
            record.lease = Some(event.clone());
            record.note = note.cloned();
            let Some(commit_log) = self.commit_log() else {
                // The record gets this number when it is written, under the lock that is held.
                let lease = Lease {
                    seq: snapshot.tail.seq + 1,
                    ..Lease::apply(&record, &event)
                };
                // Without an order nobody overtakes: the lock is held.
                let _ = self.publish_records(held, snapshot, vec![record])?;
                return Ok(lease);
            };
            let records = vec![record];
            match self.submit(commit_log, held, snapshot, records, None, WaitPolicy::Retry)? {
                Submitted::Accepted(ours, end) => {
                    self.apply_to(end.at)?;
                    return taken_lease(&ours);
                }
                Submitted::Moved(what) if fresh => return Err(StoreError::LeaseLost { what }),
                Submitted::Moved(_) => {}
            }
        }
        Err(StoreError::LeaseLost {
            what: "other commits came first, twice".into(),
        })
    }

    /// Whether the lease that a change shows still holds: a change without files is fenced off like
    /// any other.
    pub(crate) fn check_token(
        &self,
        leases: &[Lease],
        actor: &Actor,
        token: &LeaseToken,
    ) -> Result<()> {
        current(&self.held(leases), token, actor).map(|_| ())
    }

    /// Refuses a change of a path that another actor has leased.
    pub fn check_lease_of(&self, path: &ProjectPath) -> Result<()> {
        self.check_lease(&self.leases()?, path, None)
    }

    /// Whether a change of a path agrees with the leases. The token was checked before.
    pub(crate) fn check_lease(
        &self,
        leases: &[Lease],
        path: &ProjectPath,
        token: Option<&LeaseToken>,
    ) -> Result<()> {
        for lease in self.held(leases).iter().filter(|l| l.covers(path)) {
            // A later number for the same paths was given because this lease had ended by the
            // commit log's clock.
            let overtaken = self.commit_log().is_some()
                && leases
                    .iter()
                    .any(|l| l.fence > lease.fence && l.overlaps(lease));
            if !overtaken && token.is_none_or(|token| token.id != lease.id) {
                return Err(StoreError::LeaseLost {
                    what: format!("`{path}` is leased: {}", held_by(lease)),
                });
            }
        }
        Ok(())
    }
}

/// The lease in the records that the shared log accepted: the log gives its fence and its end.
fn taken_lease(accepted: &[Record]) -> Result<Lease> {
    accepted
        .last()
        .and_then(|record| Some(Lease::apply(record, record.lease.as_ref()?)))
        .ok_or_else(|| StoreError::refused("the shared commit log lost a lease", "quipu doctor"))
}

/// The paths of a lease, as they are kept.
fn spelled(patterns: &[Pattern]) -> Vec<String> {
    patterns
        .iter()
        .map(|pattern| pattern.as_str().to_owned())
        .collect()
}

fn current(leases: &[Lease], token: &LeaseToken, actor: &Actor) -> Result<Lease> {
    let found = leases
        .iter()
        .find(|l| l.id == token.id && l.fence == token.fence);
    let lease = found.ok_or_else(|| StoreError::LeaseLost {
        what: format!("lease `{token}` is over: it ended, was released, or has another number"),
    })?;
    if !lease.is_of(actor) {
        return Err(StoreError::LeaseLost {
            what: format!("lease `{token}` belongs to another: {}", held_by(lease)),
        });
    }
    Ok(lease.clone())
}

fn held_by(lease: &Lease) -> String {
    format!(
        "{} holds {} until {} (lease {})",
        lease.holder,
        lease.paths.join(", "),
        lease.until,
        lease.id
    )
}
