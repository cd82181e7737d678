//! Measured comparisons, as ratios against rivals in one run. Never asserted in tests.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run says so and stops")]

mod build_size;
mod commits;
mod machine;
mod open;
mod startup;
mod writers;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["commits", rest @ ..] => commits::run(rest),
        ["commits-writer", rest @ ..] => writers::child(rest),
        ["open", rest @ ..] => open::run(rest),
        ["startup"] => startup::run(),
        ["build-size"] => build_size::run(),
        _ => {
            eprintln!("usage: cargo run --release -p bench -- commits [ROUNDS] | open [COMMITS FILES] | startup | build-size");
            std::process::exit(2);
        }
    }
}
