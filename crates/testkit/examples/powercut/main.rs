//! A power-cut simulator. It records the block writes of real `quipu` commands on a real file
//! system, builds the disks that a power cut could have left, recovers each with a new boot id, and
//! compares the result with the recorded journal.
//!
//! ```text
//! powercut [--fs ext4,xfs,btrfs] [--states 700] [--seed 1] [--commands 40] [--only STATE]
//! ```
//!
//! `--states` counts per file system. The workload has commands, external edits that `quipu status`
//! records, restored and deleted files, and changes of the contract. In every fifth state the power
//! fails again during recovery. A failed state prints the options that repeat it. A full disk is
//! tested as well: see `full.rs`.
//!
//! It needs root, loop devices, FUSE and `qemu-storage-daemon`. Exit codes: 0 all states recovered,
//! 1 a state or a command failed, 2 this machine does not permit it ("cannot run here").

#![allow(clippy::unwrap_used)]

mod crash;
mod disk;
mod full;
mod judge;
mod record;
mod workload;

use std::fmt;
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
    let mut options = Options {
        systems: FileSystem::ALL.to_vec(),
        states: 700,
        seed: 1,
        commands: 40,
        only: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments
            .next()
            .ok_or_else(|| format!("{name} needs a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{name} needs a number, not `{value}`"))
        };
        match name.as_str() {
            "--fs" => {
                options.systems = value
                    .split(',')
                    .map(FileSystem::parse)
                    .collect::<Result<_, _>>()?
            }
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
        Err(what) => {
            eprintln!("powercut: {what}");
            return ExitCode::FAILURE;
        }
    };
    let (mut failed, mut skipped) = (0, None);
    if options.only.is_none() {
        match full::check(quipu_testkit::temp_folder().path()) {
            Ok(Ok(())) => println!("full ext4 with 1 KiB blocks: fine"),
            Ok(Err(what)) => {
                failed += 1;
                println!("full ext4 with 1 KiB blocks: {what}");
            }
            Err(what) => {
                eprintln!("powercut: a full disk cannot run here: {what}");
                skipped = Some(ExitCode::from(2));
            }
        }
    }
    for system in &options.systems {
        match check_system(*system, &options) {
            Ok(of_system) => failed += of_system,
            Err(what) => {
                eprintln!("powercut: {system} cannot run here: {what}");
                skipped = Some(ExitCode::from(2));
            }
        }
    }
    if failed > 0 {
        ExitCode::FAILURE
    } else {
        skipped.unwrap_or(ExitCode::SUCCESS)
    }
}

/// Returns the number of failed states, or the missing permission of this machine.
fn check_system(system: FileSystem, options: &Options) -> Result<u64, String> {
    if let Some(missing) = system.missing() {
        return Err(missing);
    }
    let mut tally = Tally::default();
    // Records other commands after every `PART` states.
    for part in 0..options.states.div_ceil(PART) {
        let states = PART.min(options.states - part * PART);
        let states = options.only.map_or(0..states, |only| only..only + 1);
        let seed = options.seed + part;
        match check_part(system, seed, options.commands, states, &mut tally) {
            Ok(()) => {}
            // Later parts need no permission that the first did not need.
            Err(Unrecorded::NotPermitted(what)) if part == 0 => return Err(what),
            Err(Unrecorded::NotPermitted(what) | Unrecorded::Failed(what)) => {
                tally.failed += 1;
                println!("{system}, seed {seed}: nothing was recorded: {what}");
            }
        }
    }
    println!("{system}: {tally}");
    if tally.recovered == 0 && tally.failed == 0 {
        println!("{system}: no state was checked");
        return Ok(1);
    }
    Ok(tally.failed)
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

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            recovered,
            with_losses,
            unmountable,
            failed,
        } = self;
        write!(
            f,
            "{recovered} states recovered, {with_losses} of them with lost files; {failed} failed; "
        )?;
        write!(f, "{unmountable} disks could not be mounted")
    }
}

fn check_part(
    system: FileSystem,
    seed: u64,
    commands: usize,
    states: std::ops::Range<u64>,
    tally: &mut Tally,
) -> Result<(), Unrecorded> {
    let folder = quipu_testkit::temp_folder();
    let recording = record::record(system, seed, commands, folder.path())?;
    let (writes, flushes) = recording.log.counts();
    let near: Vec<u64> = recording.acks.iter().map(|ack| ack.log_bytes).collect();
    println!(
        "{system}, seed {seed}: {} commands acknowledged, {writes} block writes, {flushes} flushes",
        recording.acks.len()
    );
    for state in states {
        let crash = Crash::draw(&recording.log, &near, seed, state);
        let image = crash.image(&recording.log);
        match judge::judge(&recording, &crash, &image, folder.path(), state) {
            Verdict::Recovered { had_losses } => {
                tally.recovered += 1;
                tally.with_losses += u64::from(had_losses);
            }
            Verdict::Unmountable => tally.unmountable += 1,
            Verdict::Failed(what) => {
                tally.failed += 1;
                let acked = recording.acked(&crash);
                let next = recording
                    .acks
                    .get(acked)
                    .map_or("the end", |ack| &ack.command);
                println!(
                    "{system}, state {state}: {crash}, {acked} commands acknowledged, before `{next}`\n  {what}"
                );
                println!(
                    "  again: powercut --fs {system} --seed {seed} --commands {commands} --only {state}"
                );
            }
        }
    }
    Ok(())
}
