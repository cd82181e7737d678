//! The program `quipu`: one table of operations, and the doors to it.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod calls;
mod cli;
mod demo;
mod flow_text;
mod hook;
mod integrate;
mod mcp;
mod memory;
mod ops;
mod performers;
mod progress;
#[cfg(test)]
mod reference;
mod session;
mod signals;
mod table;
mod unformed;
mod unseen;

fn main() -> std::process::ExitCode {
    cli::run(std::env::args_os())
}
