//! Measures how long a command takes to start, beside `git --version`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::machine::{describe, median};

const RUNS: usize = 40;

pub fn run() {
    let quipu = program();
    let project = tempfile::tempdir().unwrap();
    let init = Command::new(&quipu)
        .args(["init", "--profile", "book"])
        .current_dir(project.path())
        .output()
        .unwrap();
    assert!(
        init.status.success(),
        "{}",
        String::from_utf8_lossy(&init.stderr)
    );
    println!("milliseconds a command, median of {RUNS} runs, the commands taking turns");
    println!("{}\n", describe());
    let quipu = quipu.to_str().unwrap();
    let commands: [(&str, Vec<&str>); 7] = [
        ("git --version", vec!["git", "--version"]),
        ("git status (same folder)", vec!["git", "status"]),
        ("quipu --version", vec![quipu, "--version"]),
        ("quipu contract show", vec![quipu, "contract", "show"]),
        ("quipu read", vec![quipu, "read", "meta/glossary.md"]),
        (
            "quipu append",
            vec![quipu, "append", "audit-log.md", "--text", "x"],
        ),
        ("quipu status", vec![quipu, "status"]),
    ];
    Command::new("git")
        .args(["init", "-q"])
        .current_dir(project.path())
        .status()
        .unwrap();
    let mut times = vec![Vec::new(); commands.len()];
    for _ in 0..RUNS {
        for (index, (_, words)) in commands.iter().enumerate() {
            times[index].push(time(words, project.path()));
        }
    }
    println!("| command | ms | × git --version |");
    println!("|---|---|---|");
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    for ((name, _), ms) in commands.iter().zip(&medians) {
        println!("| {name} | {ms:.1} | {:.1} |", ms / medians[0]);
    }
}

fn time(words: &[&str], folder: &Path) -> f64 {
    let start = Instant::now();
    let status = Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{words:?}");
    start.elapsed().as_secs_f64() * 1000.0
}

/// The path of the `quipu` binary, built beside this one.
pub fn program() -> std::path::PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name("quipu");
    assert!(path.exists(), "build it first: cargo build --release");
    path
}
