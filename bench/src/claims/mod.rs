//! The constraint query, measured: whole novels, and a synthetic set.

mod novels;
mod synthetic;
mod templates;

use std::path::Path;

use crate::Outcome;

pub fn run(arguments: &[&str]) -> Outcome {
    match arguments {
        ["synthetic"] => synthetic::run(false),
        ["synthetic", "--verbose"] => synthetic::run(true),
        [folder] => novels::run(Path::new(folder), None),
        [folder, "--judge", command] => novels::run(Path::new(folder), Some(command.strip_prefix("command:").unwrap_or(command))),
        _ => Err("usage: claims FOLDER [--judge command:PROGRAM] | claims synthetic [--verbose]".into()),
    }
}
