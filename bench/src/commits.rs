//! Measures commits per second with 1, 8 and 32 writers, as threads and as processes, beside other
//! stores.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use quipu_store::{Options, Store};

use crate::machine::{describe, median};
use crate::writers::{Rival, Work, Writer, contract, prepare, wait_ready};

/// Arguments: `[ROUNDS] [one-append|four-files] [threads|processes] [WIDTH…]`. Without a filter,
/// everything is measured.
pub fn run(arguments: &[&str]) {
    let rounds: usize = arguments.first().and_then(|a| a.parse().ok()).unwrap_or(3);
    let wanted = |names: &[&str], name: &str| {
        arguments.contains(&name) || !names.iter().any(|n| arguments.contains(n))
    };
    let widths: Vec<usize> = arguments
        .iter()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    println!(
        "commits/s, median of {rounds} rounds; in brackets: Quipu's speed as a multiple of the rival's in the same round (median), first"
    );
    println!(
        "acknowledged when durable (the clock stops when every file is in place), then with its files in place before each acknowledgement"
    );
    println!("{}\n", describe());
    for work in [Work::OneAppend, Work::FourFiles]
        .into_iter()
        .filter(|w| wanted(&["one-append", "four-files"], w.name()))
    {
        println!(
            "| {} | writers | quipu, durable | quipu, in place | sqlite WAL FULL | raw fdatasync append | temp+fsync+rename |",
            work.name()
        );
        println!("|---|---|---|---|---|---|---|");
        for (kind, threads) in [("threads", true), ("processes", false)]
            .into_iter()
            .filter(|k| wanted(&["threads", "processes"], k.0))
        {
            for writers in [1, 8, 32]
                .into_iter()
                .filter(|w| widths.is_empty() || widths.contains(w))
            {
                let mut speeds: Vec<Vec<f64>> = vec![Vec::new(); Rival::ALL.len()];
                for round in 0..rounds {
                    // The stores take turns within a round, so that a slow moment of the disk
                    // affects all of them. Each round starts with a different store, because work
                    // that one leaves to the disk delays the next.
                    for index in (0..Rival::ALL.len()).map(|turn| (round + turn) % Rival::ALL.len())
                    {
                        speeds[index].push(measure(Rival::ALL[index], work, writers, threads));
                    }
                }
                let of = |index: usize| median(speeds[index].clone());
                // The ratio is computed per round: disk latency changes from minute to minute, and
                // a round is short.
                let ratio = |ours: usize, theirs: usize| {
                    median(
                        speeds[ours]
                            .iter()
                            .zip(&speeds[theirs])
                            .map(|(o, t)| o / t)
                            .collect(),
                    )
                };
                let rivals = (2..Rival::ALL.len()).map(|rival| {
                    format!(
                        "{:.0} ({:.2}, {:.2})",
                        of(rival),
                        ratio(0, rival),
                        ratio(1, rival)
                    )
                });
                println!(
                    "| {kind} | {writers} | {:.0} | {:.0} | {} |",
                    of(0),
                    of(1),
                    rivals.collect::<Vec<_>>().join(" | ")
                );
            }
        }
        println!();
    }
}

fn measure(rival: Rival, work: Work, writers: usize, threads: bool) -> f64 {
    let folder =
        tempfile::tempdir_in(std::env::var("QUIPU_BENCH_DIR").unwrap_or_else(|_| ".".into()))
            .unwrap();
    prepare(rival, folder.path());
    let each = rival.commits(work) / writers;
    let seconds = if threads {
        by_threads(rival, work, folder.path(), writers, each)
    } else {
        by_processes(rival, work, folder.path(), writers, each)
    };
    (each * writers) as f64 / seconds
}

fn by_threads(rival: Rival, work: Work, folder: &Path, writers: usize, each: usize) -> f64 {
    let shared = matches!(rival, Rival::QuipuDurable | Rival::QuipuInPlace)
        .then(|| Arc::new(Store::open(folder, contract(), Options::default()).unwrap()));
    let barrier = Barrier::new(writers + 1);
    std::thread::scope(|scope| {
        for index in 0..writers {
            let (shared, barrier) = (&shared, &barrier);
            scope.spawn(move || {
                let mut writer = Writer::open(rival, folder, shared.as_ref());
                barrier.wait();
                for number in 0..each {
                    writer.commit(work, index, number);
                }
                writer.finish();
                barrier.wait();
            });
        }
        barrier.wait();
        let start = Instant::now();
        barrier.wait();
        start.elapsed().as_secs_f64()
    })
}

fn by_processes(rival: Rival, work: Work, folder: &Path, writers: usize, each: usize) -> f64 {
    let program = std::env::current_exe().unwrap();
    let mut children: Vec<_> = (0..writers)
        .map(|index| {
            Command::new(&program)
                .args(["commits-writer", rival.name(), work.name()])
                .arg(folder)
                .args([index.to_string(), each.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    children.iter_mut().for_each(wait_ready);
    let start = Instant::now();
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"g").unwrap();
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    start.elapsed().as_secs_f64()
}
