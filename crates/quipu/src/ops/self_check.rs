//! The `self check` command: what works on this machine, and what is lost without the rest.

use std::process::{Command, Stdio};

use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::answer::{Answer, Failure};
use crate::integrate::{find_program, hosts};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct SelfCheck {}

/// One part of the machine.
#[derive(Debug, Serialize)]
struct Part {
    name: String,
    /// The part that was found; `None` if it is missing.
    found: Option<String>,
    /// The features that need it.
    without: String,
}

impl Operate for SelfCheck {
    const NAME: &'static str = "self check";
    const ABOUT: &'static str =
        "Show what works on this machine, and what is lost without the rest";

    fn operate(self, _session: &Session) -> Result<Answer, Failure> {
        let mut parts = kernel();
        parts.extend(programs());
        let known = hosts().into_iter().filter(|host| host.has_program());
        parts.extend(known.map(|host| Part {
            name: host.program().to_owned(),
            found: host.place().map(|place| place.display().to_string()),
            without: format!("{}: not installed, nothing to integrate", host.about),
        }));
        let version = env!("CARGO_PKG_VERSION");
        let mut text = format!("quipu {version}\n");
        for part in &parts {
            text.push_str(&match &part.found {
                Some(found) => format!("  yes  {:<12} {found}\n", part.name),
                None => format!("  no   {:<12} {}\n", part.name, part.without),
            });
        }
        Ok(Answer::new(
            json!({"version": version, "parts": parts}),
            text,
        ))
    }
}

#[cfg(target_os = "linux")]
fn kernel() -> Vec<Part> {
    let abi = quipu_agents::probe_landlock();
    let filters = quipu_agents::probe_seccomp();
    vec![
        Part {
            name: "Landlock".into(),
            found: abi.map(|abi| format!("version {abi}: agents of `quipu run` are confined")),
            without:
                "agents of `quipu run` can read and write everything that you can; only their \
                outputs are checked"
                    .into(),
        },
        Part {
            name: "seccomp".into(),
            found: filters.then(|| "filters are available".to_owned()),
            without: "`quipu run` starts no agent programs".into(),
        },
    ]
}

#[cfg(not(target_os = "linux"))]
fn kernel() -> Vec<Part> {
    vec![Part {
        name: "Linux".into(),
        found: None,
        without: "only Linux is supported".into(),
    }]
}

/// Optional programs.
fn programs() -> Vec<Part> {
    let git = find_program("git").and_then(|_| version_of("git"));
    let mut parts = vec![Part {
        name: "git".into(),
        found: git,
        without: "no `git setup`, and `finish` does not commit".into(),
    }];
    let others = [
        (
            "pdftotext",
            "PDF files cannot be written into memory as text (poppler-utils)",
        ),
        (
            "sh",
            "no judges, flow commands or agents that are shell commands",
        ),
        (
            "xdg-open",
            "`serve --open` prints the address and opens nothing",
        ),
    ];
    parts.extend(others.map(|(name, without)| Part {
        name: name.to_owned(),
        found: find_program(name).map(|place| place.display().to_string()),
        without: without.to_owned(),
    }));
    parts
}

/// Returns the first line that a program prints about its version.
fn version_of(program: &str) -> Option<String> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned)
}
