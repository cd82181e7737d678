//! Replays a book that real models wrote: `tests/recordings/tomli`. Every text passes its checks,
//! the objections send the same texts back as often, and the book ends with the same chapters.
//! Replays a novel in which facts change twice, `tests/recordings/salt-road`, and reads its memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::rehearsal::{Desk, tree_of};

fn recording(name: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap())
        .join("../../tests/recordings")
        .join(name)
        .canonicalize()
        .unwrap()
}

/// Counts how often each job was done, by names such as `20260102T030405678-write-ch01` or
/// `17-write-ch01.md`.
fn jobs_in(folder: &Path) -> BTreeMap<String, usize> {
    let mut jobs = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (_, job) = name.split_once('-').unwrap();
        *jobs
            .entry(job.trim_end_matches(".md").to_owned())
            .or_default() += 1;
    }
    jobs
}

fn run(desk: &Desk, recording: &Path) -> String {
    let mut command = desk.quipu(&["run", "--by", "script", "--jobs", "3"]);
    let done = command
        .env("QUIPU_SCRIPT", recording.join("answers"))
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(
        !said.contains("sent back ") && !said.contains("stuck"),
        "every recorded answer passes: {said}"
    );
    assert!(said.contains("0 failures"), "{said}");
    said
}

/// Returns a text without its completion marker.
fn unmarked(text: &str) -> &str {
    let text = text.trim_end();
    text.rsplit_once('\n')
        .filter(|(_, last)| last.starts_with("<!--"))
        .map_or(text, |(body, _)| body.trim_end())
}

#[test]
fn a_book_by_real_models_is_written_again_to_the_letter() {
    let recording = recording("tomli");
    let desk = Desk::lay(&[
        "init",
        "--profile",
        "book",
        "--var",
        "project=Reading tomli",
        "--var",
        "words=1200",
        "--var",
        "chapters=3",
    ]);
    for (path, bytes) in tree_of(&recording.join("source")) {
        desk.put(
            &format!("source/{path}"),
            std::str::from_utf8(&bytes).unwrap(),
        );
    }

    assert!(run(&desk, &recording).contains("quipu approve approve-outline"));
    desk.fine(&[
        "reject",
        "approve-outline",
        "--why",
        "fewer topics in a chapter",
    ]);
    assert!(run(&desk, &recording).contains("approving declares ch02 \"Values\" (needs ch01)"));
    desk.fine(&["approve", "approve-outline"]);

    // The inspector of one page objected to a colour, and a person overruled it.
    assert!(run(&desk, &recording).contains("quipu approve inspect --unit ch02"));
    desk.fine(&["approve", "inspect", "--unit", "ch02"]);
    let status = desk.fine(&["status"]);
    assert!(
        !["failed", "stale", "pending", "ready"]
            .iter()
            .any(|state| status.contains(state)),
        "{status}"
    );

    assert_eq!(
        jobs_in(&desk.root.join(".quipu/attempts")),
        jobs_in(&recording.join("briefs")),
        "each job was done as often as then"
    );
    for unit in ["ch01", "ch02", "ch03"] {
        // Each revision was sent back once.
        let last =
            std::fs::read_to_string(recording.join(format!("answers/drafts/{unit}-revised.md.2")))
                .unwrap();
        assert_eq!(
            unmarked(&desk.text(&format!("chapters/{unit}.md"))),
            unmarked(&last)
        );
        let summaries = desk.text("meta/chapter-summaries.md");
        assert!(summaries.contains(&format!("## {unit}")), "{summaries}");
        assert!(
            desk.text(&format!("publish/{unit}.html"))
                .contains("<!-- HTML_COMPLETE -->")
        );
    }
}

#[test]
fn a_novel_in_which_facts_change_twice_contradicts_nothing() {
    let recording = recording("salt-road");
    let desk = Desk::lay(&[
        "init",
        "--profile",
        "novel",
        "--var",
        "project=The Salt Road",
        "--var",
        "chapter_words=160",
    ]);
    for (path, bytes) in tree_of(&recording.join("memory")) {
        desk.put(&path, std::str::from_utf8(&bytes).unwrap());
    }
    desk.fine(&["approve", "plan"]);
    for unit in ["ch01", "ch02", "ch03", "ch04"] {
        let said = run(&desk, &recording);
        assert!(
            said.contains(&format!("quipu approve final --unit {unit}")),
            "{said}"
        );
        desk.fine(&["approve", "final", "--unit", unit]);
        let said = run(&desk, &recording);
        assert!(
            said.contains(&format!("quipu approve accept --unit {unit}")),
            "{said}"
        );
        desk.fine(&["approve", "accept", "--unit", unit]);
    }
    run(&desk, &recording);

    let sheet = desk.fine(&["story", "sheet", "the brass key"]);
    for held in [
        "held by: Dov Marsh  until ch02.2",
        "from ch02.2\n  held by: Ines Varga  until ch03.2",
        "from ch03.2\n  held by: Pell Marsh  (",
    ] {
        assert!(sheet.contains(held), "{held}: {sheet}");
    }
    let posts = desk.fine(&["story", "progression", "Dov", "post"]);
    let values: Vec<&str> = posts
        .lines()
        .filter_map(|line| line.split("  (").next())
        .collect();
    assert_eq!(
        values[..3],
        [
            "post: toll keeper",
            "post: prisoner, because the wall was his to keep",
            "post: warden of the road"
        ]
    );
    let report = desk.quipu(&["story", "report", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    for (kind, found) in [
        ("conflicts", &report["conflicts"]),
        ("memory", &report["memory"]["conflicts"]),
        ("overdue", &report["overdue"]),
        ("vanished", &report["vanished"]),
    ] {
        assert_eq!(*found, serde_json::json!([]), "{kind}");
    }
}
