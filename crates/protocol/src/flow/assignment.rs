//! Prepares what an agent gets for an attempt: the view, the brief, and the files in the out folder
//! that it continues from.
//!
//! Unfinished files that the agent would overwrite are kept beside the project's file before it
//! starts. Running the agent and judging its outputs is left to `attempt`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_contract::{Actor, ActorName, Builtin, ProjectPath, Readable};
use quipu_store::{Op, OpenFolder};
use quipu_text::Counter;
use serde_json::json;

use super::agent::Task;
use super::attempt::{Attempt, AttemptError, ChosenJob, io};
use super::engine::Engine;
use super::event::Event;
use super::job::{PlannedJob, actor_of, fill_path};
use super::messages::{self, Audit};
use super::note::ReadNote;
use super::round::LaterRound;
use super::snapshot::{marker_of, unmarked};
use crate::files::read::may_read;
use crate::view::brief::{BriefOptions, fence, render_brief};
use crate::view::{Lexical, View, ViewRequest, make_view, materialise_view};

/// An unfinished file shorter than this is not kept.
const WORTH_KEEPING: usize = 100;

/// Everything that an agent gets for an attempt.
pub(super) struct Assignment {
    request: ViewRequest,
    pub view: View,
    /// Text that follows the brief: what a person rejected, what changed since the last attempt.
    added: String,
    /// Whether the agent reports again in a later round. Then the passages that concern it are in
    /// `added`, and the whole text is only in the folder.
    again: bool,
    /// Whether the agent reports on the panel in a later round, in one part.
    is_later: bool,
    /// The outputs that were in the out folder before the agent began.
    pub given: Vec<(String, Vec<u8>)>,
    /// Whether they were sent back.
    is_sent_back: bool,
    pub out: PathBuf,
}

impl Assignment {
    /// The outputs that were sent back, as the agent got them.
    pub fn sent_back(&self) -> &[(String, Vec<u8>)] {
        if self.is_sent_back { &self.given } else { &[] }
    }

    /// The number of its parts. A later round needs no whole text, so it has one.
    pub fn stages(&self) -> usize {
        if self.again {
            1
        } else {
            self.view.stages.len()
        }
    }
}

impl Attempt<'_, '_> {
    /// Makes the view, and fills the folder of the attempt.
    pub(super) fn prepare(&self) -> Result<Assignment, AttemptError> {
        let (engine, job) = (self.engine, &self.chosen.planned);
        let out = self.folder.path.join("out");
        std::fs::create_dir_all(&out).map_err(io("cannot create the output folder"))?;
        // A shell script or a person need not create the folders of the outputs.
        for output in &job.outputs {
            if let Some(folder) = out.join(output.path.as_str()).parent() {
                std::fs::create_dir_all(folder).map_err(io("cannot create the output folder"))?;
            }
        }
        let mut request = engine.request(job);
        request.partial = self.chosen.lacks_reports;
        let view = make_view(engine.project, &request, &Lexical)?;
        let mut added = engine.prepare_out(self.chosen, &out)?;
        added.push_str(&self.rejection()?);
        let round = LaterRound::of(engine.project, job, view.stages.len() == 1);
        added.push_str(&round.text);
        // The report of the last round is in its folder; only one of this round is redone.
        if !round.is_new || engine.has_output(self.chosen)? {
            added.push_str(&engine.render_redo(self.chosen)?);
        }
        added.push_str(&engine.render_checked(self.chosen, self.actor)?);
        let given = self.given(&out);
        materialise_view(&view, &self.folder.path.join("view"))?;
        let plan = json!({"role": view.role, "unit": view.unit, "counter": view.counter, "budget": view.budget, "window": view.window,
            "pointers": view.pointers, "shares": view.stages.iter().map(|s| &s.shares).collect::<Vec<_>>(), "absent": view.absent, "denied": view.denied,
            "reads": engine.reads(&view), "again": round.shows_passages});
        self.folder
            .write("plan.json", &format!("{plan:#}\n"))
            .map_err(io("cannot write the plan"))?;
        let is_on_panel = job.step.panel.is_some() && view.stages.len() == 1;
        Ok(Assignment {
            request,
            view,
            added,
            again: round.shows_passages,
            is_later: round.is_new && is_on_panel,
            given,
            is_sent_back: self.chosen.status.sent_back.is_some(),
            out,
        })
    }

    /// What a reviewer or a person found wrong with the last version, if the job was sent back.
    fn rejection(&self) -> Result<String, AttemptError> {
        let Some(sent) = &self.chosen.status.sent_back else {
            return Ok(String::new());
        };
        let contract = &self.engine.project.contract;
        let rounds = contract.step(&sent.by).and_then(|s| s.rounds).unwrap_or(0);
        let reports = self
            .engine
            .reports_at_gate(&self.chosen.planned, &sent.by)?;
        Ok(messages::sent_back(contract.language, sent, rounds) + &reports)
    }

    fn given(&self, out: &Path) -> Vec<(String, Vec<u8>)> {
        let outputs = self.chosen.planned.required();
        outputs
            .filter_map(|output| {
                let bytes = std::fs::read(out.join(output.path.as_str())).ok()?;
                Some((output.path.to_string(), bytes))
            })
            .collect()
    }

    /// The text after the brief of an agent that cannot read or write files: the texts that it
    /// continues from, and how it answers with several files.
    fn without_tools(&self, assignment: &Assignment) -> String {
        let language = self.engine.project.contract.language;
        let mut text = String::new();
        for (path, bytes) in &assignment.given {
            let earlier = String::from_utf8_lossy(bytes);
            let fenced = fence("earlier", path, earlier.trim_end());
            text.push_str(&messages::earlier(language, &fenced));
        }
        let outputs = self.chosen.planned.outputs.iter();
        let paths: Vec<&str> = outputs.map(|output| output.path.as_str()).collect();
        if paths.len() > 1 {
            text.push_str(&messages::answer_with_files(language, &paths));
        }
        text
    }

    /// The task for one stage of the view, with its brief in the folder of the attempt.
    pub(super) fn task(&self, assignment: &Assignment, stage: usize) -> Result<Task, AttemptError> {
        let (project, job, view) = (self.engine.project, &self.chosen.planned, &assignment.view);
        let again = assignment.again;
        let brief = |inline: bool| {
            let options = BriefOptions {
                inline,
                stage,
                again: again || assignment.is_later,
            };
            render_brief(project, &assignment.request, view, options)
                .map(|text| text + &assignment.added)
        };
        let (name, shown) = match assignment.stages() > 1 {
            true => (format!("brief-{stage}.md"), format!("view/stage-{stage}")),
            false => ("brief.md".to_owned(), "view".to_owned()),
        };
        let (inline, brief) = (
            brief(true)? + &self.without_tools(assignment),
            brief(false)?,
        );
        self.folder
            .write(&name, &brief)
            .map_err(io("cannot write the brief"))?;
        Ok(Task {
            attempt: self.folder.id.clone(),
            job: job.job.clone(),
            role: view.role.clone(),
            kind: view.kind,
            brief,
            inline,
            view: self.folder.path.join(shown),
            out: assignment.out.clone(),
            outputs: job.outputs.clone(),
            questions: self.engine.questions_of(job),
            deadline: Duration::from_secs(job.step.deadline_seconds),
            record: self.folder.path.clone(),
            stop: self.engine.stop.clone(),
            root: project.store.root().to_owned(),
        })
    }
}

impl Engine<'_> {
    fn request(&self, job: &PlannedJob<'_>) -> ViewRequest {
        ViewRequest {
            role: ActorName::parse(job.step.role.as_deref().unwrap_or_default())
                .expect("the contract has checked the names of roles"),
            unit: job.job.unit.clone(),
            agent: self.choice.agent_of(job.step).cloned(),
            budget: None,
            window: None,
            reserve: None,
            counter: Counter::default(),
            language: None,
            partial: false,
        }
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
    pub(super) fn reads(&self, view: &View) -> Vec<ReadNote> {
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
            .map_err(|e| io("cannot keep a copy of a file")(std::io::Error::other(e)))?;
        let what = format!("`{path}` was found without its marker");
        let audit = Audit {
            about: path.as_str(),
            kind: "INCOMPLETE",
            what: &what,
            done: &format!("kept as `{name}`"),
            open: "it will be done again",
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
        self.project.validate(change)?.publish()?;
        self.tell(Event::KeptAside {
            path: path.to_string(),
            kept: name.to_string(),
        });
        Ok(())
    }
}

/// Removes markers written by parts before the last one. Such a marker would vouch for parts that
/// no agent has read yet.
pub(super) fn remove_markers(job: &PlannedJob<'_>, out: &Path) -> Result<(), AttemptError> {
    let what = "cannot read the output of an earlier part";
    let Some(below) = OpenFolder::locate(out)
        .and_then(|real| OpenFolder::open(&real))
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
    std::fs::write(out.join(path.as_str()), bytes).map_err(io("cannot prepare the output folder"))
}
