//! `bench commands`: wall and CPU time of one call of the program, beside other tools in one run.
//!
//! Each program has a copy of the project. With `--beside` a second build takes turns with the
//! first, so that both see the same disk and the same load.

mod calls;
mod project;
mod rate;

use crate::Outcome;
use crate::machine::{describe, median, program};
use calls::{Case, Measured, Place, cases};

pub use rate::write;

pub fn run(arguments: &[&str]) -> Outcome {
    let given = |name: &str| {
        let at = arguments.iter().position(|argument| *argument == name)?;
        arguments.get(at + 1).copied()
    };
    let numbers = |name: &str, default: &'static str| {
        let list = given(name).unwrap_or(default).split(',');
        list.map(str::parse).collect::<Result<Vec<usize>, _>>()
    };
    let clients = numbers("--clients", "1,8,32")?;
    let rounds = numbers("--rounds", "5")?[0];
    let mut programs = vec![given("--program").map_or_else(program, Into::into)];
    programs.extend(given("--beside").map(Into::into));
    let wants = |name: &str| given("--only").is_none_or(|o| o.split(',').any(|o| name.contains(o)));

    println!(
        "    bench commands {}\n\n{}\n",
        arguments.join(" "),
        describe()
    );
    println!(
        "Milliseconds a call: median of the wall clock, mean CPU of user and system; {rounds} rounds"
    );
    println!(
        "\n| commits | files | clients | command | wall | CPU | wall, beside | CPU, beside | wall × | CPU × |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for commits in numbers("--commits", "100,10000")? {
        for files in numbers("--files", "100,10000")? {
            let parent = std::env::var("QUIPU_BENCH_DIR").unwrap_or_else(|_| ".".into());
            let folder = tempfile::tempdir_in(parent)?;
            let places = project::build(folder.path(), &programs, commits, files)?;
            for case in cases().iter().filter(|case| wants(case.name)) {
                let Some(places) = case.places(&places, folder.path()) else {
                    println!("| | | | {} | not installed | | | | | |", case.name);
                    continue;
                };
                for clients in &clients {
                    let measured = alternate(case, &places, *clients, rounds)?;
                    print!("| {commits} | {files} | {clients} | {}", case.name);
                    row(&measured);
                }
            }
        }
    }
    if wants("writers") {
        rate::run(&clients)?;
    }
    Ok(())
}

/// Rounds of calls, the places taking turns; the first round fills caches and does not count.
fn alternate(
    case: &Case,
    places: &[Place],
    clients: usize,
    rounds: usize,
) -> Outcome<Vec<Measured>> {
    let mut all: Vec<Vec<Measured>> = vec![Vec::new(); places.len()];
    for round in 0..=rounds {
        for turn in 0..places.len() {
            let index = (round + turn) % places.len();
            let measured = case.measure(&places[index], clients)?;
            all[index].extend((round > 0).then_some(measured));
        }
    }
    let summary = all.iter().map(|all| Measured {
        wall: median(all.iter().map(|m| m.wall).collect()),
        // The kernel counts it in hundredths of a second: a mean over all rounds is finer.
        cpu: all.iter().map(|m| m.cpu).sum::<f64>() / all.len() as f64,
        failed: all.iter().map(|m| m.failed).sum(),
    });
    Ok(summary.collect())
}

fn row(measured: &[Measured]) {
    let first = measured[0];
    if first.failed > 0 {
        print!(" ({} failed)", first.failed);
    }
    print!(" | {:.2} | {:.2} |", first.wall, first.cpu);
    match measured.get(1) {
        Some(second) => println!(
            " {:.2} | {:.2} | {:.2} | {:.2} |",
            second.wall,
            second.cpu,
            first.wall / second.wall,
            first.cpu / second.cpu
        ),
        None => println!(" | | | |"),
    }
}
