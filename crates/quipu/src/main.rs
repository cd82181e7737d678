//! The program `quipu`: one table of operations, and the doors to it.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod cli;
mod command_agent;
mod demo;
mod ops;
#[cfg(test)]
mod reference;
mod session;
mod table;
mod unseen;

fn main() -> std::process::ExitCode {
    cli::run(std::env::args_os())
}
