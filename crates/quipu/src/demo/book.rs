//! Writes a small book about Quipu's own source, from outline to pages.
//!
//! It needs no source tree: the source files of the book are embedded.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Shown, Stage, cannot_run, crowd, end};
use crate::answer::{Answer, Failure};

/// Delay before the run is killed.
const BEFORE_THE_KILL: Duration = Duration::from_millis(250);

/// The source files that the book describes.
const SOURCE: [(&str, &str); 7] = [
    (
        "contract/path.rs",
        include_str!("../../../contract/src/path.rs"),
    ),
    (
        "contract/pattern.rs",
        include_str!("../../../contract/src/pattern.rs"),
    ),
    (
        "contract/class.rs",
        include_str!("../../../contract/src/class.rs"),
    ),
    (
        "contract/access.rs",
        include_str!("../../../contract/src/access.rs"),
    ),
    (
        "store/journal.rs",
        include_str!("../../../store/src/journal/segments.rs"),
    ),
    (
        "store/record.rs",
        include_str!("../../../store/src/journal/record.rs"),
    ),
    (
        "store/lease.rs",
        include_str!("../../../store/src/lease/leases.rs"),
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

pub fn run(folder: Option<PathBuf>) -> Result<Answer, Failure> {
    let begun = Instant::now();
    let mut demo = Stage::new(folder, "quipu demo book")?;
    demo.create_project()?;
    demo.plan()?;
    demo.write()?;
    demo.enforce()?;
    demo.say(&format!(
        "5. {} agents append to one file at the same time, {} times each; some of them are killed.",
        crowd::AGENTS,
        crowd::APPENDS
    ));
    let acknowledged = demo.append_at_once("", "audit-log.md")?;
    demo.say("6. The journal records everything that happened, as a chain of hashes.");
    demo.show("", &["verify"], 0, Shown::All)?;

    let seconds = begun.elapsed().as_secs_f32();
    let place = demo.root.display();
    let text = format!(
        "Done in {seconds:.1} s. The book:\n  {place}/publish/index.html\n  \
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
    let json =
        json!({"root": place.to_string(), "pages": pages, "acknowledged": acknowledged, "lost": 0});
    Ok(end(demo, json, &text))
}

impl Stage {
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
        self.show("", &init, 0, Shown::Last(1))?;
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
        self.show("", &["run", "--by", "rehearse"], 0, Shown::Last(4))?;
        self.show("", &["approve", "approve-outline"], 0, Shown::All)
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
        self.show("", &["run", "--by", "rehearse"], 0, Shown::Last(3))
    }

    fn enforce(&mut self) -> Result<(), Failure> {
        self.say("4. The contract's rules are enforced.");
        let outline = ["write", "outline-final.md", "--text", "# Another outline"];
        self.show("", &outline, 3, Shown::All)?;
        let path = "drafts/ch02-draft.md";
        let draft = [
            "write", path, "--text", "…", "--as", "writer", "--unit", "ch01",
        ];
        self.show("", &draft, 3, Shown::All)
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

    /// Starts the flow and kills it midway. Returns whether it was still running.
    fn kill_a_run(&self) -> std::io::Result<bool> {
        let mut run = self
            .command("", &["run", "--by", "rehearse"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        std::thread::sleep(BEFORE_THE_KILL);
        let alive = run.try_wait()?.is_none();
        run.kill()?;
        run.wait()?;
        Ok(alive)
    }
}
