//! Guides whose commands are run: each `console` block of `docs/guide/NAME.md` against the scenario
//! `tests/scenarios/NAME/guide`.
//!
//! The guide shows all of the scenario's commands, in their order, and of what they print only lines
//! that are printed; `…` stands for the rest, and any time for the time of the run.

use std::path::Path;

use crate::redact::without_times;
use crate::transcript::{self, Step};

#[test]
fn guides_show_what_happens() {
    let scenarios = crate::folder_of_scenarios();
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut seen = 0;
    for profile in crate::tree::subfolders(&scenarios).unwrap() {
        let told = profile.join("guide/transcript");
        if !told.exists() {
            continue;
        }
        seen += 1;
        let name = profile.file_name().unwrap().to_str().unwrap();
        let guide = std::fs::read_to_string(guides.join(format!("{name}.md"))).unwrap();
        let steps = transcript::parse(&std::fs::read_to_string(told).unwrap()).unwrap();
        check(name, &blocks(&guide), &steps);
    }
    assert!(seen > 0, "no guide has a scenario");
}

/// The steps of a guide's console blocks.
fn blocks(guide: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut block: Option<String> = None;
    for line in guide.lines() {
        match (&mut block, line) {
            (None, "```console") => block = Some(String::new()),
            (Some(text), "```") => {
                steps.extend(transcript::parse(text).unwrap());
                block = None;
            }
            (Some(text), line) => text.push_str(&format!("{line}\n")),
            (None, _) => {}
        }
    }
    steps
}

fn check(name: &str, shown: &[Step], happened: &[Step]) {
    let commands = |steps: &[Step]| steps.iter().map(|s| s.command.join("\n")).collect::<Vec<_>>();
    assert_eq!(commands(shown), commands(happened), "docs/guide/{name}.md and its scenario show other commands");
    for (shown, happened) in shown.iter().zip(happened) {
        let plain = |line: &str| without_times(line.strip_prefix("! ").unwrap_or(line).trim_end());
        let printed: Vec<String> = happened.output.lines().map(plain).collect();
        for line in shown.output.lines().map(str::trim_end).filter(|l| !l.is_empty() && *l != "…") {
            assert!(
                printed.contains(&plain(line)),
                "docs/guide/{name}.md: `$ {}` does not print\n{line}\nbut\n{}",
                shown.command[0],
                happened.output
            );
        }
    }
}
