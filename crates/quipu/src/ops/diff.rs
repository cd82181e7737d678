use clap::Args;
use quipu_protocol::{may_read_whole, read_pointer, render_difference};
use serde_json::json;

use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Diff {
    /// The file
    path: String,
    /// From this version: a1b2c3…, @12, ~1 or a time; without it the newest journalled one
    #[arg(long, value_name = "VERSION")]
    from: Option<String>,
    /// To this version; without it what is on disk now
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
}

impl Operate for Diff {
    const NAME: &'static str = "diff";
    const ABOUT: &'static str = "What changed in a file: between versions, or on disk since the last commit";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        may_read_whole(&project, &session.actor, &path)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (old_name, old) = match &self.from {
            Some(from) => {
                let reading = read_pointer(&project, &session.actor, &self.path, Some(from))?;
                (format!("{path} {}", reading.version), text(reading.bytes))
            }
            None => match project.store.read(&path)? {
                Some((bytes, version)) => (format!("{path} {version}"), text(bytes)),
                None => (format!("{path} (none)"), String::new()),
            },
        };
        let (new_name, new) = match &self.to {
            Some(to) => {
                let reading = read_pointer(&project, &session.actor, &self.path, Some(to))?;
                (format!("{path} {}", reading.version), text(reading.bytes))
            }
            None => (format!("{path} (on disk)"), text(project.store.on_disk(&path)?.unwrap_or_default())),
        };
        let diff = render_difference(&old_name, &old, &new_name, &new);
        Ok(Answer::new(json!({"path": path, "from": old_name, "to": new_name, "diff": diff}), diff))
    }
}
