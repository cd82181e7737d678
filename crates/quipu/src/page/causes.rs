//! Jobs that need a person, each with the jobs that wait for it.

use std::collections::{BTreeMap, BTreeSet};

use quipu_protocol::flow::{Job, JobStatus, State};

/// A job that needs a person. Indexes are those of the flow's jobs.
#[derive(Debug, PartialEq, Eq)]
pub struct Cause {
    pub job: usize,
    /// The blocked jobs that wait for it, directly or through others.
    pub blocked: Vec<usize>,
}

/// Folds each blocked job into the failed jobs that it waits for. A blocked job that waits for no
/// other one is a cause itself.
pub fn root_causes(statuses: &[JobStatus]) -> Vec<Cause> {
    let index: BTreeMap<&Job, usize> = (0..).zip(statuses).map(|(at, s)| (&s.job, at)).collect();
    let stops = |at: usize| matches!(statuses[at].state, State::Failed | State::Blocked);
    let before = |at: usize| -> Vec<usize> {
        let through = statuses[at].through.iter();
        through
            .filter_map(|job| index.get(job).copied())
            .filter(|at| stops(*at))
            .collect()
    };
    let mut causes: BTreeMap<usize, Vec<usize>> = (0..statuses.len())
        .filter(|at| statuses[*at].state == State::Failed)
        .map(|at| (at, Vec::new()))
        .collect();
    for at in (0..statuses.len()).filter(|at| statuses[*at].state == State::Blocked) {
        let (mut next, mut seen) = (vec![at], BTreeSet::from([at]));
        while let Some(one) = next.pop() {
            let others = before(one);
            if statuses[one].state == State::Failed || others.is_empty() {
                let blocked = causes.entry(one).or_default();
                blocked.extend((one != at).then_some(at));
                continue;
            }
            next.extend(others.into_iter().filter(|other| seen.insert(*other)));
        }
    }
    causes
        .into_iter()
        .map(|(job, blocked)| Cause { job, blocked })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(step: &str, state: State, through: &[&str]) -> JobStatus {
        let job = |step: &str| Job {
            step: step.to_owned(),
            unit: None,
        };
        JobStatus {
            job: job(step),
            state,
            why: Vec::new(),
            through: through.iter().map(|step| job(step)).collect(),
            sent_back: None,
            objects: false,
            excused: false,
            failures: 0,
            known: false,
            warnings: Vec::new(),
            seq: None,
        }
    }

    #[test]
    fn blocked_jobs_are_folded_into_what_blocks_them() {
        let statuses = [
            status("done", State::Done, &[]),
            status("write", State::Failed, &[]),
            status("review", State::Blocked, &["write"]),
            status("merge", State::Blocked, &["review", "draw"]),
            status("draw", State::Failed, &["done"]),
            status("gate", State::Blocked, &[]),
            status("print", State::Blocked, &["gate"]),
        ];
        let cause = |job, blocked: &[usize]| Cause {
            job,
            blocked: blocked.to_vec(),
        };
        assert_eq!(
            root_causes(&statuses),
            [cause(1, &[2, 3]), cause(4, &[3]), cause(5, &[6])]
        );
    }
}
