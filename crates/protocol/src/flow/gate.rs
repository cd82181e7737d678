//! Records a person's decision: approving or rejecting a gate, or overruling an objection.
//!
//! The actor needs the privilege to decide. The decision, its files and the declared units are one
//! commit.

use quipu_contract::{Actor, Builtin, Each, Privilege, ProjectPath, Withheld};
use quipu_store::{Expect, Op, Receipt, StoreError};
use thiserror::Error;

use super::commit::{Wanted, commit};
use super::declare::{PlannedUnit, declare_units, load_unit_plan};
use super::engine::{FlowError, flow_now};
use super::folder::run_id;
use super::job::{Job, PlannedJob};
use super::note::{AttemptNote, ReadNote, Ruling};
use super::snapshot::{Memory, marker_of};
use super::state::{Flow, State, render_job};
use crate::project::Project;
use quipu_text::{marker, render_marker};

#[derive(Debug, Error)]
pub enum GateError {
    #[error("there is no step `{0}`")]
    Unknown(Job),
    #[error("`{0}` is done for each unit: say for which")]
    NeedsUnit(String),
    #[error("`{job}` does not wait for a person: it is {state}{}", why.first().map(|w| format!(" ({w})")).unwrap_or_default())]
    NotWaiting {
        job: Job,
        state: &'static str,
        why: Vec<String>,
    },
    #[error("`{0}` is no gate: it can be overruled, not rejected")]
    NoGate(Job),
    #[error("{}", faults.join("; "))]
    Plan { job: Job, faults: Vec<String> },
    #[error("{}", .0.what)]
    Withheld(Withheld),
    #[error(transparent)]
    Flow(#[from] FlowError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of a decision.
#[derive(Debug)]
pub struct Decided {
    pub receipt: Receipt,
    /// The created files.
    pub made: Vec<String>,
    /// The declared units.
    pub declared: Vec<PlannedUnit>,
    /// Jobs before the gate that read older texts than the approved ones.
    pub stale: Vec<Job>,
}

/// Records a decision. If the files of an approved gate are missing, they are created from the
/// files that the gate reads, in order.
pub fn decide_gate(
    project: &Project,
    actor: &Actor,
    job: &Job,
    ruling: Ruling,
    why: Option<&str>,
) -> Result<Decided, GateError> {
    actor.may(Privilege::Decide).map_err(GateError::Withheld)?;
    let memory = Memory::default();
    let (flow, _) = flow_now(project, &memory)?;
    let each = job.unit.is_none()
        && project
            .contract
            .step(&job.step)
            .is_some_and(|s| s.each == Each::Unit);
    let unknown = || {
        if each {
            GateError::NeedsUnit(job.step.clone())
        } else {
            GateError::Unknown(job.clone())
        }
    };
    let index = flow.find(job).ok_or_else(unknown)?;
    let (planned, status) = (&flow.jobs[index], &flow.statuses[index]);
    let gate = planned.is_builtin(Builtin::Gate);
    if ruling == Ruling::Rejected && !gate {
        return Err(GateError::NoGate(job.clone()));
    }
    let may = match status.state {
        State::Waiting | State::Failed => true,
        // A person may reverse an earlier decision.
        State::Done | State::Stale => gate,
        _ if status.objects => true,
        _ => false,
    };
    if !may {
        return Err(GateError::NotWaiting {
            job: job.clone(),
            state: status.state.as_str(),
            why: status.why.clone(),
        });
    }
    let mut note = AttemptNote::new(&run_id(job, jiff::Timestamp::now()), job, ruling);
    note.why = why.map(str::to_owned);
    let mut ops = Vec::new();
    for pattern in planned.reads() {
        let Some(path) = pattern
            .as_literal()
            .and_then(|p| ProjectPath::parse(p).ok())
        else {
            continue;
        };
        if let Some((_, version)) = project.store.read(&path)? {
            note.reads.push(ReadNote {
                path: path.to_string(),
                version,
                section: None,
                text: None,
            });
        }
    }
    if ruling == Ruling::Approved && gate {
        ops = missing_files(project, planned)?;
    }
    let mut declared = Vec::new();
    if let Some(plan) = load_unit_plan(project, planned)?.filter(|_| ruling == Ruling::Approved) {
        if !plan.faults.is_empty() {
            return Err(GateError::Plan {
                job: job.clone(),
                faults: plan.faults,
            });
        }
        ops.extend(declare_units(project, &plan)?);
        declared = plan.fresh(&project.contract).cloned().collect();
    }
    let made = ops.iter().map(|op| op.path().to_string()).collect();
    let verb = if ruling == Ruling::Approved {
        "approved"
    } else {
        "rejected"
    };
    let stale = if ruling == Ruling::Approved {
        stale_before(&flow, index)
    } else {
        Vec::new()
    };
    note.despite = stale.iter().map(ToString::to_string).collect();
    let told = Some(why.map_or_else(|| format!("{verb} {}", render_job(job)), str::to_owned));
    let wanted = Wanted {
        actor: Actor::Person,
        note,
        lease: None,
        ops,
        files: &[],
        audits: Vec::new(),
        why: told,
    };
    Ok(Decided {
        receipt: commit(project, &memory, &wanted)?.receipt,
        made,
        declared,
        stale,
    })
}

/// The stale jobs that a job depends on, nearest first.
fn stale_before(flow: &Flow<'_>, index: usize) -> Vec<Job> {
    let mut seen = vec![index];
    let mut at = 0;
    while at < seen.len() {
        let planned = &flow.jobs[seen[at]];
        for (other, before) in flow.jobs.iter().enumerate() {
            let unit = &before.job.unit;
            let rests = planned.step.after.contains(&before.job.step)
                && (planned.job.unit.is_none() || unit.is_none() || *unit == planned.job.unit);
            if rests && !seen.contains(&other) {
                seen.push(other);
            }
        }
        at += 1;
    }
    seen[1..]
        .iter()
        .filter(|i| flow.statuses[**i].state == State::Stale)
        .map(|i| flow.jobs[*i].job.clone())
        .collect()
}

/// The files that an approval creates: each from the draft at the same position among the gate's
/// inputs, with its final name and marker.
fn missing_files(project: &Project, planned: &PlannedJob<'_>) -> Result<Vec<Op>, StoreError> {
    let drafts: Vec<ProjectPath> = planned
        .reads()
        .iter()
        .filter_map(|p| ProjectPath::parse(p.as_literal()?).ok())
        .collect();
    let mut ops = Vec::new();
    for (nth, output) in planned.required().enumerate() {
        let draft = drafts.get(nth);
        let there = project.store.read(&output.path)?;
        let complete = there.as_ref().is_some_and(|(bytes, _)| {
            output.markers.is_empty()
                || marker_of(output.path.as_str(), &String::from_utf8_lossy(bytes))
                    .is_some_and(|m| output.markers.contains(&m))
        });
        if complete {
            continue;
        }
        let Some((bytes, _)) = draft.map(|d| project.store.read(d)).transpose()?.flatten() else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let text = match output.markers.first() {
            Some(name) if marker_of(output.path.as_str(), &text).as_ref() != Some(name) => {
                let body = marker(&text).map_or(text.as_str(), |m| &text[..m.start]);
                format!("{}\n\n{}\n", body.trim_end(), render_marker(name))
            }
            _ => text,
        };
        ops.push(Op::Write {
            path: output.path.clone(),
            bytes: text.into_bytes(),
            expect: Expect::Any,
        });
    }
    Ok(ops)
}
