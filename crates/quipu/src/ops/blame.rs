use clap::Args;
use quipu_protocol::may_read_whole;
use serde_json::json;

use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Blame {
    /// The file
    path: String,
}

impl Operate for Blame {
    const NAME: &'static str = "blame";
    const ABOUT: &'static str = "For each line of a file: commit, actor, time";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        may_read_whole(&project, &session.actor, &path)?;
        let lines = project.store.blame(&path)?;
        let width = lines.iter().map(|l| l.who.to_string().chars().count()).max().unwrap_or(0);
        let text = lines
            .iter()
            .map(|l| format!("@{:<5} {:<width$} {} {:>4}  {}\n", l.seq, l.who.to_string(), l.at.get(..19).unwrap_or(&l.at), l.line, l.text))
            .collect::<String>();
        Ok(Answer::new(json!(lines), text))
    }
}
