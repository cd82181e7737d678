//! `quipu view` and `quipu brief` as a user calls them.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use quipu_testkit::{SampleBook, Tongue};

fn quipu(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    for name in ["QUIPU_ROLE", "QUIPU_UNIT", "QUIPU_AGENT", "QUIPU_LEASE"] {
        command.env_remove(name);
    }
    command.current_dir(folder).args(arguments).output().unwrap()
}

/// Runs a command, checks its exit code, and returns stdout and stderr.
fn say(folder: &Path, exit: i32, line: &str) -> (String, String) {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let output = quipu(folder, &arguments);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(exit), "quipu {line}\n{out}\n{err}");
    (out, err)
}

fn book() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let book = SampleBook { tongue: Tongue::English };
    for (path, text) in book.files() {
        let target = folder.path().join(path);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, text).unwrap();
    }
    say(folder.path(), 0, "init --profile book --var project=Knots");
    let manifest = folder.path().join("quipu.toml");
    std::fs::write(&manifest, std::fs::read_to_string(&manifest).unwrap() + &book.units()).unwrap();
    folder
}

#[test]
fn a_folder_shows_the_view_and_knows_when_it_is_old() {
    let folder = book();
    let root = folder.path();
    let out = tempfile::tempdir().unwrap();
    let view = out.path().join("v");
    let shown = view.display();
    say(root, 0, &format!("view writer --unit ch10 --budget 10k --out {shown}"));
    assert!(view.join("meta/glossary.md").exists() && !view.join("drafts").exists() && !view.join("source").exists());
    let outline = std::fs::read_to_string(view.join("outline-final.md")).unwrap();
    assert!(outline.starts_with("## ch10") && !outline.contains("## ch09"), "only this chapter's section");
    assert!(say(root, 0, &format!("view --verify {shown}")).0.contains("all as shown"));

    // Another chapter's file is none of this view's business; what it showed is.
    say(root, 0, "write drafts/ch01-draft.md --text changed --force");
    say(root, 0, &format!("view --verify {shown}"));
    say(root, 0, "append meta/glossary.md --text |x|y|ch10||");
    assert!(say(root, 1, &format!("view --verify {shown}")).0.contains("meta/glossary.md grew"));
    say(root, 0, "write research/ch10-research.md --text new --force");
    assert!(say(root, 1, &format!("view --verify {shown}")).0.contains("research/ch10-research.md changed"));

    say(root, 0, &format!("view writer --unit ch10 --out {shown}"));
    std::fs::write(view.join("meta/style-guide.md"), "mine").unwrap();
    assert!(say(root, 1, &format!("view --verify {shown}")).0.contains("meta/style-guide.md was edited in the folder"));
    std::fs::write(view.join("other.txt"), "mine").unwrap();
    say(root, 3, &format!("view writer --unit ch10 --out {shown}"));
    assert!(view.join("other.txt").exists());
    say(root, 3, "view writer --unit ch10 --out .");
    say(root, 5, &format!("view --verify {}", out.path().display()));
}

#[test]
fn stages_become_folders_and_briefs() {
    let folder = book();
    let root = folder.path();
    let out = tempfile::tempdir().unwrap();
    let shown = out.path().join("v");
    let (_, talk) = say(root, 0, &format!("view writer --unit ch10 --budget 6000 --out {}", shown.display()));
    assert!(talk.contains("2 stages"), "{talk}");
    assert!(shown.join("stage-2/research/ch10-research.md").exists());
    say(root, 0, &format!("view --verify {}", shown.display()));
    let (brief, _) = say(root, 0, "brief writer --unit ch10 --budget 6000 --stage 2");
    assert!(brief.contains("Part 2 of 2") && brief.contains("part 2 of 2"), "{brief}");
    say(root, 5, "brief writer --unit ch10 --budget 6000 --stage 3");
}

#[test]
fn what_does_not_fit_is_refused_with_the_pointer_and_the_rule() {
    let folder = book();
    let (_, err) = say(folder.path(), 1, "view writer --unit ch10 --budget 2000");
    assert!(err.contains("`meta/style-guide.md`") && err.contains("roles.toml") && err.contains("--budget "), "{err}");
    let (out, _) = say(folder.path(), 0, "view writer --unit ch10 --window 40k --reserve 15k --explain");
    assert!(out.contains("output reserve") && out.contains("15,000") && out.contains("left over"), "{out}");
    let json: serde_json::Value = serde_json::from_str(&say(folder.path(), 0, "view writer --unit ch10 --json").0).unwrap();
    assert_eq!(json["stages"].as_array().unwrap().len(), 1);
    assert!(json["stages"][0]["files"][0]["text"].as_str().unwrap().starts_with("# Style guide"));
}

#[test]
fn a_role_sees_its_own_view_alone() {
    let folder = book();
    let root = folder.path();
    say(root, 3, "--as r2 view writer --unit ch10");
    say(root, 3, "--as r2 brief writer --unit ch10");
    say(root, 0, "--as writer --unit ch10 view");
    let (brief, _) = say(root, 0, "--as writer --unit ch10 brief --lang zh");
    assert!(brief.contains("📖 `research/ch10-research.md`") && brief.contains("必读"), "{brief}");
    let (_, err) = say(root, 3, "--as writer --unit ch10 read drafts/ch01-draft.md");
    assert!(err.contains("does not read") && err.contains("roles.toml"), "{err}");
    let (_, err) = say(root, 5, "view r1 --unit ch10");
    assert!(err.contains("step `write` (role `writer`)"), "{err}");
    say(root, 0, "brief r1 --unit ch10 --partial");
}
