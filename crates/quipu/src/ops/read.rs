//! The `read` command: prints a file, or one section of it.

use clap::Args;
use quipu_protocol::{Reading, read_pointer};
use serde_json::json;

use super::contract::closed_to;
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
    /// Begin at this line of the file
    #[arg(long, value_name = "LINE")]
    from: Option<usize>,
}

impl Operate for Read {
    const NAME: &'static str = "read";
    const ABOUT: &'static str = "Print a file, or one section of it";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let mut reading = read_pointer(&project, &session.actor, &self.path, self.at.as_deref())?;
        if let Some(from) = self.from {
            skip_to(&mut reading, from);
        }
        let mut json = json!({
            "path": reading.path,
            "section": reading.section,
            "line": reading.line,
            "version": reading.version,
            "text": String::from_utf8_lossy(&reading.bytes),
        });
        if let Some(why) = closed_to(&project.contract, &session.actor, &reading.path) {
            json["closed"] = json!(why);
        }
        let mut answer = Answer::new(json, "");
        answer.raw = Some(reading.bytes);
        if self.at.is_none() {
            with_flag(answer, &project, &reading.path)
        } else {
            Ok(answer)
        }
    }
}

/// Drops the lines before a line of the file.
fn skip_to(reading: &mut Reading, from: usize) {
    let skipped = from.saturating_sub(reading.line);
    let lines = reading.bytes.split_inclusive(|b| *b == b'\n');
    let length: usize = lines.take(skipped).map(<[u8]>::len).sum();
    reading.bytes.drain(..length);
    reading.line = reading.line.max(from);
}
