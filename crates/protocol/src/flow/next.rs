//! Chooses the command that continues a flow.
//!
//! The order of the checks is the priority: ready jobs, gates, stale jobs, failed jobs.

use super::state::{Flow, JobStatus, State, render_job};

/// The next command, or None if nothing can be done now.
pub fn next_command(flow: &Flow<'_>) -> Option<String> {
    let first = |state: State| flow.statuses.iter().find(|s| s.state == state);
    if first(State::Ready).is_some() {
        return Some(continue_command(flow));
    }
    if let Some(gate) = first(State::Waiting) {
        return gate.why.first().cloned();
    }
    let stale = |s: &&JobStatus| s.state == State::Stale && s.through.is_empty();
    if let Some(stale) = flow.statuses.iter().find(stale).or(first(State::Stale)) {
        return Some(format!(
            "quipu run --stale --by NAME     (to keep it as it is: quipu approve {})",
            render_job(&stale.job)
        ));
    }
    if let Some(said) = first(State::Failed).map(retry_command) {
        return Some(said);
    }
    // Steps that run once per unit have no units yet.
    let without = flow.jobs.iter().any(|job| !job.without.is_empty());
    let gate = flow.jobs.iter().find(|job| job.step.declare.is_some());
    without.then(|| match gate {
        Some(gate) => format!("quipu approve {}     (declares the units of the plan; or write [units.ID] into quipu.toml)", gate.job.step),
        None => "write [units.ID] into quipu.toml, one for each unit".into(),
    })
}

/// The command that goes on with the jobs that can begin. `--stale` does every job that was done
/// before and became ready again, and the stale ones behind it.
fn continue_command(flow: &Flow<'_>) -> String {
    let mut ready = flow.statuses.iter().filter(|s| s.state == State::Ready);
    let stale = match flow.count(State::Stale) > 0 && ready.all(|status| status.known) {
        true => " --stale",
        false => "",
    };
    format!("quipu run{stale} --by NAME     (--dry-run shows the cost)")
}

/// The command that does a failed job again.
pub fn retry_command(failed: &JobStatus) -> String {
    let unit = failed
        .job
        .unit
        .as_ref()
        .map(|u| format!(" --unit {u}"))
        .unwrap_or_default();
    if failed.objects {
        return format!(
            "fix it and run it again, or overrule it: quipu approve {}{unit}",
            failed.job.step
        );
    }
    format!(
        "quipu run --step {}{unit} --by NAME     (after you have found the cause)",
        failed.job.step
    )
}
