//! Many processes that append to one file at the same time. Some are killed.

use std::process::Stdio;

use super::{BUG, Stage, cannot_run};
use crate::answer::{Failure, exit};

/// Number of concurrent agents, and of appends by each.
pub const AGENTS: usize = 8;
pub const APPENDS: usize = 3;

impl Stage {
    /// Lets many agents append at once. Returns how many appends were acknowledged; a lost one is
    /// an error.
    pub fn append_at_once(&mut self, folder: &str, file: &str) -> Result<usize, Failure> {
        let acknowledged = self.crowd(folder, file).map_err(cannot_run)?;
        let kept = std::fs::read_to_string(self.root.join(folder).join(file)).unwrap_or_default();
        let is_lost = |line: &&String| !kept.lines().any(|kept| kept == line.as_str());
        let lost = acknowledged.iter().filter(is_lost).count();
        self.line(&format!(
            "{} started, {} acknowledged, {lost} of those lost",
            AGENTS * APPENDS,
            acknowledged.len()
        ));
        if lost > 0 || acknowledged.is_empty() {
            let what = format!(
                "{}\nthe demo lost an acknowledged write, or none was acknowledged",
                self.told
            );
            return Err(Failure::new(exit::NO, what, BUG));
        }
        Ok(acknowledged.len())
    }

    /// Runs many processes at once and kills some. Returns the acknowledged lines.
    fn crowd(&self, folder: &str, file: &str) -> std::io::Result<Vec<String>> {
        let mut acknowledged = Vec::new();
        for round in 0..APPENDS {
            let mut running = Vec::new();
            for agent in 0..AGENTS {
                let line = format!("- agent {agent}, entry {round}");
                let child = self
                    .command(folder, &["append", file, "--text", &line])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()?;
                running.push((line, child));
            }
            for (agent, (line, mut child)) in running.into_iter().enumerate() {
                if agent % 2 == 1 && round % 2 == 1 {
                    child.kill()?;
                }
                if child.wait()?.success() {
                    acknowledged.push(line);
                }
            }
        }
        Ok(acknowledged)
    }
}
