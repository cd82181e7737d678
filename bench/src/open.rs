//! Measures opening a project with a long history. The cost must not grow with the length of the
//! journal.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use quipu_contract::{Actor, ProjectPath};
use quipu_store::{Change, Expect, Options, Store};

use crate::machine::{describe, median};
use crate::startup::program;
use crate::writers::contract;

const CONTRACT: &str = "quipu = 1\n[[files]]\npath = \"log.md\"\nclass = \"append\"\n[[files]]\npath = \"drafts/**\"\nclass = \"overwrite\"\n";

pub fn run(arguments: &[&str]) {
    let commits: usize = arguments
        .first()
        .and_then(|a| a.parse().ok())
        .unwrap_or(1_000_000);
    let files: usize = arguments
        .get(1)
        .and_then(|a| a.parse().ok())
        .unwrap_or(100_000);
    println!("{}\n", describe());
    println!(
        "| commits | files | open+read (ms) | append (ms) | log -n 20 (ms) | status (ms) | journal MB |"
    );
    println!("|---|---|---|---|---|---|---|");
    let folder =
        tempfile::tempdir_in(std::env::var("QUIPU_BENCH_DIR").unwrap_or_else(|_| ".".into()))
            .unwrap();
    row(folder.path(), 100, files.min(100));
    let folder =
        tempfile::tempdir_in(std::env::var("QUIPU_BENCH_DIR").unwrap_or_else(|_| ".".into()))
            .unwrap();
    row(folder.path(), commits, files);
}

fn row(root: &Path, commits: usize, files: usize) {
    std::fs::write(root.join("quipu.toml"), CONTRACT).unwrap();
    Store::init(root).unwrap();
    let mut whole = (*contract()).clone();
    whole.files = quipu_contract::resolve_contract(
        &quipu_contract::Source::new("quipu.toml", CONTRACT),
        &|name, _| Err(name.to_owned()),
    )
    .unwrap()
    .files;
    let store = Store::open(root, Arc::new(whole), Options::default()).unwrap();
    let path = |index: usize| {
        ProjectPath::parse(&format!("drafts/{:03}/f{index}.md", index % 1000)).unwrap()
    };
    // Many commits of several files, then many small ones: all files exist and the journal is long.
    for chunk in (0..files).collect::<Vec<_>>().chunks(100) {
        let change = chunk.iter().fold(Change::by(&Actor::Person), |c, i| {
            c.write(&path(*i), format!("file {i}\n"), Expect::Any)
        });
        store.judge(change).unwrap().publish_behind().unwrap();
    }
    store.settle().unwrap();
    let so_far = files.div_ceil(100);
    let log = ProjectPath::parse("log.md").unwrap();
    for number in so_far..commits {
        let change = Change::by(&Actor::Person).append(&log, format!("entry {number}\n"));
        store.judge(change).unwrap().publish_behind().unwrap();
        if number % 64 == 0 {
            store.settle().unwrap();
        }
    }
    store.settle().unwrap();
    drop(store);
    let journal: u64 = std::fs::read_dir(root.join(".quipu/journal"))
        .unwrap()
        .map(|e| e.unwrap().metadata().unwrap().len())
        .sum();
    let read = times(root, &["read", "drafts/000/f0.md"], 15);
    let append = times(root, &["append", "log.md", "--text", "x"], 15);
    let log = times(root, &["log"], 5);
    let status = times(root, &["status"], 3);
    println!(
        "| {commits} | {files} | {read:.1} | {append:.1} | {log:.1} | {status:.1} | {:.0} |",
        journal as f64 / 1e6
    );
}

fn times(root: &Path, arguments: &[&str], runs: usize) -> f64 {
    median(
        (0..runs)
            .map(|_| {
                let start = Instant::now();
                let output = Command::new(program())
                    .args(arguments)
                    .current_dir(root)
                    .stdout(Stdio::null())
                    .output()
                    .unwrap();
                assert!(
                    output.status.success(),
                    "{arguments:?}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
                start.elapsed().as_secs_f64() * 1000.0
            })
            .collect(),
    )
}
