//! A power-cut simulator: records the block writes of real `quipu` commands on a real file system, builds the disks that a power cut
//! could have left, recovers each with a new boot id and compares the result with the journal as it was recorded.
//!
//! ```text
//! powercut [--fs ext4,xfs,btrfs] [--states 700] [--seed 1] [--commands 40] [--only STATE]
//! ```
//!
//! `--states` counts for each file system. It needs root, loop devices, FUSE and `qemu-storage-daemon`; where one of them is missing it
//! says so and exits with 2. A failed state prints the options that repeat it.

#![allow(clippy::unwrap_used)]

mod crash;
mod disk;
mod judge;
mod record;
mod workload;

use std::process::ExitCode;

use crash::Crash;
use disk::FileSystem;
use judge::Verdict;
use record::Unrecorded;

struct Options {
    systems: Vec<FileSystem>,
    states: u64,
    seed: u64,
    commands: usize,
    only: Option<u64>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { systems: FileSystem::ALL.to_vec(), states: 700, seed: 1, commands: 40, only: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} needs a number, not `{value}`"));
        match name.as_str() {
            "--fs" => options.systems = value.split(',').map(FileSystem::parse).collect::<Result<_, _>>()?,
            "--states" => options.states = number()?,
            "--seed" => options.seed = number()?,
            "--commands" => options.commands = usize::try_from(number()?).unwrap(),
            "--only" => options.only = Some(number()?),
            _ => return Err(format!("unknown option `{name}`")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(what) => return usage(&what),
    };
    let mut failed = 0;
    for system in &options.systems {
        if let Some(missing) = system.missing() {
            return usage(&format!("cannot run here: {missing}"));
        }
        let mut tally = Tally::default();
        // Other commands after every so many states.
        for part in 0..options.states.div_ceil(PART) {
            let states = options.only.map_or(0..PART.min(options.states - part * PART), |only| only..only + 1);
            let recorded = check_part(*system, options.seed + part, options.commands, states, &mut tally);
            match recorded {
                Ok(()) => {}
                Err(Unrecorded::NotPermitted(what)) => return usage(&format!("cannot run here: {what}")),
                Err(Unrecorded::Failed(what)) => {
                    tally.failed += 1;
                    println!("{system}, seed {}: nothing was recorded: {what}", options.seed + part);
                }
            }
        }
        let Tally { recovered, with_losses, unmountable, failed: of_system } = tally;
        println!(
            "{system}: {recovered} states recovered, {with_losses} of them with lost files; {of_system} failed; {unmountable} disks could not be mounted"
        );
        failed += of_system;
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// States of one recording.
const PART: u64 = 100;

#[derive(Default)]
struct Tally {
    recovered: u64,
    with_losses: u64,
    unmountable: u64,
    failed: u64,
}

fn check_part(system: FileSystem, seed: u64, commands: usize, states: std::ops::Range<u64>, tally: &mut Tally) -> Result<(), Unrecorded> {
    let folder = quipu_testkit::temp_folder();
    let recording = record::record(system, seed, commands, folder.path())?;
    let (writes, flushes) = recording.counts();
    println!("{system}, seed {seed}: {} commands acknowledged, {writes} block writes, {flushes} flushes", recording.acks.len());
    for state in states {
        let crash = Crash::draw(&recording, seed, state);
        let image = crash.image(&recording);
        match judge::judge(&recording, &crash, &image, folder.path(), state) {
            Verdict::Recovered { had_losses } => {
                tally.recovered += 1;
                tally.with_losses += u64::from(had_losses);
            }
            Verdict::Unmountable => tally.unmountable += 1,
            Verdict::Failed(what) => {
                tally.failed += 1;
                let next = recording.acks.get(crash.acked).map_or("the end", |ack| &ack.command);
                println!("{system}, state {state}: {crash}, before `{next}`\n  {what}");
                println!("  again: powercut --fs {system} --seed {seed} --commands {commands} --only {state}");
            }
        }
    }
    Ok(())
}

fn usage(what: &str) -> ExitCode {
    eprintln!("powercut: {what}");
    ExitCode::from(2)
}
