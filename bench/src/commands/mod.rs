//! `bench commands`: wall and CPU time of one call of the program, beside other tools in one run.
//!
//! Each case runs in a project of its own copy, at each number of concurrent clients. With
//! `--beside` a second build of the program takes turns with the first, so that both see the same
//! disk and the same load.

mod calls;
mod project;
mod rate;

use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::machine::{describe, median, program};
use calls::{Case, Measured, Place, cases};

pub use rate::write;

const USAGE: &str = "usage: bench commands [--program PATH] [--beside PATH] [--clients 1,8,32] [--commits 100,10000] [--files 100,10000] [--rounds 5] [--only NAME,NAME]";

struct Plan {
    programs: Vec<PathBuf>,
    clients: Vec<usize>,
    commits: Vec<usize>,
    files: Vec<usize>,
    rounds: usize,
    only: Vec<String>,
}

impl Plan {
    fn parse(arguments: &[&str]) -> Outcome<Plan> {
        let mut plan = Plan {
            programs: Vec::new(),
            clients: vec![1, 8, 32],
            commits: vec![100, 10_000],
            files: vec![100, 10_000],
            rounds: 5,
            only: Vec::new(),
        };
        let (mut first, mut second) = (None, None);
        let numbers = |value: &str| value.split(',').map(str::parse).collect::<Result<_, _>>();
        for pair in arguments.chunks(2) {
            let [name, value] = *pair else {
                return Err(USAGE.into());
            };
            match name {
                "--program" => first = Some(PathBuf::from(value)),
                "--beside" => second = Some(PathBuf::from(value)),
                "--clients" => plan.clients = numbers(value)?,
                "--commits" => plan.commits = numbers(value)?,
                "--files" => plan.files = numbers(value)?,
                "--rounds" => plan.rounds = value.parse()?,
                "--only" => plan.only = value.split(',').map(str::to_owned).collect(),
                _ => return Err(USAGE.into()),
            }
        }
        plan.programs.push(first.unwrap_or_else(program));
        plan.programs.extend(second);
        Ok(plan)
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()))
    }
}

pub fn run(arguments: &[&str]) -> Outcome {
    let plan = Plan::parse(arguments)?;
    println!("    bench commands {}\n", arguments.join(" "));
    println!(
        "Milliseconds a call: median of the wall clock, CPU (user and system) of a call; medians of {} rounds",
        plan.rounds
    );
    println!("{}\n", describe());
    let columns = "commits | files | clients | command | wall ms | CPU ms";
    match plan.programs.get(1) {
        Some(other) => println!(
            "| {columns} | wall, {other} | CPU, {other} | wall × | CPU × |\n|---|---|---|---|---|---|---|---|---|---|",
            other = other.display()
        ),
        None => println!("| {columns} |\n|---|---|---|---|---|---|"),
    }
    for commits in &plan.commits {
        for files in &plan.files {
            size(&plan, *commits, *files)?;
        }
    }
    println!();
    if plan.wants("writers") {
        rate::run(&plan.clients)?;
    }
    Ok(())
}

/// All cases in projects of one size.
fn size(plan: &Plan, commits: usize, files: usize) -> Outcome {
    let parent = std::env::var("QUIPU_BENCH_DIR").unwrap_or_else(|_| ".".into());
    let folder = tempfile::tempdir_in(parent)?;
    let places = project::build(folder.path(), &plan.programs, commits, files)?;
    for case in cases().iter().filter(|case| plan.wants(case.name)) {
        let Some(places) = case.places(&places, folder.path()) else {
            println!(
                "| {commits} | {files} | | {} | not installed | |",
                case.name
            );
            continue;
        };
        for clients in &plan.clients {
            let measured = alternate(case, &places, *clients, plan.rounds)?;
            row(&[commits, files, *clients], case, &measured);
        }
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
            if round > 0 {
                all[index].push(measured);
            }
        }
    }
    let middle = |of: &dyn Fn(&Measured) -> f64, all: &[Measured]| {
        median(all.iter().map(of).collect::<Vec<_>>())
    };
    Ok(all
        .iter()
        .map(|all| Measured {
            wall: middle(&|m| m.wall, all),
            cpu: middle(&|m| m.cpu, all),
            failed: all.iter().map(|m| m.failed).sum(),
        })
        .collect())
}

fn row(size: &[usize], case: &Case, measured: &[Measured]) {
    let first = measured[0];
    let failed = match first.failed {
        0 => String::new(),
        count => format!(" ({count} failed)"),
    };
    print!(
        "| {} | {} | {} | {}{failed} | {:.2} | {:.2} |",
        size[0], size[1], size[2], case.name, first.wall, first.cpu
    );
    if let Some(other) = measured.get(1) {
        print!(
            " {:.2} | {:.2} | {:.2} | {:.2} |",
            other.wall,
            other.cpu,
            first.wall / other.wall,
            first.cpu / other.cpu
        );
    }
    println!();
}

/// Whether a program can be started by its name.
fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(name).is_file())
}
