//! The engine's loop: derives the flow, starts ready jobs, waits for one to end, and derives again.
//!
//! The engine keeps no state that the next start would need. The loop runs built-in steps itself;
//! threads run agents' jobs, up to a limit. Any number of engines, in any processes, may work on
//! one flow: see `claim`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use quipu_contract::{Actor, ActorName, Contract, Form, ProjectPath, Step, UnitId};
use quipu_store::{Change, Expect, Op, StoreError, WorkerRegistration};
use thiserror::Error;

use super::agent::{Agent, Stop};
use super::attempt::{AttemptError, ChosenJob, Outcome, catching};
use super::builtin::Publisher;
use super::event::{Event, Summary};
use super::folder::{mark_lost, prune_runs};
use super::job::{Job, PlannedJob, comes_before, plan_jobs};
use super::snapshot::{FlowCache, Snapshot};
use super::state::{Flow, State, derive_flow};
use super::worker_loop::LeaveRule;
use crate::project::open::{Project, ProjectError};
use crate::project::template::TemplateError;
use crate::review::{derive_panel, make_checks, panel_view};

#[derive(Debug, Error)]
pub enum FlowError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("the derived state changed repeatedly while it was written")]
    Busy,
    #[error("the view of `{0}` has no stages")]
    NoStage(String),
}

/// Selects the jobs of a run.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only the flow of this profile and the steps of `quipu.toml`.
    pub flow: Option<String>,
    /// Only these steps.
    pub steps: Vec<String>,
    /// Only these units; all if empty.
    pub units: Vec<UnitId>,
    /// No step after this one.
    pub until: Option<String>,
    /// Only stale jobs, directly or through others.
    pub stale: bool,
    /// Redo the named steps even if they are done.
    pub again: bool,
    /// Let agents complete unfinished files instead of starting over.
    pub salvage: bool,
    /// The agent of every step that `agents` does not name.
    pub agent: Option<ActorName>,
    /// The agents of single steps and roles.
    pub agents: BTreeMap<String, ActorName>,
    pub jobs: usize,
}

/// Returns the entry for a step, else the one for its role.
fn find_for_step<'m, T>(entries: &'m BTreeMap<String, T>, step: &Step) -> Option<&'m T> {
    let of_role = || entries.get(step.role.as_deref()?);
    entries.get(&step.name).or_else(of_role)
}

impl Choice {
    /// The name of the agent that performs a step.
    pub fn agent_of(&self, step: &Step) -> Option<&ActorName> {
        find_for_step(&self.agents, step).or(self.agent.as_ref())
    }

    /// Whether a job is selected.
    pub fn allows(&self, project: &Project, job: &Job) -> bool {
        let step = project.contract.step(&job.step);
        let unit =
            self.units.is_empty() || job.unit.as_ref().is_none_or(|u| self.units.contains(u));
        unit && step.is_some_and(|step| self.allows_step(&project.contract, step))
    }

    /// Whether jobs of a step can be selected.
    pub fn allows_step(&self, contract: &Contract, step: &Step) -> bool {
        let flow = |flow: &String| step.profile.is_empty() || step.profile == *flow;
        let until = |last: &String| *last == step.name || comes_before(contract, &step.name, last);
        self.flow.as_ref().is_none_or(flow)
            && (self.steps.is_empty() || self.steps.contains(&step.name))
            && self.until.as_ref().is_none_or(until)
    }
}

pub struct Engine<'p> {
    pub project: &'p Project,
    /// The agent of every step that `agents` does not name.
    pub agent: &'p dyn Agent,
    /// The agents of single steps and roles, under the names of `Choice::agents`.
    pub agents: BTreeMap<String, &'p dyn Agent>,
    pub publisher: Option<&'p dyn Publisher>,
    pub choice: Choice,
    pub leave_rule: LeaveRule,
    /// This worker's registration in the project.
    pub registration: WorkerRegistration<'p>,
    pub stop: Stop,
    pub listen: &'p (dyn Fn(&Event) + Sync),
    pub memory: FlowCache,
}

/// Derives the current flow.
pub fn flow_now<'p>(
    project: &'p Project,
    memory: &FlowCache,
) -> Result<(Flow<'p>, Snapshot<'p>), FlowError> {
    flow_of(project, memory, &Arc::new(plan_jobs(&project.contract)))
}

/// Derives the current flow from known jobs, which depend only on the contract.
fn flow_of<'p>(
    project: &'p Project,
    memory: &FlowCache,
    jobs: &Arc<Vec<PlannedJob<'p>>>,
) -> Result<(Flow<'p>, Snapshot<'p>), FlowError> {
    flow_beside(project, memory, jobs, None)
}

/// Derives the flow as if one lease were free, for its holder.
pub(super) fn flow_beside<'p>(
    project: &'p Project,
    memory: &FlowCache,
    jobs: &Arc<Vec<PlannedJob<'p>>>,
    lease: Option<&str>,
) -> Result<(Flow<'p>, Snapshot<'p>), FlowError> {
    let mut snapshot = Snapshot::take(project, memory)?;
    snapshot.look_past(lease);
    let flow = derive_flow(&project.contract, jobs, &snapshot, &snapshot.facts);
    Ok((flow, snapshot))
}

/// Rebuilds the derived state of a panel, if it differs from the reports.
pub fn refresh_panel(project: &Project, memory: &FlowCache) -> Result<bool, FlowError> {
    let Some(path) = project
        .contract
        .of_form(Form::Panel)
        .find_map(|r| ProjectPath::parse(r.path.as_literal()?).ok())
    else {
        return Ok(false);
    };
    let old = project.store.read(&path)?;
    let (flow, _) = flow_now(project, memory)?;
    let read = |path: &ProjectPath| {
        project
            .store
            .read(path)
            .ok()
            .flatten()
            .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
    };
    let checks = make_checks(&project.contract, &project.store.list()?, &read);
    let checks = checks.filter(|(path, text)| read(path).as_ref() != Some(text));
    let panel = panel_view(&project.contract, &flow, &read, checks.as_slice());
    let Some((path, text)) = derive_panel(project, &panel, None)? else {
        return Ok(false);
    };
    let parse = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    let same = old
        .as_ref()
        .and_then(|(bytes, _)| parse(bytes))
        .zip(parse(text.as_bytes()))
        .is_some_and(|(mut a, mut b)| {
            // The worker that did the last action records it.
            a["last_action"].take();
            b["last_action"].take();
            a == b
        });
    if same && checks.is_none() {
        return Ok(false);
    }
    let expect = old.map_or(Expect::Any, |(_, version)| Expect::Version(version));
    let mut change = Change::by(&Actor::Runtime).why("derived from the reports");
    if let Some((path, text)) = checks {
        change = change.op(Op::Derive {
            path,
            bytes: text.into_bytes(),
            expect: Expect::Any,
        });
    }
    let change = change.op(Op::Derive {
        path,
        bytes: text.into_bytes(),
        expect,
    });
    match project
        .validate(change)
        .and_then(quipu_store::Validated::publish)
    {
        // Another process derived it in the meantime.
        Err(StoreError::Stale { .. }) => Ok(false),
        other => other.map(|_| true).map_err(Into::into),
    }
}

/// A finished job, its allowed failures, and its result.
pub(super) type Ended = (Job, u32, Result<Outcome, AttemptError>);

/// The in-memory state of a running engine.
#[derive(Debug, Default)]
pub(super) struct Shift {
    pub summary: Summary,
    pub running: BTreeSet<Job>,
    /// Jobs that were done in this run: one that is stale again waits for the next.
    pub accepted: BTreeSet<Job>,
    /// Jobs that could not be done, and when that was.
    pub given_up: BTreeMap<Job, Instant>,
    /// The last reported reason for waiting.
    pub waiting: Option<String>,
    /// The time of the last check for dead workers.
    pub released_at: Option<Instant>,
}

impl Shift {
    pub fn give_up(&mut self, job: &Job) {
        self.given_up.insert(job.clone(), Instant::now());
    }
}

impl<'p> Engine<'p> {
    pub(super) fn agent_of(&self, step: &Step) -> &'p dyn Agent {
        find_for_step(&self.agents, step)
            .copied()
            .unwrap_or(self.agent)
    }

    pub(super) fn tell(&self, event: Event) {
        (self.listen)(&event);
    }

    /// Runs until nothing more can be done, or until a stop is requested.
    pub fn run(&self) -> Result<Summary, FlowError> {
        let mut shift = Shift::default();
        self.try_release_dead(&mut shift)?;
        mark_lost(self.project.store.root());
        let pruned = prune_runs(self.project);
        if !pruned.is_empty() {
            self.tell(Event::Pruned {
                attempts: pruned.len(),
            });
        }
        match refresh_panel(self.project, &self.memory) {
            Err(error) if self.bears(&error) => false,
            other => other?,
        };
        let jobs = Arc::new(plan_jobs(&self.project.contract));
        let first = self.first_choice(&jobs)?;
        let mut forced = first.forced.clone();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // The scope waits for its threads, even if this one panics, so raise the flag in any
            // case.
            let _ended = RaisedOnDrop(&over);
            if self.project.store.commit_log().is_some() {
                scope.spawn(|| self.keep_up(&over));
            }
            let (sender, receiver) = mpsc::channel::<Ended>();
            // Derives the flow once and starts jobs. Returns whether to derive it again.
            let mut look = |shift: &mut Shift| -> Result<bool, FlowError> {
                let seen = self.project.store.pulse()?;
                let (flow, snapshot) = flow_of(self.project, &self.memory, &jobs)?;
                let facts = snapshot.facts.last().map_or(0, |f| f.seq);
                let startable = if self.is_leaving() {
                    Vec::new()
                } else {
                    self.startable(&flow, &first, &forced, shift)
                };
                for index in startable {
                    let planned = &flow.jobs[index];
                    let job = planned.job.clone();
                    if shift.running.contains(&job) || self.has_given_up(shift, &job) {
                        continue;
                    }
                    let chosen = ChosenJob {
                        planned: planned.clone(),
                        jobs: Arc::clone(&jobs),
                        status: flow.statuses[index].clone(),
                        facts,
                        lacks_reports: flow.statuses.iter().any(|status| status.excused),
                    };
                    if planned.role.is_none() {
                        forced.remove(&job);
                        if self.do_builtin(&chosen, shift)? {
                            return Ok(true); // its output changes which jobs are ready
                        }
                        continue;
                    }
                    if shift.running.len() >= self.choice.jobs.max(1) {
                        continue;
                    }
                    forced.remove(&job);
                    shift.running.insert(job.clone());
                    let sender = sender.clone();
                    scope.spawn(move || {
                        let retries = chosen.planned.step.retries;
                        let outcome = catching(|| self.attempt(&chosen));
                        let _ = sender.send((job, retries, outcome));
                    });
                }
                if shift.running.is_empty() && !self.stays(&flow, seen, shift)? {
                    return Ok(false);
                }
                self.wait(&receiver, seen, shift)?;
                Ok(true)
            };
            let done = loop {
                match look(&mut shift) {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) if self.bears(&error) => self.rest(&error, &receiver, &mut shift),
                    Err(error) => break Err(error),
                }
            };
            shift.summary.stopped = self.stop.is_asked();
            shift.summary.rules_changed = self.rules_changed();
            done.map(|()| shift.summary)
        })
    }

    pub(super) fn settle(&self, (job, retries, outcome): Ended, shift: &mut Shift) {
        shift.running.remove(&job);
        let summary = &mut shift.summary;
        match outcome {
            Ok(Outcome::Accepted {
                files,
                dropped,
                sealed,
                usage,
                ended,
                warnings,
            }) => {
                summary.accepted += 1;
                shift.accepted.insert(job.clone());
                summary.failing.remove(&job);
                summary.usage.add(usage.unwrap_or_default());
                self.tell(Event::Accepted {
                    job,
                    files,
                    dropped,
                    sealed,
                    usage,
                    ended,
                    warnings,
                });
            }
            Ok(Outcome::Failed { why, count, usage }) => {
                summary.failed += 1;
                summary.failing.insert(job.clone());
                summary.usage.add(usage.unwrap_or_default());
                if count >= retries {
                    shift.give_up(&job);
                }
                self.tell(Event::Failed {
                    job,
                    why,
                    count,
                    retries,
                    usage,
                });
            }
            Ok(Outcome::Lost(why)) => self.tell(Event::Lost { job, why }),
            // Nothing was started: another worker holds the job or completed it.
            Ok(Outcome::Held | Outcome::Moot) => {}
            Ok(Outcome::Stopped) => self.tell(Event::Stopped { job }),
            Err(error) if error.is_passing() => self.tell(Event::Lost {
                job,
                why: error.to_string(),
            }),
            Err(error) => {
                let why = error.to_string();
                summary.stuck.push((job.clone(), why.clone()));
                shift.give_up(&job);
                self.tell(Event::Stuck { job, why });
            }
        }
    }

    /// The jobs that were stale, or that must be forced, when the run began.
    fn first_choice(&self, jobs: &Arc<Vec<PlannedJob<'p>>>) -> Result<First, FlowError> {
        let mut first = First::default();
        let (flow, _) = flow_of(self.project, &self.memory, jobs)?;
        for status in &flow.statuses {
            if status.state == State::Stale {
                first.stale.insert(status.job.clone());
            }
            let named =
                !self.choice.steps.is_empty() && self.choice.allows(self.project, &status.job);
            let again = self.choice.again && matches!(status.state, State::Done | State::Stale);
            if named && (status.state == State::Failed || again) {
                first.forced.insert(status.job.clone());
            }
        }
        Ok(first)
    }

    /// Whether a requested job has to wait for other jobs of this run.
    fn comes_later(&self, flow: &Flow<'_>, index: usize, begun: impl Fn(&Job) -> bool) -> bool {
        let begins = |other: usize| {
            let status = &flow.statuses[other];
            matches!(status.state, State::Ready | State::Running)
                && self.choice.allows(self.project, &status.job)
        };
        if flow.open_before[index].iter().any(|other| begins(*other)) {
            return true;
        }
        let (mut open, mut seen) = (vec![index], BTreeSet::new());
        while let Some(at) = open.pop() {
            for (other, _) in &flow.jobs[at].waits {
                if begun(&flow.jobs[*other].job) {
                    return true;
                }
                if seen.insert(*other) {
                    open.push(*other);
                }
            }
        }
        false
    }

    /// The selected jobs that can begin.
    fn startable(
        &self,
        flow: &Flow<'_>,
        first: &First,
        forced: &BTreeSet<Job>,
        shift: &Shift,
    ) -> Vec<usize> {
        let mut found = Vec::new();
        for (index, status) in flow.statuses.iter().enumerate() {
            if !self.choice.allows(self.project, &status.job) {
                continue;
            }
            let through = |state: State| {
                status.through.iter().any(|t| {
                    flow.find(t)
                        .is_some_and(|i| flow.statuses[i].state == state)
                })
            };
            let starts = match status.state {
                State::Ready if self.choice.stale => {
                    first.stale.contains(&status.job) || status.known
                }
                State::Ready => true,
                State::Stale => {
                    self.choice.stale
                        && !shift.accepted.contains(&status.job)
                        && flow.open_before[index].is_empty()
                        && !through(State::Stale)
                }
                _ => false,
            };
            let begun = |job: &Job| forced.contains(job) || shift.running.contains(job);
            if starts || forced.contains(&status.job) && !self.comes_later(flow, index, begun) {
                found.push(index);
            }
        }
        found
    }
}

/// Sets a flag when dropped, also during a panic.
struct RaisedOnDrop<'f>(&'f AtomicBool);

impl Drop for RaisedOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The jobs recorded at the beginning of a run.
#[derive(Debug, Default)]
struct First {
    stale: BTreeSet<Job>,
    forced: BTreeSet<Job>,
}
