//! Runs the built-in steps of a flow: merge, remember, derive, publish.
//!
//! Each step is one commit by the runtime, under a lease. The modules in `builtin` compute the
//! changes.

use quipu_contract::{Actor, Builtin, Class, Form, ProjectPath};
use quipu_store::{Expect, Lease, Op, StoreError};

use super::attempt::ChosenJob;
use super::builtin::Made;
use super::builtin::derive::{DeriveError, derive};
use super::builtin::entries::{sort_offers, with_entries};
use super::builtin::merge::{Source, merge};
use super::builtin::remember::{find_unfit, finish, grow};
use super::commit::Wanted;
use super::conditions::why_not;
use super::engine::{Engine, FlowError, Shift};
use super::event::Event;
use super::folder::run_id;
use super::job::{Job, Output, PlannedJob, fill_path};
use super::note::{AttemptFact, AttemptNote, AttemptResult, ReadNote};
use super::snapshot::{Snapshot, items_with, marker_of};
use super::state::render_job;
use crate::novel::memory_files::{MemoryError, MemoryFiles};

/// Lease time of a built-in step. Publishing a long book takes longest.
const SECONDS: u64 = 600;

impl Engine<'_> {
    /// Runs a built-in step. Returns whether anything changed, here or by another worker.
    pub(super) fn do_builtin(
        &self,
        chosen: &ChosenJob<'_>,
        shift: &mut Shift,
    ) -> Result<bool, FlowError> {
        let planned = &chosen.planned;
        let job = planned.job.clone();
        if planned
            .step
            .builtin
            .is_none_or(|builtin| builtin == Builtin::Gate)
        {
            return Ok(false);
        }
        let lease =
            match self.claim(&job, &Actor::Runtime, &self.claimed_paths(planned), SECONDS)? {
                Ok(lease) => lease,
                Err(_) => return Ok(false), // another worker holds the lease
            };
        let done = self.do_claimed(chosen, &lease);
        self.give_back(&Actor::Runtime, &lease)?;
        match done {
            Ok(Some(what)) => {
                shift.summary.accepted += 1;
                shift.accepted.insert(job.clone());
                self.tell(Event::Did { job, what });
                Ok(true)
            }
            // Another worker changed the files; the job is planned again.
            Ok(None)
            | Err(Stuck::Store(StoreError::Stale { .. } | StoreError::LeaseLost { .. })) => {
                Ok(true)
            }
            Err(Stuck::Flow(error)) => Err(error),
            Err(stuck) => {
                let why = match stuck {
                    Stuck::Store(StoreError::Refused(refused)) => {
                        format!("{}\n  help  {}", refused.what, refused.remedy)
                    }
                    Stuck::Store(error) => error.to_string(),
                    Stuck::Message(why) => why,
                    Stuck::Flow(error) => error.to_string(),
                };
                shift.summary.stuck.push((job.clone(), why.clone()));
                shift.give_up(&job);
                self.tell(Event::Stuck { job, why });
                Ok(false)
            }
        }
    }

    /// Runs the step under its lease. Returns a description, or None if the step is no longer
    /// needed.
    fn do_claimed(&self, chosen: &ChosenJob<'_>, lease: &Lease) -> Result<Option<String>, Stuck> {
        if !self.is_wanted(chosen, lease).map_err(Stuck::Flow)? {
            return Ok(None);
        }
        let planned = &chosen.planned;
        let made = match planned.step.builtin {
            Some(Builtin::Merge) => self.make_merge(chosen),
            Some(Builtin::Remember) => self.make_memory(planned),
            Some(Builtin::Publish) => self.make_pages(planned),
            Some(Builtin::Derive | Builtin::Gate) | None => {
                derive(self.project, planned).map_err(|e| match e {
                    DeriveError::Store(error) => Stuck::Store(error),
                    other => Stuck::Message(other.to_string()),
                })
            }
        }?;
        let told = made.told.clone();
        self.commit_made(chosen, lease, made)?;
        Ok(Some(told))
    }

    /// The paths that a built-in step leases: the files that it replaces. Append-only files stay
    /// open for other writers, unless the step writes no other file.
    fn claimed_paths(&self, planned: &PlannedJob<'_>) -> Vec<String> {
        let all = || planned.required().map(|o| &o.path);
        let replaced: Vec<String> = all()
            .filter(|path| self.project.contract.class(path) != Class::Append)
            .map(ToString::to_string)
            .collect();
        if replaced.is_empty() {
            all().map(ToString::to_string).collect()
        } else {
            replaced
        }
    }

    fn commit_made(&self, chosen: &ChosenJob<'_>, lease: &Lease, made: Made) -> Result<(), Stuck> {
        let planned = &chosen.planned;
        let mut note = AttemptNote::new(
            &run_id(&planned.job, jiff::Timestamp::now()),
            &planned.job,
            AttemptResult::Accepted,
        );
        note.reads = made.reads;
        if let Some(sent) = &chosen.status.sent_back {
            note.round = sent.round;
            note.sent_by = Some(sent.by.clone());
            note.objectors.clone_from(&sent.objectors);
        }
        let mut audits = made.audits;
        let texts: Vec<(&ProjectPath, &[u8])> = made
            .ops
            .iter()
            .filter_map(|op| match op {
                Op::Write { path, bytes, .. } => Some((path, bytes.as_slice())),
                _ => None,
            })
            .collect();
        audits.extend(self.audit_objection(planned, &texts));
        let wanted = Wanted {
            actor: Actor::Runtime,
            note,
            lease: Some(lease.token()),
            ops: made.ops,
            files: &[],
            audits,
            why: Some(format!("{} by quipu run", planned.job)),
        };
        match self.commit_patiently(&wanted) {
            Ok(_) => Ok(()),
            Err(FlowError::Store(error)) => Err(Stuck::Store(error)),
            Err(other) => Err(Stuck::Flow(other)),
        }
    }

    /// The audit section for objections when no job is left to send the work back to.
    pub(super) fn audit_objection(
        &self,
        planned: &PlannedJob<'_>,
        texts: &[(&ProjectPath, &[u8])],
    ) -> Option<String> {
        let objection = planned.step.objection.as_ref()?;
        let mut objects = None;
        for (path, bytes) in texts {
            let text = String::from_utf8_lossy(bytes);
            let item = objection
                .sign
                .as_ref()
                .and_then(|sign| items_with(&text, sign).into_iter().next());
            let marked =
                objection.marker.is_some() && marker_of(path.as_str(), &text) == objection.marker;
            objects = objects.or(item).or_else(|| {
                marked.then(|| {
                    format!(
                        "`{path}` ends with {}",
                        objection.marker.as_deref().unwrap_or_default()
                    )
                })
            });
        }
        let (first, rounds) = (objects?, planned.step.rounds.unwrap_or(0));
        let facts = self.memory.facts(self.project).ok()?;
        let answered = |step: &String| {
            let job = Job {
                step: step.clone(),
                unit: planned.job.unit.clone(),
            };
            let newest = facts
                .iter()
                .rev()
                .find(|f| f.note.ruling == AttemptResult::Accepted && f.note.job() == job);
            newest
                .filter(|f| f.note.sent_by.as_ref() == Some(&planned.job.step))
                .map_or(0, |f| f.note.round)
        };
        let round = planned.step.back.iter().map(answered).max();
        round.is_none_or(|round| round >= rounds).then(|| {
            self.needs_human(
                planned,
                &first,
                &format!("quipu approve {}", render_job(&planned.job)),
            )
        })
    }

    fn read(&self, path: &ProjectPath, reads: &mut Vec<ReadNote>) -> Result<String, Stuck> {
        let (bytes, version) = self
            .project
            .store
            .read(path)?
            .ok_or_else(|| Stuck::Message(format!("`{path}` does not exist")))?;
        reads.push(ReadNote {
            path: path.to_string(),
            version,
            section: None,
            text: None,
        });
        String::from_utf8(bytes).map_err(|_| Stuck::Message(format!("`{path}` is not text")))
    }

    /// The files of steps that do not apply to this unit. A merge ignores them, even if an older
    /// version exists.
    fn skipped_files(&self, chosen: &ChosenJob<'_>) -> Result<Vec<ProjectPath>, Stuck> {
        let snapshot = Snapshot::take(self.project, &self.memory)
            .map_err(|error| Stuck::Flow(error.into()))?;
        let before = chosen.jobs.iter().filter(|t| {
            t.job.unit == chosen.planned.job.unit && chosen.planned.step.after.contains(&t.job.step)
        });
        let skipped =
            before.filter(|job| why_not(&self.project.contract, job, &snapshot).is_some());
        Ok(skipped
            .flat_map(|job| job.outputs.iter().map(|o| o.path.clone()))
            .collect())
    }

    fn make_merge(&self, chosen: &ChosenJob<'_>) -> Result<Made, Stuck> {
        let planned = &chosen.planned;
        let mut made = Made::default();
        let mut sources = Vec::new();
        let skipped = self.skipped_files(chosen)?;
        for pattern in planned.reads() {
            let Some(path) = pattern
                .as_literal()
                .and_then(|p| ProjectPath::parse(p).ok())
            else {
                continue;
            };
            if skipped.contains(&path) {
                continue;
            }
            let text = self.read(&path, &mut made.reads)?;
            let wanted = self
                .project
                .contract
                .rule(&path)
                .and_then(|r| r.marker.clone());
            let found = super::snapshot::marker_of(path.as_str(), &text);
            if let Some(wanted) = wanted.filter(|w| {
                !found
                    .as_ref()
                    .is_some_and(|f| w.split('|').any(|n| n.trim() == f))
            }) {
                return Err(Stuck::Message(format!(
                    "`{path}` does not end with {wanted}: a merge needs the markers of all its \
                     reports"
                )));
            }
            sources.push(Source { path, text });
        }
        let text = merge(&self.project.contract, planned, &sources);
        let output = planned
            .required()
            .next()
            .ok_or_else(|| Stuck::Message("the step names no file to write".into()))?;
        made.told = format!("merged {} reports into {}", sources.len(), output.path);
        made.ops.push(Op::Write {
            path: output.path.clone(),
            bytes: text.into_bytes(),
            expect: Expect::Any,
        });
        Ok(made)
    }

    fn make_memory(&self, planned: &PlannedJob<'_>) -> Result<Made, Stuck> {
        let mut made = Made::default();
        let remember = planned.step.remember.as_ref().ok_or_else(|| {
            Stuck::Message("the step does not declare what it remembers: [steps.remember]".into())
        })?;
        let path = |text: &str| {
            fill_path(text, &planned.binding)
                .ok_or_else(|| Stuck::Message(format!("`{text}` does not name a file")))
        };
        let unit = planned
            .job
            .unit
            .as_ref()
            .map_or_else(|| planned.job.step.clone(), ToString::to_string);
        let from = path(&remember.from)?;
        let report = self.read(&from, &mut made.reads)?;
        if let Some(unfit) = find_unfit(remember, &report).first() {
            return Err(Stuck::Message(format!(
                "`{from}` {unfit}\n  help  fix that part, then quipu run"
            )));
        }
        let mut grown = Vec::new();
        for item in &remember.items {
            let to = path(&item.to)?;
            let memory = self
                .project
                .store
                .read(&to)?
                .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned())
                .unwrap_or_default();
            let growth = grow(
                &self.project.contract,
                item,
                remember,
                &unit,
                &report,
                &memory,
                jiff::Timestamp::now(),
            );
            made.audits.extend(growth.audits);
            if !growth.text.is_empty() {
                grown.push(to.to_string());
                made.ops.push(Op::Append {
                    path: to,
                    bytes: growth.text.into_bytes(),
                    apart: false,
                });
            }
        }
        let left = if remember.entries {
            self.remember_entries(planned, &report, &mut made, &mut grown)?
        } else {
            String::new()
        };
        if let (Some(from), Some(to)) = (&remember.text, &remember.to) {
            let draft = self.read(&path(from)?, &mut made.reads)?;
            let text = finish(&draft, planned.step.marker.as_deref().unwrap_or("FINAL"));
            made.ops.push(Op::Write {
                path: path(to)?,
                bytes: text.into_bytes(),
                expect: Expect::Any,
            });
        }
        made.told = format!(
            "remembered {unit}: added to {}{left}",
            if grown.is_empty() {
                "nothing".to_owned()
            } else {
                grown.join(", ")
            }
        );
        Ok(made)
    }

    /// Whether an agent wrote the current version of a stylesheet. Its pages depend on that
    /// version, so it must not be replaced.
    fn is_agents_stylesheet(&self, path: &ProjectPath) -> bool {
        let is_style =
            self.project.contract.rule(path).and_then(|rule| rule.form) == Some(Form::Stylesheet);
        let Ok(Some((_, version))) = self.project.store.read(path) else {
            return false;
        };
        let facts = self.memory.facts(self.project).unwrap_or_default();
        let made = |fact: &&AttemptFact| {
            fact.files
                .iter()
                .any(|file| file.path == path.as_str() && file.version == version)
        };
        is_style
            && facts
                .iter()
                .rev()
                .find(made)
                .is_some_and(|fact| fact.note.agent.is_some())
    }

    /// Adds the facts of a report to memory. Returns what is left for a person, as text.
    fn remember_entries(
        &self,
        planned: &PlannedJob<'_>,
        report: &str,
        made: &mut Made,
        grown: &mut Vec<String>,
    ) -> Result<String, Stuck> {
        let stuck = |error: MemoryError| Stuck::Message(error.to_string());
        let asked = sort_offers(&self.project.contract, planned, report);
        let (mut waiting, mut known) = (asked.left.len(), 0);
        let mut memory = MemoryFiles::read(self.project).map_err(stuck)?;
        for (file, offers) in &asked.by_file {
            let added = with_entries(&mut memory, file, offers).map_err(stuck)?;
            waiting += added.left;
            known += added.known;
            if added.added > 0 {
                grown.push(match added.closed {
                    0 => format!("{file} (+{})", added.added),
                    closed => format!("{file} (+{}, {closed} closed)", added.added),
                });
            }
        }
        made.ops.extend(memory.into_ops());
        let known = match known {
            0 => String::new(),
            _ => format!("; {known} already there"),
        };
        Ok(match waiting {
            0 => known,
            _ => format!("{known}; {waiting} left for a person: quipu learn --list"),
        })
    }

    fn make_pages(&self, planned: &PlannedJob<'_>) -> Result<Made, Stuck> {
        let publisher = self
            .publisher
            .ok_or_else(|| Stuck::Message("this program cannot publish".into()))?;
        let mut made = Made::default();
        let all = self.project.store.list()?;
        for pattern in planned.reads() {
            for path in all.iter().filter(|p| pattern.matches(p.as_str()).is_some()) {
                if let Some((_, version)) = self.project.store.read(path)? {
                    made.reads.push(ReadNote {
                        path: path.to_string(),
                        version,
                        section: None,
                        text: None,
                    });
                }
            }
        }
        let printed = publisher
            .print(self.project, planned.step, planned.job.unit.as_ref())
            .map_err(Stuck::Message)?;
        for (path, version) in printed.reads {
            made.reads.push(ReadNote {
                path: path.to_string(),
                version,
                section: None,
                text: None,
            });
        }
        // Images belong to the pages that show them; no step can name them in advance.
        let wanted = |path: &ProjectPath| {
            let own = planned.outputs.iter().any(|o: &Output| o.path == *path);
            own && !self.is_agents_stylesheet(path)
                || self.project.contract.class(path) == Class::Derived
        };
        let mut pages: Vec<_> = printed
            .files
            .into_iter()
            .filter(|(path, _)| wanted(path))
            .collect();
        // Skip a file that another job has already published with the same bytes.
        pages.retain(|(path, bytes)| {
            is_own(planned, path.as_str())
                || !matches!(self.project.store.on_disk(path), Ok(Some(now)) if now == *bytes)
        });
        let own: Vec<&str> = pages
            .iter()
            .map(|(path, _)| path.as_str())
            .filter(|path| is_own(planned, path))
            .collect();
        made.told = format!("published {}", own.join(", "));
        match pages.len() - own.len() {
            0 => {}
            more => made.told.push_str(&format!(" and {more} more")),
        }
        for (path, bytes) in pages {
            made.ops.push(match self.project.contract.class(&path) {
                Class::Derived => Op::Derive {
                    path,
                    bytes,
                    expect: Expect::Any,
                },
                _ => Op::Write {
                    path,
                    bytes,
                    expect: Expect::Any,
                },
            });
        }
        Ok(made)
    }
}

fn is_own(planned: &PlannedJob<'_>, path: &str) -> bool {
    planned
        .outputs
        .iter()
        .any(|output| output.path.as_str() == path)
}

/// The reason why a built-in step failed.
enum Stuck {
    Store(StoreError),
    Flow(FlowError),
    Message(String),
}

impl From<StoreError> for Stuck {
    fn from(error: StoreError) -> Stuck {
        Stuck::Store(error)
    }
}
