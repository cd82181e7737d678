//! A project in a temporary folder with things in it that an agent must not reach, and a run in it.

use nix::libc;
use quipu_agents::{
    Adapter, Assignment, Bounds, Event, Hosts, Language, Names, Outcome, Sandbox, Setting, Stop,
    Turns, Watch, resolve_agent,
};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;

/// The program that is both the scripted agent and the sandbox's helper.
pub const STAGE: &str = env!("CARGO_BIN_EXE_quipu-agents-stage");

pub struct Desk {
    _root: TempDir,
    pub project: PathBuf,
    pub assignment: Assignment,
    pub hosts: Hosts,
    pub stop: Stop,
    pub events: Mutex<Vec<Event>>,
}

impl Desk {
    pub fn new() -> Self {
        let root = TempDir::new().unwrap();
        let project = root.path().canonicalize().unwrap().join("project");
        let run = project.join(".quipu/attempts/r1");
        for (path, text) in [
            ("outline-final.md", "# the sealed outline\n"),
            ("denied.md", "# not for this role\n"),
            ("drafts/ch02-draft.md", "# another chapter\n"),
            (".quipu/journal/000001.jsonl", "{}\n"),
            (
                ".quipu/attempts/r1/view/outline.md",
                "# Outline\n\nch01: the beginning\n",
            ),
        ] {
            let path = project.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::create_dir_all(run.join("out")).unwrap();
        let assignment = Assignment {
            brief: "Write the draft of ch01.".to_string(),
            inline: Some("Write the draft of ch01. The outline: # Outline".to_string()),
            view: run.join("view"),
            out: run.join("out"),
            outputs: vec!["drafts/ch01.md".to_string()],
            last_lines: std::collections::BTreeMap::new(),
            names: Names {
                role: "writer".to_string(),
                unit: Some("ch01".to_string()),
                agent: Some("one".to_string()),
                attempt: "r1".to_string(),
            },
            // Far longer than anything here takes on a busy machine; tests of the deadline set
            // their own.
            deadline: Duration::from_secs(120),
            record: run.join("record"),
            mcp: None,
            questions: Vec::new(),
            keep_out: vec![project.clone()],
            language: Language::English,
            bounds: Bounds::default(),
        };
        let hosts = Hosts::built_in().unwrap();
        Desk {
            _root: root,
            project,
            assignment,
            hosts,
            stop: Stop::default(),
            events: Mutex::new(Vec::new()),
        }
    }

    /// A path in the project, for an agent that should not reach it.
    pub fn path(&self, path: &str) -> String {
        self.project.join(path).display().to_string()
    }

    /// Adds a host called `test`.
    pub fn host(&mut self, fields: &str) -> &mut Self {
        self.hosts.add(&format!("[test]\n{fields}")).unwrap();
        self
    }

    /// Adds the scripted program with some acts as the host `test`.
    pub fn script(&mut self, acts: &[&str]) -> &mut Self {
        let args: Vec<String> = ["agent"]
            .iter()
            .chain(acts)
            .map(|act| toml_string(act))
            .collect();
        let fields = format!(
            "via = \"command\"\nprogram = {STAGE:?}\nargs = [{}, \"end\", \"{{{{brief}}}}\"]",
            args.join(", ")
        );
        self.host(&fields)
    }

    pub fn agent(&self) -> Box<dyn Adapter> {
        let setting = Setting {
            model: Some("mock-model".to_string()),
            sandbox: Sandbox {
                helper: STAGE.into(),
            },
        };
        resolve_agent("test", &self.hosts, &setting).unwrap()
    }

    /// Runs the host `test` for one turn.
    pub fn run(&self) -> Outcome {
        self.turns(|turns| turns.first())
    }

    /// Runs the host `test` for as many turns as the closure takes.
    pub fn turns<T>(&self, take: impl FnOnce(&mut dyn Turns) -> T) -> T {
        let agent = self.agent();
        let events = |event: Event| self.events.lock().unwrap().push(event);
        let mut turns = agent.open(
            &self.assignment,
            Watch {
                events: &events,
                stop: &self.stop,
            },
        );
        take(turns.as_mut())
    }

    /// Everything that the transcript has from one speaker.
    pub fn said(&self, who: &str) -> String {
        let text =
            std::fs::read_to_string(self.assignment.record.join("transcript.jsonl")).unwrap();
        let mut found = String::new();
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            if line["who"] == who {
                found.push_str(line["text"].as_str().unwrap());
                found.push('\n');
            }
        }
        found
    }

    pub fn output(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.assignment.out.join(path)).ok()
    }

    /// Whether the project is as it was.
    pub fn assert_untouched(&self) {
        let text = |path: &str| std::fs::read_to_string(self.project.join(path)).unwrap();
        assert_eq!(text("outline-final.md"), "# the sealed outline\n");
        assert_eq!(text("denied.md"), "# not for this role\n");
        assert_eq!(text("drafts/ch02-draft.md"), "# another chapter\n");
        assert_eq!(text(".quipu/journal/000001.jsonl"), "{}\n");
    }
}

pub fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

/// Whether a process of the agent lives that holds a lock on an output: its number says nothing
/// outside its namespace.
pub fn lives(holding: &Path) -> bool {
    matches!(
        std::fs::File::open(holding).unwrap().try_lock(),
        Err(std::fs::TryLockError::WouldBlock)
    )
}

/// Runs something in a thread for which some system calls fail; so they do for everything that it
/// starts.
pub fn without<T: Send>(calls: &[i64], errno: i32, work: impl FnOnce() -> T + Send) -> T {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let rules = calls.iter().map(|number| (*number, Vec::new())).collect();
    let action = SeccompAction::Errno(errno as u32);
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)
        .unwrap()
        .try_into()
        .unwrap();
    std::thread::scope(|scope| {
        let limited = scope.spawn(|| {
            seccompiler::apply_filter(&filter).unwrap();
            work()
        });
        limited.join().unwrap()
    })
}

/// As on a machine that permits no namespaces to ordinary users.
pub fn without_namespaces<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    without(&[libc::SYS_unshare], libc::EPERM, work)
}
