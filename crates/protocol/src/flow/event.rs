//! What is told of a flow while it runs, and in the end.

use std::collections::BTreeSet;

use serde::Serialize;

use super::job::Job;
use super::note::Usage;

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    Released {
        paths: Vec<String>,
    },
    /// Folders of old runs were removed, as the contract says.
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
    /// What an agent says of its work.
    Progress {
        job: Job,
        line: String,
    },
    /// An agent reached for what it was not given, and was refused.
    Denied {
        job: Job,
        attempt: String,
    },
    /// Nothing but a look at the outputs keeps the agent to its folders.
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
        /// How the agent ended, if not by itself and well.
        #[serde(skip_serializing_if = "Option::is_none")]
        ended: Option<String>,
        /// Warnings: suspicious, and accepted all the same.
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
    /// Another worker has it, or did it meanwhile: nothing came of this attempt.
    Lost {
        job: Job,
        why: String,
    },
    /// Nothing can be done now, and it stays.
    Waiting {
        why: String,
    },
    /// It cannot be done now; nothing is held against an agent.
    Stuck {
        job: Job,
        why: String,
    },
    Stopped {
        job: Job,
    },
}

/// How a run of the flow ended.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    pub accepted: usize,
    pub failed: usize,
    /// The jobs whose last attempt failed.
    pub failing: BTreeSet<Job>,
    pub stuck: Vec<(Job, String)>,
    pub stopped: bool,
    /// The contract changed meanwhile: what comes next goes by the new one.
    pub rules_changed: bool,
    pub usage: Usage,
}
