//! What reaches a terminal: nothing that it would obey, whoever wrote it.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};

/// Writes the clipboard, clears the screen, turns the text around.
const HOSTILE: &str = "x\u{1b}]52;c;eA==\u{7}\u{1b}[2J\u{9b}2J\u{202e}\u{2066}\u{200f}y";

fn quipu(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    for name in ["QUIPU_ROLE", "QUIPU_UNIT", "QUIPU_AGENT", "QUIPU_LEASE"] {
        command.env_remove(name);
    }
    command.current_dir(folder).args(arguments).output().unwrap()
}

/// What a command printed, where nothing of it may be a control.
fn harmless(folder: &Path, arguments: &[&str]) -> String {
    let output = quipu(folder, arguments);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_harmless(&text, arguments);
    text
}

fn assert_harmless(text: &str, arguments: &[&str]) {
    let obeyed = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(obeyed), "quipu {arguments:?}: {text:?}");
}

fn relay() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert!(quipu(folder.path(), &["init", "--profile", "relay"]).status.success());
    folder
}

#[test]
fn no_command_prints_what_a_terminal_obeys() {
    let folder = relay();
    let root = folder.path();
    std::fs::create_dir(root.join("notes")).unwrap();
    harmless(root, &["write", "notes/a.md", "--text", HOSTILE, "--why", HOSTILE]);
    let shown = harmless(root, &["log"]);
    assert!(shown.contains("\\u{1b}]52;c;eA==\\u{7}") && shown.contains("\\u{9b}2J\\u{202e}"), "{shown}");
    harmless(root, &["todo", "add", HOSTILE]);
    harmless(root, &["decide", HOSTILE, "--context", HOSTILE, "--decision", HOSTILE]);
    harmless(root, &["delegate", "--task", HOSTILE, "--expect", HOSTILE, "--id", "docs"]);
    harmless(root, &["state", "set", "current_task", HOSTILE]);
    std::fs::write(root.join("PROJECT.md"), format!("# {HOSTILE}\n\n## A\n\n{HOSTILE}\r\rz\n")).unwrap();
    std::fs::write(root.join(format!("free-{HOSTILE}.md")), "x").unwrap();
    for line in [
        &["start"][..],
        &["start", "--delegation", "docs"],
        &["status", "--files"],
        &["todo", "list"],
        &["decisions"],
        &["collect"],
        &["blame", "notes/a.md"],
        &["log", "notes/a.md"],
        &["recall", HOSTILE],
        &["ask", "notes/a.md", HOSTILE],
        &["read", HOSTILE],
        &["todo", "show", HOSTILE],
        &["lease", "release", HOSTILE],
        &["state", "get"],
        &["log", "--json"],
        &["todo", "list", "--json"],
        &["no-such-\u{1b}[2Jcommand"],
        &["log", "--no-such\u{1b}]0;x\u{7}"],
        &["log", "-n", "\u{1b}[31m\u{202e}"],
        &["run", "--agent", HOSTILE],
        &["--as", HOSTILE, "status"],
    ] {
        harmless(root, line);
    }
    // Data in a pipe is exact.
    assert_eq!(quipu(root, &["read", "notes/a.md"]).stdout, format!("{HOSTILE}\n").as_bytes());
    let json: serde_json::Value = serde_json::from_slice(&quipu(root, &["log", "notes/a.md", "--json"]).stdout).unwrap();
    assert_eq!(json[0]["why"], HOSTILE);
}

#[test]
fn a_file_is_spelled_out_on_a_terminal_only() {
    let folder = relay();
    let root = folder.path();
    quipu(root, &["write", "a.md", "--text", HOSTILE]);
    let line = format!("{} read a.md", env!("CARGO_BIN_EXE_quipu"));
    let output = Command::new("script").args(["-qec", &line, "/dev/null"]).current_dir(root).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n");
    assert!(shown.contains("x\\u{1b}]52"), "{shown:?}");
    assert_harmless(&shown, &["read", "a.md"]);
}

#[test]
fn the_stderr_of_a_consulted_program_is_shown_as_a_message() {
    let folder = relay();
    let root = folder.path();
    quipu(root, &["write", "a.md", "--text", "Otto came home."]);
    let program = r#"command:printf 'warn \033]52;c;eA==\007\n' >&2; echo '{"answer": "home", "line": 1}'"#;
    let shown = harmless(root, &["ask", "a.md", "Who came?", "--by", program]);
    assert!(shown.contains("warn \\u{1b}]52;c;eA==\\u{7}"), "{shown}");
}

#[test]
fn a_project_may_lie_in_a_folder_whose_name_is_not_utf_8() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join(OsStr::from_bytes(b"na\xffme"));
    std::fs::create_dir(&root).unwrap();
    for line in [
        &["start", "--json"][..],
        &["init", "--profile", "book"],
        &["status"],
        &["status", "--json"],
        &["start", "--json"],
        &["run", "--agent", "rehearse"],
        &["run", "--agent", "rehearse", "--json"],
        &["replay", "outline", "--json"],
        &["view", "editor", "--json"],
        &["brief", "editor", "--json"],
        &["contract", "show", "--json"],
        &["doctor", "--json"],
        &["verify", "--json"],
        &["fleet", "status", "--json"],
        &["integrate", "--json"],
        &["profile", "list", "--json"],
    ] {
        let output = quipu(&root, line);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code().is_some_and(|code| code != 101), "quipu {line:?}: {told}");
    }
    assert!(quipu(&root, &["status"]).status.success());
    // From above, the folder is listed and named by `-C`.
    assert!(quipu(folder.path(), &["start", "--json"]).status.success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    let output = command.current_dir(folder.path()).arg("-C").arg(&root).args(["status", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
