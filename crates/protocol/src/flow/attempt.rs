//! Runs one attempt at a job: leases the outputs, prepares the view, starts the agent, checks the
//! outputs and commits them.
//!
//! Crash order: the attempt's folder exists before the lease, and the lease before the agent. None
//! of the agent's output enters the project before the single commit. A crash before the commit
//! leaves a lease of a dead worker, which the next worker releases. A crash after the commit leaves
//! a finished job. A worker cannot commit after its lease was released.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quipu_contract::{Actor, ActorName, Builtin, ProjectPath, Readable};
use quipu_store::{Below, Lease, Op, Refused, StoreError};
use quipu_text::Counter;
use serde_json::json;
use thiserror::Error;

use super::check::{Collected, Findings, collect, find_faults};
use super::commit::{Wanted, find_obstacle, find_refusal};
use super::declare::find_plan_faults;
use super::engine::{Engine, FlowError, refresh_panel};
use super::event::Event;
use super::folder::AttemptFolder;
use super::job::{Output, PlannedJob, actor_of, fill_path};
use super::messages::{self, Audit};
use super::note::{AttemptNote, ReadNote, Ruling, Usage};
use super::perform::{Ended, Ending, Task, Told, Watch};
use super::snapshot::{marker_of, unmarked};
use super::state::{JobStatus, render_job};
use crate::brief::{BriefError, BriefOptions, render_brief};
use crate::capture::{cut, without_credentials};
use crate::checking::find_blocking;
use crate::reading::may_read;
use crate::view::{
    FolderError, Lexical, View, ViewError, ViewRequest, make_view, materialise_view,
};

/// At most this many denied accesses or dropped files of an agent are recorded.
const MOST_NOTED: usize = 100;
/// Each recorded entry is cut to this length.
const MOST_NOTED_CHARS: usize = 1_000;
/// How long a lease outlasts the deadline, so that the outputs can be checked and committed.
const GRACE_SECONDS: u64 = 120;
/// An unfinished file shorter than this is not kept.
const WORTH_KEEPING: usize = 100;

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
        "the attempt panicked: {0}\n  help  this is a fault of Quipu or of the agent's adapter; report it with these words, then quipu run again"
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
            said.unwrap_or("no words").to_owned(),
        ))
    })
}

fn io(what: &str) -> impl FnOnce(std::io::Error) -> AttemptError + '_ {
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
}

impl Engine<'_> {
    pub(super) fn attempt(&self, chosen: &ChosenJob<'_>) -> Result<Outcome, AttemptError> {
        let job = &chosen.planned;
        let paths: Vec<String> = job.required().map(|o| o.path.to_string()).collect();
        let actor = actor_of(job.step, unit_of(job).as_ref(), self.choice.agent.as_ref());
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
        self.tell(Event::Started {
            job: job.job.clone(),
            agent: self.agent.name().to_owned(),
            round,
        });
        let folder = AttemptFolder::create(self.project.store.root(), &job.job, self.agent.name())
            .map_err(io("cannot make the folder of the attempt"))?;
        let outcome = match catching(|| self.perform(chosen, &folder, actor, lease)) {
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
            Ok(Outcome::Stopped) => close(&folder, "stopped", "it was asked to stop"),
            Err(error) => close(&folder, "stuck", &error.to_string()),
        }
        outcome
    }

    fn perform(
        &self,
        chosen: &ChosenJob<'_>,
        folder: &AttemptFolder,
        actor: &Actor,
        lease: &Lease,
    ) -> Result<Outcome, AttemptError> {
        let job = &chosen.planned;
        if let Some(refused) = find_obstacle(self.project, actor, &lease.token(), job)? {
            return Err(AttemptError::Obstacle {
                what: refused.what,
                remedy: refused.remedy,
            });
        }
        let out = folder.path.join("out");
        std::fs::create_dir_all(&out).map_err(io("cannot make the out folder"))?;
        let request = self.request(job);
        let view = make_view(self.project, &request, &Lexical)?;
        let mut added = self.prepare_out(chosen, &out)?;
        if let Some(sent) = &chosen.status.sent_back {
            let rounds = self
                .project
                .contract
                .step(&sent.by)
                .and_then(|s| s.rounds)
                .unwrap_or(0);
            added.push_str(&messages::sent_back(
                self.project.contract.language,
                sent,
                rounds,
            ));
            added.push_str(&self.reports_at_gate(job, &sent.by)?);
        }
        added.push_str(&self.render_redo(chosen)?);
        let seeded = |o: &Output| {
            Some((
                o.path.to_string(),
                std::fs::read(out.join(o.path.as_str())).ok()?,
            ))
        };
        let before: Vec<_> = if chosen.status.sent_back.is_some() {
            job.required().filter_map(seeded).collect()
        } else {
            Vec::new()
        };
        materialise_view(&view, &folder.path.join("view"))?;
        let plan = json!({"role": view.role, "unit": view.unit, "counter": view.counter, "budget": view.budget, "window": view.window,
            "pointers": view.pointers, "shares": view.stages.iter().map(|s| &s.shares).collect::<Vec<_>>(), "absent": view.absent, "denied": view.denied,
            "reads": self.reads(&view)});
        folder
            .write("plan.json", &format!("{plan:#}\n"))
            .map_err(io("cannot write the plan"))?;

        let mut record = Seen::default();
        let told = |told: Told| {
            let job = job.job.clone();
            self.tell(match told {
                Told::Progress(line) => Event::Progress { job, line },
                Told::Denied(attempt) => Event::Denied { job, attempt },
                Told::VerificationOnly(why) => Event::VerificationOnly { job, why },
            });
        };
        let stages = view.stages.len();
        let mut looked = None;
        let mut ended = Ended::done();
        for stage in 1..=stages {
            let task = self.task(job, folder, &request, &view, stage, &added, &out)?;
            if stage < stages {
                let mut look = |ended: &Ended| {
                    record.note(ended);
                    None
                };
                ended = self.agent.perform(
                    &task,
                    Watch {
                        told: &told,
                        look: &mut look,
                    },
                );
                if ended.ending != Ending::Done {
                    break;
                }
                take_markers_off(job, &out)?;
                continue;
            }
            let mut back = false;
            let mut lost = None;
            let mut look = |ended: &Ended| {
                record.note(ended);
                if ended.ending == Ending::Stopped
                    || self.stop.is_asked() && ended.ending != Ending::Done
                {
                    return None;
                }
                let mut collected = collect(job, &out, ended.message.as_deref());
                let Findings { faults, warnings } = self.faults(chosen, &collected, &before, ended);
                collected.warnings = warnings;
                let mut fault = (!faults.is_empty()).then(|| render_faults(&faults));
                if fault.is_none() {
                    // Report a refusal by the contract while the agent can still fix it.
                    match find_refusal(self.project, actor, &lease.token(), &collected.files) {
                        Ok(refused) => fault = refused.map(|refused| render_refusal(&refused)),
                        Err(error) => {
                            lost = Some(FlowError::from(error));
                            return None;
                        }
                    }
                }
                looked = Some((collected, fault.clone()));
                // A fault is sent back only once.
                let fault = fault.filter(|_| !back && ended.ending != Ending::Overdue)?;
                back = true;
                self.tell(Event::SentBack {
                    job: job.job.clone(),
                    attempt: folder.id.clone(),
                    fault: fault.clone(),
                });
                let _ = folder.write("fault.txt", &fault);
                let seconds = job.step.deadline_seconds + GRACE_SECONDS;
                lost = self
                    .patiently(|| {
                        Ok(self
                            .project
                            .store
                            .renew_lease(actor, &lease.token(), seconds)?)
                    })
                    .err();
                lost.is_none().then_some(fault)
            };
            ended = self.agent.perform(
                &task,
                Watch {
                    told: &told,
                    look: &mut look,
                },
            );
            if let Some(error) = lost {
                return Err(error.into());
            }
        }
        if ended.ending == Ending::Stopped || self.stop.is_asked() && ended.ending != Ending::Done {
            return Ok(Outcome::Stopped);
        }
        let (collected, fault) = match looked {
            Some(looked) => looked,
            // An earlier stage failed, so there are no outputs to check.
            None => {
                let collected = collect(job, &out, ended.message.as_deref());
                let found = self.faults(chosen, &collected, &before, &ended);
                (collected, Some(render_faults(&found.faults)))
            }
        };
        let mut note = AttemptNote::new(&folder.id, &job.job, Ruling::Accepted);
        note.agent = Some(self.agent.name().to_owned());
        let price = self.project.contract.price(self.agent.name());
        note.usage = record.usage.map(|used| Usage {
            cost: price.map(|p| p.cost(used.input, used.output)),
            ..used
        });
        // Text from the agent is untrusted: remove credentials and cut it before it is recorded.
        note.denied = self.noted(&record.denied);
        note.held_by = record.held_by;
        note.dropped = self.noted(&collected.dropped);
        note.warnings = self.noted(&collected.warnings);
        note.ended = improper_end(chosen, &ended)
            .map(|text| without_credentials(&self.project.contract.guards, text));
        if let Some(fault) = fault {
            let fault = without_credentials(&self.project.contract.guards, fault);
            return self.fail(chosen, actor, lease, note, &fault);
        }
        let (usage, ended) = (note.usage, note.ended.clone());
        note.reads = self.reads(&view);
        if let Some(sent) = &chosen.status.sent_back {
            note.round = sent.round;
            note.sent_by = Some(sent.by.clone());
            note.objectors.clone_from(&sent.objectors);
        }
        let failed = note.clone();
        let texts: Vec<(&ProjectPath, &[u8])> = collected
            .files
            .iter()
            .map(|(o, bytes)| (&o.path, bytes.as_slice()))
            .collect();
        let audits = self.audit_objection(job, &texts).into_iter().collect();
        let wanted = Wanted {
            actor: actor.clone(),
            note,
            lease: Some(lease.token()),
            ops: Vec::new(),
            files: &collected.files,
            audits,
            why: Some(job.job.to_string()),
        };
        match self.commit_patiently(&wanted) {
            Ok(sealed) => {
                let files = collected
                    .files
                    .iter()
                    .map(|(o, _)| o.path.to_string())
                    .filter(|p| !sealed.contains(p))
                    .collect();
                Ok(Outcome::Accepted {
                    files,
                    dropped: collected.dropped,
                    sealed,
                    usage,
                    ended,
                    warnings: collected.warnings,
                })
            }
            // The check allowed it, so the rules or the files changed in between.
            Err(FlowError::Store(StoreError::Refused(refused))) => {
                self.fail(chosen, actor, lease, failed, &render_refusal(&refused))
            }
            Err(error) => Err(error.into()),
        }
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
            self.choice.agent.as_ref(),
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
        if !faults.is_empty() {
            faults.extend(improper_end(chosen, ended));
        }
        found
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

    fn fail(
        &self,
        chosen: &ChosenJob<'_>,
        actor: &Actor,
        lease: &Lease,
        mut note: AttemptNote,
        why: &str,
    ) -> Result<Outcome, AttemptError> {
        let job = &chosen.planned.job;
        let (count, usage) = (chosen.status.failures + 1, note.usage);
        note.ruling = Ruling::Failed;
        note.why = Some(why.to_owned());
        note.reads.clear();
        // The failure message already includes these.
        note.ended = None;
        note.warnings.clear();
        let audits = if count == chosen.planned.step.retries {
            vec![self.needs_human(
                &chosen.planned,
                why,
                &format!("quipu run --step {} --by NAME", render_job(job)),
            )]
        } else {
            Vec::new()
        };
        let wanted = Wanted {
            actor: actor.clone(),
            note,
            lease: Some(lease.token()),
            ops: Vec::new(),
            files: &[],
            audits,
            why: Some(format!("{job} failed")),
        };
        self.commit_patiently(&wanted)?;
        Ok(Outcome::Failed {
            why: why.to_owned(),
            count,
            usage,
        })
    }

    /// The audit log section for a job that needs a person.
    pub(super) fn needs_human(&self, planned: &PlannedJob<'_>, why: &str, open: &str) -> String {
        let job = &planned.job;
        let about = job
            .unit
            .as_ref()
            .map_or_else(|| job.step.clone(), ToString::to_string);
        let waiting: Vec<String> = match &job.unit {
            Some(unit) => self
                .project
                .contract
                .units
                .iter()
                .filter(|u| u.needs.contains(unit))
                .map(|u| format!("{} is BLOCKED", u.id))
                .collect(),
            None => Vec::new(),
        };
        let done = if waiting.is_empty() {
            "set aside; the others go on".to_owned()
        } else {
            format!("set aside; {}; the others go on", waiting.join(", "))
        };
        let what = format!("{job}: {}", why.replace('\n', "; "));
        Audit {
            about: &about,
            kind: "NEEDS_HUMAN_REVIEW",
            what: &what,
            done: &done,
            open,
        }
        .render(self.project.contract.language, jiff::Timestamp::now())
    }

    fn request(&self, job: &PlannedJob<'_>) -> ViewRequest {
        ViewRequest {
            role: ActorName::parse(job.step.role.as_deref().unwrap_or_default())
                .expect("the contract has checked the names of roles"),
            unit: job.job.unit.clone(),
            agent: self.choice.agent.clone(),
            budget: None,
            window: None,
            reserve: None,
            counter: Counter::default(),
            language: None,
            partial: false,
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a task is made of all of them")]
    fn task(
        &self,
        job: &PlannedJob<'_>,
        folder: &AttemptFolder,
        request: &ViewRequest,
        view: &View,
        stage: usize,
        added: &str,
        out: &Path,
    ) -> Result<Task, AttemptError> {
        let brief = render_brief(
            self.project,
            request,
            view,
            BriefOptions {
                inline: false,
                stage,
            },
        )? + added;
        let inline = render_brief(
            self.project,
            request,
            view,
            BriefOptions {
                inline: true,
                stage,
            },
        )? + added;
        let (name, shown) = if view.stages.len() > 1 {
            (
                format!("brief-{stage}.md"),
                folder.path.join(format!("view/stage-{stage}")),
            )
        } else {
            ("brief.md".into(), folder.path.join("view"))
        };
        folder
            .write(&name, &brief)
            .map_err(io("cannot write the brief"))?;
        Ok(Task {
            attempt: folder.id.clone(),
            job: job.job.clone(),
            role: view.role.clone(),
            kind: view.kind,
            brief,
            inline,
            view: shown,
            out: out.to_owned(),
            outputs: job.outputs.clone(),
            deadline: Duration::from_secs(job.step.deadline_seconds),
            record: folder.path.clone(),
            stop: self.stop.clone(),
            root: self.project.store.root().to_owned(),
        })
    }

    /// Renders the reports on a text that a person rejected at a gate, for the job that rewrites
    /// it. Includes the files that the gate reads, except files that are denied to the role or that
    /// it reads only in sections.
    fn reports_at_gate(&self, job: &PlannedJob<'_>, gate: &str) -> Result<String, AttemptError> {
        let mut text = String::new();
        let Some(step) = self
            .project
            .contract
            .step(gate)
            .filter(|step| step.builtin == Some(Builtin::Gate))
        else {
            return Ok(text);
        };
        for path in step
            .reads
            .iter()
            .filter_map(|read| fill_path(read, &job.binding))
        {
            let denies = job.role.into_iter().flat_map(|role| &role.denies);
            let is_denied = denies.into_iter().any(|deny| {
                deny.path
                    .fill(&job.binding)
                    .matches(path.as_str())
                    .is_some()
            });
            let actor = actor_of(job.step, job.job.unit.as_ref(), None);
            let is_in_part = matches!(
                may_read(self.project, &actor, &path),
                Ok(Readable::Sections(_))
            );
            if !is_denied
                && !is_in_part
                && !job.outputs.iter().any(|o| o.path == path)
                && let Some((bytes, _)) = self.project.store.read(&path)?
            {
                let report = String::from_utf8_lossy(&bytes).into_owned();
                text.push_str(&messages::report(
                    self.project.contract.language,
                    path.as_str(),
                    unmarked(path.as_str(), &report),
                ));
            }
        }
        Ok(text)
    }

    /// The files that a view showed, and the ruled files that it named but did not include.
    fn reads(&self, view: &View) -> Vec<ReadNote> {
        let mut reads: Vec<ReadNote> = Vec::new();
        for file in view.stages.iter().flat_map(|s| &s.files) {
            let text = file.section.as_ref().map(|_| file.source.clone());
            let read = ReadNote {
                path: file.path.to_string(),
                version: file.version.clone(),
                section: file.section.clone(),
                text,
            };
            if !reads.contains(&read) {
                reads.push(read);
            }
        }
        for path in view.pointers.iter().flat_map(|p| &p.files) {
            let named = reads.iter().any(|r| r.path == path.as_str());
            if !named
                && self.project.contract.rule(path).is_some()
                && let Ok(Some((_, version))) = self.project.store.read(path)
            {
                reads.push(ReadNote {
                    path: path.to_string(),
                    version,
                    section: None,
                    text: None,
                });
            }
        }
        reads
    }

    /// Copies the files that the agent continues from into the out folder, and backs up unfinished
    /// files that it would overwrite.
    fn prepare_out(&self, chosen: &ChosenJob<'_>, out: &Path) -> Result<String, AttemptError> {
        let mut added = String::new();
        for output in chosen.planned.required() {
            let Some((bytes, _)) = self.project.store.read(&output.path)? else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes);
            let marked =
                marker_of(output.path.as_str(), &text).is_some_and(|m| output.markers.contains(&m));
            let unfinished = !output.markers.is_empty() && !marked;
            if unfinished && text.trim().chars().count() >= WORTH_KEEPING {
                if self.choice.salvage {
                    seed(out, &output.path, &bytes)?;
                    added.push_str(&messages::salvage(
                        self.project.contract.language,
                        output.path.as_str(),
                    ));
                } else {
                    self.keep_aside(&output.path, &bytes)?;
                }
            } else if chosen.status.sent_back.is_some() && !unfinished {
                // Remove the marker: it would vouch for a half-finished file. The agent must write
                // it again.
                seed(
                    out,
                    &output.path,
                    unmarked(output.path.as_str(), &text).as_bytes(),
                )?;
            }
        }
        Ok(added)
    }

    fn keep_aside(&self, path: &ProjectPath, bytes: &[u8]) -> Result<(), AttemptError> {
        let prefix = format!("{path}.bak.");
        for kept in self
            .project
            .store
            .list()?
            .iter()
            .filter(|p| p.as_str().starts_with(&prefix))
        {
            if self
                .project
                .store
                .read(kept)?
                .is_some_and(|(old, _)| old == bytes)
            {
                return Ok(());
            }
        }
        let at = jiff::Timestamp::now()
            .to_zoned(jiff::tz::TimeZone::UTC)
            .strftime("%Y%m%dT%H%M%S%3f")
            .to_string();
        let name = ProjectPath::parse(&format!("{prefix}{at}"))
            .map_err(|e| io("cannot keep a file aside")(std::io::Error::other(e)))?;
        let what = format!("`{path}` was found without its marker");
        let audit = Audit {
            about: path.as_str(),
            kind: "INCOMPLETE",
            what: &what,
            done: &format!("kept as `{name}`"),
            open: "it is done again",
        };
        let mut change = quipu_store::Change::by(&Actor::Runtime)
            .why(what.clone())
            .op(Op::Create {
                path: name.clone(),
                bytes: bytes.to_vec(),
            });
        change.beside.extend(super::commit::audit_op(
            self.project,
            &[audit.render(self.project.contract.language, jiff::Timestamp::now())],
        )?);
        change.force = true;
        self.project.judge(change)?.publish()?;
        self.tell(Event::KeptAside {
            path: path.to_string(),
            kept: name.to_string(),
        });
        Ok(())
    }
}

/// Describes the ending, if the agent did not end normally.
fn improper_end(chosen: &ChosenJob<'_>, ended: &Ended) -> Option<String> {
    match &ended.ending {
        Ending::Failed(why) => Some(format!("the agent says: {why}")),
        Ending::Overdue => Some(format!(
            "it had {} seconds and was ended",
            chosen.planned.step.deadline_seconds
        )),
        Ending::Done | Ending::Stopped => None,
    }
}

/// Removes markers written by parts before the last one. Such a marker would vouch for parts that
/// no agent has read yet.
fn take_markers_off(job: &PlannedJob<'_>, out: &Path) -> Result<(), AttemptError> {
    let what = "cannot look at what an earlier part left";
    let Some(below) = Below::locate(out)
        .and_then(|real| Below::open(&real))
        .map_err(io(what))?
    else {
        return Ok(());
    };
    for output in job
        .outputs
        .iter()
        .filter(|output| !output.markers.is_empty())
    {
        // Non-files and non-UTF-8 files are reported as faults of the last part.
        let path = output.path.as_str();
        let Some(text) = below
            .read(path)
            .ok()
            .flatten()
            .and_then(|bytes| String::from_utf8(bytes).ok())
        else {
            continue;
        };
        if marker_of(path, &text).is_some_and(|found| output.markers.contains(&found)) {
            below.remove(path).map_err(io(what))?;
            below
                .create(path, unmarked(path, &text).as_bytes())
                .map_err(io(what))?;
        }
    }
    Ok(())
}

fn seed(out: &Path, path: &ProjectPath, bytes: &[u8]) -> Result<(), AttemptError> {
    let target = out.join(path.as_str());
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent).map_err(io("cannot prepare the out folder"))?;
    }
    std::fs::write(target, bytes).map_err(io("cannot prepare the out folder"))
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
