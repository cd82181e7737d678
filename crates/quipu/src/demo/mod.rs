//! The demonstrations: [`tour`], what Quipu does for agents, and [`book`], a small book written by
//! the rehearsal agent. They perform every action that they print.
//!
//! They run this program as separate processes, as agents do. They need no network and no key.

mod book;
mod crowd;
mod tour;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::answer::{Answer, Failure, exit};

pub use book::run as run_book;
pub use tour::run as run_tour;

/// The remedy for a demonstration that does not end as planned.
const BUG: &str = "report this as a bug";

/// A demonstration in progress: its folder, and what it has printed so far.
struct Stage {
    program: PathBuf,
    root: PathBuf,
    told: String,
}

/// Which lines of an output are shown. The rest is replaced by one line `…`.
#[derive(Clone, Copy)]
enum Shown<'a> {
    All,
    Last(usize),
    /// From the line that begins with the first text to the line before the second.
    Between(&'a str, &'a str),
}

/// The answer at the end of a demonstration.
fn end(stage: Stage, json: serde_json::Value, last: &str) -> Answer {
    Answer::new(json, format!("{}\n{last}", stage.told))
}

fn cannot_run(error: std::io::Error) -> Failure {
    Failure::new(exit::IO, format!("the demo cannot run: {error}"), "")
}

impl Stage {
    /// Takes an empty folder; `again` is the command for another one.
    fn new(folder: Option<PathBuf>, again: &str) -> Result<Stage, Failure> {
        let root = match folder {
            Some(folder) => folder,
            None => tempfile::Builder::new()
                .prefix("quipu-demo-")
                .tempdir()
                .map_err(cannot_run)?
                .keep(),
        };
        let is_empty =
            |root: &Path| std::fs::read_dir(root).is_ok_and(|mut it| it.next().is_none());
        if root.exists() && !is_empty(&root) {
            let what = format!("`{}` is not an empty folder", root.display());
            let help = format!("{again} --dir DIR     (a new folder)");
            return Err(Failure::new(exit::REFUSED, what, help));
        }
        std::fs::create_dir_all(&root).map_err(cannot_run)?;
        Ok(Stage {
            program: std::env::current_exe().map_err(cannot_run)?,
            root: std::fs::canonicalize(root).map_err(cannot_run)?,
            told: String::new(),
        })
    }

    fn say(&mut self, line: &str) {
        self.told.push_str(&format!("\n{line}\n"));
    }

    fn line(&mut self, line: &str) {
        self.told.push_str(&format!("   {line}\n"));
    }

    /// Writes a file of the demonstration, as its user would with an editor.
    fn lay(&self, path: &str, text: &str) -> Result<(), Failure> {
        let place = self.root.join(path);
        std::fs::create_dir_all(place.parent().unwrap_or(&self.root)).map_err(cannot_run)?;
        std::fs::write(place, text).map_err(cannot_run)
    }

    /// Runs a command of this program in `folder`, with a text on its standard input. Returns all
    /// that it printed, messages first. Ends the demonstration if the exit code is not `expected`.
    fn run(
        &self,
        folder: &str,
        arguments: &[&str],
        input: &str,
        expected: i32,
    ) -> Result<String, Failure> {
        let mut child = self
            .command(folder, arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot_run)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that reads no input may close it first. Its exit code is what counts.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().map_err(cannot_run)?;
        let printed = [output.stderr, output.stdout]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat();
        match output.status.code() {
            Some(code) if code == expected => Ok(printed),
            other => {
                let what = format!(
                    "{}\n{printed}\n`{}` ended with {other:?} instead of {expected}",
                    self.told,
                    shown_command(arguments)
                );
                Err(Failure::new(exit::NO, what, BUG))
            }
        }
    }

    /// Runs a command and prints it, with its output or a part of it.
    fn show(
        &mut self,
        folder: &str,
        arguments: &[&str],
        expected: i32,
        shown: Shown<'_>,
    ) -> Result<(), Failure> {
        let printed = self.run(folder, arguments, "", expected)?;
        self.line(&format!("$ {}", shown_command(arguments)));
        self.print(&printed, shown);
        Ok(())
    }

    fn print(&mut self, printed: &str, shown: Shown<'_>) {
        let lines: Vec<&str> = printed.lines().collect();
        let (from, to) = match shown {
            Shown::All => (0, lines.len()),
            Shown::Last(last) => (lines.len().saturating_sub(last), lines.len()),
            Shown::Between(first, next) => {
                let from = lines.iter().position(|line| line.starts_with(first));
                let from = from.unwrap_or_default();
                let rest = &lines[from..];
                let to = rest.iter().position(|line| line.starts_with(next));
                (from, to.map_or(lines.len(), |to| from + to))
            }
        };
        for line in &lines[from..to] {
            self.told.push_str(format!("     {line}").trim_end());
            self.told.push('\n');
        }
        if matches!(shown, Shown::Between(..)) && to < lines.len() {
            self.line("  …");
        }
    }

    fn command(&self, folder: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        prepare(&mut command, &self.root.join(folder));
        command
    }
}

/// Gives a process the folder, no input, and none of the caller's identity.
fn prepare(command: &mut Command, folder: &Path) {
    command.current_dir(folder).stdin(Stdio::null());
    for name in ["ROLE", "UNIT", "AGENT", "LEASE", "SESSION"] {
        command.env_remove(format!("QUIPU_{name}"));
    }
}

fn shown_command(arguments: &[&str]) -> String {
    let quoted = arguments.iter().map(|argument| quote(argument));
    format!("quipu {}", quoted.collect::<Vec<_>>().join(" "))
}

fn quote(argument: &str) -> String {
    let argument = argument.replace('\n', "\\n");
    if argument.contains([' ', '|', '#', '…', '\\']) {
        format!("\"{argument}\"")
    } else {
        argument
    }
}
