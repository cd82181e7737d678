//! The status of a flow: derived, never stored.
//!
//! A job is complete if its outputs end with their markers. It is done if, in addition, none of its
//! inputs has changed since and no review objects. The status is derived from the current files and
//! from the notes of attempts in the journal. If the journal has no note, the marker is trusted and
//! the status says so. This module is pure: all I/O is behind [`Now`].

use std::collections::BTreeSet;
use std::sync::Arc;

use quipu_contract::{Contract, Pattern, ProjectPath};
use quipu_store::Version;
use serde::Serialize;

use super::derivation::{Derivation, spread_staleness};
use super::job::{Job, PlannedJob, waits_first};
use super::note::AttemptFact;

/// The current files.
pub trait CurrentFiles {
    fn version(&self, path: &str) -> Option<Version>;
    /// A hash of one section.
    fn section(&self, path: &str, section: &str) -> Option<Version>;
    fn marker(&self, path: &str) -> Option<String>;
    /// Passages that carry a sign.
    fn items(&self, path: &str, sign: &str) -> Vec<String>;
    fn matching(&self, pattern: &Pattern) -> Vec<ProjectPath>;
    fn holds_word(&self, path: &str, words: &[String]) -> bool;
    /// Whether a running job holds a lease on a path.
    fn is_leased(&self, path: &ProjectPath) -> bool;
    /// The commit that last changed the contract.
    fn rules_since(&self) -> u64;
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits for other jobs.
    Pending,
    /// It can begin.
    Ready,
    /// A worker is doing it.
    Running,
    Done,
    /// An input was changed by hand since it was done.
    Stale,
    /// It needs a person.
    Failed,
    /// It waits for a job that needs a person.
    Blocked,
    /// A person must decide.
    Waiting,
    /// Its conditions do not apply.
    Skipped,
}

impl State {
    pub const ALL: [State; 9] = [
        State::Done,
        State::Running,
        State::Ready,
        State::Pending,
        State::Stale,
        State::Waiting,
        State::Failed,
        State::Blocked,
        State::Skipped,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Ready => "ready",
            State::Running => "running",
            State::Done => "done",
            State::Stale => "stale",
            State::Failed => "failed",
            State::Blocked => "blocked",
            State::Waiting => "waiting",
            State::Skipped => "skipped",
        }
    }
}

/// The reason why work was sent back to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SentBack {
    /// The objecting step.
    pub by: String,
    /// The number of the answer to be written.
    pub round: u32,
    /// The steps that raised the objections.
    pub objectors: Vec<String>,
    pub items: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct JobStatus {
    pub job: Job,
    pub state: State,
    /// The explanation: missing jobs, changed inputs, or errors.
    pub why: Vec<String>,
    /// The jobs that make it stale, pending or blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<Job>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_back: Option<SentBack>,
    /// Whether its output is an objection that is neither answered nor overruled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub objects: bool,
    /// Whether a person decided, after it failed, to go on without its result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub excused: bool,
    /// Failures in a row.
    pub failures: u32,
    /// Whether the inputs of the attempt are recorded.
    pub known: bool,
    /// Warnings: suspicious, but accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The commit that led to this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Flow<'c> {
    pub jobs: Arc<Vec<PlannedJob<'c>>>,
    pub statuses: Vec<JobStatus>,
    /// For each job, the open jobs before it: directly, or behind finished jobs.
    pub open_before: Vec<Arc<BTreeSet<usize>>>,
}

impl Flow<'_> {
    pub fn find(&self, job: &Job) -> Option<usize> {
        self.jobs.iter().position(|t| t.job == *job)
    }

    pub fn count(&self, state: State) -> usize {
        self.statuses.iter().filter(|s| s.state == state).count()
    }
}

/// Derives a flow from the contract's jobs, the files and the journal's notes (oldest first).
pub fn derive_flow<'c>(
    contract: &'c Contract,
    jobs: &Arc<Vec<PlannedJob<'c>>>,
    now: &dyn CurrentFiles,
    facts: &[AttemptFact],
) -> Flow<'c> {
    let derivation = Derivation::new(contract, jobs, now, facts);
    waits_first(jobs)
        .into_iter()
        .for_each(|index| derivation.derive(index));
    let mut statuses: Vec<JobStatus> = (0..jobs.len()).map(|i| derivation.status(i)).collect();
    spread_staleness(jobs, &mut statuses, &derivation);
    let open_before = (0..jobs.len()).map(|i| derivation.open_before(i)).collect();
    Flow {
        jobs: Arc::clone(jobs),
        statuses,
        open_before,
    }
}

pub(crate) fn render_job(job: &Job) -> String {
    match &job.unit {
        Some(unit) => format!("{} --unit {unit}", job.step),
        None => job.step.clone(),
    }
}
