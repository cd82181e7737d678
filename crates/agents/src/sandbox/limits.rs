//! The decision to end an agent early, and the bounds that cause it: memory and number of
//! processes, both summed over the agent's whole process family.
//!
//! The kernel's own limits do not fit. RLIMIT_AS breaks programs that reserve much address space
//! and use little, RLIMIT_NPROC counts all processes of the user, and a cgroup needs a delegated
//! subtree that an ordinary shell does not own. So the helper polls the family. It can exceed a
//! bound between two polls; with tracing, the process count is also checked at each new process.

use super::family;
use super::policy::Policy;
use super::report::{Line, tell};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Polling interval.
const LOOK: Duration = Duration::from_millis(250);

/// The decision to end an agent, shared by the helper's threads.
#[derive(Clone)]
pub struct End {
    report: PathBuf,
    memory_bound: u64,
    task_bound: u64,
    decided: Arc<AtomicBool>,
}

impl End {
    pub fn new(policy: &Policy) -> Self {
        let (memory_bound, task_bound) = (policy.memory_bound, policy.task_bound);
        End {
            report: policy.report.clone(),
            memory_bound,
            task_bound,
            decided: Arc::default(),
        }
    }

    /// Records the decision and kills all processes. The tracer kills processes that start later.
    pub fn decide(&self) {
        self.decided.store(true, Ordering::SeqCst);
        family::end_all();
    }

    pub fn is_decided(&self) -> bool {
        self.decided.load(Ordering::SeqCst)
    }

    /// Ends the agent if this many processes and threads exceed the bound.
    pub fn check_tasks(&self, tasks: u64) {
        if tasks > self.task_bound {
            self.over_bound(format!(
                "more than {} processes and threads",
                self.task_bound
            ));
        }
    }

    fn check_memory(&self, members: &[family::Member]) {
        let all = |measure: fn(&family::Member) -> u64| {
            members.iter().map(measure).fold(0u64, u64::saturating_add)
        };
        // The first count includes shared pages once per process. The exact count is slower and
        // runs only if the first exceeds the bound.
        if all(family::Member::resident) > self.memory_bound
            && all(family::Member::proportional) > self.memory_bound
        {
            self.over_bound(format!("more than {} bytes of memory", self.memory_bound));
        }
    }

    fn over_bound(&self, what: String) {
        if !self.decided.swap(true, Ordering::SeqCst) {
            tell(&self.report, &Line::OverBound { what });
        }
        family::end_all();
    }

    /// Polls the family for as long as this process lives.
    pub fn watch_bounds(&self) {
        let end = self.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK);
                let members = family::living();
                end.check_tasks(members.iter().map(|member| member.threads).sum());
                end.check_memory(&members);
            }
        });
    }
}
