//! Consults an external program: JSON in on stdin, JSON out on stdout, within a time limit.
//!
//! The shell runs `command:PROGRAM ARGS…`. Its exit code is not trusted; its output is.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::answer::Failure;
use crate::terminal;

/// Time limit of a program.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long to wait for stderr after the program exits. Its own output is there at once, but a
/// surviving child may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// A longer line of stderr is shown in parts.
const LONGEST_LINE: u64 = 64 << 10;
/// Nesting depth of questions, for programs that ask in turn.
pub const DEPTH: &str = "QUIPU_ASK_DEPTH";

pub struct CommandAgent {
    name: String,
    command: String,
    depth: usize,
}

impl CommandAgent {
    pub fn parse(text: &str) -> Result<CommandAgent, Failure> {
        match text.strip_prefix("command:").map(str::trim) {
            Some(command) if !command.is_empty() => Ok(CommandAgent {
                name: text.to_owned(),
                command: command.to_owned(),
                depth: depth() + 1,
            }),
            _ => Err(Failure::usage(
                format!("`{text}` is not an agent that can be called here"),
                "command:PROGRAM ARGS",
            )),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn call(&self, question: &Value) -> Result<Value, String> {
        let text = self.call_for_text(question)?;
        serde_json::from_str(text.trim()).map_err(|e| format!("its answer is not JSON: {e}"))
    }

    /// Like `call`, for an answer that the caller parses.
    pub fn call_for_text(&self, question: &Value) -> Result<String, String> {
        let mut child = Command::new("sh")
            .args(["-c", &self.command])
            .env(DEPTH, self.depth.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start `{}`: {e}", self.command))?;
        let (mut stdin, mut stdout) = match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => (stdin, stdout),
            _ => return Err("cannot open a pipe to it".into()),
        };
        let (told, all_told) = mpsc::channel();
        let stderr = child.stderr.take();
        std::thread::spawn(move || {
            stderr.into_iter().for_each(relay);
            let _ = told.send(());
        });
        let asked = question.to_string();
        // The writer has its own thread, so that a program that does not read cannot block reading
        // its output.
        std::thread::spawn(move || {
            let _ = stdin.write_all(asked.as_bytes());
        });
        let (said, heard) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = said.send(stdout.read_to_string(&mut text).map(|_| text));
        });
        let text = heard.recv_timeout(PATIENCE);
        if text.is_err() {
            let _ = child.kill();
        }
        let _ = child.wait();
        let _ = all_told.recv_timeout(LAST_WORDS);
        text.map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))?
            .map_err(|e| e.to_string())
    }
}

/// Prints a program's stderr line by line, as messages.
fn relay(stderr: impl Read) {
    let mut reader = BufReader::new(stderr);
    loop {
        let mut line = Vec::new();
        match reader
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return,
            Ok(_) => terminal::say(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n'])),
        }
    }
}

/// Returns the current nesting depth.
pub fn depth() -> usize {
    std::env::var(DEPTH)
        .ok()
        .and_then(|depth| depth.parse().ok())
        .unwrap_or(0)
}
