//! The test project for flows, with a scripted agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use quipu_contract::{Actor, Language, ProjectPath, Step, UnitId};
use quipu_protocol::flow::{
    Agent, AttemptResult, Choice, Engine, Event, Flow, FlowCache, Job, LeaveRule, Printed,
    Publisher, Scripted, State, Stop, Summary, decide_gate, flow_now,
};
use quipu_protocol::{Layout, Project, lay_out};
use quipu_store::Options;
use quipu_testkit::Script;
use tempfile::TempDir;

pub struct Stage {
    _folder: TempDir,
    pub root: PathBuf,
    pub script: Script,
}

/// Publishes the minimum that counts as a book.
pub struct Plain;

impl Publisher for Plain {
    fn print(&self, _: &Project, step: &Step, unit: Option<&UnitId>) -> Result<Printed, String> {
        let fill = |path: &String| path.replace("{unit}", unit.map_or("", UnitId::as_str));
        let paths = step
            .writes
            .iter()
            .map(|w| ProjectPath::parse(&fill(w)).map_err(|e| e.to_string()));
        let files: Result<Vec<_>, String> = paths
            .map(|path| path.map(|p| (p, b"<!DOCTYPE html>\n<!-- HTML_COMPLETE -->\n".to_vec())))
            .collect();
        Ok(Printed {
            files: files?,
            reads: Vec::new(),
        })
    }
}

pub struct Played {
    pub summary: Summary,
    pub events: Vec<Event>,
}

impl Played {
    pub fn accepted(&self) -> Vec<String> {
        let jobs = self.events.iter().filter_map(|e| match e {
            Event::Accepted { job, .. } | Event::Did { job, .. } => Some(job.to_string()),
            _ => None,
        });
        jobs.collect()
    }

    pub fn sent_back(&self) -> Vec<String> {
        let faults = self.events.iter().filter_map(|e| match e {
            Event::SentBack { fault, .. } => Some(fault.clone()),
            _ => None,
        });
        faults.collect()
    }
}

fn temp() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

impl Stage {
    /// Creates a book of this many chapters; `more` is added to `quipu.toml`.
    pub fn book(chapters: usize, more: &str) -> Stage {
        let folder = temp();
        let root = folder.path().join("project");
        let vars = [("project", "A Small Book"), ("words", "120")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()));
        Self::lay(&root, "book", vars.into());
        let units = (1..=chapters)
            .filter(|n| !more.contains(&format!("[units.ch{n:02}]")))
            .map(|n| format!("\n[units.ch{n:02}]\ntitle = \"Chapter {n}\"\n"));
        let manifest = std::fs::read_to_string(root.join("quipu.toml")).unwrap()
            + &units.collect::<String>()
            + more;
        std::fs::write(root.join("quipu.toml"), manifest).unwrap();
        std::fs::create_dir_all(root.join("source")).unwrap();
        std::fs::write(root.join("source/lib.rs"), "//! Knots.\npub fn knot() {}\n").unwrap();
        let script = Script::book(&folder.path().join("script"), chapters);
        Stage {
            _folder: folder,
            root,
            script,
        }
    }

    /// Creates a review of a short manuscript.
    pub fn review(manuscript: &str, mode: &str) -> Stage {
        let folder = temp();
        let root = folder.path().join("project");
        let vars =
            [("project", "On knots"), ("mode", mode)].map(|(k, v)| (k.to_owned(), v.to_owned()));
        Self::lay(&root, "review", vars.into());
        std::fs::write(root.join("manuscript.md"), manuscript).unwrap();
        let stage = Stage {
            script: Script {
                folder: folder.path().join("script"),
            },
            _folder: folder,
            root,
        };
        let project = stage.open();
        let agents = project.contract.roles.values().map(|role| {
            let said = |s: &quipu_contract::Localized| s.in_language(Language::En).to_owned();
            (
                role.name.clone(),
                said(&role.title),
                role.metrics.iter().map(said).collect::<Vec<_>>(),
            )
        });
        for (id, title, metrics) in agents {
            let metrics: Vec<&str> = metrics.iter().map(String::as_str).collect();
            stage.script.put(
                &format!("agent_outputs/{id}.md"),
                &quipu_testkit::report(&id, &title, &metrics, 4),
            );
        }
        stage
    }

    fn lay(root: &Path, profile: &str, vars: BTreeMap<String, String>) {
        let layout = Layout {
            profiles: vec![profile.into()],
            vars,
            ..Layout::default()
        };
        lay_out(root, &layout, Options::default()).unwrap();
    }

    pub fn open(&self) -> Project {
        Project::open(&self.root, Options::default()).unwrap()
    }

    pub fn play(&self, choice: Choice) -> Played {
        self.play_by(&Scripted::of(&self.script.folder), choice)
    }

    pub fn play_by(&self, agent: &dyn Agent, choice: Choice) -> Played {
        let project = self.open();
        let events = Mutex::new(Vec::new());
        let listen = |event: &Event| events.lock().unwrap().push(event.clone());
        let choice = Choice {
            jobs: choice.jobs.max(2),
            ..choice
        };
        let engine = Engine {
            project: &project,
            agent,
            agents: Default::default(),
            publisher: Some(&Plain),
            registration: project
                .store
                .register_worker(Some("script"), choice.jobs)
                .unwrap(),
            choice,
            leave_rule: LeaveRule::default(),
            stop: Stop::default(),
            listen: &listen,
            memory: FlowCache::default(),
        };
        let summary = engine.run().unwrap();
        // A fresh evaluation finds no job that could have started.
        if !engine.choice.stale {
            let left = |flow: Flow<'_>| -> Vec<String> {
                let ready = flow
                    .statuses
                    .iter()
                    .filter(|s| s.state == State::Ready && engine.choice.allows(&project, &s.job));
                ready
                    .filter(|s| !summary.stuck.iter().any(|(job, _)| *job == s.job))
                    .map(|s| s.job.to_string())
                    .collect()
            };
            let seen_by_engine = left(flow_now(&project, &engine.memory).unwrap().0);
            let seen_afresh = left(flow_now(&self.open(), &FlowCache::default()).unwrap().0);
            let told = events.lock().unwrap();
            assert_eq!(
                (&seen_by_engine, &seen_afresh),
                (&Vec::new(), &Vec::new()),
                "{summary:#?}\n{told:#?}"
            );
        }
        drop(engine);
        Played {
            summary,
            events: events.into_inner().unwrap(),
        }
    }

    /// Runs everything, and approves the outline at its gate.
    pub fn play_all(&self) -> Played {
        let first = self.play(Choice::default());
        if self.state("approve-outline", None).0 == State::Waiting {
            self.approve("approve-outline", None);
            return self.play(Choice::default());
        }
        first
    }

    pub fn approve(&self, step: &str, unit: Option<&str>) {
        decide_gate(
            &self.open(),
            &Actor::Person,
            &job(step, unit),
            AttemptResult::Approved,
            None,
        )
        .unwrap();
    }

    pub fn reject(&self, step: &str, why: &str) {
        decide_gate(
            &self.open(),
            &Actor::Person,
            &job(step, None),
            AttemptResult::Rejected,
            Some(why),
        )
        .unwrap();
    }

    pub fn with_flow<T>(&self, look: impl FnOnce(&Flow<'_>) -> T) -> T {
        let project = self.open();
        let (flow, _) = flow_now(&project, &FlowCache::default()).unwrap();
        look(&flow)
    }

    pub fn state(&self, step: &str, unit: Option<&str>) -> (State, String) {
        self.with_flow(|flow| {
            let index = flow
                .find(&job(step, unit))
                .unwrap_or_else(|| panic!("no job {step} {unit:?}"));
            (
                flow.statuses[index].state,
                flow.statuses[index].why.join("; "),
            )
        })
    }

    /// Returns the jobs in a state.
    pub fn in_state(&self, state: State) -> Vec<String> {
        self.with_flow(|flow| {
            flow.statuses
                .iter()
                .filter(|s| s.state == state)
                .map(|s| s.job.to_string())
                .collect()
        })
    }

    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap_or_default()
    }

    /// Returns every file with its bytes.
    pub fn tree(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path
                    .strip_prefix(&self.root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                if path.is_dir() {
                    if name != ".quipu" {
                        folders.push(path);
                    }
                } else {
                    files.insert(
                        name,
                        String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned(),
                    );
                }
            }
        }
        files
    }
}

pub fn job(step: &str, unit: Option<&str>) -> Job {
    Job {
        step: step.into(),
        unit: unit.map(|u| UnitId::parse(u).unwrap()),
    }
}
