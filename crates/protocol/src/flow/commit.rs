//! Commits the results of a job: its files, its note, derived files and audit entries, all or
//! nothing.
//!
//! A sealed file is never written; it is returned to the caller instead. The store judges all other
//! operations.

use quipu_contract::{Actor, Class, Form, Language, ProjectPath};
use quipu_store::{Change, Expect, LeaseToken, Op, Receipt, Refused, StoreError};

use super::engine::{FlowError, flow_now};
use super::job::{Output, PlannedJob};
use super::messages::{Audit, RESOLVED, open_entry};
use super::note::{AttemptNote, AttemptResult};
use super::snapshot::FlowCache;
use crate::project::open::Project;
use crate::review::{derive_panel, panel_view};

/// How often a commit is retried when another process rewrites a derived file.
const TRIES: usize = 50;

/// The content of a commit.
pub struct Wanted<'w> {
    pub actor: Actor,
    pub note: AttemptNote,
    pub lease: Option<LeaseToken>,
    pub ops: Vec<Op>,
    /// Files of an attempt with their new texts.
    pub files: &'w [(Output, Vec<u8>)],
    /// Sections for the audit log.
    pub audits: Vec<String>,
    pub why: Option<String>,
}

/// The committed change, and the files that could not be committed.
pub struct Committed {
    pub receipt: Receipt,
    /// Sealed files with a new text that was not committed: only a person may change them.
    pub sealed: Vec<String>,
}

/// The operations for an attempt's files, and the sealed files that it cannot write.
struct PlannedOps {
    ops: Vec<Op>,
    sealed: Vec<String>,
}

fn plan_ops(project: &Project, files: &[(Output, Vec<u8>)]) -> Result<PlannedOps, StoreError> {
    let mut asked = PlannedOps {
        ops: Vec::new(),
        sealed: Vec::new(),
    };
    for (output, bytes) in files {
        let (path, bytes) = (output.path.clone(), bytes.clone());
        let there = project.store.read(&path)?;
        asked
            .ops
            .push(match (project.contract.class(&path), there) {
                (Class::Sealed, Some((old, _))) => {
                    if old != bytes {
                        asked.sealed.push(path.to_string());
                    }
                    continue;
                }
                (Class::Append, Some((old, _))) => {
                    let added = bytes
                        .strip_prefix(old.as_slice())
                        .unwrap_or(&bytes)
                        .to_vec();
                    Op::Append {
                        path,
                        bytes: added,
                        apart: true,
                    }
                }
                (Class::Derived, _) => {
                    // Only a `Publisher` produces these files, and it is part of Quipu.
                    Op::Derive {
                        path,
                        bytes,
                        expect: Expect::Any,
                    }
                }
                (Class::State, Some((_, version))) => Op::Write {
                    path,
                    bytes,
                    expect: Expect::Version(version),
                },
                _ => Op::Write {
                    path,
                    bytes,
                    expect: Expect::Any,
                },
            });
    }
    Ok(asked)
}

/// Judges some files without writing them. Returns the contract's refusal, if any.
pub fn find_refusal(
    project: &Project,
    actor: &Actor,
    lease: &LeaseToken,
    files: &[(Output, Vec<u8>)],
) -> Result<Option<Refused>, StoreError> {
    let mut change = Change::by(actor);
    change.revised = true; // judged only, never written
    change.ops = plan_ops(project, files)?.ops;
    change.lease = Some(lease.clone());
    change.force = true;
    match project.validate(change) {
        Ok(judged) => {
            drop(judged);
            Ok(None)
        }
        Err(StoreError::Refused(refused)) => Ok(Some(refused)),
        // Another process wrote the file in the meantime; the commit checks again and reports it.
        Err(StoreError::Stale { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Finds an obstacle to writing any text to a job's outputs: a damaged file, a missing pointer. No
/// agent can fix that, so the check runs before an agent starts.
pub fn find_obstacle(
    project: &Project,
    actor: &Actor,
    lease: &LeaseToken,
    job: &PlannedJob<'_>,
) -> Result<Option<Refused>, StoreError> {
    let harmless = |output: &Output| {
        let text: &[u8] = if output.path.as_str().ends_with(".json") {
            b"{}\n"
        } else {
            b"-\n"
        };
        (output.clone(), text.to_vec())
    };
    let files: Vec<_> = job.required().map(harmless).collect();
    find_refusal(project, actor, lease, &files)
}

pub fn commit(
    project: &Project,
    memory: &FlowCache,
    wanted: &Wanted<'_>,
) -> Result<Committed, FlowError> {
    let PlannedOps { ops: asked, sealed } = plan_ops(project, wanted.files)?;
    let ops: Vec<Op> = wanted.ops.iter().cloned().chain(asked).collect();
    let mut audits = wanted.audits.clone();
    audits.extend(audit_repair(project, wanted)?);
    let audits = audit_op(project, &audits)?;
    for _ in 0..TRIES {
        let mut change = Change::by(&wanted.actor)
            .key(wanted.note.attempt.as_str())
            .note(wanted.note.to_value());
        change.ops.clone_from(&ops);
        change.revised = true; // the attempt's folder keeps all outputs
        change.lease.clone_from(&wanted.lease);
        change.why.clone_from(&wanted.why);
        // Reports and reviews may shrink freely; the necessary checks ran before.
        change.force = true;
        change.beside.extend(audits.clone());
        let panel = panel_op(project, memory, wanted)?;
        let derived = panel.as_ref().map(|op| op.path().to_string());
        change.beside.extend(panel);
        match project
            .validate(change)
            .and_then(quipu_store::Validated::publish)
        {
            Ok(receipt) => return Ok(Committed { receipt, sealed }),
            Err(StoreError::Stale { path, .. }) if Some(&path) == derived.as_ref() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(FlowError::Busy)
}

/// The section that closes a job's open entry in the audit log, if it has one.
fn audit_repair(project: &Project, wanted: &Wanted<'_>) -> Result<Option<String>, StoreError> {
    let language = project.contract.language;
    let result = match (wanted.note.ruling, language) {
        (AttemptResult::Accepted, Language::En) => "accepted",
        (AttemptResult::Accepted, Language::Zh) => "已完成",
        (AttemptResult::Approved, Language::En) => "approved by a person",
        (AttemptResult::Approved, Language::Zh) => "由人批准",
        (AttemptResult::Failed | AttemptResult::Rejected, _) => return Ok(None),
    };
    let Some(path) = audit_log(project).filter(|_| wanted.audits.is_empty()) else {
        return Ok(None);
    };
    let Some((bytes, _)) = project.store.read(&path)? else {
        return Ok(None);
    };
    let job = wanted.note.job().to_string();
    let log = String::from_utf8_lossy(&bytes);
    Ok(open_entry(&log, &job).map(|about| {
        let audit = Audit {
            about,
            kind: RESOLVED,
            what: &format!("{job}: {result}"),
            done: wanted.why.as_deref().unwrap_or_default(),
            open: match language {
                Language::En => "none",
                Language::Zh => "无",
            },
        };
        audit.render(language, jiff::Timestamp::now())
    }))
}

fn audit_log(project: &Project) -> Option<ProjectPath> {
    let mut logs = project.contract.of_form(Form::Audit);
    logs.find_map(|rule| ProjectPath::parse(rule.path.as_literal()?).ok())
}

/// The append to the audit log, if the contract has one.
pub fn audit_op(project: &Project, sections: &[String]) -> Result<Option<Op>, StoreError> {
    let (Some(path), false) = (audit_log(project), sections.is_empty()) else {
        return Ok(None);
    };
    Ok(Some(Op::Append {
        path,
        bytes: sections.concat().into_bytes(),
        apart: true,
    }))
}

/// The panel's state after this commit.
fn panel_op(
    project: &Project,
    memory: &FlowCache,
    wanted: &Wanted<'_>,
) -> Result<Option<Op>, FlowError> {
    if project.contract.of_form(Form::Panel).next().is_none() {
        return Ok(None);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fresh: Vec<(ProjectPath, String)> = wanted
        .files
        .iter()
        .map(|(o, bytes)| (o.path.clone(), text(bytes)))
        .collect();
    // Read the version first, so that a derivation from newer reports makes this one stale.
    let rule = project
        .contract
        .of_form(Form::Panel)
        .find_map(|r| ProjectPath::parse(r.path.as_literal()?).ok());
    let Some(path) = rule else { return Ok(None) };
    let version = project.store.read(&path)?.map(|(_, version)| version);
    let (flow, _) = flow_now(project, memory)?;
    let read = |path: &ProjectPath| {
        project
            .store
            .read(path)
            .ok()
            .flatten()
            .map(|(bytes, _)| text(&bytes))
    };
    let panel = panel_view(&project.contract, &flow, &read, &fresh);
    let score = panel
        .members
        .iter()
        .find(|m| fresh.iter().any(|(p, _)| *p == m.path))
        .and_then(|m| m.report.as_ref())
        .map(|r| r.score);
    let last = score.map(|score| format!("{} completed with score {score}.", wanted.note.step));
    let derived = derive_panel(project, &panel, last.as_deref())?;
    let expect = version.map_or(Expect::Any, Expect::Version);
    Ok(derived.map(|(path, text)| Op::Derive {
        path,
        bytes: text.into_bytes(),
        expect,
    }))
}
