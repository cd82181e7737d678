//! A program as judge or reader: JSON in on stdin, JSON out on stdout, within a time limit.
//!
//! `command:PROGRAM ARGS…` is run by the shell. Its exit code is not believed; what it prints is.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use quipu_claims::{Evidence, Verdict};
use quipu_protocol::{ClaimJudge, Ruling};
use serde_json::{Value, json};

use crate::answer::Failure;

/// A program that has said nothing for so long will say nothing.
const PATIENCE: Duration = Duration::from_secs(120);
/// How deep questions are nested, for programs that ask in turn.
pub const DEPTH: &str = "QUIPU_ASK_DEPTH";

pub struct CommandAgent {
    name: String,
    command: String,
    depth: usize,
}

impl CommandAgent {
    pub fn parse(text: &str) -> Result<CommandAgent, Failure> {
        match text.strip_prefix("command:").map(str::trim) {
            Some(command) if !command.is_empty() => {
                Ok(CommandAgent { name: text.to_owned(), command: command.to_owned(), depth: depth() + 1 })
            }
            _ => Err(Failure::usage(format!("`{text}` is no agent that can be called here"), "command:PROGRAM ARGS")),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, question: &Value) -> Result<Value, String> {
        let mut child = Command::new("sh")
            .args(["-c", &self.command])
            .env(DEPTH, self.depth.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start `{}`: {e}", self.command))?;
        let (mut stdin, mut stdout) = match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => (stdin, stdout),
            _ => return Err("no pipe to it".into()),
        };
        let asked = question.to_string();
        // A program that does not read must not keep us from reading what it says.
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
        let text = text.map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))?.map_err(|e| e.to_string())?;
        serde_json::from_str(text.trim()).map_err(|e| format!("its answer is no JSON: {e}"))
    }

    /// One sentence and its line.
    pub fn read(&self, text: &str, first_line: usize, question: &str) -> Result<(String, usize), String> {
        let answer = self.call(&json!({"question": question, "first_line": first_line, "text": text}))?;
        let said = answer["answer"].as_str().ok_or("its answer has no `answer`")?.to_owned();
        let line = answer["line"].as_u64().and_then(|line| usize::try_from(line).ok()).ok_or("its answer has no `line`")?;
        let last = first_line + text.lines().count();
        if !(first_line..=last).contains(&line) {
            return Err(format!("line {line} is not in what it was shown"));
        }
        Ok((said, line))
    }
}

/// How deep we are asked.
pub fn depth() -> usize {
    std::env::var(DEPTH).ok().and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

impl ClaimJudge for CommandAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn rule(&self, claim: &str, evidence: &[Evidence]) -> Result<Ruling, String> {
        let answer = self.call(&json!({"claim": claim, "evidence": evidence}))?;
        let verdict = match answer["verdict"].as_str() {
            Some("conflict") => Verdict::Conflict,
            Some("consistent") => Verdict::Consistent,
            Some("unknown") => Verdict::Unknown,
            _ => return Err("its `verdict` is none of conflict, consistent, unknown".into()),
        };
        let evidence = answer["evidence"].as_u64().and_then(|nth| usize::try_from(nth).ok()).filter(|nth| *nth < evidence.len());
        let reason = answer["reason"].as_str().unwrap_or_default().to_owned();
        #[allow(clippy::cast_possible_truncation, reason = "a confidence has two digits")]
        let confidence = answer["confidence"].as_f64().unwrap_or(0.5) as f32;
        Ok(Ruling { verdict, reason, evidence, confidence })
    }
}
