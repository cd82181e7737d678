//! `bench worldlog`: whether an earlier lesson is shown when a similar task starts, and what that
//! costs, beside a `LESSONS.md` that is read whole.
//!
//! The tasks and what their agents reported are plain files in `bench/worldlog`. Each task takes two
//! calls: `start --task` and one `finish` text. The match is right if the record of an earlier task
//! of the same kind is among the first two. Tokens are those of all arguments and answers.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quipu_text::Counter;
use serde_json::Value;

use crate::Outcome;
use crate::machine::program;

/// The number of matches that an agent is assumed to read.
const READ: usize = 2;

/// A task with its kind of fault, and the report of the agent that solved it.
struct Task {
    kind: String,
    agent: String,
    problem: String,
    /// What the agent suspected from the problem alone.
    suspect: String,
    report: String,
}

/// The result of one task.
struct Seen {
    task: String,
    /// Whether an earlier task of its kind was recorded.
    has_earlier: bool,
    /// The position of the first right match, counted from 1.
    right: Option<usize>,
    shown: usize,
    tokens: u64,
    /// The tokens of the same task with a `LESSONS.md`.
    rival: u64,
}

pub fn run(arguments: &[&str]) -> Outcome {
    let given = |name: &str| {
        let at = arguments.iter().position(|argument| *argument == name)?;
        arguments.get(at + 1).copied()
    };
    let texts = PathBuf::from(given("--tasks").unwrap_or("bench/worldlog"));
    let filler: usize = given("--filler").unwrap_or("0").parse()?;
    let folder = tempfile::tempdir()?;
    let mut trial = Trial {
        program: given("--program").map_or_else(program, Into::into),
        root: folder.path().to_owned(),
        suspects: !arguments.contains(&"--no-suspect"),
        kinds: BTreeMap::new(),
        lessons: String::new(),
    };
    trial.call("bea", &["init", "--profile", "worldlog"], "")?;
    for task in load(&texts.join("history"))? {
        trial.finish(&task, true)?;
    }
    for number in 0..filler {
        trial.finish(&unrelated(number), true)?;
    }
    let mut seen = Vec::new();
    for task in load(&texts.join("tasks"))? {
        seen.push(trial.task(&task)?);
    }
    let strangers: Vec<Seen> = load(&texts.join("strangers"))?
        .iter()
        .map(|task| trial.look(task))
        .collect::<Outcome<_>>()?;
    report(&seen, &strangers, trial.kinds.len());
    Ok(())
}

/// A project, and the `LESSONS.md` that an agent without Quipu would keep.
struct Trial {
    program: PathBuf,
    root: PathBuf,
    /// Whether the agents say what they suspect.
    suspects: bool,
    /// The kind of each recorded task, by the path of its record.
    kinds: BTreeMap<String, String>,
    lessons: String,
}

impl Trial {
    fn call(&self, agent: &str, words: &[&str], input: &str) -> Outcome<String> {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(&self.root);
        if words[0] != "init" {
            command.env("QUIPU_ROLE", "agent").env("QUIPU_AGENT", agent);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // A command that reads no input may have ended already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output()?;
        let (said, talk) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        if !output.status.success() {
            return Err(format!("quipu {}: {said}{talk}", words.join(" ")).into());
        }
        Ok(match words.contains(&"--json") {
            true => said,
            false => said + &talk,
        })
    }

    /// The arguments of a start.
    fn start<'t>(&self, task: &'t Task, flags: &[&'t str]) -> Vec<&'t str> {
        let mut words = vec!["start", "--task", &task.problem];
        if self.suspects && !task.suspect.is_empty() {
            words.extend(["--suspect", &task.suspect]);
        }
        words.extend(flags);
        words
    }

    /// The paths of the matches, best first.
    fn matches(&self, task: &Task) -> Outcome<Vec<String>> {
        let words = self.start(task, &["--peek", "--json"]);
        let told: Value = serde_json::from_str(&self.call(&task.agent, &words, "")?)?;
        let blocks = told["blocks"].as_array().cloned().unwrap_or_default();
        let found = blocks.iter().find(|block| block["name"] == "matches");
        let matches = found.and_then(|block| block["data"]["matches"].as_array().cloned());
        let sources = matches.unwrap_or_default().into_iter().map(|one| {
            let source = one["source"].as_str().unwrap_or_default();
            source
                .rsplit_once(':')
                .map_or(source, |(path, _)| path)
                .to_owned()
        });
        Ok(sources.collect())
    }

    /// What a task is shown, without starting it.
    fn look(&self, task: &Task) -> Outcome<Seen> {
        let matches = self.matches(task)?;
        let is_right = |path: &String| self.kinds.get(path) == Some(&task.kind);
        let words = self.start(task, &["--peek"]);
        let said = self.call(&task.agent, &words, "")?;
        Ok(Seen {
            task: format!(
                "{}: {}",
                task.kind,
                task.problem.lines().next().unwrap_or_default()
            ),
            has_earlier: self.kinds.values().any(|kind| *kind == task.kind),
            right: matches.iter().position(is_right).map(|at| at + 1),
            shown: matches.len(),
            tokens: tokens(&words.join(" ")) + tokens(&said),
            rival: tokens(&self.lessons),
        })
    }

    fn task(&mut self, task: &Task) -> Outcome<Seen> {
        let seen = self.look(task)?;
        self.call(&task.agent, &self.start(task, &[]), "")?;
        let before = self.lessons.len();
        let cost = self.finish(task, false)?;
        Ok(Seen {
            tokens: seen.tokens + cost,
            rival: seen.rival + tokens(&self.lessons[before..]),
            ..seen
        })
    }

    /// Records a task and adds a line to the rival's file. Returns the tokens of the call.
    fn finish(&mut self, task: &Task, whole: bool) -> Outcome<u64> {
        let problem = match whole {
            true => format!("## Problem\n\n{}\n\n", task.problem),
            false => String::new(),
        };
        let text = format!("{problem}{}\n\n## World\n\nnone\n", task.report);
        let said = self.call(&task.agent, &["finish", "--file", "-"], &text)?;
        for entry in std::fs::read_dir(self.root.join(".sessions"))? {
            let path = format!(".sessions/{}", entry?.file_name().to_string_lossy());
            self.kinds.entry(path).or_insert_with(|| task.kind.clone());
        }
        let learnt = |name: &str| {
            let (_, rest) = task
                .report
                .split_once(&format!("## {name}\n\n"))
                .unwrap_or_default();
            rest.split("\n\n")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        self.lessons.push_str(&format!(
            "- {}\n  {} → {}\n",
            task.problem,
            learnt("Cause"),
            learnt("Cure")
        ));
        Ok(tokens(&text) + tokens(&said))
    }
}

fn tokens(text: &str) -> u64 {
    Counter::O200k.count(text).0
}

fn load(folder: &Path) -> Outcome<Vec<Task>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Outcome<_>>()?;
    paths.sort();
    paths
        .iter()
        .map(|path| parse(&std::fs::read_to_string(path)?))
        .collect()
}

/// Parses `kind: …`, `agent: …`, then the texts below `# Start`, `# Suspect` and `# Finish`.
fn parse(text: &str) -> Outcome<Task> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
            .ok_or_else(|| format!("`{name}` is missing in {text}"))
    };
    let (_, rest) = text.split_once("# Start\n").ok_or("`# Start` is missing")?;
    let (start, report) = rest.split_once("\n# Finish\n").unwrap_or((rest, ""));
    let (problem, suspect) = start.split_once("\n# Suspect\n").unwrap_or((start, ""));
    Ok(Task {
        kind: field("kind:")?,
        agent: field("agent:")?,
        problem: problem.trim().to_owned(),
        suspect: suspect.trim().to_owned(),
        report: report.trim().to_owned(),
    })
}

/// A generated task that no other task resembles.
fn unrelated(number: usize) -> Task {
    const PARTS: [&str; 6] = ["gear", "valve", "pedal", "hinge", "spring", "lamp"];
    const DEEDS: [&str; 5] = ["oil", "weigh", "paint", "polish", "label"];
    let (part, deed) = (PARTS[number % 6], DEEDS[number / 6 % 5]);
    Task {
        kind: format!("filler {number}"),
        agent: ["otto", "bea", "mira"][number % 3].to_owned(),
        problem: format!("{deed} {part} {number} of the clock tower"),
        suspect: String::new(),
        report: format!(
            "## Solution\n\ndid {deed} {part} {number}\n\n## Cause\n\n{part} {number} was due\n\n\
             ## Cure\n\n{deed} it every spring"
        ),
    }
}

fn report(seen: &[Seen], strangers: &[Seen], records: usize) {
    for one in seen.iter().chain(strangers) {
        let verdict = match (one.has_earlier, one.right, one.shown) {
            (true, Some(at), _) => format!("right, number {at} of {}", one.shown),
            (true, None, shown) => format!("missed, {shown} shown"),
            (false, _, 0) => "silent".to_owned(),
            (false, _, shown) => format!("wrong, {shown} shown"),
        };
        println!("{verdict:<22} {:>5} tokens  {}", one.tokens, one.task);
    }
    let known = seen.iter().filter(|one| one.has_earlier);
    let right = known
        .clone()
        .filter(|one| one.right.is_some_and(|at| at <= READ));
    let silent = |all: &[&Seen]| all.iter().filter(|one| one.shown == 0).count();
    let new: Vec<&Seen> = seen.iter().filter(|one| !one.has_earlier).collect();
    let foreign: Vec<&Seen> = strangers.iter().collect();
    let of = |pick: fn(&Seen) -> u64| {
        let all = seen.iter().map(pick);
        (
            all.clone().sum::<u64>() / seen.len() as u64,
            all.max().unwrap_or(0),
        )
    };
    let (own, rival) = (of(|one| one.tokens), of(|one| one.rival));
    println!("\n{records} records at the end");
    println!("| | worldlog | LESSONS.md, read whole |\n|---|---|---|");
    println!(
        "| right lesson among the first {READ} | {} of {1} | {1} of {1}, somewhere in the file |",
        right.count(),
        known.count()
    );
    println!(
        "| silent, nothing earlier fits | {} of {} | 0 |",
        silent(&new),
        new.len()
    );
    println!(
        "| silent, tasks of other kinds | {} of {} | 0 |",
        silent(&foreign),
        foreign.len()
    );
    println!("| calls a task | 2 | 2 |");
    println!(
        "| tokens a task, mean and most | {}, {} | {}, {} |",
        own.0, own.1, rival.0, rival.1
    );
}
