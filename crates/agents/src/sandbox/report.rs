//! The helper's report: JSON lines in the record folder, which the agent cannot reach.

use crate::outcome::{Attempt, Confinement};
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub enum Line {
    /// The confinement, or why there is none.
    Confined(Confinement),
    /// The agent has a PID namespace and a `/proc` of its own.
    OwnProcesses,
    /// The agent exceeded its bounds and was ended.
    OverBound { what: String },
    /// The program could not be started.
    Failed { why: String },
    /// An access was denied. Written once for each new act and path, and again with the count at
    /// the end.
    Denied(Attempt),
    /// More attempts were denied than are listed.
    MoreDenied { times: u64 },
    /// A process outlived the agent and was ended.
    LeftBehind { program: String },
    /// The agent's own process ended.
    Exited {
        code: Option<i32>,
        signal: Option<String>,
    },
}

/// The parsed report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub confinement: Option<Confinement>,
    pub own_processes: bool,
    pub over_bound: Option<String>,
    pub failed: Option<String>,
    pub denied: Vec<Attempt>,
    pub left_behind: Vec<String>,
    pub exit: Option<i32>,
    pub signal: Option<String>,
}

/// Appends a line. A write error is ignored, because no other channel is left to report it.
#[cfg(target_os = "linux")]
pub fn tell(report: &Path, line: &Line) {
    use std::io::Write;
    if let (Ok(text), Ok(mut file)) = (
        serde_json::to_string(line),
        std::fs::OpenOptions::new().append(true).open(report),
    ) {
        let _ = file.write_all(format!("{text}\n").as_bytes());
    }
}

/// Reads the report so far. A torn last line is skipped.
pub fn load_report(path: &Path) -> Report {
    let mut report = Report::default();
    let text = std::fs::read(path).unwrap_or_default();
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            continue;
        };
        match line {
            Line::Confined(how) => report.confinement = Some(how),
            Line::OwnProcesses => report.own_processes = true,
            Line::OverBound { what } => report.over_bound = Some(what),
            Line::Failed { why } => report.failed = Some(why),
            Line::Denied(attempt) => {
                let same = |one: &&mut Attempt| one.path == attempt.path && one.act == attempt.act;
                match report.denied.iter_mut().find(same) {
                    Some(known) => known.times = known.times.max(attempt.times),
                    None => report.denied.push(attempt),
                }
            }
            Line::MoreDenied { times } => report.denied.push(Attempt {
                act: "more".to_string(),
                path: "further attempts, not listed".to_string(),
                leads_to: None,
                program: String::new(),
                by: "kernel".to_string(),
                times,
            }),
            Line::LeftBehind { program } => report.left_behind.push(program),
            Line::Exited { code, signal } => {
                report.exit = code;
                report.signal = signal;
            }
        }
    }
    report
}
