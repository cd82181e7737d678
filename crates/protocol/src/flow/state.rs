//! Where a flow stands: derived, never stored.
//!
//! A job is complete if its outputs end with their markers. It is done if, besides, nothing that
//! it had read has changed since and no one objects. Everything is told from the files as they are
//! now and from what runs noted in the journal; where the journal knows nothing, a marker is
//! believed and that is said. Pure: all I/O is behind [`Now`].

use std::collections::BTreeSet;
use std::sync::Arc;

use quipu_contract::{Contract, Pattern, ProjectPath};
use quipu_store::Version;
use serde::Serialize;

use super::derivation::{Derivation, spread_staleness};
use super::job::{Job, PlannedJob, waits_first};
use super::note::AttemptFact;

/// The files as they are now.
pub trait Now {
    fn version(&self, path: &str) -> Option<Version>;
    /// A hash of one section.
    fn section(&self, path: &str, section: &str) -> Option<Version>;
    fn marker(&self, path: &str) -> Option<String>;
    /// List items that begin with a sign.
    fn items(&self, path: &str, sign: &str) -> Vec<String>;
    fn matching(&self, pattern: &Pattern) -> Vec<ProjectPath>;
    fn holds_word(&self, path: &str, words: &[String]) -> bool;
    /// Whether a running job holds the right to write a path.
    fn is_leased(&self, path: &ProjectPath) -> bool;
}

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits for others.
    Pending,
    /// It can begin.
    Ready,
    /// Someone is at it.
    Running,
    Done,
    /// Something that it had read was changed by hand since.
    Stale,
    /// It needs a person.
    Failed,
    /// It waits for something that needs a person.
    Blocked,
    /// It is a person's job.
    Waiting,
    /// It does not apply here.
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

/// Why work comes back to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SentBack {
    /// The step that objects.
    pub by: String,
    /// Which answer this will be.
    pub round: u32,
    /// The steps whose objections they are.
    pub objectors: Vec<String>,
    pub items: Vec<String>,
}

/// A job with its state.
#[derive(Debug, Clone, Serialize)]
pub struct JobStatus {
    pub job: Job,
    pub state: State,
    /// In words: what it waits for, what changed, what went wrong.
    pub why: Vec<String>,
    /// The jobs that make it stale, pending or blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<Job>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_back: Option<SentBack>,
    /// What it wrote is an objection that no one has answered or overruled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub objects: bool,
    /// Failures in a row.
    pub failures: u32,
    /// What the run had read is on record.
    pub known: bool,
    /// Warnings: suspicious, and accepted all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The commit that made it so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// A whole flow.
#[derive(Debug, Clone)]
pub struct Flow<'c> {
    pub jobs: Arc<Vec<PlannedJob<'c>>>,
    pub statuses: Vec<JobStatus>,
    /// For each job those that are open before it: directly, or behind jobs that are done.
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
    now: &dyn Now,
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
