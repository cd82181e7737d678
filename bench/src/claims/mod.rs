//! Benchmarks of the constraint query: whole novels, and a synthetic set.

mod novels;
mod second_set;
mod synthetic;
mod templates;

use std::path::Path;

use crate::Outcome;

pub fn run(arguments: &[&str]) -> Outcome {
    match arguments {
        ["synthetic", rest @ ..] if rest.iter().all(|word| ["--second", "--verbose"].contains(word)) => {
            synthetic::run(if rest.contains(&"--second") { &synthetic::SECOND } else { &synthetic::FIRST }, rest.contains(&"--verbose"))
        }
        [folder] => novels::run(Path::new(folder), None),
        [folder, "--judge", command] => novels::run(Path::new(folder), Some(command.strip_prefix("command:").unwrap_or(command))),
        _ => Err("usage: claims FOLDER [--judge command:PROGRAM] | claims synthetic [--second] [--verbose]".into()),
    }
}
