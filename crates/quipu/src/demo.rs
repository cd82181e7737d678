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
        include_str!("../../store/src/journal.rs"),
    ),
    ("store/record.rs", include_str!("../../store/src/record.rs")),
    ("store/lease.rs", include_str!("../../store/src/lease.rs")),
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
    let io = |e: std::io::Error| Failure::new(exit::IO, format!("the demo cannot run: {e}"), "");
    let root = match folder {
        Some(folder) => folder,
        None => tempfile::Builder::new()
            .prefix("quipu-demo-")
            .tempdir()
            .map_err(io)?
            .keep(),
    };
    std::fs::create_dir_all(&root).map_err(io)?;
    if root.join("quipu.toml").exists() {
        let what = format!("`{}` holds a project already", root.display());
        return Err(Failure::new(
            exit::REFUSED,
            what,
            "quipu demo DIR     (a folder of its own)",
        ));
    }
    let root = std::fs::canonicalize(root).map_err(io)?;
    let mut demo = Demo {
        program: std::env::current_exe().map_err(io)?,
        root: root.clone(),
        told: String::new(),
    };

    demo.say("1. A project: files, their classes, who may write what; and the source that the book is about.");
    demo.show(
        &[
            "init",
            "--profile",
            "book",
            "--var",
            "project=Quipu from Inside",
            "--var",
            "words=700",
        ],
        0,
        Some(1),
    )?;
    demo.lay_source().map_err(io)?;
    demo.told.push_str(&format!(
        "   4 chapters are in quipu.toml, {} files of Quipu's own source in source/\n",
        SOURCE.len()
    ));

    demo.say("2. Agents plan the book, a person approves. Here every agent is the rehearsal: offline, and it invents nothing.");
    demo.show(&["run", "--by", "rehearse"], 0, Some(4))?;
    demo.show(&["approve", "approve-outline"], 0, None)?;

    demo.say("3. They write it: research, drafts, three reviews, three readers, memory, pages. The run is killed on the way, and goes on.");
    let alive = demo.kill_a_run().map_err(io)?;
    let how = if alive {
        "killed while it worked"
    } else {
        "it had ended before it could be killed"
    };
    demo.told
        .push_str(&format!("   $ quipu run --by rehearse     ({how})\n"));
    demo.show(&["run", "--by", "rehearse"], 0, Some(3))?;

    demo.say("4. Rules are enforced, not hoped for.");
    demo.show(
        &["write", "outline-final.md", "--text", "# Another outline"],
        3,
        None,
    )?;
    demo.show(
        &[
            "write",
            "drafts/ch02-draft.md",
            "--text",
            "…",
            "--as",
            "writer",
            "--unit",
            "ch01",
        ],
        3,
        None,
    )?;

    demo.say(&format!("5. {AGENTS} agents append to one file at once, {APPENDS} times each; some are killed on the way."));
    let acknowledged = demo.crowd().map_err(io)?;
    let kept = std::fs::read_to_string(root.join("audit-log.md")).unwrap_or_default();
    let lost = acknowledged
        .iter()
        .filter(|line| !kept.contains(line.as_str()))
        .count();
    demo.told.push_str(&format!(
        "   {} started, {} acknowledged, {lost} of those lost\n",
        AGENTS * APPENDS,
        acknowledged.len()
    ));
    if lost > 0 || acknowledged.is_empty() {
        let what = format!(
            "{}\n  the demo lost an acknowledged write, or none was acknowledged",
            demo.told
        );
        return Err(Failure::new(exit::NO, what, "report this"));
    }

    demo.say("6. Everything that happened is in the journal, chained by hash.");
    demo.show(&["verify"], 0, None)?;

    let seconds = begun.elapsed().as_secs_f32();
    let told = demo.told;
    let place = root.display();
    let text = format!(
        "{told}\nDone in {seconds:.1} s. The book:\n  {place}/publish/index.html\n  {place}/publish/book.epub\n\
         \nTry in {place}:\n  quipu serve --open                  all of this in a browser, live\n  quipu status\n  quipu replay write/ch04             what the writer of chapter 4 saw\n  quipu view writer --unit ch04       what it would see now\n  quipu blame meta/glossary.md        which commit brought each term\n  quipu run --dry-run --again --step write    tokens and costs with a real agent\n  quipu run --by claude --again --step write --unit ch02    the same flow with one, if it is installed\n"
    );
    let pages = [
        format!("{place}/publish/index.html"),
        format!("{place}/publish/book.epub"),
    ];
    Ok(Answer::new(
        json!({"root": place.to_string(), "pages": pages, "acknowledged": acknowledged.len(), "lost": lost}),
        text,
    ))
}

impl Demo {
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
            .map_err(|e| {
                Failure::new(exit::IO, format!("the demo cannot start itself: {e}"), "")
            })?;
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
                "report this",
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
