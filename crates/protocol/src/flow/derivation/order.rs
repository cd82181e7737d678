//! Ordering of jobs: the open jobs before a job, and the jobs behind a sealed file.
//!
//! Both are parts of the derivation and use its cache.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quipu_contract::{Builtin, Class, ProjectPath, UnitId};

use super::super::job::{PlannedJob, Wait};
use super::super::state::State;
use super::Derivation;

impl Derivation<'_, '_> {
    /// The jobs that a job waits for, directly or through finished jobs. Only if there are none
    /// does it read current texts. A stale job behind a seal holds up only others behind it,
    /// because its result is final already; a gate holds up everything. Each job is derived after
    /// the jobs that it waits for, so the recursion stays shallow.
    pub fn open_before(&self, index: usize) -> Arc<BTreeSet<usize>> {
        if let Some(known) = &self.open.borrow()[index] {
            return Arc::clone(known);
        }
        let mut open = BTreeSet::new();
        for &(other, wait) in &self.jobs[index].waits {
            let given_up = |state: State| {
                wait == Wait::Settled && matches!(state, State::Failed | State::Blocked)
            };
            match self.state(other) {
                State::Done | State::Skipped => {
                    let before = self.open_before(other);
                    open.extend(before.iter().filter(|i| {
                        !given_up(self.state(**i)) && !self.was_approved_despite(other, **i)
                    }));
                }
                state if given_up(state) => {}
                _ => {
                    open.insert(other);
                }
            }
        }
        if !self.behind_seal[index] {
            let is_final = |job: usize| {
                self.behind_seal[job]
                    && self.state(job) == State::Stale
                    && !self.jobs[job].is_builtin(Builtin::Gate)
            };
            open.retain(|before| !is_final(*before));
        }
        let open = Arc::new(open);
        self.open.borrow_mut()[index] = Some(Arc::clone(&open));
        open
    }

    /// Whether all open jobs before a job are stale.
    pub(super) fn is_only_stale_before(&self, index: usize) -> bool {
        self.jobs[index].without.is_empty()
            && self
                .open_before(index)
                .iter()
                .all(|i| self.state(*i) == State::Stale)
    }

    /// Whether a person approved a gate although a job before it was stale, or became stale later.
    /// The approval holds for the texts that the gate reads; if one of them changes, the gate is
    /// open again.
    pub(super) fn was_approved_despite(&self, gate: usize, stale: usize) -> bool {
        let Some(approved) = self.known[gate].approved.map(|fact| &self.facts[fact]) else {
            return false;
        };
        self.seq(self.known[stale].accepted) < approved.seq && self.state(stale) == State::Stale
    }

    /// Whether an attempt of a job read a text of another, directly or through other jobs.
    pub(super) fn rests_on(&self, job: usize, other: usize) -> bool {
        let sources = self.sources.get_or_init(|| self.find_sources());
        let (mut seen, mut next) = (BTreeSet::from([job]), vec![job]);
        while let Some(at) = next.pop() {
            if sources[at].contains(&other) {
                return true;
            }
            next.extend(sources[at].iter().filter(|source| seen.insert(**source)));
        }
        false
    }

    fn find_sources(&self) -> Vec<BTreeSet<usize>> {
        let mut made: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for fact in self.facts {
            let Some(&maker) = self.index.get(&fact.note.job()) else {
                continue;
            };
            for file in &fact.files {
                made.insert((file.path.as_str(), file.version.as_str()), maker);
            }
        }
        let mut sources = vec![BTreeSet::new(); self.jobs.len()];
        for fact in self.facts {
            let Some(&reader) = self.index.get(&fact.note.job()) else {
                continue;
            };
            let texts = fact.note.reads.iter();
            sources[reader].extend(
                texts.filter_map(|read| made.get(&(read.path.as_str(), read.version.as_str()))),
            );
        }
        sources
    }

    /// The jobs whose work ended in a sealed file or in memory, so that doing them again would
    /// change nothing: those that wrote it, and those that only such jobs come after. A sealed file
    /// counts with or without its marker, because no job may replace it.
    pub(super) fn find_behind_seals(&self) -> Vec<bool> {
        let is_sealed = |path: &ProjectPath| self.class(path) == Class::Sealed;
        let mut found = vec![false; self.jobs.len()];
        let mut later: BTreeMap<(&str, Option<&UnitId>), Vec<usize>> = BTreeMap::new();
        let mut later_any: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, PlannedJob { job, step, .. }) in self.jobs.iter().enumerate() {
            for before in &step.after {
                later
                    .entry((before, job.unit.as_ref()))
                    .or_default()
                    .push(index);
                later_any.entry(before).or_default().push(index);
            }
        }
        // Jobs are sorted after the steps that they depend on, so iterate backwards to visit later
        // jobs first.
        for index in (0..self.jobs.len()).rev() {
            let (job, known) = (&self.jobs[index], &self.known[index]);
            let is_absent = |path: &ProjectPath| self.now.version(path.as_str()).is_none();
            if job
                .required()
                .any(|o| is_sealed(&o.path) && is_absent(&o.path))
            {
                continue;
            }
            let rejected =
                known.rejected.is_some() && self.seq(known.rejected) > self.seq(known.approved);
            let seals = !rejected
                && job.required().next().is_some()
                && job.required().all(|o| is_sealed(&o.path));
            // What memory has taken is not taken out of it again.
            let remembered = known.accepted.is_some()
                && job
                    .step
                    .remember
                    .as_ref()
                    .is_some_and(|remember| remember.entries);
            let seals = seals || remembered;
            let step = job.job.step.as_str();
            let (own, whole) = match &job.job.unit {
                Some(unit) => (later.get(&(step, Some(unit))), later.get(&(step, None))),
                None => (later_any.get(step), None),
            };
            let mut sealed = own
                .into_iter()
                .chain(whole)
                .flatten()
                .map(|other| found[*other])
                .peekable();
            found[index] = seals || sealed.peek().is_some() && sealed.all(|sealed| sealed);
        }
        found
    }
}
