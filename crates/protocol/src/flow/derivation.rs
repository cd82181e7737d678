//! Derives the status of every job: done, sent back, stale, or waiting for other jobs.
//!
//! The result depends only on the contract, the files and the journal's notes, and is not stored.

mod order;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use quipu_contract::{Builtin, Class, Contract, Pattern, ProjectPath, UnitId};
use quipu_store::Version;

use super::job::{Job, PlannedJob, fill_path};
use super::note::{AttemptFact, AttemptResult, ReadNote};
use super::state::{CurrentFiles, JobStatus, SentBack, State, render_job};

/// The journal's facts about one job.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The newest attempt with accepted outputs.
    accepted: Option<usize>,
    /// Failures since then.
    failures: u32,
    /// Those of them under the present contract. A failure under other rules, such as another length,
    /// does not stop the job.
    failures_now: u32,
    failed_why: Option<String>,
    approved: Option<usize>,
    /// The approval that excuses the job, because it had failed for good.
    excused: Option<usize>,
    rejected: Option<usize>,
}

/// A version of a file: its base version, the version, and the attempt that made it.
type Made<'a> = (Option<&'a Version>, &'a Version, usize);

pub struct Derivation<'a, 'c> {
    contract: &'c Contract,
    jobs: &'a [PlannedJob<'c>],
    now: &'a dyn CurrentFiles,
    facts: &'a [AttemptFact],
    known: Vec<Known>,
    /// The index of each job.
    index: BTreeMap<&'a Job, usize>,
    /// For each step, the jobs that may send work back to it, by unit.
    senders: BTreeMap<(&'a str, Option<&'a UnitId>), Vec<usize>>,
    /// The versions made of each path, oldest first.
    makers: BTreeMap<&'a str, Vec<Made<'a>>>,
    memo: RefCell<Vec<Option<JobStatus>>>,
    open: RefCell<Vec<Option<Arc<BTreeSet<usize>>>>>,
    /// For each job the jobs that made a text which it read; derived when first asked for.
    sources: OnceCell<Vec<BTreeSet<usize>>>,
    /// Which jobs only led to a file that is sealed by now.
    behind_seal: Vec<bool>,
    classes: RefCell<BTreeMap<String, Class>>,
    named: RefCell<BTreeMap<String, Rc<Vec<ProjectPath>>>>,
}

/// Changes to the inputs and outputs of a finished job.
#[derive(Debug, Default)]
struct Changed {
    /// Changes by a later attempt of the flow: the job must be redone before the flow continues.
    by_flow: Vec<String>,
    /// Changes by hand: the job is redone on request.
    by_hand: Vec<String>,
}

impl<'a, 'c> Derivation<'a, 'c> {
    pub fn new(
        contract: &'c Contract,
        jobs: &'a [PlannedJob<'c>],
        now: &'a dyn CurrentFiles,
        facts: &'a [AttemptFact],
    ) -> Self {
        let index: BTreeMap<&Job, usize> =
            jobs.iter().enumerate().map(|(i, t)| (&t.job, i)).collect();
        let mut senders: BTreeMap<(&str, Option<&UnitId>), Vec<usize>> = BTreeMap::new();
        for (number, job) in jobs.iter().enumerate() {
            let unit = job.job.unit.as_ref();
            job.step
                .back
                .iter()
                .for_each(|step| senders.entry((step, unit)).or_default().push(number));
        }
        let mut known = vec![Known::default(); jobs.len()];
        let mut makers: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        let rules_since = now.rules_since();
        for (number, fact) in facts.iter().enumerate() {
            for file in &fact.files {
                makers.entry(file.path.as_str()).or_default().push((
                    file.base.as_ref(),
                    &file.version,
                    number,
                ));
            }
            let Some(&at) = index.get(&fact.note.job()) else {
                continue;
            };
            let known = &mut known[at];
            match fact.note.ruling {
                AttemptResult::Accepted => {
                    *known = Known {
                        accepted: Some(number),
                        approved: known.approved,
                        rejected: known.rejected,
                        ..Known::default()
                    }
                }
                AttemptResult::Failed => {
                    known.failures += 1;
                    known.failures_now += u32::from(fact.seq > rules_since);
                    known.failed_why.clone_from(&fact.note.why);
                }
                AttemptResult::Approved => {
                    // Any other approval keeps a text, and says nothing about a later one.
                    known.excused = (known.failures >= jobs[at].step.retries).then_some(number);
                    known.approved = Some(number);
                    (known.failures, known.failures_now) = (0, 0);
                }
                AttemptResult::Rejected => known.rejected = Some(number),
            }
        }
        let (memo, open) = (
            RefCell::new(vec![None; jobs.len()]),
            RefCell::new(vec![None; jobs.len()]),
        );
        let (classes, named) = (RefCell::default(), RefCell::default());
        let behind_seal = Vec::new();
        let mut derivation = Derivation {
            contract,
            jobs,
            now,
            facts,
            known,
            index,
            senders,
            makers,
            memo,
            open,
            sources: OnceCell::new(),
            behind_seal,
            classes,
            named,
        };
        derivation.behind_seal = derivation.find_behind_seals();
        derivation
    }

    /// Derives a job, if this has not been done yet.
    pub fn derive(&self, index: usize) {
        self.state(index);
        self.open_before(index);
    }

    /// The state of a job.
    fn state(&self, index: usize) -> State {
        let known = self.memo.borrow()[index]
            .as_ref()
            .map(|status| status.state);
        known.unwrap_or_else(|| self.status(index).state)
    }

    fn class(&self, path: &ProjectPath) -> Class {
        if let Some(class) = self.classes.borrow().get(path.as_str()) {
            return *class;
        }
        let class = self.contract.class(path);
        self.classes.borrow_mut().insert(path.to_string(), class);
        class
    }

    pub fn status(&self, index: usize) -> JobStatus {
        if let Some(known) = &self.memo.borrow()[index] {
            return known.clone();
        }
        let status = self.decide(index);
        self.memo.borrow_mut()[index] = Some(status.clone());
        status
    }

    fn seq(&self, fact: Option<usize>) -> u64 {
        fact.map_or(0, |number| self.facts[number].seq)
    }

    fn decide(&self, index: usize) -> JobStatus {
        let job = &self.jobs[index];
        let known = &self.known[index];
        let mut status = JobStatus {
            job: job.job.clone(),
            state: State::Pending,
            why: Vec::new(),
            through: Vec::new(),
            sent_back: None,
            objects: false,
            excused: false,
            failures: known.failures_now,
            known: known.accepted.is_some() || known.approved.is_some(),
            warnings: known
                .accepted
                .filter(|_| !self.behind_seal[index])
                .map(|n| self.facts[n].note.warnings.clone())
                .unwrap_or_default(),
            seq: known.accepted.or(known.approved).map(|n| self.facts[n].seq),
        };
        if let Some(why) = super::conditions::why_not(self.contract, job, self.now) {
            return JobStatus {
                state: State::Skipped,
                why: vec![why],
                ..status
            };
        }
        if !job.is_builtin(Builtin::Derive) && job.required().any(|o| self.now.is_leased(&o.path)) {
            return JobStatus {
                state: State::Running,
                ..status
            };
        }
        if job.is_builtin(Builtin::Gate) {
            return self.decide_gate(index, status);
        }
        let incomplete = self.still_incomplete(index);
        // Laying out missing files costs nothing, and other jobs may read them.
        if !incomplete.is_empty() && self.behind_seal[index] && !job.is_builtin(Builtin::Derive) {
            let why = "a later result is already sealed".to_owned();
            return JobStatus {
                state: State::Skipped,
                why: vec![why],
                ..status
            };
        }
        if let (false, Some(why)) = (incomplete.is_empty(), self.excuse(index)) {
            return JobStatus {
                state: State::Skipped,
                why: vec![why],
                excused: true,
                ..status
            };
        }
        if !incomplete.is_empty() {
            status.why = incomplete;
            return self.begin(index, status);
        }
        if known.accepted.is_none()
            && job
                .step
                .remember
                .as_ref()
                .is_some_and(|remember| remember.entries)
        {
            // The job has no file of its own. The existence of memory does not show whether it
            // grew.
            return self.begin(index, status);
        }
        if job.is_builtin(Builtin::Derive) {
            // A derive step leaves no note. It counts as done when it could run and its files
            // exist.
            let begun = self.begin(index, status);
            let done = begun.state == State::Ready
                || begun.state == State::Pending && self.is_only_stale_before(index);
            return if done {
                JobStatus {
                    state: State::Done,
                    why: Vec::new(),
                    through: Vec::new(),
                    ..begun
                }
            } else {
                begun
            };
        }
        let changed = self
            .base(index)
            .map(|fact| self.changed(index, fact))
            .unwrap_or_default();
        if let Some(mut sent_back) = self.sent_back_to(index) {
            if !changed.by_flow.is_empty() || !changed.by_hand.is_empty() {
                // The new text answers more than the objections, so all reviewers check again.
                let sender = self.contract.step(&sent_back.by);
                sent_back.objectors = sender
                    .filter(|s| s.role.is_none())
                    .map_or(sent_back.objectors, |s| s.after.clone());
            }
            status.why = vec![format!(
                "sent back by {} (round {})",
                sent_back.by, sent_back.round
            )];
            status.sent_back = Some(sent_back);
            return self.begin(index, status);
        }
        if self.objects(index) && self.seq(known.approved) <= self.seq(known.accepted) {
            return self.decide_objection(index, status, &changed);
        }
        if !changed.by_flow.is_empty() {
            status.why = changed.by_flow;
            return self.begin(index, status);
        }
        if !changed.by_hand.is_empty() {
            return JobStatus {
                state: State::Stale,
                why: changed.by_hand,
                ..status
            };
        }
        JobStatus {
            state: State::Done,
            ..status
        }
    }

    /// The note whose reads a job's inputs are compared with: the newest accepted attempt, or a
    /// person's later decision to keep its output as it is.
    fn base(&self, index: usize) -> Option<usize> {
        let known = &self.known[index];
        let kept = known.approved.filter(|fact| {
            self.seq(known.approved) > self.seq(known.accepted)
                && !self.facts[*fact].note.reads.is_empty()
        });
        kept.filter(|_| known.accepted.is_some()).or(known.accepted)
    }

    /// Why the flow goes on without a job, if a person decided so after it had failed. Only a job
    /// whose score is averaged with others may be missing.
    fn excuse(&self, index: usize) -> Option<String> {
        let known = &self.known[index];
        let why = self.facts[known.excused?].note.why.as_deref();
        let is_reviewer = self.jobs[index].step.domain.is_some();
        is_reviewer.then(|| match why {
            Some(why) => format!("excused: {why}"),
            None => "excused by a person".to_owned(),
        })
    }

    /// Decides whether a job that has to be done, or redone, can begin.
    fn begin(&self, index: usize, mut status: JobStatus) -> JobStatus {
        let (job, known) = (&self.jobs[index], &self.known[index]);
        if known.failures_now >= job.step.retries {
            let why = known.failed_why.clone().unwrap_or_default();
            let mut why = vec![format!("{} failures in a row: {why}", known.failures_now)];
            if job.step.domain.is_some() {
                let name = render_job(&job.job);
                why.push(format!("to go on without it: quipu approve {name}"));
            }
            return JobStatus {
                state: State::Failed,
                why,
                ..status
            };
        }
        if let Some(step) = job.without.first() {
            let gate = self
                .contract
                .steps
                .iter()
                .find(|gate| gate.declare.is_some());
            let how = gate.map_or_else(
                || "[units.ID] in quipu.toml".to_owned(),
                |gate| format!("approving {} declares them", gate.name),
            );
            return JobStatus {
                state: State::Pending,
                why: vec![format!("waits for {step}, which has no units yet: {how}")],
                ..status
            };
        }
        let (stopped, open): (Vec<usize>, Vec<usize>) = self
            .open_before(index)
            .iter()
            .partition(|i| matches!(self.state(**i), State::Failed | State::Blocked));
        let stale = open.iter().all(|i| self.state(*i) == State::Stale);
        let names = |list: &[usize]| -> Vec<Job> {
            list.iter().map(|i| self.jobs[*i].job.clone()).collect()
        };
        let said = |list: &[Job]| {
            list.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        if !stopped.is_empty() {
            status.through = names(&stopped);
            status.why = vec![format!(
                "waits for {}, which needs a person",
                said(&status.through)
            )];
            status.state = State::Blocked;
        } else if !open.is_empty() {
            status.through = names(&open);
            let stale = if stale { ", which is stale" } else { "" };
            status.why = vec![format!("waits for {}{stale}", said(&status.through))];
            status.state = State::Pending;
        } else {
            status.state = State::Ready;
        }
        status
    }

    fn decide_gate(&self, index: usize, mut status: JobStatus) -> JobStatus {
        let (job, known) = (&self.jobs[index], &self.known[index]);
        let complete = self.incomplete(job).is_empty();
        // A plan without a file of its own is decided when units are declared, by its approval or by
        // hand. The plan may change freely; a person approves it again to declare more.
        let declares = job.step.declare.is_some() && job.outputs.is_empty();
        let is_declared = self
            .contract
            .units
            .iter()
            .any(|unit| unit.profile.is_none());
        if declares && is_declared && self.seq(known.rejected) <= self.seq(known.approved) {
            return JobStatus {
                state: State::Done,
                ..status
            };
        }
        let name = match &job.job.unit {
            Some(unit) => format!("{} --unit {unit}", job.job.step),
            None => job.job.step.clone(),
        };
        if complete
            && known.approved.is_none()
            && known.rejected.is_none()
            && !job.outputs.is_empty()
        {
            // A person created the file, or the journal was lost: trust the marker.
            return JobStatus {
                state: State::Done,
                ..status
            };
        }
        if complete && self.seq(known.approved) > self.seq(known.rejected) {
            let changed = known
                .approved
                .map(|fact| self.changed(index, fact))
                .unwrap_or_default();
            if changed.by_flow.is_empty() {
                let state = if changed.by_hand.is_empty() {
                    State::Done
                } else {
                    State::Stale
                };
                return JobStatus {
                    state,
                    why: changed.by_hand,
                    ..status
                };
            }
            status.why = changed.by_flow;
        }
        let why = std::mem::take(&mut status.why);
        let begun = self.begin(index, status);
        // A person may approve despite stale reviews; the gate lists them.
        let passable = begun.state == State::Pending && self.is_only_stale_before(index);
        if begun.state != State::Ready && !passable {
            return begun;
        }
        let rejected = known
            .rejected
            .filter(|_| self.seq(known.rejected) > self.seq(known.approved));
        let owing = |fact: usize| {
            let same: Vec<usize> = match job.job.unit {
                Some(_) => job
                    .step
                    .back
                    .iter()
                    .filter_map(|step| self.job_of(step, index))
                    .collect(),
                None => (0..self.jobs.len())
                    .filter(|t| job.step.back.contains(&self.jobs[*t].job.step))
                    .collect(),
            };
            same.into_iter()
                .filter(|t| self.seq(self.known[*t].accepted) < self.facts[fact].seq)
                .collect::<Vec<_>>()
        };
        if let Some((fact, owing)) = rejected
            .map(|fact| (fact, owing(fact)))
            .filter(|(_, owing)| !owing.is_empty())
        {
            let stopped = owing.iter().any(|t| self.state(*t) == State::Failed);
            let state = if stopped {
                State::Blocked
            } else {
                State::Pending
            };
            let why = self.facts[fact].note.why.clone().unwrap_or_default();
            return JobStatus {
                state,
                why: vec![format!("rejected: {why}")],
                ..begun
            };
        }
        let mut told = vec![format!(
            "quipu approve {name}     (or: quipu reject {name} --why \"…\")"
        )];
        told.extend(why);
        JobStatus {
            state: State::Waiting,
            why: told,
            through: Vec::new(),
            ..begun
        }
    }

    /// A finished job that objects is not done: either the work goes back, or a person must decide.
    fn decide_objection(
        &self,
        index: usize,
        mut status: JobStatus,
        changed: &Changed,
    ) -> JobStatus {
        let (job, known) = (&self.jobs[index], &self.known[index]);
        let items = self.own_objections(index);
        status.objects = true;
        let told = match items.as_slice() {
            [] => "an objection is open".to_owned(),
            [first, rest @ ..] => format!(
                "{} objection{}: {first}",
                items.len(),
                if rest.is_empty() { "" } else { "s" }
            ),
        };
        let asked = |what: String| {
            vec![
                what,
                format!(
                    "fix it in an editor, or overrule it: quipu approve {}",
                    render_job(&job.job)
                ),
            ]
        };
        let Some(target) = self.target(index) else {
            if !changed.by_flow.is_empty() {
                status.why.clone_from(&changed.by_flow);
                return self.begin(index, status);
            }
            return JobStatus {
                state: State::Failed,
                why: asked(told),
                ..status
            };
        };
        let answered = self.seq(self.known[target].accepted) > self.seq(known.accepted);
        if answered || !changed.by_flow.is_empty() {
            status.why = vec![format!("{} was fixed", self.jobs[target].job)];
            return self.begin(index, status);
        }
        let rounds = job.step.rounds.unwrap_or(0);
        if self.round(target, &job.job.step) >= rounds {
            return JobStatus {
                state: State::Failed,
                why: asked(format!("{told} (after round {rounds})")),
                ..status
            };
        }
        let state = match self.state(target) {
            State::Failed | State::Blocked => State::Blocked,
            _ => State::Pending,
        };
        status.through = vec![self.jobs[target].job.clone()];
        status.why = vec![format!("{told}; sent back to {}", self.jobs[target].job)];
        JobStatus { state, ..status }
    }

    /// How often the newest attempt of a job has already answered the objections of a step.
    fn round(&self, index: usize, by: &str) -> u32 {
        let note = self.known[index]
            .accepted
            .map(|fact| &self.facts[fact].note);
        note.filter(|note| note.sent_by.as_deref() == Some(by))
            .map_or(0, |note| note.round)
    }

    /// The job of another step for the same unit.
    fn job_of(&self, step: &str, index: usize) -> Option<usize> {
        let find = |unit| {
            self.index
                .get(&Job {
                    step: step.to_owned(),
                    unit,
                })
                .copied()
        };
        find(self.jobs[index].job.unit.clone()).or_else(|| find(None))
    }

    fn own_objections(&self, index: usize) -> Vec<String> {
        let job = &self.jobs[index];
        let Some(objection) = &job.step.objection else {
            return Vec::new();
        };
        let sign = objection.sign.as_deref();
        job.required()
            .flat_map(|o| {
                sign.map(|sign| self.now.items(o.path.as_str(), sign))
                    .unwrap_or_default()
            })
            .collect()
    }

    /// Whether the output of a finished job is an objection.
    fn objects(&self, index: usize) -> bool {
        let job = &self.jobs[index];
        let Some(objection) = &job.step.objection else {
            return false;
        };
        let marked = objection.marker.as_ref().is_some_and(|m| {
            job.required()
                .any(|o| self.now.marker(o.path.as_str()).as_ref() == Some(m))
        });
        marked || !self.own_objections(index).is_empty()
    }

    /// The job that receives an objection: the first step with a role that the objection names,
    /// else the first step. A built-in step would produce the same result again, so for those a
    /// person must decide.
    fn target(&self, index: usize) -> Option<usize> {
        self.addressee(index)
            .filter(|target| self.jobs[*target].role.is_some())
    }

    fn addressee(&self, index: usize) -> Option<usize> {
        let job = &self.jobs[index];
        let objection = job.step.objection.as_ref()?;
        let candidates: Vec<usize> = job
            .step
            .back
            .iter()
            .filter_map(|step| self.job_of(step, index))
            .collect();
        if candidates.len() < 2 {
            return candidates.first().copied();
        }
        let sign = objection.sign.as_deref().unwrap_or("");
        let items: Vec<String> = job
            .required()
            .flat_map(|o| self.now.items(o.path.as_str(), sign))
            .collect();
        let named = |candidate: &&usize| {
            let role = self.jobs[**candidate].role;
            // A role with two jobs has a name for each: `writer`, `writer-revision`.
            let base = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
            let names = role.into_iter().flat_map(|r| {
                [
                    base(&r.name),
                    r.title.in_language(self.contract.language).to_owned(),
                ]
            });
            names.into_iter().any(|name| {
                items
                    .iter()
                    .any(|item| item.to_lowercase().contains(&name.to_lowercase()))
            })
        };
        candidates
            .iter()
            .find(named)
            .or(candidates.first())
            .copied()
    }

    /// The objection that waits for this job, if any.
    fn sent_back_to(&self, index: usize) -> Option<SentBack> {
        let Job { step, unit } = &self.jobs[index].job;
        let of_whole = self.senders.get(&(step.as_str(), None));
        let of_unit = unit
            .as_ref()
            .and_then(|unit| self.senders.get(&(step.as_str(), Some(unit))));
        let mut senders: Vec<usize> = of_whole
            .into_iter()
            .chain(of_unit)
            .flatten()
            .copied()
            .collect();
        senders.sort_unstable();
        for other in senders {
            let job = &self.jobs[other];
            let known = &self.known[other];
            let own = self.seq(self.known[index].accepted);
            if job.is_builtin(Builtin::Gate) {
                let Some(fact) = known
                    .rejected
                    .filter(|f| self.facts[*f].seq > self.seq(known.approved).max(own))
                else {
                    continue;
                };
                let why = self.facts[fact].note.why.clone().unwrap_or_default();
                return Some(SentBack {
                    by: job.job.step.clone(),
                    round: self.round(index, &job.job.step) + 1,
                    objectors: vec![job.job.step.clone()],
                    items: vec![why],
                });
            }
            let waived = self.seq(known.approved) > self.seq(known.accepted);
            if waived
                || !self.incomplete(job).is_empty()
                || !self.objects(other)
                || self.target(other) != Some(index)
            {
                continue;
            }
            if own > self.seq(known.accepted)
                || self.round(index, &job.job.step) >= job.step.rounds.unwrap_or(0)
            {
                continue;
            }
            let mut items = self.own_objections(other);
            if items.is_empty() {
                items = job
                    .required()
                    .flat_map(|o| self.now.items(o.path.as_str(), ""))
                    .collect();
            }
            return Some(SentBack {
                by: job.job.step.clone(),
                round: self.round(index, &job.job.step) + 1,
                objectors: self.objectors(other),
                items,
            });
        }
        None
    }

    /// The steps behind a merge's objections: the earlier steps with the sign in their outputs,
    /// else the step itself.
    fn objectors(&self, index: usize) -> Vec<String> {
        let job = &self.jobs[index];
        let sign = job.step.objection.as_ref().and_then(|o| o.sign.as_deref());
        let before = job.step.after.iter().filter(|step| {
            let Some((other, sign)) = self.job_of(step, index).zip(sign) else {
                return false;
            };
            self.jobs[other]
                .required()
                .any(|o| !self.now.items(o.path.as_str(), sign).is_empty())
        });
        let found: Vec<String> = before.cloned().collect();
        if found.is_empty() || job.step.role.is_some() {
            vec![job.job.step.clone()]
        } else {
            found
        }
    }

    /// The reasons why a job is incomplete.
    fn incomplete(&self, job: &PlannedJob<'_>) -> Vec<String> {
        self.lacks(job, |_| true).collect()
    }

    /// The same, without the files that memory does not need: where an accepted report added nothing
    /// to a file that was not there, remembering it again adds nothing either.
    fn still_incomplete(&self, index: usize) -> Vec<String> {
        let job = &self.jobs[index];
        match self.known[index].accepted {
            Some(fact) if job.is_builtin(Builtin::Remember) => {
                let grew = &self.facts[fact].files;
                self.lacks(job, |path| {
                    grew.iter().any(|file| file.path == path.as_str())
                })
                .collect()
            }
            _ => self.incomplete(job),
        }
    }

    /// The same, for those of its files that are asked about.
    fn lacks<'t>(
        &'t self,
        job: &'t PlannedJob<'_>,
        asked: impl Fn(&ProjectPath) -> bool + 't,
    ) -> impl Iterator<Item = String> + 't {
        job.required()
            .filter(move |o| asked(&o.path))
            .filter_map(|output| {
                let path = output.path.as_str();
                if self.now.version(path).is_none() {
                    return Some(format!("`{path}` does not exist"));
                }
                let marked = output.markers.is_empty()
                    || self
                        .now
                        .marker(path)
                        .is_some_and(|m| output.markers.contains(&m));
                (!marked)
                    .then(|| format!("`{path}` does not end with {}", output.markers.join(" or ")))
            })
    }

    /// Finds the changes since an attempt, and their origin.
    fn changed(&self, index: usize, fact: usize) -> Changed {
        let job = &self.jobs[index];
        let since = &self.facts[fact];
        let mut changed = Changed::default();
        for read in &since.note.reads {
            if self.is_as_read(job, read) {
                continue;
            }
            let name = match &read.section {
                Some(section) => format!("{}#{section}", read.path),
                None => read.path.clone(),
            };
            let what = if self.now.version(&read.path).is_some() {
                "changed"
            } else {
                "was deleted"
            };
            self.tell(
                &mut changed,
                index,
                &read.path,
                since.seq,
                format!("`{name}` {what}"),
            );
        }
        let read: BTreeSet<&str> = since.note.reads.iter().map(|r| r.path.as_str()).collect();
        for path in self.named_by_wildcards(job) {
            if !read.contains(path.as_str()) {
                self.tell(
                    &mut changed,
                    index,
                    path.as_str(),
                    since.seq,
                    format!("`{path}` is new"),
                );
            }
        }
        changed
    }

    fn tell(&self, changed: &mut Changed, index: usize, path: &str, since: u64, what: String) {
        let version = self.now.version(path);
        let made = self
            .makers
            .get(path)
            .into_iter()
            .flatten()
            .rev()
            .find(|(_, made, _)| Some(*made) == version.as_ref());
        let maker = made
            .map(|(_, _, number)| &self.facts[*number])
            .filter(|fact| fact.seq > since);
        // Jobs behind a seal are not redone, unless a person requested such a job and others depend
        // on it. Memory grows after every chapter, which nobody requested.
        let asked = |fact: &AttemptFact| {
            self.index.get(&fact.note.job()).is_some_and(|maker| {
                self.behind_seal[*maker] && !self.jobs[*maker].is_builtin(Builtin::Remember)
            })
        };
        if self.behind_seal[index] && !maker.is_some_and(asked) {
            return;
        }
        // Ignore texts that were made from this job's own output: they would make it stale forever.
        let is_circle = |fact: &AttemptFact| {
            self.index
                .get(&fact.note.job())
                .is_some_and(|maker| *maker > index && self.rests_on(*maker, index))
        };
        if maker.is_some_and(|fact| !is_circle(fact)) {
            changed.by_flow.push(what)
        } else if !self.behind_seal[index] {
            changed.by_hand.push(what)
        }
    }

    fn is_as_read(&self, job: &PlannedJob<'_>, read: &ReadNote) -> bool {
        let now = self.now.version(&read.path);
        if now.as_ref() == Some(&read.version) {
            return true;
        }
        let Ok(path) = ProjectPath::parse(&read.path) else {
            return true;
        };
        if job.outputs.iter().any(|o| o.path == path) {
            return true;
        }
        // Published files follow all their sources, including memory.
        if job.step.builtin == Some(Builtin::Publish) {
            return false;
        }
        // Derived files follow other files, and append-only files still contain what was read.
        if matches!(
            self.class(&path),
            Class::Derived | Class::Append | Class::Record
        ) {
            return true;
        }
        if let (Some(section), Some(text)) = (&read.section, &read.text)
            && self.now.section(&read.path, section).as_ref() == Some(text)
        {
            return true;
        }
        self.is_excused(job, read, now.as_ref())
    }

    /// Excuses two kinds of change. A text that was fixed for other reviewers' objections need not
    /// be checked again by reviewers without objections. Growth of memory by a remember step does
    /// not make earlier texts stale, because memory grows from those texts.
    fn is_excused(&self, job: &PlannedJob<'_>, read: &ReadNote, now: Option<&Version>) -> bool {
        let Some(makers) = self.makers.get(read.path.as_str()) else {
            return false;
        };
        let (mut at, mut steps) = (Some(&read.version), 0);
        while at != now {
            let next = makers.iter().rev().find(|(base, _, _)| *base == at);
            let Some((_, made, number)) = next else {
                return false;
            };
            let note = &self.facts[*number].note;
            let merge = note
                .sent_by
                .as_deref()
                .and_then(|name| self.contract.step(name));
            // Growth of memory does not make the texts stale that it was learnt from. The final
            // text is not memory.
            let remembers = |maker: usize| {
                let PlannedJob { step, binding, .. } = &self.jobs[maker];
                let text = step
                    .remember
                    .as_ref()
                    .and_then(|r| fill_path(r.to.as_ref()?, binding));
                step.builtin == Some(Builtin::Remember)
                    && text.is_none_or(|text| text.as_str() != read.path)
            };
            let remembered = self
                .index
                .get(&note.job())
                .is_some_and(|maker| remembers(*maker));
            let fellow = merge.is_some_and(|m| {
                m.builtin == Some(Builtin::Merge) && m.after.contains(&job.job.step)
            });
            if !remembered && (!fellow || note.objectors.contains(&job.job.step)) {
                return false;
            }
            at = Some(*made);
            steps += 1;
            if steps > makers.len() {
                return false;
            }
        }
        true
    }

    /// The files that a job's wildcards match now. Free files and files that are read only if the
    /// budget allows do not count.
    fn named_by_wildcards(&self, job: &PlannedJob<'_>) -> Vec<ProjectPath> {
        let mut found = Vec::new();
        for pattern in &job.wild {
            let named = self.named_by(pattern);
            let open = named.iter().filter(|path| {
                !job.denies
                    .iter()
                    .any(|d| d.matches(path.as_str()).is_some())
                    && !job.outputs.iter().any(|o| o.path == **path)
            });
            found.extend(open.cloned());
        }
        found
    }

    /// The ruled files that match a pattern. Cached, because many jobs share patterns.
    fn named_by(&self, pattern: &Pattern) -> Rc<Vec<ProjectPath>> {
        if let Some(named) = self.named.borrow().get(pattern.as_str()) {
            return Rc::clone(named);
        }
        let mut named = self.now.matching(pattern);
        named.retain(|path| !matches!(self.class(path), Class::Free | Class::Derived));
        let named = Rc::new(named);
        self.named
            .borrow_mut()
            .insert(pattern.as_str().to_owned(), Rc::clone(&named));
        named
    }
}

/// Marks jobs that depend on a stale job as stale, until that job is redone.
pub fn spread_staleness(
    jobs: &[PlannedJob<'_>],
    statuses: &mut [JobStatus],
    derivation: &Derivation<'_, '_>,
) {
    let mut stale: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, job) in jobs.iter().enumerate() {
        if statuses[index].state == State::Done
            && !job.is_builtin(Builtin::Derive)
            && !derivation.behind_seal[index]
        {
            let fact = derivation.known[index]
                .accepted
                .or(derivation.known[index].approved);
            let reads = fact
                .map(|f| derivation.facts[f].note.reads.as_slice())
                .unwrap_or_default();
            let through: BTreeSet<usize> = reads
                .iter()
                .filter_map(|r| stale.get(r.path.as_str()).copied())
                .collect();
            if !through.is_empty() {
                let names: Vec<Job> = through.iter().map(|i| jobs[*i].job.clone()).collect();
                let said = names
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ");
                let status = &mut statuses[index];
                status.state = State::Stale;
                status.why = vec![format!("through {said}")];
                status.through = names;
            }
        }
        if statuses[index].state == State::Stale {
            let rewritten = job.outputs.iter().map(|o| &o.path);
            let rewritten = rewritten.filter(|p| {
                !matches!(
                    derivation.contract.class(p),
                    Class::Append | Class::Record | Class::Derived | Class::Sealed
                )
            });
            stale.extend(rewritten.map(|p| (p.as_str(), index)));
        }
    }
}
