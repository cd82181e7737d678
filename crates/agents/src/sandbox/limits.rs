//! The decision to end a run before its agent does, and the bounds that lead to it: memory and
//! number of processes, each of the whole family together.
//!
//! The kernel's own limits do not fit. One on address space breaks programs that reserve much and
//! use little, one on processes counts all of the user's, and a control group needs a part of the
//! tree that an ordinary shell does not own. So the family is looked at now and then. Between two
//! looks it can exceed a bound; where processes are observed, their number is also checked at each
//! new one.

use super::family;
use super::policy::Policy;
use super::report::{Line, tell};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often the family is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// The decision to end a run, shared by the threads of the helper.
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

    /// From now on no process of the run is let go on.
    pub fn decide(&self) {
        self.decided.store(true, Ordering::SeqCst);
        family::end_all();
    }

    pub fn is_decided(&self) -> bool {
        self.decided.load(Ordering::SeqCst)
    }

    /// Ends the run if so many processes and threads are too many.
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
        // Pages that processes share are counted for each at first; the exact count is slower.
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

    /// Looks at the family for as long as this process lives.
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
