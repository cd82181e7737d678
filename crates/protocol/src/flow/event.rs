//! Events reported while a flow runs, and its final summary.
//!
//! Events are only output: a flow never reads them back.

use std::collections::BTreeSet;

use serde::Serialize;

use super::job::Job;
use super::note::Usage;

/// An event of a flow.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    Released {
        paths: Vec<String>,
    },
    /// Folders of old attempts were deleted, as the contract requires.
    Pruned {
        attempts: usize,
    },
    Started {
        job: Job,
        agent: String,
        round: u32,
    },
    SentBack {
        job: Job,
        attempt: String,
        fault: String,
    },
    /// An agent's report on its work.
    Progress {
        job: Job,
        line: String,
    },
    /// An agent's call failed and is retried.
    Retry {
        job: Job,
        why: String,
    },
    /// An agent tried to access something outside its grants and was refused.
    Denied {
        job: Job,
        attempt: String,
    },
    /// No sandbox confines the agent: only the check of its outputs does.
    VerificationOnly {
        job: Job,
        why: String,
    },
    KeptAside {
        path: String,
        kept: String,
    },
    Accepted {
        job: Job,
        files: Vec<String>,
        dropped: Vec<String>,
        sealed: Vec<String>,
        usage: Option<Usage>,
        /// The ending, if the agent did not end normally.
        #[serde(skip_serializing_if = "Option::is_none")]
        ended: Option<String>,
        /// Warnings: suspicious, but accepted.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    Failed {
        job: Job,
        why: String,
        count: u32,
        retries: u32,
        usage: Option<Usage>,
    },
    Did {
        job: Job,
        what: String,
    },
    /// Another worker holds the job or completed it: this attempt had no effect.
    Lost {
        job: Job,
        why: String,
    },
    /// Nothing can be done now; the worker stays.
    Waiting {
        why: String,
    },
    /// The job cannot be done now. This does not count as a failure of the agent.
    Stuck {
        job: Job,
        why: String,
    },
    Stopped {
        job: Job,
    },
}

/// The result of a run of the flow.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    pub accepted: usize,
    pub failed: usize,
    /// The jobs with a failed last attempt.
    pub failing: BTreeSet<Job>,
    pub stuck: Vec<(Job, String)>,
    pub stopped: bool,
    /// The contract changed in the meantime: the next jobs follow the new one.
    pub rules_changed: bool,
    pub usage: Usage,
}
