//! Benchmarks of the constraint query: whole novels, and a synthetic set.

mod marks;
mod novels;
mod prose;
mod second_set;
mod synthetic;
mod templates;

use std::path::Path;

use crate::Outcome;

const USAGE: &str = "usage: claims FOLDER [--evidence TOKENS] [--out FOLDER] [--judge command:PROGRAM] | claims prose FOLDER [--open | --blind] [--prompts FOLDER] [--answers FOLDER] [--verbose] | claims synthetic [--second] [--verbose]";

pub fn run(arguments: &[&str]) -> Outcome {
    let has = |flag: &str| arguments.contains(&flag);
    let value = |flag: &str| {
        let at = arguments.iter().position(|word| *word == flag)?;
        arguments.get(at + 1).copied()
    };
    match arguments {
        ["synthetic", ..] => {
            let set = if has("--second") {
                &synthetic::SECOND
            } else {
                &synthetic::FIRST
            };
            synthetic::run(set, has("--verbose"))
        }
        ["prose", folder, ..] => {
            let parity = match (has("--open"), has("--blind")) {
                (true, false) => Some(1),
                (false, true) => Some(0),
                _ => None,
            };
            let wanted = prose::Wanted {
                parity,
                prompts: value("--prompts").map(Into::into),
                answers: value("--answers").map(Into::into),
                verbose: has("--verbose"),
            };
            prose::run(Path::new(folder), &wanted)
        }
        [folder, ..] if !folder.starts_with('-') => {
            let tokens = value("--evidence").map(str::parse).transpose()?;
            let judge = value("--judge").map(|name| name.strip_prefix("command:").unwrap_or(name));
            novels::run(
                Path::new(folder),
                judge,
                tokens,
                value("--out").map(Path::new),
            )
        }
        _ => Err(USAGE.into()),
    }
}
