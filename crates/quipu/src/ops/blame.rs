//! The `blame` command: shows the commit, actor and time of each line of a file.

use clap::Args;
use quipu_protocol::may_read_whole;
use quipu_store::BlameLine;
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
    const ABOUT: &'static str = "Show the commit, actor and time of each line of a file";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        may_read_whole(&project, &session.actor, &path)?;
        let lines = project.store.blame(&path)?;
        // The author of a line is unknown if the older versions of the text were pruned.
        let who = |l: &BlameLine| {
            if l.or_older {
                "unknown (this or older)".to_owned()
            } else {
                l.who.to_string()
            }
        };
        let width = lines
            .iter()
            .map(|l| who(l).chars().count())
            .max()
            .unwrap_or(0);
        let text = lines
            .iter()
            .map(|l| {
                format!(
                    "@{:<5} {:<width$} {} {:>4}  {}\n",
                    l.seq,
                    who(l),
                    l.at.get(..19).unwrap_or(&l.at),
                    l.line,
                    l.text
                )
            })
            .collect::<String>();
        Ok(Answer::new(json!(lines), text))
    }
}
