//! Measures how long an agent host waits for each hook, beside `git --version`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::machine::program;
use crate::machine::{describe, median};

const RUNS: usize = 40;

/// A call by a host: label, arguments, standard input, and the expected exit code.
struct Call {
    name: &'static str,
    words: &'static [&'static str],
    said: &'static str,
    exit: i32,
}

const CALLS: &[Call] = &[
    Call {
        name: "session-start",
        words: &["session-start"],
        said: r#"{"hook_event_name":"SessionStart","source":"startup"}"#,
        exit: 0,
    },
    Call {
        name: "session-start, after a compaction",
        words: &["session-start"],
        said: r#"{"hook_event_name":"SessionStart","source":"compact"}"#,
        exit: 0,
    },
    Call {
        name: "pre-tool, an edit of a file that no rule names",
        words: &["pre-tool"],
        said: r#"{"tool_name":"Write","tool_input":{"file_path":"src/main.rs","content":"fn main() {}\n"}}"#,
        exit: 0,
    },
    Call {
        name: "pre-tool, an edit that is allowed",
        words: &["pre-tool"],
        said: r##"{"tool_name":"Edit","tool_input":{"file_path":"PROJECT.md","old_string":"# ","new_string":"# New: ","replace_all":true}}"##,
        exit: 0,
    },
    Call {
        name: "pre-tool, an edit that is denied",
        words: &["pre-tool"],
        said: r#"{"tool_name":"Write","tool_input":{"file_path":"decisions.md","content":"gone\n"}}"#,
        exit: 2,
    },
    Call {
        name: "pre-tool, a shell command that writes nothing",
        words: &["pre-tool"],
        said: r#"{"tool_name":"Bash","tool_input":{"command":"cargo test | tail -3"}}"#,
        exit: 0,
    },
    Call {
        name: "post-tool, nothing is flagged",
        words: &["post-tool"],
        said: r#"{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"cargo test | tail -3"}}"#,
        exit: 0,
    },
    Call {
        name: "pre-compact",
        words: &["pre-compact"],
        said: r#"{"trigger":"auto"}"#,
        exit: 0,
    },
    Call {
        name: "stop, held",
        words: &["stop"],
        said: r#"{"stop_hook_active":false}"#,
        exit: 2,
    },
];

pub fn run(arguments: &[&str]) {
    let files: usize = arguments.first().map_or(100, |n| n.parse().unwrap());
    let quipu = program();
    let project = tempfile::tempdir().unwrap();
    let folder = project.path();
    let init = Command::new(&quipu)
        .args(["init", "--profile", "relay"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        init.status.success(),
        "{}",
        String::from_utf8_lossy(&init.stderr)
    );
    std::fs::create_dir(folder.join("notes")).unwrap();
    for number in 0..files {
        std::fs::write(
            folder.join(format!("notes/{number}.md")),
            format!("# Note {number}\n\nNothing much.\n"),
        )
        .unwrap();
    }
    println!(
        "milliseconds a hook, median of {RUNS} runs, the hooks taking turns; a relay with {files} notes beside it"
    );
    println!("{}\n", describe());
    let git = Call {
        name: "git --version",
        words: &[],
        said: "",
        exit: 0,
    };
    let calls: Vec<&Call> = std::iter::once(&git).chain(CALLS).collect();
    let mut times = vec![Vec::new(); calls.len()];
    for _ in 0..RUNS {
        for (index, call) in calls.iter().enumerate() {
            times[index].push(time(&quipu, call, folder));
        }
    }
    println!("| hook | ms | × git --version |\n|---|---|---|");
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    for (call, ms) in calls.iter().zip(&medians) {
        println!("| {} | {ms:.1} | {:.1} |", call.name, ms / medians[0]);
    }
}

fn time(quipu: &Path, call: &Call, folder: &Path) -> f64 {
    let mut command = match call.words {
        [] => Command::new("git"),
        _ => Command::new(quipu),
    };
    match call.words {
        [] => command.arg("--version"),
        words => command.arg("hook").args(words).args(["--agent", "bench"]),
    };
    let start = Instant::now();
    let mut child = command
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A program that does not read its input may have exited already.
    let _ = child.stdin.take().unwrap().write_all(call.said.as_bytes());
    let status = child.wait().unwrap();
    let took = start.elapsed().as_secs_f64() * 1000.0;
    assert_eq!(status.code(), Some(call.exit), "{}", call.name);
    took
}
