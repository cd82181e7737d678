use clap::Args;
use serde_json::json;

use crate::answer::{Answer, Failure, count, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Verify {}

impl Operate for Verify {
    const NAME: &'static str = "verify";
    const ABOUT: &'static str = "Check the journal, every file against it, and the leases; exit 1 if anything is off";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.history()?;
        let found = project.store.verify()?;
        let mut text = String::new();
        for problem in &found.problems {
            text.push_str(&format!("{}: {}\n  do    {}\n", problem.place, problem.what, problem.mend));
        }
        for torn in &found.torn {
            text.push_str(&format!("{torn}: what stood behind the last whole record: of a write that was never acknowledged, unless the journal itself was cut or damaged; look at it, then delete it\n"));
        }
        for healed in &found.healed {
            text.push_str(&format!("known damage: {healed}\n"));
        }
        for notice in &found.notices {
            text.push_str(&format!("{notice}\n"));
        }
        let number = |n: u64, of| count(usize::try_from(n).unwrap_or(usize::MAX), of);
        text.push_str(&format!(
            "{}, {}, {}: {}\n",
            number(found.records, "record"),
            number(found.files, "file"),
            number(found.leases, "lease"),
            if found.problems.is_empty() { "all is well".to_owned() } else { count(found.problems.len(), "problem") }
        ));
        let mut answer = Answer::new(json!(found), text);
        answer.exit = if found.problems.is_empty() { exit::FINE } else { exit::NO };
        Ok(answer)
    }
}
