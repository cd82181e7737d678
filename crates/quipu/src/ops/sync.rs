use clap::Args;
use serde_json::json;

use crate::answer::{Answer, Failure};
use crate::session::{Session, told_conflicts};
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Sync {}

impl Operate for Sync {
    const NAME: &'static str = "sync";
    const ABOUT: &'static str = "Bring this working copy to the newest revision of its shared store";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let Some(order) = project.store.order() else {
            return Ok(Answer::new(json!({"shared": false}), "a project of its own: there is nothing to bring here\n"));
        };
        let about = order.describe();
        let sent = project.store.unanswered();
        let survey = project.store.survey()?;
        let synced = project.store.sync()?;
        let mut text = match synced.to - synced.from {
            0 => format!("at revision {}, the newest\n", synced.to),
            count => format!("at revision {} ({count} newer)\n", synced.to),
        };
        if !sent.is_empty() {
            let arrived = project.store.log(usize::try_from(synced.to.saturating_sub(synced.from)).unwrap_or(usize::MAX))?;
            let found = arrived.iter().find(|entry| sent.contains(&entry.id)).map(|entry| entry.seq);
            text.push_str(&match found {
                Some(seq) => format!("the commit that got no answer was accepted: @{seq}\n"),
                None => "the commit that got no answer was not accepted\n".to_owned(),
            });
        }
        let mut answer = Answer::new(
            json!({"shared": true, "address": about.address, "project": about.project, "from": synced.from, "to": synced.to,
                   "adopted": survey.adopted, "waiting": survey.waiting, "conflicts": synced.conflicts}),
            text,
        );
        if let Some(told) = told_conflicts(&synced.conflicts) {
            answer = answer.say(told);
        }
        for path in &survey.waiting {
            answer = answer.say(format!("{path}: edited here and not yet accepted"));
        }
        Ok(answer)
    }
}
