//! The `show` command: prints an older version of a file.

use clap::Args;
use quipu_protocol::read_pointer;
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Show {
    /// The file, or one section of it
    #[arg(value_name = "PATH[#SECTION]")]
    pointer: String,
    /// The version: a1b2c3…, @12 (commit), ~1 (versions ago) or a time
    #[arg(long, value_name = "VERSION")]
    at: String,
    /// Print the conflict copy that commit @N kept: the external edit that it replaced
    #[arg(long)]
    conflict_copy: bool,
}

impl Operate for Show {
    const NAME: &'static str = "show";
    const ABOUT: &'static str = "Print an older version of a file";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.history()?;
        if self.conflict_copy {
            let path = Session::path(&self.pointer)?;
            quipu_protocol::may_read_whole(&project, &session.actor, &path)?;
            let seq =
                self.at.trim_start_matches('@').parse().map_err(|_| {
                    Failure::usage("--conflict-copy goes with --at @N", "quipu log")
                })?;
            let bytes = project
                .store
                .conflict_copies_of(seq, &path)?
                .ok_or_else(|| {
                    Failure::new(
                        exit::NOT_FOUND,
                        format!("commit @{seq} has no conflict copy of `{path}`"),
                        "quipu log",
                    )
                })?;
            let mut answer = Answer::new(
                json!({"path": path, "text": String::from_utf8_lossy(&bytes)}),
                "",
            );
            answer.raw = Some(bytes);
            return Ok(answer);
        }
        let reading = read_pointer(&project, &session.actor, &self.pointer, Some(&self.at))?;
        let json = json!({"path": reading.path, "version": reading.version, "text": String::from_utf8_lossy(&reading.bytes)});
        let mut answer = Answer::new(json, "");
        answer.raw = Some(reading.bytes);
        Ok(answer)
    }
}
