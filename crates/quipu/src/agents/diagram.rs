//! Renders Mermaid diagrams with the program that a project configures as `[agents.mermaid]`.
//!
//! The source of a diagram comes from an agent, and rendering it runs a whole browser. So the
//! person chooses the program: it runs only after `quipu trust`, in the agents' sandbox, sees only
//! the diagram, and has a deadline and bounds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_agents::{Adapter, Assignment, Bounds, Names, Stop, Watch};
use quipu_contract::Contract;
use quipu_protocol::Draw;

use super::{kept_out, open_adapter};

/// The name of the agent that renders.
const NAME: &str = "mermaid";
/// A browser starts within seconds; a busy machine needs more.
const DEADLINE: Duration = Duration::from_secs(90);
/// Size limit of a rendered diagram.
const MOST_BYTES: u64 = 16 << 20;

/// Renders with the project's program, or returns why it cannot.
pub struct Drawing {
    agent: Result<Box<dyn Adapter>, String>,
    root: PathBuf,
}

impl Drawing {
    /// Returns `None` if the project configures no program.
    pub fn of(contract: &Contract, root: &Path) -> Option<Drawing> {
        let agent = || open_adapter(NAME, None, contract, root).map_err(|failure| failure.what);
        contract.agents.contains_key(NAME).then(|| Drawing {
            agent: agent(),
            root: root.to_owned(),
        })
    }
}

impl Draw for Drawing {
    fn draw(&self, diagram: &str) -> Result<Vec<u8>, String> {
        let agent = self.agent.as_ref().map_err(Clone::clone)?;
        let io = |error: std::io::Error| format!("cannot create its folder: {error}");
        let folder = tempfile::Builder::new()
            .prefix("quipu-draw-")
            .tempdir()
            .map_err(io)?;
        let place = |name: &str| folder.path().join(name);
        for name in ["view", "out", "record"] {
            std::fs::create_dir(place(name)).map_err(io)?;
        }
        std::fs::write(place("view").join("diagram.mmd"), diagram).map_err(io)?;
        let assignment = Assignment {
            brief: String::new(),
            inline: None,
            view: place("view"),
            out: place("out"),
            outputs: vec!["diagram.png".to_owned()],
            last_lines: Default::default(),
            names: Names {
                role: NAME.to_owned(),
                unit: None,
                agent: Some(NAME.to_owned()),
                attempt: "publish".to_owned(),
            },
            deadline: DEADLINE,
            record: place("record"),
            mcp: None,
            questions: Vec::new(),
            keep_out: kept_out(&self.root),
            language: quipu_agents::Language::English,
            bounds: Bounds {
                file: MOST_BYTES,
                out: MOST_BYTES,
                ..Bounds::default()
            },
        };
        let outcome = agent
            .open(
                &assignment,
                Watch {
                    events: &|_| (),
                    stop: &Stop::default(),
                },
            )
            .first();
        let picture = place("out").join("diagram.png");
        let is_file = std::fs::symlink_metadata(&picture)
            .is_ok_and(|found| found.is_file() && found.len() <= MOST_BYTES);
        match is_file {
            true => std::fs::read(&picture)
                .map_err(|error| format!("its picture cannot be read: {error}")),
            false => Err(format!(
                "agent `{NAME}` produced no picture ({})",
                outcome.ending
            )),
        }
    }
}
