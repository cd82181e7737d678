//! Runs one attempt at a job: leases the outputs, prepares the view, starts the agent, checks the
//! outputs and commits them.
//!
//! Crash order: the attempt's folder exists before the lease, and the lease before the agent. None
//! of the agent's output enters the project before the single commit. A crash before the commit
//! leaves a lease of a dead worker, which the next worker releases. A crash after the commit leaves
//! a finished job. A worker cannot commit after its lease was released.

use std::sync::Arc;

use quipu_contract::{Actor, Language, ProjectPath};
use quipu_store::{Lease, Refused, StoreError};
use serde_json::json;
use thiserror::Error;

use super::agent::{Agent, AgentReport, Ended, Ending, Task, Watch};
use super::assignment::{Assignment, remove_markers};
use super::check::{Collected, Findings, collect, find_faults};
use super::commit::{Wanted, find_obstacle, find_refusal};
use super::declare::find_plan_faults;
use super::engine::{Engine, FlowError, refresh_panel};
use super::event::Event;
use super::folder::AttemptFolder;
use super::job::{PlannedJob, actor_of};
use super::messages::{Audit, NEEDS_HUMAN_REVIEW};
use super::note::{AttemptNote, AttemptResult, Usage};
use super::state::{JobStatus, render_job};
use crate::chinese::in_language;
use crate::novel::check::find_blocking;
use crate::session::capture::{cut, without_credentials};
use crate::view::brief::BriefError;
use crate::view::{FolderError, ViewError};

/// At most this many denied accesses or dropped files of an agent are recorded.
const MOST_NOTED: usize = 100;
/// Each recorded entry is cut to this length.
const MOST_NOTED_CHARS: usize = 1_000;
/// How long a lease outlasts the deadline, so that the outputs can be checked and committed.
const GRACE_SECONDS: u64 = 120;

#[derive(Debug, Error)]
pub enum AttemptError {
    #[error(transparent)]
    View(#[from] ViewError),
    #[error(transparent)]
    Brief(#[from] BriefError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Flow(#[from] FlowError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The outputs cannot be written, regardless of their content.
    #[error("{what}\n  help  {remedy}")]
    Obstacle { what: String, remedy: String },
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: std::io::Error,
    },
    /// A bug in the program or in an agent's adapter. The job stays open.
    #[error(
        "the attempt panicked: {0}\n  help  this is a bug in Quipu or in the agent's adapter; \
         report it with this message, then quipu run again"
    )]
    Panicked(String),
}

/// Runs `work` and returns a panic as an error. Without this, the engine would wait forever for a
/// thread that died without a result.
pub(super) fn catching<T>(
    work: impl FnOnce() -> Result<T, AttemptError>,
) -> Result<T, AttemptError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Err(AttemptError::Panicked(
            said.unwrap_or("no message").to_owned(),
        ))
    })
}

pub(super) fn io(what: &str) -> impl FnOnce(std::io::Error) -> AttemptError + '_ {
    move |source| AttemptError::Io {
        what: what.to_owned(),
        source,
    }
}

/// The result of an attempt.
#[derive(Debug)]
pub enum Outcome {
    Accepted {
        files: Vec<String>,
        dropped: Vec<String>,
        sealed: Vec<String>,
        usage: Option<Usage>,
        /// The ending, if the agent did not end normally.
        ended: Option<String>,
        /// Warnings: suspicious, but accepted.
        warnings: Vec<String>,
    },
    /// The agent failed. `count` is the number of failures in a row.
    Failed {
        why: String,
        count: u32,
        usage: Option<Usage>,
    },
    /// Another worker holds the lease.
    Held,
    /// Another worker took the job over: the lease is lost.
    Lost(String),
    /// Another worker completed the job in the meantime.
    Moot,
    Stopped,
}

/// Observations about an agent, summed over all its prompts in one attempt.
#[derive(Default)]
struct Seen {
    usage: Option<Usage>,
    denied: Vec<String>,
    held_by: Option<String>,
}

impl Seen {
    fn note(&mut self, ended: &Ended) {
        if let Some(used) = ended.usage {
            self.usage.get_or_insert_default().add(used);
        }
        for attempt in &ended.denied {
            if !self.denied.contains(attempt) {
                self.denied.push(attempt.clone());
            }
        }
        self.held_by = ended.held_by.clone().or(self.held_by.take());
    }
}

/// A job that was chosen for execution.
pub struct ChosenJob<'c> {
    pub planned: PlannedJob<'c>,
    pub jobs: Arc<Vec<PlannedJob<'c>>>,
    /// Its status when it was chosen.
    pub status: JobStatus,
    /// The newest journal note at that time.
    pub facts: u64,
    /// A person excused a failed job, so reports that the view asks for may be missing.
    pub lacks_reports: bool,
}

impl Engine<'_> {
    pub(super) fn attempt(&self, chosen: &ChosenJob<'_>) -> Result<Outcome, AttemptError> {
        let job = &chosen.planned;
        let paths: Vec<String> = job.required().map(|o| o.path.to_string()).collect();
        let actor = actor_of(
            job.step,
            unit_of(job).as_ref(),
            self.choice.agent_of(job.step),
        );
        let seconds = job.step.deadline_seconds + GRACE_SECONDS;
        let Ok(lease) = self.claim(&job.job, &actor, &paths, seconds)? else {
            return Ok(Outcome::Held);
        };
        let outcome = self.with_lease(chosen, &actor, &lease);
        // Release the paths in every case. If this fails, they are free when the lease expires.
        let given_back = self.give_back(&actor, &lease);
        if matches!(&outcome, Ok(Outcome::Failed { count, .. }) if *count >= job.step.retries) {
            // The job is given up only now, so the panel's state must be refreshed.
            refresh_panel(self.project, &self.memory)?;
        }
        let outcome = outcome?;
        given_back?;
        Ok(outcome)
    }

    fn with_lease(
        &self,
        chosen: &ChosenJob<'_>,
        actor: &Actor,
        lease: &Lease,
    ) -> Result<Outcome, AttemptError> {
        if !self.is_wanted(chosen, lease)? {
            return Ok(Outcome::Moot);
        }
        let job = &chosen.planned;
        let round = chosen.status.sent_back.as_ref().map_or(0, |s| s.round);
        let agent = self.agent_of(job.step).name();
        self.tell(Event::Started {
            job: job.job.clone(),
            agent: agent.to_owned(),
            round,
        });
        let folder = AttemptFolder::create(self.project.store.root(), &job.job, agent)
            .map_err(io("cannot create the folder of the attempt"))?;
        let outcome = match catching(|| {
            let attempt = Attempt {
                engine: self,
                chosen,
                folder: &folder,
                actor,
                lease,
            };
            attempt.run()
        }) {
            Err(
                AttemptError::Store(StoreError::LeaseLost { what })
                | AttemptError::Flow(FlowError::Store(StoreError::LeaseLost { what })),
            ) => Ok(Outcome::Lost(what)),
            other => other,
        };
        match &outcome {
            Ok(Outcome::Accepted {
                files,
                dropped,
                usage,
                ended,
                warnings,
                ..
            }) => {
                let _ = folder.close(&json!({"ruling": "accepted", "files": files, "dropped": dropped, "usage": usage, "ended": ended,
                    "warnings": warnings}));
            }
            Ok(Outcome::Failed { why, count, usage }) => {
                let _ = folder.close(
                    &json!({"ruling": "failed", "why": why, "in_a_row": count, "usage": usage}),
                );
            }
            Ok(Outcome::Lost(what)) => close(&folder, "lost", what),
            Ok(Outcome::Held | Outcome::Moot) => {}
            Ok(Outcome::Stopped) => close(&folder, "stopped", "it was stopped on request"),
            Err(error) => close(&folder, "stuck", &error.to_string()),
        }
        outcome
    }

    /// Collects all faults of the outputs. The agent's own statement is added, but never trusted.
    fn faults(
        &self,
        chosen: &ChosenJob<'_>,
        collected: &Collected,
        before: &[(String, Vec<u8>)],
        ended: &Ended,
    ) -> Findings {
        let mut found = find_faults(self.project, &chosen.planned, collected, before)
            .unwrap_or_else(|error| Findings {
                faults: vec![format!("the outputs cannot be checked: {error}")],
                ..Findings::default()
            });
        let faults = &mut found.faults;
        match find_plan_faults(self.project, &chosen.planned, collected) {
            Ok(found) => faults.extend(found),
            Err(error) => faults.push(error.to_string()),
        }
        let actor = actor_of(
            chosen.planned.step,
            unit_of(&chosen.planned).as_ref(),
            self.choice.agent_of(chosen.planned.step),
        );
        for (output, bytes) in &collected.files {
            match find_blocking(
                self.project,
                &actor,
                &output.path,
                &String::from_utf8_lossy(bytes),
            ) {
                Ok(conflicts) => {
                    faults.extend(conflicts.into_iter().map(|conflict| conflict.fault))
                }
                Err(error) => faults.push(format!("`{}` cannot be checked: {error}", output.path)),
            }
        }
        match self.find_unanswered(chosen, &actor, collected) {
            Ok((unanswered, open)) => {
                faults.extend(unanswered);
                found.warnings.extend(open);
            }
            Err(error) => faults.push(error.to_string()),
        }
        let faults = &mut found.faults;
        if let Some(end) = improper_end(chosen, ended).filter(|_| !faults.is_empty()) {
            // The cause comes before what follows from it.
            faults.insert(0, end);
        }
        let language = self.project.contract.language;
        let said = |texts: Vec<String>| {
            let said = texts.into_iter().map(|text| in_language(language, text));
            said.collect()
        };
        Findings {
            faults: said(found.faults),
            warnings: said(found.warnings),
        }
    }

    fn noted(&self, texts: &[String]) -> Vec<String> {
        let guards = &self.project.contract.guards;
        let first = texts
            .iter()
            .take(MOST_NOTED)
            .map(|text| without_credentials(guards, cut(text, MOST_NOTED_CHARS)));
        let rest = texts
            .len()
            .checked_sub(MOST_NOTED + 1)
            .map(|rest| format!("… and {} more", rest + 1));
        first.chain(rest).collect()
    }

    /// The audit log section for a job that needs a person.
    pub(super) fn needs_human(&self, planned: &PlannedJob<'_>, why: &str, open: &str) -> String {
        let job = &planned.job;
        let about = job
            .unit
            .as_ref()
            .map_or_else(|| job.step.clone(), ToString::to_string);
        let language = self.project.contract.language;
        let waiting: Vec<String> = match &job.unit {
            Some(unit) => self
                .project
                .contract
                .units
                .iter()
                .filter(|u| u.needs.contains(unit))
                .map(|u| match language {
                    Language::En => format!("{} is BLOCKED", u.id),
                    Language::Zh => format!("{} 受阻（BLOCKED）", u.id),
                })
                .collect(),
            None => Vec::new(),
        };
        let waiting = waiting.join(", ");
        let done = match (language, waiting.is_empty()) {
            (Language::En, true) => "skipped; the other jobs continue".to_owned(),
            (Language::En, false) => format!("skipped; {waiting}; the other jobs continue"),
            (Language::Zh, true) => "已跳过；其余工作继续".to_owned(),
            (Language::Zh, false) => format!("已跳过；{waiting}；其余工作继续"),
        };
        let what = format!("{job}: {}", why.replace('\n', "; "));
        Audit {
            about: &about,
            kind: NEEDS_HUMAN_REVIEW,
            what: &what,
            done: &done,
            open,
        }
        .render(self.project.contract.language, jiff::Timestamp::now())
    }
}

/// An attempt that has its lease and its folder.
pub(super) struct Attempt<'a, 'e> {
    pub engine: &'a Engine<'e>,
    pub chosen: &'a ChosenJob<'a>,
    pub folder: &'a AttemptFolder,
    pub actor: &'a Actor,
    pub lease: &'a Lease,
}

/// The result of the agent's work.
struct Work {
    ended: Ended,
    /// The outputs and their fault. `None` if the agent did not reach the last stage.
    checked: Option<Checked>,
}

/// Collected outputs, and what is wrong with them.
type Checked = (Collected, Option<String>);

impl Attempt<'_, '_> {
    fn run(&self) -> Result<Outcome, AttemptError> {
        let (project, token) = (self.engine.project, self.lease.token());
        if let Some(refused) = find_obstacle(project, self.actor, &token, &self.chosen.planned)? {
            return Err(AttemptError::Obstacle {
                what: refused.what,
                remedy: refused.remedy,
            });
        }
        let assignment = self.prepare()?;
        let mut seen = Seen::default();
        let Work { ended, checked } = self.work(&assignment, &mut seen)?;
        if self.is_stopped(&ended) {
            return Ok(Outcome::Stopped);
        }
        let (collected, fault) = match checked {
            Some(checked) => checked,
            None => {
                let (collected, faults) = self.collect(&assignment, &ended);
                (collected, Some(render_faults(&faults)))
            }
        };
        let note = self.note(seen, &collected, &ended);
        match fault {
            Some(fault) => {
                let guards = &self.engine.project.contract.guards;
                self.fail(note, &without_credentials(guards, fault))
            }
            None => self.accept(note, &assignment, collected),
        }
    }

    fn agent(&self) -> &dyn Agent {
        self.engine.agent_of(self.chosen.planned.step)
    }

    fn is_stopped(&self, ended: &Ended) -> bool {
        ended.ending == Ending::Stopped
            || self.engine.stop.is_asked() && ended.ending != Ending::Done
    }

    /// Lets the agent work through all stages of its view.
    fn work(&self, assignment: &Assignment, seen: &mut Seen) -> Result<Work, AttemptError> {
        let stages = assignment.stages();
        for stage in 1..=stages {
            let task = self.task(assignment, stage)?;
            if stage == stages {
                return self.last_stage(&task, assignment, seen);
            }
            let ended = self.earlier_stage(&task, seen);
            if ended.ending != Ending::Done {
                let checked = None;
                return Ok(Work { ended, checked });
            }
            remove_markers(&self.chosen.planned, &assignment.out)?;
        }
        Ok(Work {
            ended: Ended::done(),
            checked: None,
        })
    }

    fn earlier_stage(&self, task: &Task, seen: &mut Seen) -> Ended {
        let mut look = |ended: &Ended| {
            seen.note(ended);
            None
        };
        let watch = Watch {
            told: &|told| self.report(told),
            answer: &|name, arguments| {
                let job = &self.chosen.planned;
                self.engine
                    .answer_question(job, self.actor, name, arguments)
            },
            look: &mut look,
        };
        self.agent().perform(task, watch)
    }

    /// Lets the agent finish its outputs, and sends a fault back to it once.
    fn last_stage(
        &self,
        task: &Task,
        assignment: &Assignment,
        seen: &mut Seen,
    ) -> Result<Work, AttemptError> {
        let (mut checked, mut lost, mut was_sent_back) = (None, None, false);
        let mut look = |ended: &Ended| {
            seen.note(ended);
            if self.is_stopped(ended) {
                return None;
            }
            let (collected, fault) = match self.check(assignment, ended) {
                Ok(found) => found,
                Err(error) => {
                    lost = Some(error);
                    return None;
                }
            };
            checked = Some((collected, fault.clone()));
            let fault = fault.filter(|_| !was_sent_back && ended.ending != Ending::Overdue)?;
            was_sent_back = true;
            lost = self.send_back(&fault).err();
            lost.is_none().then_some(fault)
        };
        let watch = Watch {
            told: &|told| self.report(told),
            answer: &|name, arguments| {
                let job = &self.chosen.planned;
                self.engine
                    .answer_question(job, self.actor, name, arguments)
            },
            look: &mut look,
        };
        let ended = self.agent().perform(task, watch);
        match lost {
            Some(error) => Err(error.into()),
            None => Ok(Work { ended, checked }),
        }
    }

    /// Passes on what the agent reports while it works.
    fn report(&self, told: AgentReport) {
        let job = self.chosen.planned.job.clone();
        self.engine.tell(match told {
            AgentReport::Progress(line) => Event::Progress { job, line },
            AgentReport::Retry(why) => Event::Retry { job, why },
            AgentReport::Denied(attempt) => Event::Denied { job, attempt },
            AgentReport::VerificationOnly(why) => Event::VerificationOnly { job, why },
        });
    }

    /// Announces a fault that goes back to the agent, and renews the lease for the second try.
    fn send_back(&self, fault: &str) -> Result<(), FlowError> {
        let job = &self.chosen.planned;
        self.engine.tell(Event::SentBack {
            job: job.job.clone(),
            attempt: self.folder.id.clone(),
            fault: fault.to_owned(),
        });
        let _ = self.folder.write("fault.txt", fault);
        let seconds = job.step.deadline_seconds + GRACE_SECONDS;
        let (store, token) = (&self.engine.project.store, self.lease.token());
        self.engine
            .patiently(|| Ok(store.renew_lease(self.actor, &token, seconds)?))?;
        Ok(())
    }

    /// Collects the outputs with everything that is wrong with them, including what the contract
    /// would refuse, while the agent can still fix it.
    fn check(&self, assignment: &Assignment, ended: &Ended) -> Result<Checked, FlowError> {
        let (collected, faults) = self.collect(assignment, ended);
        if !faults.is_empty() {
            return Ok((collected, Some(render_faults(&faults))));
        }
        let (project, token) = (self.engine.project, self.lease.token());
        let refused = find_refusal(project, self.actor, &token, &collected.files)?;
        let language = project.contract.language;
        let told = |refused| in_language(language, render_refusal(&refused));
        Ok((collected, refused.map(told)))
    }

    fn collect(&self, assignment: &Assignment, ended: &Ended) -> (Collected, Vec<String>) {
        let (out, message) = (&assignment.out, ended.message.as_deref());
        let mut collected = collect(&self.chosen.planned, out, message, &assignment.given);
        let Findings { faults, warnings } =
            self.engine
                .faults(self.chosen, &collected, assignment.sent_back(), ended);
        collected.warnings = warnings;
        (collected, faults)
    }

    /// The note of the attempt. Text from the agent is untrusted: credentials are removed and long
    /// lines cut before it is recorded.
    fn note(&self, seen: Seen, collected: &Collected, ended: &Ended) -> AttemptNote {
        let engine = self.engine;
        let contract = &engine.project.contract;
        let job = &self.chosen.planned.job;
        let mut note = AttemptNote::new(&self.folder.id, job, AttemptResult::Accepted);
        let agent = self.agent().name();
        note.agent = Some(agent.to_owned());
        let price = contract.price(agent);
        note.usage = seen.usage.map(|used| Usage {
            cost: price.map(|p| p.cost(used.input, used.output)),
            ..used
        });
        note.denied = engine.noted(&seen.denied);
        note.held_by = seen.held_by;
        note.dropped = engine.noted(&collected.dropped);
        note.warnings = engine.noted(&collected.warnings);
        note.ended = improper_end(self.chosen, ended)
            .map(|text| without_credentials(&contract.guards, text));
        note
    }

    /// Commits the outputs.
    fn accept(
        &self,
        mut note: AttemptNote,
        assignment: &Assignment,
        collected: Collected,
    ) -> Result<Outcome, AttemptError> {
        let job = &self.chosen.planned;
        let (usage, ended) = (note.usage, note.ended.clone());
        note.reads = self.engine.reads(&assignment.view);
        if let Some(sent) = &self.chosen.status.sent_back {
            note.round = sent.round;
            note.sent_by = Some(sent.by.clone());
            note.objectors.clone_from(&sent.objectors);
        }
        let files = &collected.files;
        let texts: Vec<(&ProjectPath, &[u8])> = files
            .iter()
            .map(|(o, bytes)| (&o.path, bytes.as_slice()))
            .collect();
        let wanted = Wanted {
            actor: self.actor.clone(),
            note: note.clone(),
            lease: Some(self.lease.token()),
            ops: Vec::new(),
            files,
            audits: self
                .engine
                .audit_objection(job, &texts)
                .into_iter()
                .collect(),
            why: Some(job.job.to_string()),
        };
        match self.engine.commit_patiently(&wanted) {
            Ok(sealed) => {
                let paths = files.iter().map(|(o, _)| o.path.to_string());
                Ok(Outcome::Accepted {
                    files: paths.filter(|p| !sealed.contains(p)).collect(),
                    dropped: collected.dropped,
                    sealed,
                    usage,
                    ended,
                    warnings: collected.warnings,
                })
            }
            // The check allowed it, so the rules or the files changed in between.
            Err(FlowError::Store(StoreError::Refused(refused))) => {
                self.fail(note, &render_refusal(&refused))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Records a failure. The last one that the step allows asks for a person.
    fn fail(&self, mut note: AttemptNote, why: &str) -> Result<Outcome, AttemptError> {
        let chosen = self.chosen;
        let job = &chosen.planned.job;
        let (count, usage) = (chosen.status.failures + 1, note.usage);
        note.ruling = AttemptResult::Failed;
        note.why = Some(why.to_owned());
        note.reads.clear();
        // The failure message already includes these.
        note.ended = None;
        note.warnings.clear();
        let audits = if count == chosen.planned.step.retries {
            vec![self.engine.needs_human(
                &chosen.planned,
                why,
                &format!("quipu run --step {} --by NAME", render_job(job)),
            )]
        } else {
            Vec::new()
        };
        let wanted = Wanted {
            actor: self.actor.clone(),
            note,
            lease: Some(self.lease.token()),
            ops: Vec::new(),
            files: &[],
            audits,
            why: Some(format!("{job} failed")),
        };
        self.engine.commit_patiently(&wanted)?;
        Ok(Outcome::Failed {
            why: why.to_owned(),
            count,
            usage,
        })
    }
}

/// Describes the ending, if the agent did not end normally.
fn improper_end(chosen: &ChosenJob<'_>, ended: &Ended) -> Option<String> {
    match &ended.ending {
        Ending::Failed(why) => Some(format!("the agent reports: {why}")),
        Ending::Overdue => Some(format!(
            "it was stopped after {} seconds",
            chosen.planned.step.deadline_seconds
        )),
        Ending::Done | Ending::Stopped => None,
    }
}

fn close(folder: &AttemptFolder, ruling: &str, why: &str) {
    let _ = folder.close(&json!({"ruling": ruling, "why": why}));
}

fn render_faults(faults: &[String]) -> String {
    faults.join("\n")
}

/// Renders a refusal with its rule. It omits the command that forces the write: only a person may
/// use it.
fn render_refusal(refused: &Refused) -> String {
    match &refused.rule {
        Some((place, rule)) => format!("{} (rule {place}: {rule})", refused.what),
        None => refused.what.clone(),
    }
}

/// In a panel, each role is its own unit.
fn unit_of(job: &PlannedJob<'_>) -> Option<quipu_contract::UnitId> {
    job.job.unit.clone().or_else(|| {
        job.binding
            .get("unit")
            .and_then(|u| quipu_contract::UnitId::parse(u).ok())
    })
}
