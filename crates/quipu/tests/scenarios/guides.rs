//! Runs the commands of guides: compares each `console` block of `docs/guide/NAME.md` with the
//! scenario `tests/scenarios/NAME/guide`.
//!
//! The guide shows all commands of the scenario in order, and only lines that they print; `…`
//! replaces the rest, and any time matches the time of the run.
//!
//! A guide may also name a scenario on a line of its own, `<!-- scenario: novel/five-chapters-en
//! -->`. Then every command up to the next such line (or `<!-- scenario: none -->`) belongs to that
//! scenario, in its order, with its output. `ID` matches any id.

use std::path::Path;

use crate::redact::without_times;
use crate::transcript::{self, Step};

#[test]
fn guides_show_what_happens() {
    let scenarios = crate::folder_of_scenarios();
    let guides = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../docs/guide");
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

/// Returns the steps of a guide's console blocks.
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

#[test]
fn parts_of_guides_show_what_happens() {
    let scenarios = crate::folder_of_scenarios();
    let guides = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../docs/guide");
    let mut parts = 0;
    let files = std::fs::read_dir(guides)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    for path in files.filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let guide = std::fs::read_to_string(&path).unwrap();
        for part in guide.split("<!-- scenario: ").skip(1) {
            let (name, text) = part.split_once(" -->").unwrap();
            if name == "none" {
                continue;
            }
            parts += 1;
            let told = std::fs::read_to_string(scenarios.join(name).join("transcript")).unwrap();
            let mut happened = transcript::parse(&told).unwrap().into_iter();
            for shown in blocks(text) {
                let same = happened
                    .find(|step| is_same(&shown.command.join("\n"), &step.command.join("\n")));
                let same = same.unwrap_or_else(|| {
                    panic!(
                        "{}: scenario {name} has no `$ {}` there",
                        path.display(),
                        shown.command[0]
                    )
                });
                check_output(&path.display().to_string(), &shown, &same);
            }
        }
    }
    assert!(
        parts >= 4,
        "the guide of the novel has its story in two languages, and a flow"
    );
}

/// Whether a command is the one shown; `ID` matches any id.
fn is_same(shown: &str, happened: &str) -> bool {
    let mut parts = shown.split(" ID");
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    if rest.is_empty() {
        return shown == happened;
    }
    let Some(mut at) = happened.find(first) else {
        return false;
    };
    rest.iter().all(|part| match happened[at..].find(part) {
        Some(found) => {
            at += found + part.len();
            true
        }
        None => false,
    })
}

fn check(name: &str, shown: &[Step], happened: &[Step]) {
    let commands = |steps: &[Step]| {
        steps
            .iter()
            .map(|s| s.command.join("\n"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        commands(shown),
        commands(happened),
        "docs/guide/{name}.md and its scenario show other commands"
    );
    for (shown, happened) in shown.iter().zip(happened) {
        check_output(&format!("docs/guide/{name}.md"), shown, happened);
    }
}

fn check_output(guide: &str, shown: &Step, happened: &Step) {
    let plain = |line: &str| without_times(line.strip_prefix("! ").unwrap_or(line).trim_end());
    let printed: Vec<String> = happened.output.lines().map(plain).collect();
    for line in shown
        .output
        .lines()
        .map(str::trim_end)
        .filter(|l| !l.is_empty() && *l != "…")
    {
        assert!(
            printed.contains(&plain(line)),
            "{guide}: `$ {}` does not print\n{line}\nbut\n{}",
            shown.command[0],
            happened.output
        );
    }
}
