//! Measures `start` and `finish` of a session in a large project, beside `git status`.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use crate::machine::{describe, median};
use crate::startup::program;

const RUNS: usize = 15;

pub fn run(arguments: &[&str]) {
    let files: usize = arguments
        .first()
        .and_then(|a| a.parse().ok())
        .unwrap_or(10_000);
    let folder =
        tempfile::tempdir_in(std::env::var("QUIPU_BENCH_DIR").unwrap_or_else(|_| ".".into()))
            .unwrap();
    let root = folder.path();
    build(root, files);
    println!(
        "{files} files, half of them sessions; {RUNS} runs each: median by the clock, mean of user and system CPU"
    );
    println!("{}\n", describe());
    let quipu = program();
    let quipu = quipu.to_str().unwrap();
    let task = "NameError: undefined name in part 77";
    let finish = [
        quipu,
        "finish",
        "--problem",
        task,
        "--solution",
        "mended",
        "--rounds",
        "2",
        "--lesson",
        "none",
        "--did",
        "x",
    ];
    let commands: [(&str, Vec<&str>); 5] = [
        ("git status", vec!["git", "status", "--short"]),
        ("quipu start", vec![quipu, "start"]),
        ("quipu start --task", vec![quipu, "start", "--task", task]),
        (
            "quipu finish",
            [&finish[..], &["--next", "y", "--none", "decisions,world"]].concat(),
        ),
        ("quipu metrics", vec![quipu, "metrics"]),
    ];
    println!("| command | ms | CPU ms |\n|---|---|---|");
    for (name, words) in &commands {
        let before = spent_by_children();
        let wall = median((0..RUNS).map(|_| time(words, root)).collect());
        // The kernel counts CPU time in hundredths of a second, so the figure is an average over
        // all runs.
        println!(
            "| {name} | {wall:.1} | {:.1} |",
            (spent_by_children() - before) / RUNS as f64
        );
    }
}

/// Builds a project with both profiles and this many files: sessions of one agent, and notes of
/// others.
fn build(root: &Path, files: usize) {
    let good = |output: Output| {
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        )
    };
    let call = |arguments: &[&str]| {
        good(
            Command::new(program())
                .args(arguments)
                .current_dir(root)
                .output()
                .unwrap(),
        )
    };
    call(&["init", "--profile", "relay,worldlog"]);
    for number in 0..files / 2 {
        let (day, month) = (number % 28 + 1, number / 28 % 12 + 1);
        let name = format!("2025-{month:02}-{day:02}_debug_undefined_part_{number}");
        let mut text = format!(
            "# Session: {name}\n\n## Task\n\n- Agent: otto\n- Type: debug\n\n## Problem\n\nNameError in part {number}\n"
        );
        let pattern = if number % 3 == 0 {
            "Undefined name"
        } else {
            "none"
        };
        write!(
            text,
            "\n## Execution\n\n- Pattern: {pattern}\n- Rounds: {}\n- Steps: find; mend; test\n",
            number % 9 + 1
        )
        .unwrap();
        std::fs::write(root.join(format!(".sessions/{name}.md")), text).unwrap();
        let notes = root.join(format!(".notes/a{number}"));
        std::fs::create_dir_all(&notes).unwrap();
        std::fs::write(
            notes.join("agent_knowledge.md"),
            "# Knowledge\n\n## Statistics\n\n- Tasks: 0\n",
        )
        .unwrap();
    }
    // The first command records the files as external edits, once.
    call(&["status"]);
    good(
        Command::new("git")
            .args(["init", "-q"])
            .current_dir(root)
            .output()
            .unwrap(),
    );
    good(
        Command::new("git")
            .args(["add", "-A"])
            .current_dir(root)
            .output()
            .unwrap(),
    );
}

/// Elapsed milliseconds.
fn time(words: &[&str], root: &Path) -> f64 {
    let start = Instant::now();
    let output = Command::new(words[0])
        .args(&words[1..])
        .env("QUIPU_ROLE", "agent")
        .env("QUIPU_AGENT", "otto")
        .current_dir(root)
        .output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    start.elapsed().as_secs_f64() * 1000.0
}

/// User and system CPU time of children that have exited, in milliseconds.
fn spent_by_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The command name may hold any character, so the fields are counted after it: cutime and
    // cstime are the fourteenth and fifteenth.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .collect();
    let ticks = |index: usize| {
        fields
            .get(index)
            .and_then(|f| f.parse::<f64>().ok())
            .unwrap_or(f64::NAN)
    };
    (ticks(13) + ticks(14)) * 10.0
}
