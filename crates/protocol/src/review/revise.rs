//! Opens the next round of a review: the revision replaces the sealed manuscript, the finished
//! round moves to a folder of its own, and only the agents that the revision concerns report again.
//!
//! One commit makes the round. Agents that are not concerned keep their reports: approving each of
//! them afterwards records that its report holds for the revision. A crash between the two leaves
//! stale reports, which `quipu approve` or `quipu run --stale` settles.

use quipu_contract::{Actor, Contract, Form, Privilege, ProjectPath, Withheld};
use quipu_store::{Change, Expect, Op, Receipt, StoreError};
use thiserror::Error;

use super::comment::Status;
use super::passage::Passages;
use super::revised::judged;
use super::rounds::{Comment, Rounds};
use super::state::{Member, PanelView, load_earlier, panel_view};
use crate::flow::{
    AttemptResult, FlowCache, FlowError, GateError, State, decide_gate, flow_now, refresh_panel,
};
use crate::project::open::Project;

/// The name under which the authors' reply is kept with the round that it answers.
pub(super) const REPLY: &str = "reply.md";
/// The name of a bibliography that a revision adds.
const BIBLIOGRAPHY: &str = "paper.bib";

#[derive(Debug, Error)]
pub enum ReviseError {
    #[error("the contract declares no file of form `manuscript` and none of form `rounds`")]
    NoRounds,
    #[error("`{0}` does not exist yet: there is nothing to revise")]
    NoManuscript(ProjectPath),
    #[error("round {round} is not over: {} not reported", render_waiting(waiting))]
    NotOver { round: usize, waiting: Vec<String> },
    #[error("the revision is the text that `{0}` already has")]
    Unchanged(ProjectPath),
    #[error("the revision is not UTF-8 text")]
    NotText,
    #[error("there are {} bibliographies, and a revision replaces one: {}", .0.len(), render_paths(.0))]
    WhichBibliography(Vec<ProjectPath>),
    #[error("{}", .0.what)]
    Withheld(Withheld),
    #[error(transparent)]
    Flow(#[from] FlowError),
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn render_waiting(waiting: &[String]) -> String {
    let verb = if waiting.len() == 1 { "has" } else { "have" };
    format!("{} {verb}", waiting.join(", "))
}

fn render_paths(paths: &[ProjectPath]) -> String {
    let paths: Vec<&str> = paths.iter().map(ProjectPath::as_str).collect();
    paths.join(", ")
}

/// The revision, and what the authors say about it.
pub struct Revision {
    pub text: Vec<u8>,
    /// The new text of the bibliography.
    pub bibliography: Option<Vec<u8>>,
    pub reply: Option<Vec<u8>>,
    pub why: Option<String>,
}

/// The new round.
#[derive(Debug)]
pub struct Revised {
    pub receipt: Receipt,
    pub round: usize,
    /// The agents that report again, without those that report on the panel.
    pub again: Vec<String>,
    /// The agents whose reports still hold.
    pub kept: Vec<String>,
}

pub fn revise(
    project: &Project,
    actor: &Actor,
    revision: Revision,
) -> Result<Revised, ReviseError> {
    actor
        .may(Privilege::Decide)
        .map_err(ReviseError::Withheld)?;
    let memory = FlowCache::default();
    let read = |path: &ProjectPath| {
        let found = project.store.read(path).ok().flatten();
        found.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
    };
    let contract = &project.contract;
    let rounds = Rounds::load(contract, &read);
    let manuscript = rounds.manuscript.clone().ok_or(ReviseError::NoRounds)?;
    let Some((old, _)) = project.store.read(&manuscript)? else {
        return Err(ReviseError::NoManuscript(manuscript));
    };
    let bibliography = match &revision.bibliography {
        Some(new) => Some((bibliography_of(project)?, new.clone())),
        None => None,
    };
    if old == revision.text && bibliography.is_none() {
        return Err(ReviseError::Unchanged(manuscript));
    }
    let (flow, _) = flow_now(project, &memory)?;
    let panel = panel_view(contract, &flow, &read, &[]);
    if !panel.is_complete() {
        let open = panel.members.iter().filter(|m| m.is_open());
        return Err(ReviseError::NotOver {
            round: panel.round,
            waiting: open.map(|m| m.id.clone()).collect(),
        });
    }
    let new = std::str::from_utf8(&revision.text).map_err(|_| ReviseError::NotText)?;
    let texts = (rounds.text(panel.round), new);
    // The files as they will be in the next round.
    let reply = path_of_reply(&rounds, panel.round);
    let next = |path: &ProjectPath| {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        if *path == manuscript {
            return Some(new.to_owned());
        }
        if reply.as_ref() == Some(path) {
            return revision.reply.as_ref().map(text);
        }
        if let Some((bib, bytes)) = &bibliography
            && bib == path
        {
            return Some(text(bytes));
        }
        let outputs = panel.members.iter().map(|member| &member.path);
        let mut moved = outputs
            .chain(std::iter::once(&manuscript))
            .chain(bibliography.iter().map(|(path, _)| path));
        let file = moved.find(|file| rounds.path(panel.round, file).as_ref() == Some(path));
        read(file.unwrap_or(path))
    };
    let (again, kept): (Vec<&Member>, Vec<&Member>) = panel
        .members
        .iter()
        .filter(|m| m.domain.is_some() && m.report.is_some())
        .partition(|member| {
            let reads = bibliography
                .as_ref()
                .is_some_and(|(path, _)| may_cite(contract, member, path));
            let job = flow.jobs.iter().find(|job| job.job.step == member.id);
            let earlier = job.and_then(|job| load_earlier(contract, job, &next));
            let comments = earlier.map_or_else(Vec::new, |earlier| earlier.comments);
            reads || is_concerned(contract, member, &comments, texts)
        });
    let ids = |members: &[&Member]| members.iter().map(|m| m.id.clone()).collect::<Vec<_>>();
    let (again_ids, kept_ids) = (ids(&again), ids(&kept));
    let mut ops = plan_ops(project, &rounds, &panel, &again, &revision)?;
    if let Some((path, bytes)) = bibliography {
        ops.extend(replace_bibliography(
            project,
            &rounds,
            panel.round,
            path,
            bytes,
        )?);
    }
    let next = panel.round + 1;
    let why = revision.why.unwrap_or_else(|| {
        let closes = panel.round;
        format!("the authors' revision ends round {closes} and opens round {next}")
    });
    let mut change = Change::by(actor).why(why);
    change.ops = ops;
    // Reports move to the folder of their round; nothing is lost.
    change.force = true;
    let receipt = project.validate(change)?.publish()?;
    keep_reports(project, actor, &kept_ids)?;
    refresh_panel(project, &memory)?;
    Ok(Revised {
        receipt,
        round: next,
        again: again_ids,
        kept: kept_ids,
    })
}

/// The operations of a new round.
fn plan_ops(
    project: &Project,
    rounds: &Rounds<'_>,
    panel: &PanelView,
    again: &[&Member],
    revision: &Revision,
) -> Result<Vec<Op>, ReviseError> {
    let mut ops = Vec::new();
    let manuscript = rounds.manuscript.as_ref().ok_or(ReviseError::NoRounds)?;
    let moved = |file: &ProjectPath| {
        let path = rounds.path(panel.round, file);
        path.ok_or(ReviseError::NoRounds)
    };
    let outputs = panel.members.iter().map(|member| &member.path);
    let checks = panel.checks.as_ref().map(|checks| &checks.path);
    for path in std::iter::once(manuscript).chain(outputs).chain(checks) {
        if let Some((bytes, _)) = project.store.read(path)? {
            ops.push(Op::Create {
                path: moved(path)?,
                bytes,
            });
        }
    }
    if let (Some(bytes), Some(path)) = (&revision.reply, path_of_reply(rounds, panel.round)) {
        ops.push(Op::Create {
            path,
            bytes: bytes.clone(),
        });
    }
    if project
        .store
        .read(manuscript)?
        .is_none_or(|(old, _)| old != revision.text)
    {
        ops.push(Op::Amend {
            path: manuscript.clone(),
            bytes: Some(revision.text.clone()),
        });
    }
    let on_panel = panel.members.iter().filter(|m| m.domain.is_none());
    for member in again.iter().copied().chain(on_panel) {
        if project.store.read(&member.path)?.is_some() {
            ops.push(Op::Remove {
                path: member.path.clone(),
                expect: Expect::Any,
            });
        }
    }
    Ok(ops)
}

/// The path of the bibliography: the only file of its form, or the first literal name for one.
fn bibliography_of(project: &Project) -> Result<ProjectPath, ReviseError> {
    let contract = &project.contract;
    let is_one = |path: &ProjectPath| {
        contract.rule(path).and_then(|rule| rule.form) == Some(Form::Bibliography)
    };
    let mut found: Vec<ProjectPath> = project.store.list()?;
    found.retain(is_one);
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => ProjectPath::parse(BIBLIOGRAPHY)
            .ok()
            .filter(is_one)
            .ok_or(ReviseError::NoRounds),
        _ => Err(ReviseError::WhichBibliography(found)),
    }
}

/// The operations that keep the bibliography with its round and replace it.
fn replace_bibliography(
    project: &Project,
    rounds: &Rounds<'_>,
    round: usize,
    path: ProjectPath,
    bytes: Vec<u8>,
) -> Result<Vec<Op>, ReviseError> {
    let Some((old, _)) = project.store.read(&path)? else {
        return Ok(vec![Op::Create { path, bytes }]);
    };
    if old == bytes {
        return Ok(Vec::new());
    }
    let kept = rounds.path(round, &path).ok_or(ReviseError::NoRounds)?;
    Ok(vec![
        Op::Create {
            path: kept,
            bytes: old,
        },
        Op::Amend {
            path,
            bytes: Some(bytes),
        },
    ])
}

/// Whether an agent reads a file by a pointer of its role.
fn may_cite(contract: &Contract, member: &Member, path: &ProjectPath) -> bool {
    let role = contract
        .step(&member.id)
        .and_then(|step| step.role.as_ref());
    let role = role.and_then(|role| contract.roles.get(role));
    let mut reads = role.into_iter().flat_map(|role| &role.reads);
    reads.any(|read| read.path.matches(path.as_str()).is_some())
}

/// Approves the reports that a revision does not concern.
fn keep_reports(project: &Project, actor: &Actor, kept: &[String]) -> Result<(), ReviseError> {
    for id in kept {
        let job = crate::flow::Job {
            step: id.clone(),
            unit: None,
        };
        let (flow, _) = flow_now(project, &FlowCache::default())?;
        let is_stale = flow
            .find(&job)
            .is_some_and(|index| flow.statuses[index].state == State::Stale);
        if is_stale {
            let why = "the revision does not concern this report";
            decide_gate(project, actor, &job, AttemptResult::Approved, Some(why))?;
        }
    }
    Ok(())
}

/// The reply to the round before the current one.
pub fn reply_path(rounds: &Rounds<'_>) -> Option<ProjectPath> {
    path_of_reply(rounds, rounds.number().checked_sub(1)?)
}

fn path_of_reply(rounds: &Rounds<'_>, round: usize) -> Option<ProjectPath> {
    rounds.path(round, &ProjectPath::parse(REPLY).ok()?)
}

/// Whether a revision concerns an agent: it has open comments for which no other agent answers and on
/// which there is something new, the words that addressed one are gone, or a section that it judges has
/// changed.
fn is_concerned(
    contract: &Contract,
    member: &Member,
    comments: &[Comment],
    (old, new): (&str, &str),
) -> bool {
    let now = Passages::of(new);
    let is_undone = |c: &Comment| {
        let is_here = c.path.is_none() && c.status == Status::Addressed;
        is_here && now.find(c.last_quote()).is_empty()
    };
    if comments.iter().any(|c| c.needs_answer() || is_undone(c)) {
        return true;
    }
    let step = contract.step(&member.id);
    let words = step.map(|step| step.passages.as_slice());
    let words = words.unwrap_or_default();
    sections(old, words) != sections(new, words)
}

/// The texts of the sections that a report judges.
fn sections(text: &str, words: &[String]) -> Vec<String> {
    let judged = judged(text, words).into_iter();
    judged.map(|bytes| text[bytes].trim().to_owned()).collect()
}
