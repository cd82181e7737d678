//! Records a person's decision: approving or rejecting a gate, or overruling an objection.
//!
//! The actor needs the privilege to decide. The decision, its files and the declared units are one
//! commit.

use quipu_contract::{Actor, Builtin, Class, Each, Privilege, ProjectPath, Withheld};
use quipu_store::{Expect, Op, Receipt, StoreError, Version};
use thiserror::Error;

use super::commit::{Wanted, commit};
use super::declare::{PlannedUnit, declare_units, load_unit_plan};
use super::engine::{FlowError, flow_now};
use super::folder::run_id;
use super::job::{Job, Output, PlannedJob};
use super::note::{AttemptNote, AttemptResult, ReadNote};
use super::open_points::{OpenPoint, open_points};
use super::snapshot::{FlowCache, marker_of};
use super::state::{Flow, State, render_job};
use crate::project::open::Project;
use crate::view::slice_section;
use quipu_text::{marker, render_marker};

#[derive(Debug, Error)]
pub enum GateError {
    #[error("unknown step `{0}`")]
    Unknown(Job),
    #[error("`{0}` is repeated for each unit: name one with --unit")]
    NeedsUnit(String),
    #[error("`{job}` does not wait for a person: it is {state}{}", why.first().map(|w| format!(" ({w})")).unwrap_or_default())]
    NotWaiting {
        job: Job,
        state: &'static str,
        why: Vec<String>,
    },
    #[error("`{0}` is not a gate: it can be approved, not rejected")]
    NoGate(Job),
    #[error("{}", faults.join("; "))]
    Plan { job: Job, faults: Vec<String> },
    /// A file that the gate decides about has an edit that was not adopted.
    #[error("{what}")]
    Flagged { what: String, remedy: String },
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
    /// What the reports before the gate leave to a person.
    pub open: Vec<OpenPoint>,
    /// Whether the decision excuses a failed job: the flow goes on without its result.
    pub excused: bool,
    /// Sealed files of an approved gate that were there already and stay as they are.
    pub kept: Vec<ProjectPath>,
}

/// Records a decision. If the files of an approved gate are missing, they are created from the
/// files that the gate reads, in order.
pub fn decide_gate(
    project: &Project,
    actor: &Actor,
    job: &Job,
    ruling: AttemptResult,
    why: Option<&str>,
) -> Result<Decided, GateError> {
    actor.may(Privilege::Decide).map_err(GateError::Withheld)?;
    let memory = FlowCache::default();
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
    if ruling == AttemptResult::Rejected && !gate {
        return Err(GateError::NoGate(job.clone()));
    }
    let may = match status.state {
        State::Waiting | State::Failed => true,
        // A person may reverse an earlier decision.
        State::Done => gate,
        // A person may keep a text although its inputs changed.
        State::Stale => gate || ruling == AttemptResult::Approved,
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
    if gate && ruling == AttemptResult::Approved {
        refuse_flagged(project, planned)?;
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
    if !gate {
        note.reads = reads_now(project, &memory, job)?.unwrap_or(note.reads);
    }
    if ruling == AttemptResult::Approved && gate {
        ops = missing_files(project, planned)?;
    }
    let mut declared = Vec::new();
    if let Some(plan) =
        load_unit_plan(project, planned)?.filter(|_| ruling == AttemptResult::Approved)
    {
        if !plan.faults.is_empty() {
            return Err(GateError::Plan {
                job: job.clone(),
                faults: plan.faults,
            });
        }
        ops.extend(declare_units(project, &plan)?);
        declared = plan.fresh(&project.contract).cloned().collect();
    }
    let mut kept: Vec<ProjectPath> = Vec::new();
    if ruling == AttemptResult::Approved && gate {
        let sealed = planned.required().map(|output| &output.path);
        for path in sealed.filter(|path| ops.iter().all(|op| op.path() != *path)) {
            if project.contract.class(path) == Class::Sealed && project.store.read(path)?.is_some()
            {
                kept.push(path.clone());
            }
        }
    }
    let made = ops.iter().map(|op| op.path().to_string()).collect();
    let excused = ruling == AttemptResult::Approved
        && status.state == State::Failed
        && !status.objects
        && planned.step.domain.is_some();
    let verb = if excused {
        "excused"
    } else if ruling == AttemptResult::Approved {
        "approved"
    } else {
        "rejected"
    };
    let stale = if ruling == AttemptResult::Approved {
        stale_before(&flow, index)
    } else {
        Vec::new()
    };
    note.despite = stale.iter().map(ToString::to_string).collect();
    let told = match (why, ruling) {
        (None, _) => format!("{verb} {}", render_job(job)),
        (Some(note), AttemptResult::Approved) => format!("{verb} {}: {note}", render_job(job)),
        (Some(reason), _) => reason.to_owned(),
    };
    let open = if gate {
        open_points(project, planned)?
    } else {
        Vec::new()
    };
    let wanted = Wanted {
        actor: Actor::Person,
        note,
        lease: None,
        ops,
        files: &[],
        audits: Vec::new(),
        why: Some(told),
    };
    Ok(Decided {
        receipt: commit(project, &memory, &wanted)?.receipt,
        made,
        declared,
        stale,
        open,
        excused,
        kept,
    })
}

/// Refuses a gate whose files are not what the person sees on disk: an approval would be about the
/// last adopted version.
fn refuse_flagged(project: &Project, planned: &PlannedJob<'_>) -> Result<(), GateError> {
    for pattern in planned.reads() {
        let literal = pattern.as_literal();
        let Some(path) = literal.and_then(|path| ProjectPath::parse(path).ok()) else {
            continue;
        };
        let Some(file) = project.store.flagged(&path)? else {
            continue;
        };
        let flag = file.flag.as_ref().map_or("", |flag| flag.what.as_str());
        return Err(GateError::Flagged {
            what: format!("`{path}` {flag}: this edit is not adopted, so it would not be approved"),
            remedy: file.remedy(),
        });
    }
    Ok(())
}

/// Records that the published files are as their sources are now, for each stale job that would make
/// them. An actor that may not decide records nothing.
pub fn settle_published(project: &Project, actor: &Actor) -> Result<Vec<Job>, GateError> {
    if actor.may(Privilege::Decide).is_err() {
        return Ok(Vec::new());
    }
    let memory = FlowCache::default();
    let (flow, _) = flow_now(project, &memory)?;
    let jobs = flow.jobs.iter().zip(&flow.statuses);
    let stale = jobs.filter(|(planned, status)| {
        planned.is_builtin(Builtin::Publish) && status.state == State::Stale
    });
    let stale: Vec<Job> = stale.map(|(planned, _)| planned.job.clone()).collect();
    for job in &stale {
        decide_gate(
            project,
            actor,
            job,
            AttemptResult::Approved,
            Some("quipu publish"),
        )?;
    }
    Ok(stale)
}

/// The texts that the newest accepted attempt of a job read, at their current versions. None if the
/// job was never accepted. The decision about its output holds for these versions.
fn reads_now(
    project: &Project,
    memory: &FlowCache,
    job: &Job,
) -> Result<Option<Vec<ReadNote>>, GateError> {
    let facts = memory.facts(project).map_err(FlowError::from)?;
    let accepted = facts
        .iter()
        .rev()
        .find(|fact| fact.note.ruling == AttemptResult::Accepted && fact.note.job() == *job);
    let Some(fact) = accepted else {
        return Ok(None);
    };
    let mut reads = Vec::new();
    for read in &fact.note.reads {
        let Ok(path) = ProjectPath::parse(&read.path) else {
            continue;
        };
        let Some((bytes, version)) = project.store.read(&path)? else {
            continue;
        };
        let section = read.section.as_ref();
        let text = section.and_then(|name| slice_section(&String::from_utf8_lossy(&bytes), name));
        reads.push(ReadNote {
            text: text.map(|text| Version::of(text.as_bytes())),
            version,
            ..read.clone()
        });
    }
    Ok(Some(reads))
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
        // A person wrote the sealed file without the flow. The approval seals that text.
        if let Some((bytes, _)) = &there
            && project.contract.class(&output.path) == Class::Sealed
        {
            ops.extend(marked(output, bytes));
            continue;
        }
        let Some((bytes, _)) = draft.map(|d| project.store.read(d)).transpose()?.flatten() else {
            continue;
        };
        let text = with_marker(output, &String::from_utf8_lossy(&bytes));
        ops.push(Op::Write {
            path: output.path.clone(),
            bytes: text.into_bytes(),
            expect: Expect::Any,
        });
    }
    Ok(ops)
}

/// A text with the marker of its output in place of the marker that it ends with.
fn with_marker(output: &Output, text: &str) -> String {
    match output.markers.first() {
        Some(name) if marker_of(output.path.as_str(), text).as_ref() != Some(name) => {
            let body = marker(text).map_or(text, |m| &text[..m.start]);
            format!("{}\n\n{}\n", body.trim_end(), render_marker(name))
        }
        _ => text.to_owned(),
    }
}

/// Adds the marker to a sealed file. None if the file is not text, which only a person can fix.
fn marked(output: &Output, bytes: &[u8]) -> Option<Op> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(Op::Amend {
        path: output.path.clone(),
        bytes: Some(with_marker(output, text).into_bytes()),
    })
}
