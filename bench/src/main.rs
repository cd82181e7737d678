//! Benchmarks, reported as ratios against other tools in the same run. Tests never assert on them.

#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run says so and stops"
)]

mod build_size;
mod claims;
mod commands;
mod fleet;
mod hooks;
mod hosts;
mod layout;
mod machine;
mod recall;
mod search;
mod small;
mod worldlog;

use std::path::Path;
use std::process::ExitCode;

/// A benchmark may fail with any error; `main` prints it.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str =
    "usage: cargo run --release -p bench -- commands [--program PATH] [--beside PATH] [--clients N,…] [--commits N,…] [--files N,…] [--rounds N] [--only NAME,…] | hooks [FILES] | build-size | fleet [COMMITS] [commits] [lone] [claims] [hosts]
       | recall FOLDER [--layout session|one|group|shuffled:N] [--no-model] [--keep DIR] [--groups N] [--features FILE [--strangers FOLDER]]
       | search [SECTIONS…] [--model] [--keep DIR]
       | claims FOLDER [--evidence TOKENS] [--out FOLDER] [--judge command:PROGRAM] | claims prose FOLDER [--open | --blind] [--prompts FOLDER] [--answers FOLDER] | claims synthetic
       | worldlog [--tasks FOLDER] [--no-suspect] [--filler N] [--program PATH]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["commands", rest @ ..] => commands::run(rest),
        ["commands-writer", folder, index, commits] => commits
            .parse()
            .map_err(Into::into)
            .and_then(|commits| commands::write(Path::new(folder), index, commits)),
        // One question in a fresh process, for a look at it with strace or perf.
        ["ask", folder, question, rest @ ..] => {
            search::once(Path::new(folder), question, !rest.contains(&"--no-model"))
        }
        ["fleet", rest @ ..] => {
            fleet::run(rest);
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
        ["worldlog", rest @ ..] => worldlog::run(rest),
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
