//! The demonstration: writes a small book about Quipu's own source, from outline to pages. It
//! performs every action that it prints, with the program itself.
//!
//! It runs this program as separate processes, as agents do. It needs no network, no key and no
//! source tree: the source files of the book are embedded.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::answer::{Answer, Failure, exit};

/// Number of concurrent agents, and of appends by each.
const AGENTS: usize = 8;
const APPENDS: usize = 3;
/// Delay before the run is killed.
const BEFORE_THE_KILL: Duration = Duration::from_millis(250);

/// The source files that the book describes.
const SOURCE: [(&str, &str); 7] = [
    (
        "contract/path.rs",
        include_str!("../../contract/src/path.rs"),
    ),
    (
        "contract/pattern.rs",
        include_str!("../../contract/src/pattern.rs"),
    ),
    (
        "contract/class.rs",
        include_str!("../../contract/src/class.rs"),
    ),
    (
        "contract/access.rs",
        include_str!("../../contract/src/access.rs"),
    ),
    (
        "store/journal.rs",
        include_str!("../../store/src/journal/segments.rs"),
    ),
    (
        "store/record.rs",
        include_str!("../../store/src/journal/record.rs"),
    ),
    (
        "store/lease.rs",
        include_str!("../../store/src/lease/leases.rs"),
    ),
];

const CHAPTERS: &str = r#"
[units.ch01]
title = "Paths and patterns"

[units.ch02]
title = "Classes and access"

[units.ch03]
title = "The journal and its records"

[units.ch04]
title = "Leases"
needs = ["ch03"]
"#;

struct Demo {
    program: PathBuf,
    root: PathBuf,
    told: String,
}

pub fn run(folder: Option<PathBuf>) -> Result<Answer, Failure> {
    let begun = Instant::now();
    let mut demo = Demo::new(folder)?;
    demo.create_project()?;
    demo.plan()?;
    demo.write()?;
    demo.enforce()?;
    let acknowledged = demo.append_at_once()?;
    demo.say("6. The journal records everything that happened, as a chain of hashes.");
    demo.show(&["verify"], 0, None)?;

    let seconds = begun.elapsed().as_secs_f32();
    let (told, place) = (demo.told, demo.root.display());
    let text = format!(
        "{told}\nDone in {seconds:.1} s. The book:\n  {place}/publish/index.html\n  \
         {place}/publish/book.epub\n\nTry in {place}:\n  quipu serve --open                  \
         show all of this live in a browser\n  quipu status\n  quipu replay write/ch04             \
         show what the writer of chapter 4 read\n  quipu view writer --unit ch04       show what \
         it would read now\n  quipu blame meta/glossary.md        show which commit added each \
         term\n  quipu run --dry-run --again --step write    estimate tokens and costs with a \
         real agent\n  quipu run --by claude --again --step write --unit ch02    run the same \
         flow with Claude Code, if it is installed\n"
    );
    let pages = [
        format!("{place}/publish/index.html"),
        format!("{place}/publish/book.epub"),
    ];
    Ok(Answer::new(
        json!({"root": place.to_string(), "pages": pages, "acknowledged": acknowledged, "lost": 0}),
        text,
    ))
}

fn cannot_run(error: std::io::Error) -> Failure {
    Failure::new(exit::IO, format!("the demo cannot run: {error}"), "")
}

impl Demo {
    fn new(folder: Option<PathBuf>) -> Result<Demo, Failure> {
        let root = match folder {
            Some(folder) => folder,
            None => tempfile::Builder::new()
                .prefix("quipu-demo-")
                .tempdir()
                .map_err(cannot_run)?
                .keep(),
        };
        std::fs::create_dir_all(&root).map_err(cannot_run)?;
        if root.join("quipu.toml").exists() {
            let what = format!("`{}` already contains a project", root.display());
            let help = "quipu demo DIR     (a new folder)";
            return Err(Failure::new(exit::REFUSED, what, help));
        }
        Ok(Demo {
            program: std::env::current_exe().map_err(cannot_run)?,
            root: std::fs::canonicalize(root).map_err(cannot_run)?,
            told: String::new(),
        })
    }

    fn create_project(&mut self) -> Result<(), Failure> {
        self.say(
            "1. A project: files, their classes and who may write each, plus the source code \
            that the book is about.",
        );
        let title = "project=Quipu from Inside";
        let init = [
            "init",
            "--profile",
            "book",
            "--var",
            title,
            "--var",
            "words=700",
        ];
        self.show(&init, 0, Some(1))?;
        self.lay_source().map_err(cannot_run)?;
        self.told.push_str(&format!(
            "   4 chapters are declared in quipu.toml, {} files of Quipu's own source in source/\n",
            SOURCE.len()
        ));
        Ok(())
    }

    fn plan(&mut self) -> Result<(), Failure> {
        self.say(
            "2. Agents plan the book and a person approves the plan. All agents here are the \
            rehearsal agent: it works offline and invents nothing.",
        );
        self.show(&["run", "--by", "rehearse"], 0, Some(4))?;
        self.show(&["approve", "approve-outline"], 0, None)
    }

    fn write(&mut self) -> Result<(), Failure> {
        self.say(
            "3. The agents write it: research, drafts, three reviews, three readers, memory, \
            pages. The run is killed halfway and resumed.",
        );
        let how = match self.kill_a_run().map_err(cannot_run)? {
            true => "killed while it was running",
            false => "finished before it could be killed",
        };
        self.told
            .push_str(&format!("   $ quipu run --by rehearse     ({how})\n"));
        self.show(&["run", "--by", "rehearse"], 0, Some(3))
    }

    fn enforce(&mut self) -> Result<(), Failure> {
        self.say("4. The contract's rules are enforced.");
        let outline = ["write", "outline-final.md", "--text", "# Another outline"];
        self.show(&outline, 3, None)?;
        let path = "drafts/ch02-draft.md";
        let draft = [
            "write", path, "--text", "…", "--as", "writer", "--unit", "ch01",
        ];
        self.show(&draft, 3, None)
    }

    /// Lets many agents append at once. Returns how many appends were acknowledged; a lost one is
    /// an error.
    fn append_at_once(&mut self) -> Result<usize, Failure> {
        self.say(&format!(
            "5. {AGENTS} agents append to one file at the same time, {APPENDS} times \
            each; some of them are killed."
        ));
        let acknowledged = self.crowd().map_err(cannot_run)?;
        let kept = std::fs::read_to_string(self.root.join("audit-log.md")).unwrap_or_default();
        let is_lost = |line: &&String| !kept.contains(line.as_str());
        let lost = acknowledged.iter().filter(is_lost).count();
        self.told.push_str(&format!(
            "   {} started, {} acknowledged, {lost} of those lost\n",
            AGENTS * APPENDS,
            acknowledged.len()
        ));
        if lost > 0 || acknowledged.is_empty() {
            let what = format!(
                "{}\nthe demo lost an acknowledged write, or none was acknowledged",
                self.told
            );
            return Err(Failure::new(exit::NO, what, "report this as a bug"));
        }
        Ok(acknowledged.len())
    }

    fn say(&mut self, line: &str) {
        self.told.push_str(&format!("\n{line}\n"));
    }

    /// Writes the source and the chapters into the project, as its owner would.
    fn lay_source(&self) -> std::io::Result<()> {
        for (path, text) in SOURCE {
            let place = self.root.join("source").join(path);
            std::fs::create_dir_all(place.parent().unwrap_or(&self.root))?;
            std::fs::write(place, text)?;
        }
        let manifest = self.root.join("quipu.toml");
        let old = std::fs::read_to_string(&manifest)?;
        std::fs::write(manifest, format!("{}\n{CHAPTERS}", old.trim_end()))
    }

    /// Runs a command of this program and prints it with its output, or the last lines of it.
    fn show(
        &mut self,
        arguments: &[&str],
        expected: i32,
        last: Option<usize>,
    ) -> Result<(), Failure> {
        let output = command(&self.program, &self.root, arguments)
            .output()
            .map_err(|e| Failure::new(exit::IO, format!("the demo cannot start quipu: {e}"), ""))?;
        let line = arguments
            .iter()
            .map(|a| quote(a))
            .collect::<Vec<_>>()
            .join(" ");
        self.told.push_str(&format!("   $ quipu {line}\n"));
        let printed = [output.stderr, output.stdout]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let lines: Vec<&str> = printed.iter().flat_map(|text| text.lines()).collect();
        let failed = output.status.code() != Some(expected);
        let skipped = last
            .filter(|_| !failed)
            .map_or(0, |last| lines.len().saturating_sub(last));
        for line in &lines[skipped..] {
            self.told.push_str(&format!("     {line}\n"));
        }
        if failed {
            let what = format!(
                "`quipu {line}` ended with {:?} instead of {expected}",
                output.status.code()
            );
            return Err(Failure::new(
                exit::NO,
                format!("{}\n  {what}", self.told),
                "report this as a bug",
            ));
        }
        Ok(())
    }

    /// Starts the flow and kills it midway. Returns whether it was still running.
    fn kill_a_run(&self) -> std::io::Result<bool> {
        let mut run = command(&self.program, &self.root, &["run", "--by", "rehearse"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        std::thread::sleep(BEFORE_THE_KILL);
        let alive = run.try_wait()?.is_none();
        run.kill()?;
        run.wait()?;
        Ok(alive)
    }

    /// Runs many processes at once and kills some. Returns the acknowledged lines.
    fn crowd(&self) -> std::io::Result<Vec<String>> {
        let mut acknowledged = Vec::new();
        for round in 0..APPENDS {
            let mut running = Vec::new();
            for agent in 0..AGENTS {
                let line = format!("- agent {agent}, entry {round}");
                let arguments = ["append", "audit-log.md", "--text", &line];
                let child = command(&self.program, &self.root, &arguments)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()?;
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
    command
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null());
    for name in ["QUIPU_ROLE", "QUIPU_UNIT", "QUIPU_AGENT", "QUIPU_LEASE"] {
        command.env_remove(name);
    }
    command
}

fn quote(argument: &str) -> String {
    let argument = argument.replace('\n', "\\n");
    if argument.contains([' ', '|', '#', '…', '\\']) {
        format!("\"{argument}\"")
    } else {
        argument
    }
}
