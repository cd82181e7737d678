//! The program `quipu`: one table of operations, and the interfaces to it.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agents;
mod answer;
mod calls;
mod check_text;
mod cli;
mod command_agent;
mod conflict_notice;
mod demo;
mod edit_errors;
mod eject;
mod examples;
mod flow_text;
mod head_key;
mod heads;
mod help;
mod hook;
#[cfg(test)]
mod hostile_tests;
mod integrate;
mod judge_client;
mod mcp;
mod memory;
mod ops;
mod page;
mod parse;
mod progress;
#[cfg(test)]
mod reference;
mod saved_answers;
mod session;
mod shell_word;
mod signals;
mod table;
mod terminal;
mod usage_errors;
mod uses;
mod view_errors;

use quipu_protocol::{Setting, is_trusted};

fn main() -> std::process::ExitCode {
    // The program is its own sandbox helper. Called that way, it must act before any thread starts.
    if let Some(code) = quipu_agents::sandbox_main(std::env::args_os().skip(1)) {
        return code;
    }
    let may_contact =
        |root: &std::path::Path, address: &str| is_trusted(root, &Setting::store(address));
    quipu_postgres::register(terminal::say, may_contact);
    cli::run(std::env::args_os())
}
