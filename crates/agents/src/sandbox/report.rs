//! The helper's report: JSON lines in the record folder, out of the agent's reach.

use crate::outcome::{Attempt, Confinement};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One line of the report.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub enum Line {
    /// The agent is confined, or why not.
    Confined(Confinement),
    /// The run has a PID namespace and a `/proc` of its own.
    OwnProcesses,
    /// The run used more than its bounds and was ended.
    OverBound { what: String },
    /// The program could not be started.
    Failed { why: String },
    /// Something was denied; written once for each new act and path, and with the count at the end.
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

/// The whole report, read.
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

/// Adds a line. Nobody is left to tell if the report cannot be written.
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

/// Reads what the helper has written so far. A torn last line is left out.
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
                path: "attempts beyond those listed".to_string(),
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
