//! The `read` command: prints a file, or one section of it.

use clap::Args;
use quipu_protocol::read_pointer;
use serde_json::json;

use super::flagged::with_flag;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Read {
    /// The file, or one section of it: by name, or at a line (PATH:LINE)
    #[arg(value_name = "PATH[#SECTION]")]
    path: String,
    /// An older version: a1b2c3…, @12 (commit), ~1 (versions ago) or a time
    #[arg(long, value_name = "VERSION")]
    at: Option<String>,
}

impl Operate for Read {
    const NAME: &'static str = "read";
    const ABOUT: &'static str = "Print a file, or one section of it";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let reading = read_pointer(&project, &session.actor, &self.path, self.at.as_deref())?;
        let json = json!({
            "path": reading.path,
            "section": reading.section,
            "line": reading.line,
            "version": reading.version,
            "text": String::from_utf8_lossy(&reading.bytes),
        });
        let mut answer = Answer::new(json, "");
        answer.raw = Some(reading.bytes);
        if self.at.is_none() {
            with_flag(answer, &project, &reading.path)
        } else {
            Ok(answer)
        }
    }
}
