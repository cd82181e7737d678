//! Measured comparisons. Nothing here is asserted by a test: numbers depend on the machine.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod recall;
mod search;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("recall") => recall::run(&arguments[1..]),
        Some("search") => search::run(&arguments[1..]),
        _ => Err("usage: bench recall FOLDER [--no-model] | search".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// What a measurement may fail with: anything, told to the person who ran it.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
