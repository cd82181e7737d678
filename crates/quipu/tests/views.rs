//! Tests of `quipu view` and `quipu brief` as a user calls them.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use quipu_testkit::{SampleBook, Tongue};

fn quipu(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    for name in ["QUIPU_ROLE", "QUIPU_UNIT", "QUIPU_AGENT", "QUIPU_LEASE"] {
        command.env_remove(name);
    }
    command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs a command, checks its exit code, and returns stdout and stderr.
fn say(folder: &Path, exit: i32, line: &str) -> (String, String) {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let output = quipu(folder, &arguments);
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(
        output.status.code(),
        Some(exit),
        "quipu {line}\n{out}\n{err}"
    );
    (out, err)
}

#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let folder = book();
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command
        .current_dir(folder.path())
        .args(["contract", "show"]);
    let output = command
        .stdout(
            std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{err}");
    assert!(err.contains("cannot write the answer"), "{err}");
}

/// A small disk in a mount namespace. Commits are refused while space is low. The text is long
/// enough that sometimes it fits into the journal but not into the file.
#[test]
fn a_full_disk_keeps_nobody_from_reading() {
    const SCRIPT: &str = r###"
        mount -t tmpfs -o size="$1"k tmpfs . && cd "$PWD" || exit 99
        "$QUIPU" init --profile relay > /dev/null 2>&1 || exit 98
        n=0
        while "$QUIPU" append decisions.md --text "## ADR $n $2" > /dev/null 2> "$SAID"; do n=$((n + 1)); done
        "$QUIPU" read PROJECT.md > /dev/null && "$QUIPU" log > /dev/null && "$QUIPU" start > /dev/null || exit 97
        # What was acknowledged is read, and what is recorded and safe with it.
        grep -q "is saved in the journal" "$SAID" && n=$((n + 1))
        found=$("$QUIPU" read decisions.md | grep -c '^## ADR [0-9]')
        test "$found" = "$n" || { echo "$found of $n"; cat "$SAID"; exit 96; }
        "$QUIPU" append decisions.md --text more > "$SAID" 2>&1; test $? = 7 || exit 95
        grep -q "free some disk space" "$SAID" || exit 94
        "$QUIPU" status > "$SAID"; if test $? != 0; then echo pending; grep -q "help  free some disk space, then run: quipu doctor" "$SAID" || exit 93; fi
        mount -o remount,size=9m . && "$QUIPU" doctor > /dev/null && "$QUIPU" verify > /dev/null || exit 92
        test "$(grep -c '^## ADR [0-9]' decisions.md)" = "$n" || exit 91
    "###;
    if !Command::new("unshare")
        .args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .status()
        .is_ok_and(|s| s.success())
    {
        return; // no namespaces here; another test covers the store without a disk
    }
    let mut pending = 0;
    for size in (640..900).step_by(24) {
        let (folder, said) = (
            tempfile::tempdir().unwrap(),
            tempfile::NamedTempFile::new().unwrap(),
        );
        let mut command = Command::new("unshare");
        command.args([
            "-rm",
            "sh",
            "-c",
            SCRIPT,
            "sh",
            &size.to_string(),
            &"a long line of words ".repeat(5900),
        ]);
        let output = command
            .env("QUIPU", env!("CARGO_BIN_EXE_quipu"))
            .env("SAID", said.path())
            .current_dir(folder.path())
            .output()
            .unwrap();
        let (said, erred) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert_eq!(output.status.code(), Some(0), "{size} KB: {said}{erred}");
        pending += usize::from(said.contains("pending"));
    }
    assert!(pending > 0, "no size left a file unwritten");
}

fn book() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let book = SampleBook {
        tongue: Tongue::English,
    };
    for (path, text) in book.files() {
        let target = folder.path().join(path);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, text).unwrap();
    }
    say(folder.path(), 0, "init --profile book --var project=Knots");
    let manifest = folder.path().join("quipu.toml");
    std::fs::write(
        &manifest,
        std::fs::read_to_string(&manifest).unwrap() + &book.units(),
    )
    .unwrap();
    folder
}

#[test]
fn a_folder_shows_the_view_and_knows_when_it_is_old() {
    let folder = book();
    let root = folder.path();
    let out = tempfile::tempdir().unwrap();
    let view = out.path().join("v");
    let shown = view.display();
    say(
        root,
        0,
        &format!("view writer --unit ch10 --budget 10k --out {shown}"),
    );
    assert!(
        view.join("meta/glossary.md").exists()
            && !view.join("drafts").exists()
            && !view.join("source").exists()
    );
    let outline = std::fs::read_to_string(view.join("outline-final.md")).unwrap();
    assert!(
        outline.starts_with("## ch10") && !outline.contains("## ch09"),
        "only this chapter's section"
    );
    assert!(
        say(root, 0, &format!("view --verify {shown}"))
            .0
            .contains("all unchanged")
    );

    // A change to another chapter's file does not affect this view; a change to a file it showed
    // does.
    say(root, 0, "write drafts/ch01-draft.md --text changed --force");
    say(root, 0, &format!("view --verify {shown}"));
    say(root, 0, "append meta/glossary.md --text |x|y|ch10||");
    assert!(
        say(root, 1, &format!("view --verify {shown}"))
            .0
            .contains("meta/glossary.md grew")
    );
    say(
        root,
        0,
        "write research/ch10-research.md --text new --force",
    );
    assert!(
        say(root, 1, &format!("view --verify {shown}"))
            .0
            .contains("research/ch10-research.md changed")
    );

    say(root, 0, &format!("view writer --unit ch10 --out {shown}"));
    std::fs::write(view.join("meta/style-guide.md"), "mine").unwrap();
    assert!(
        say(root, 1, &format!("view --verify {shown}"))
            .0
            .contains("meta/style-guide.md was edited in the folder")
    );
    std::fs::write(view.join("other.txt"), "mine").unwrap();
    say(root, 3, &format!("view writer --unit ch10 --out {shown}"));
    assert!(view.join("other.txt").exists());
    say(root, 3, "view writer --unit ch10 --out .");
    say(root, 5, &format!("view --verify {}", out.path().display()));
}

#[test]
fn no_link_in_a_folder_is_followed() {
    let folder = book();
    let root = folder.path();
    let out = tempfile::tempdir().unwrap();
    let view = out.path().join("v");
    let make = format!("view writer --unit ch10 --out {}", view.display());
    say(root, 0, &make);
    let glossary = std::fs::read(root.join("meta/glossary.md")).unwrap();
    std::fs::remove_dir_all(view.join("meta")).unwrap();
    std::os::unix::fs::symlink(root.join("meta"), view.join("meta")).unwrap();
    let (_, err) = say(root, 3, &make);
    assert!(
        err.contains("contains `meta`, which is not part of a view"),
        "{err}"
    );
    assert_eq!(
        std::fs::read(root.join("meta/glossary.md")).unwrap(),
        glossary,
        "what the link leads to is untouched"
    );
    let (told, _) = say(root, 1, &format!("view --verify {}", view.display()));
    assert!(
        told.contains("meta/glossary.md is a link in the folder, not a copy"),
        "{told}"
    );
    std::fs::remove_file(view.join("meta")).unwrap();
    say(root, 0, &make);
    std::fs::remove_file(view.join("meta/glossary.md")).unwrap();
    std::os::unix::fs::symlink(root.join("meta/glossary.md"), view.join("meta/glossary.md"))
        .unwrap();
    let (told, _) = say(root, 1, &format!("view --verify {}", view.display()));
    assert!(
        told.contains("meta/glossary.md is a link in the folder, not a copy"),
        "{told}"
    );
    say(root, 3, &make);
    assert_eq!(
        std::fs::read(root.join("meta/glossary.md")).unwrap(),
        glossary
    );
}

#[test]
fn an_older_view_stays_whole_where_a_newer_one_is_refused() {
    let folder = book();
    let out = tempfile::tempdir().unwrap();
    let view = out.path().join("v");
    let make = format!("view writer --unit ch10 --out {}", view.display());
    say(folder.path(), 0, &make);
    std::fs::write(view.join("meta/my-notes.txt"), "mine").unwrap();
    let (_, err) = say(folder.path(), 3, &make);
    assert!(err.contains("contains `meta/my-notes.txt`"), "{err}");
    assert!(view.join(".quipu-view.json").exists() && view.join("meta/glossary.md").exists());
    let (told, _) = say(
        folder.path(),
        1,
        &format!("view --verify {}", view.display()),
    );
    assert!(
        told.contains("meta/my-notes.txt is in the folder but not part of the view"),
        "{told}"
    );
    std::fs::remove_file(view.join("meta/my-notes.txt")).unwrap();
    std::fs::create_dir(view.join("empty")).unwrap();
    say(folder.path(), 3, &make);
    std::fs::remove_dir(view.join("empty")).unwrap();
    say(folder.path(), 0, &make);
    say(
        folder.path(),
        0,
        &format!("view --verify {}", view.display()),
    );
}

#[test]
fn verifying_misses_nothing_that_is_gone_from_the_folder() {
    let folder = book();
    let root = folder.path();
    std::fs::write(root.join("research/ch10-research.md"), "").unwrap();
    let out = tempfile::tempdir().unwrap();
    let view = out.path().join("v");
    say(
        root,
        0,
        &format!("view writer --unit ch10 --out {}", view.display()),
    );
    std::fs::remove_file(view.join("research/ch10-research.md")).unwrap();
    let (told, _) = say(root, 1, &format!("view --verify {}", view.display()));
    assert!(
        told.contains("research/ch10-research.md is missing from the folder"),
        "{told}"
    );
    let staged = self::book();
    let parts = out.path().join("parts");
    let make = format!(
        "view writer --unit ch10 --budget 6000 --out {}",
        parts.display()
    );
    say(staged.path(), 0, &make);
    std::fs::remove_dir_all(parts.join("stage-2")).unwrap();
    let (told, _) = say(
        staged.path(),
        1,
        &format!("view --verify {}", parts.display()),
    );
    assert!(
        told.contains("stage-2 is missing from the folder"),
        "{told}"
    );
    say(staged.path(), 0, &make);
    std::fs::remove_dir_all(parts.join("stage-1")).unwrap();
    let (told, _) = say(
        staged.path(),
        1,
        &format!("view --verify {}", parts.display()),
    );
    assert!(
        told.contains("stage-1 is missing from the folder"),
        "{told}"
    );
}

/// A manifest that was not written by a view.
fn forged(files: serde_json::Value) -> String {
    serde_json::json!({"format": 1, "role": "writer", "unit": "ch10", "agent": null, "counter": "o200k", "budget": 1, "tokens": 1,
        "stage": [1, 1], "files": files, "trimmed": []})
    .to_string()
}

#[test]
fn a_forged_manifest_tells_nothing_of_what_a_role_does_not_read() {
    let folder = book();
    let root = folder.path();
    let out = tempfile::tempdir().unwrap();
    let ask = |path: &str, section: Option<&str>, version: &str, text: &[u8]| {
        let hash = quipu_store::Version::of(text);
        let source = serde_json::json!({"section": section, "version": version, "text": hash, "bytes": text.len(), "whole": true});
        let file = serde_json::json!([{"path": path, "shown": quipu_store::Version::of(b""), "tokens": 0, "sources": [source]}]);
        std::fs::write(out.path().join(".quipu-view.json"), forged(file)).unwrap();
        let (told, err) = say(
            root,
            3,
            &format!(
                "--as writer --unit ch10 view --verify {}",
                out.path().display()
            ),
        );
        told + &err
    };
    let draft = std::fs::read(root.join("drafts/ch01-draft.md")).unwrap();
    let right = ask("drafts/ch01-draft.md", None, "0", &draft[..5]);
    assert!(right.contains("may not read"), "{right}");
    assert_eq!(
        right,
        ask("drafts/ch01-draft.md", None, "0", b"wrong"),
        "a right guess looks like a wrong one"
    );
    assert_eq!(
        right.replace("ch01", "ch99"),
        ask("drafts/ch99-draft.md", None, "0", b"wrong"),
        "and like a file that is not there"
    );
    let outline = std::fs::read(root.join("outline-final.md")).unwrap();
    let other = ask(
        "outline-final.md",
        Some("ch09"),
        quipu_store::Version::of(&outline).as_str(),
        b"",
    );
    assert!(other.contains("may read only the section"), "{other}");
}

#[test]
fn a_role_has_its_view_outside_and_no_one_in_reserved_folders() {
    let folder = book();
    let root = folder.path();
    for place in [".", "drafts", "v/w", "meta"] {
        let (_, err) = say(
            root,
            3,
            &format!("--as writer --unit ch10 view --out {place}"),
        );
        assert!(err.contains("is inside a project"), "{err}");
        say(
            root,
            3,
            &format!("--agent otto view writer --unit ch10 --out {place}"),
        );
    }
    for place in [".quipu/v", ".git/hooks", "v/.git"] {
        say(root, 3, &format!("view writer --unit ch10 --out {place}"));
        say(
            root,
            3,
            &format!("--as writer --unit ch10 view --out {place}"),
        );
    }
    // Through a link, too.
    let out = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root, out.path().join("in")).unwrap();
    say(
        root,
        3,
        &format!(
            "--as writer --unit ch10 view --out {}",
            out.path().join("in/v").display()
        ),
    );
    assert!(
        !root.join("v").exists() && !root.join(".quipu/v").exists() && !root.join(".git").exists()
    );
    // A person may keep a view in the project, outside the contract's paths.
    say(root, 0, "view writer --unit ch10 --out v");
    let manifest = root.join("quipu.toml");
    let ruled = std::fs::read_to_string(&manifest).unwrap()
        + "\n[[files]]\npath = \"source/**\"\nclass = \"overwrite\"\n";
    std::fs::write(&manifest, ruled).unwrap();
    let (_, err) = say(
        root,
        3,
        "view writer --unit ch10 --budget 6000 --out source/v",
    );
    assert!(err.contains("is under the contract"), "{err}");
    say(
        root,
        0,
        &format!(
            "--as writer --unit ch10 view --out {}",
            out.path().join("v").display()
        ),
    );
    say(
        root,
        0,
        &format!(
            "--as writer --unit ch10 view --verify {}",
            out.path().join("v").display()
        ),
    );
}

#[test]
fn stages_become_folders_and_briefs() {
    let folder = book();
    let root = folder.path();
    let out = tempfile::tempdir().unwrap();
    let shown = out.path().join("v");
    let (_, talk) = say(
        root,
        0,
        &format!(
            "view writer --unit ch10 --budget 6000 --out {}",
            shown.display()
        ),
    );
    assert!(talk.contains("2 stages"), "{talk}");
    assert!(shown.join("stage-2/research/ch10-research.md").exists());
    say(root, 0, &format!("view --verify {}", shown.display()));
    let (brief, _) = say(root, 0, "brief writer --unit ch10 --budget 6000 --stage 2");
    assert!(
        brief.contains("Part 2 of 2") && brief.contains("part 2 of 2"),
        "{brief}"
    );
    say(root, 5, "brief writer --unit ch10 --budget 6000 --stage 3");
}

#[test]
fn what_does_not_fit_is_refused_with_the_pointer_and_the_rule() {
    let folder = book();
    let (_, err) = say(folder.path(), 1, "view writer --unit ch10 --budget 2000");
    assert!(
        err.contains("`meta/style-guide.md`")
            && err.contains("roles.toml")
            && err.contains("--budget "),
        "{err}"
    );
    let (out, _) = say(
        folder.path(),
        0,
        "view writer --unit ch10 --window 40k --reserve 15k --explain",
    );
    assert!(
        out.contains("output reserve") && out.contains("15,000") && out.contains("left over"),
        "{out}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&say(folder.path(), 0, "view writer --unit ch10 --json").0).unwrap();
    assert_eq!(json["stages"].as_array().unwrap().len(), 1);
    assert!(
        json["stages"][0]["files"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("# Style guide")
    );
}

#[test]
fn a_role_sees_its_own_view_alone() {
    let folder = book();
    let root = folder.path();
    say(root, 3, "--as r2 view writer --unit ch10");
    say(root, 3, "--as r2 brief writer --unit ch10");
    say(root, 0, "--as writer --unit ch10 view");
    let (brief, _) = say(root, 0, "--as writer --unit ch10 brief --lang zh");
    assert!(
        brief.contains("📖 `research/ch10-research.md`") && brief.contains("必读"),
        "{brief}"
    );
    let (_, err) = say(root, 3, "--as writer --unit ch10 read drafts/ch01-draft.md");
    assert!(
        err.contains("may not read") && err.contains("roles.toml"),
        "{err}"
    );
    let (_, err) = say(root, 5, "view r1 --unit ch10");
    assert!(err.contains("step `write` (role `writer`)"), "{err}");
    say(root, 0, "brief r1 --unit ch10 --partial");
}
