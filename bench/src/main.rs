//! Benchmarks, reported as ratios against other tools in the same run. Tests never assert on them.

#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run says so and stops"
)]

mod build_size;
mod claims;
mod commits;
mod fleet;
mod hooks;
mod hosts;
mod layout;
mod machine;
mod open;
mod recall;
mod search;
mod start;
mod startup;
mod writers;

use std::path::Path;
use std::process::ExitCode;

/// A benchmark may fail with any error; `main` prints it.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str =
    "usage: cargo run --release -p bench -- commits [ROUNDS] [one-append|four-files] [threads|processes] [WIDTH…] | open [COMMITS FILES] | start [FILES] | startup | hooks [FILES] | build-size | fleet [COMMITS] [commits] [lone] [claims] [hosts]
       | recall FOLDER [--no-model] [--keep DIR] | search [SECTIONS…] [--model] [--keep DIR]
       | claims FOLDER [--judge command:PROGRAM] | claims synthetic";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["commits", rest @ ..] => {
            commits::run(rest);
            Ok(())
        }
        ["commits-writer", rest @ ..] => {
            writers::child(rest);
            Ok(())
        }
        // Prepares the folder of one store, to inspect it with strace or perf.
        ["prepare", rival, folder] => {
            writers::prepare_named(rival, Path::new(folder));
            Ok(())
        }
        // Asks one question in a new process, to inspect it with strace or perf.
        ["ask", folder, question, rest @ ..] => {
            search::once(Path::new(folder), question, !rest.contains(&"--no-model"))
        }
        ["fleet", rest @ ..] => {
            fleet::run(rest);
            Ok(())
        }
        ["open", rest @ ..] => {
            open::run(rest);
            Ok(())
        }
        ["start", rest @ ..] => {
            start::run(rest);
            Ok(())
        }
        ["startup"] => {
            startup::run();
            Ok(())
        }
        ["hooks", rest @ ..] => {
            hooks::run(rest);
            Ok(())
        }
        ["build-size"] => {
            build_size::run();
            Ok(())
        }
        ["recall", ..] => recall::run(&arguments[1..]),
        ["claims", rest @ ..] => claims::run(rest),
        ["search", ..] => search::run(&arguments[1..]),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
