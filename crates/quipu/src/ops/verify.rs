use clap::Args;
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Verify {}

impl Operate for Verify {
    const NAME: &'static str = "verify";
    const ABOUT: &'static str = "Check the journal, every file against it, and the leases; exit 1 if anything is off";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let found = project.store.verify()?;
        let mut text = String::new();
        for problem in &found.problems {
            text.push_str(&format!("{}: {}\n  do    {}\n", problem.place, problem.what, problem.mend));
        }
        let summary = format!("{} records, {} files, {} leases: ", found.records, found.files, found.leases);
        text.push_str(&summary);
        text.push_str(&match found.problems.len() {
            0 => "all is well\n".to_owned(),
            1 => "1 problem\n".to_owned(),
            many => format!("{many} problems\n"),
        });
        let mut answer = Answer::new(json!(found), text);
        answer.exit = if found.problems.is_empty() { exit::FINE } else { exit::NO };
        Ok(answer)
    }
}
