//! The demonstration: every sentence it prints was just done, by the program itself.
//!
//! It runs this very program as separate processes, because that is what agents are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::answer::{Answer, Failure, exit};

/// How many agents write at once, and how often each.
const AGENTS: usize = 8;
const APPENDS: usize = 5;

struct Demo {
    program: PathBuf,
    root: PathBuf,
    told: String,
}

pub fn run(folder: Option<PathBuf>) -> Result<Answer, Failure> {
    let io = |e: std::io::Error| Failure::new(exit::IO, format!("the demo cannot run: {e}"), "");
    let root = match folder {
        Some(folder) => folder,
        None => tempfile::Builder::new().prefix("quipu-demo-").tempdir().map_err(io)?.keep(),
    };
    std::fs::create_dir_all(&root).map_err(io)?;
    if root.join("quipu.toml").exists() {
        let what = format!("`{}` holds a project already", root.display());
        return Err(Failure::new(exit::REFUSED, what, "quipu demo DIR     (a folder of its own)"));
    }
    let mut demo = Demo { program: std::env::current_exe().map_err(io)?, root: root.clone(), told: String::new() };

    demo.say("1. A project: its files, their classes, who may write what.");
    demo.show(&["init", "--profile", "book", "--var", "project=A Small Book"], 0)?;
    demo.show(&["write", "outline-final.md", "--text", "# Outline\n\n## ch01 Knots\n\n## ch02 Cords"], 0)?;

    demo.say("2. Rules are enforced, not hoped for.");
    demo.show(&["write", "outline-final.md", "--text", "# Another outline"], 3)?;
    demo.show(&["append", "meta/glossary.md", "--text", "| knot | what a cord says |"], 0)?;
    demo.show(&["write", "meta/glossary.md", "--text", "| knot | something else |"], 3)?;
    demo.show(&["write", "drafts/ch02-draft.md", "--text", "…", "--as", "writer", "--unit", "ch01"], 3)?;

    demo.say(&format!("3. {AGENTS} agents append at once, {APPENDS} times each; some are killed on the way."));
    let acknowledged = demo.crowd().map_err(io)?;
    let kept = std::fs::read_to_string(root.join("audit-log.md")).unwrap_or_default();
    let lost = acknowledged.iter().filter(|line| !kept.contains(line.as_str())).count();
    let started = AGENTS * APPENDS;
    demo.told.push_str(&format!("   {started} started, {} acknowledged, {lost} of those lost\n", acknowledged.len()));
    if lost > 0 || acknowledged.is_empty() {
        return Err(Failure::new(
            exit::NO,
            format!("{}\nthe demo lost an acknowledged write, or none was acknowledged", demo.told),
            "report this",
        ));
    }

    demo.say("4. Someone edits behind Quipu's back: what the contract allows is adopted, the rest is flagged.");
    let append = |path: &str, text: &str| -> std::io::Result<()> {
        let old = std::fs::read_to_string(root.join(path))?;
        std::fs::write(root.join(path), format!("{old}{text}"))
    };
    append("meta/glossary.md", "| cord | what holds knots |\n").map_err(io)?;
    std::fs::write(root.join("outline-final.md"), "# Outline\n\n## ch01 Other knots\n").map_err(io)?;
    demo.show(&["status"], 1)?;
    demo.show(&["restore", "outline-final.md"], 0)?;

    demo.say("5. Everything that happened is in the journal, chained by hash.");
    demo.show(&["log", "-n", "4"], 0)?;
    demo.show(&["verify"], 0)?;

    let told = demo.told;
    let text = format!(
        "{told}\nThe project is in {root}. Try there:\n  quipu status\n  quipu log meta/glossary.md\n  quipu blame meta/glossary.md\n  quipu contract show --role writer\n",
        root = root.display()
    );
    Ok(Answer::new(json!({"root": root, "acknowledged": acknowledged.len(), "lost": lost}), text))
}

impl Demo {
    fn say(&mut self, line: &str) {
        self.told.push_str(&format!("\n{line}\n"));
    }

    /// Runs a command of this program and tells it with what it printed.
    fn show(&mut self, arguments: &[&str], expected: i32) -> Result<(), Failure> {
        let output = command(&self.program, &self.root, arguments)
            .output()
            .map_err(|e| Failure::new(exit::IO, format!("the demo cannot start itself: {e}"), ""))?;
        let line = arguments.iter().map(|a| quote(a)).collect::<Vec<_>>().join(" ");
        self.told.push_str(&format!("   $ quipu {line}\n"));
        for text in [&output.stdout, &output.stderr] {
            for line in String::from_utf8_lossy(text).lines() {
                self.told.push_str(&format!("     {line}\n"));
            }
        }
        if output.status.code() != Some(expected) {
            let what = format!("`quipu {line}` ended with {:?} instead of {expected}", output.status.code());
            return Err(Failure::new(exit::NO, format!("{}\n{what}", self.told), "report this"));
        }
        Ok(())
    }

    /// Many processes at once, some killed; returns the lines that were acknowledged.
    fn crowd(&self) -> std::io::Result<Vec<String>> {
        let mut acknowledged = Vec::new();
        for round in 0..APPENDS {
            let mut running = Vec::new();
            for agent in 0..AGENTS {
                let line = format!("- agent {agent}, entry {round}");
                let arguments = ["append", "audit-log.md", "--text", &line];
                let child = command(&self.program, &self.root, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
                running.push((line, child));
            }
            for (agent, (line, mut child)) in running.into_iter().enumerate() {
                if agent % 2 == 1 && round % 2 == 1 {
                    child.kill()?;
                }
                if child.wait()?.success() {
                    acknowledged.push(line);
                }
            }
        }
        Ok(acknowledged)
    }
}

fn command(program: &Path, root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root).stdin(Stdio::null());
    for name in ["QUIPU_ROLE", "QUIPU_UNIT", "QUIPU_AGENT", "QUIPU_LEASE"] {
        command.env_remove(name);
    }
    command
}

fn quote(argument: &str) -> String {
    let argument = argument.replace('\n', "\\n");
    if argument.contains([' ', '|', '#', '…', '\\']) { format!("\"{argument}\"") } else { argument }
}
