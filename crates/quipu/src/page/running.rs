//! Runs that a person starts on the page: `quipu run` as a program of its own, one at a time.
//!
//! The page chooses among agents that Quipu or the contract names. It cannot describe a program: a
//! command line in a request would be one that no person has read.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use quipu_web::axum::Json;
use quipu_web::axum::extract::State;
use quipu_web::axum::response::Response;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reply::reply;
use super::{Page, Shared};
use crate::agents::known_agents;
use crate::answer::{Failure, exit};
use crate::ops::run::JOBS;

/// Lines of output that are kept of a run.
const LINES: usize = 200;
/// Maximum length of a text in a kept line, in characters, and of a list in it.
const TEXT: usize = 400;
const LIST: usize = 8;
/// Parts of an event that the page does not show.
const UNSHOWN: [&str; 4] = ["status", "steps", "usage", "sealed"];
/// The most agents at the same time that the page may ask for.
const MOST_JOBS: usize = 8;
/// The variables that identify a caller. A run of a person has none of them.
const NAMES: [&str; 6] = [
    "QUIPU_ROLE",
    "QUIPU_UNIT",
    "QUIPU_AGENT",
    "QUIPU_LEASE",
    "QUIPU_SESSION",
    "QUIPU_TOKEN",
];

/// The newest run of a server.
#[derive(Default)]
pub struct Runs(Mutex<Option<Run>>);

/// The job to run. Without a step, everything that is ready.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    by: String,
    step: Option<String>,
    unit: Option<String>,
    /// Only what is stale.
    #[serde(default)]
    stale: bool,
    /// The step even if it is done.
    #[serde(default)]
    again: bool,
    jobs: Option<usize>,
}

struct Run {
    order: Order,
    since: String,
    child: Child,
    lines: Arc<Mutex<VecDeque<Value>>>,
    stopping: bool,
    ended: Option<i32>,
}

impl Run {
    fn start(page: &Page, order: Order) -> Result<Run, Failure> {
        let mut command = Command::new(std::env::current_exe().map_err(|e| cannot(&e))?);
        command
            .args(["--json", "run"])
            .arg(format!("--by={}", order.by))
            .arg(format!(
                "--jobs={}",
                order.jobs.unwrap_or(JOBS).clamp(1, MOST_JOBS)
            ))
            .args(order.step.iter().map(|step| format!("--step={step}")))
            .args(order.unit.iter().map(|unit| format!("--unit={unit}")))
            .args(order.stale.then_some("--stale"))
            .args(order.again.then_some("--again"))
            .current_dir(&page.session.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in NAMES {
            command.env_remove(name);
        }
        let mut child = command.spawn().map_err(|e| cannot(&e))?;
        let lines = Arc::default();
        keep_lines(child.stdout.take(), &lines);
        keep_lines(child.stderr.take(), &lines);
        Ok(Run {
            order,
            since: jiff::Timestamp::now().to_string(),
            child,
            lines,
            stopping: false,
            ended: None,
        })
    }

    /// Whether the program still runs.
    fn is_running(&mut self) -> bool {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = Some(status.code().unwrap_or(-1));
        }
        self.ended.is_none()
    }

    /// Asks the program to stop, as Ctrl-C does: running attempts end, and leases are released. The
    /// second time it exits at once.
    fn stop(&mut self) {
        if self.is_running() {
            self.stopping = true;
            // It may have ended in between, which is what was asked for.
            let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        }
    }

    fn report(&mut self) -> Value {
        let running = self.is_running();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        json!({
            "order": self.order, "since": self.since, "running": running, "stopping": running && self.stopping,
            "exit": self.ended, "lines": *lines,
        })
    }
}

/// A run ends with the server that has started it, so that nothing goes on unseen.
impl Drop for Run {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Runs {
    /// Changes when a run begins or ends.
    pub fn state(&self) -> Option<(String, bool)> {
        let mut run = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        run.as_mut()
            .map(|run| (run.since.clone(), run.is_running()))
    }
}

fn cannot(error: &std::io::Error) -> Failure {
    Failure::new(
        exit::IO,
        format!("cannot start quipu run: {error}"),
        "quipu run --by NAME     (on the command line)",
    )
}

/// Reads the lines of a pipe until it is closed, and keeps the newest.
fn keep_lines(pipe: Option<impl Read + Send + 'static>, lines: &Arc<Mutex<VecDeque<Value>>>) {
    let Some(pipe) = pipe else { return };
    let lines = Arc::clone(lines);
    thread::spawn(move || {
        let read = BufReader::new(pipe).split(b'\n').map_while(Result::ok);
        for line in read {
            let line = String::from_utf8_lossy(&line);
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(parse_line(&line));
        }
    });
}

/// Parses an event of `quipu run --json`. Any other line is a text.
fn parse_line(line: &str) -> Value {
    let mut event = match serde_json::from_str(line) {
        Ok(Value::Object(event)) => event,
        _ => return json!({"text": line.chars().take(TEXT).collect::<String>()}),
    };
    event.retain(|name, _| !UNSHOWN.contains(&name.as_str()));
    for value in event.values_mut() {
        match value {
            Value::String(text) if text.chars().count() > TEXT => {
                *text = text.chars().take(TEXT).collect();
            }
            Value::Array(list) => list.truncate(LIST),
            _ => {}
        }
    }
    Value::Object(event)
}

/// The agents to choose from, and the newest run.
pub async fn show(State(page): Shared) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let agents = known_agents(&project.contract)?;
        let mut run = page.runs.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok::<Value, Failure>(json!({"agents": agents, "run": run.as_mut().map(Run::report)}))
    })
    .await
}

pub async fn start(State(page): Shared, Json(order): Json<Order>) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let agents = known_agents(&project.contract)?;
        if !agents.iter().any(|agent| agent.name == order.by) {
            return Err(Failure::new(
                exit::NOT_FOUND,
                format!("the page knows no agent `{}`", order.by),
                "quipu run --by NAME     (on the command line, for any other agent)",
            ));
        }
        let mut slot = page.runs.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.as_mut().is_some_and(Run::is_running) {
            return Err(Failure::new(
                exit::STALE,
                "a run that this page has started is under way",
                "stop it, or wait until it ends",
            ));
        }
        let run = slot.insert(Run::start(&page, order)?);
        Ok(json!({"run": run.report()}))
    })
    .await
}

pub async fn stop(State(page): Shared) -> Response {
    reply(move || {
        let mut slot = page.runs.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(run) = slot.as_mut() else {
            return Err(Failure::new(
                exit::NOT_FOUND,
                "this page has started no run",
                "quipu status     (shows who works; stop a run where it was started)",
            ));
        };
        run.stop();
        Ok(json!({"run": run.report()}))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_keeps_what_is_shown_and_stays_short() {
        let line = json!({"event": "ended", "summary": {"accepted": 1}, "status": [1, 2], "why": "x".repeat(2 * TEXT)});
        let event = parse_line(&line.to_string());
        assert_eq!(event["summary"]["accepted"], 1);
        assert!(event.get("status").is_none());
        assert_eq!(event["why"].as_str().map(str::len), Some(TEXT));
        assert_eq!(
            parse_line("1 job accepted"),
            json!({"text": "1 job accepted"})
        );
    }
}
