//! Durable commits a second of many processes, and whether one was lost.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use quipu_contract::{Actor, ProjectPath};
use quipu_store::{Change, Options, Store};

use crate::Outcome;
use crate::small::{contract, prepare};

const COMMITS: usize = 1920;

pub fn run(clients: &[usize]) -> Outcome {
    println!(
        "Durable commits a second of processes that keep the store open, each commit one append to one file.\n"
    );
    println!("| writers | commits/s | lost |\n|---|---|---|");
    for writers in clients {
        let parent = std::env::var("QUIPU_BENCH_DIR").unwrap_or_else(|_| ".".into());
        let folder = tempfile::tempdir_in(parent)?;
        prepare(folder.path());
        let each = COMMITS / writers;
        let mut children = Vec::new();
        for index in 0..*writers {
            let mut child = Command::new(std::env::current_exe()?)
                .arg("commands-writer")
                .arg(folder.path())
                .args([index.to_string(), each.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new())?;
            children.push(child);
        }
        let start = Instant::now();
        for child in &mut children {
            child.stdin.take().unwrap().write_all(b"g")?;
        }
        for mut child in children {
            if !child.wait()?.success() {
                return Err("a writer failed".into());
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let text = std::fs::read_to_string(folder.path().join("log.md"))?;
        let found = text
            .lines()
            .filter(|line| line.starts_with("writer "))
            .count();
        let total = each * writers;
        println!(
            "| {writers} | {:.0} | {} |",
            total as f64 / seconds,
            total - found
        );
    }
    Ok(())
}

/// One writer: says that it is ready, waits for a byte, commits.
pub fn write(folder: &Path, index: &str, commits: usize) -> Outcome {
    let store = Store::open(folder, contract(), Options::default())?;
    store.settle()?;
    println!("ready");
    std::io::stdin().read_exact(&mut [0])?;
    let path = ProjectPath::parse("log.md")?;
    for number in 0..commits {
        let line = format!("writer {index} {number} {}\n", "x".repeat(480));
        store
            .validate(Change::by(&Actor::Person).append(&path, line))?
            .publish()?;
    }
    Ok(())
}
