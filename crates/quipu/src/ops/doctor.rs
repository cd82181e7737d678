//! The `doctor` command: repairs a project and reports the remaining problems.

use clap::Args;
use quipu_protocol::chinese::{self, in_language as render_message};
use quipu_protocol::flow::prune_runs;
use quipu_store::{Problem, StoreError};
use serde_json::json;

use crate::answer::{Answer, Failure, count, exit, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Doctor {}

impl Operate for Doctor {
    const NAME: &'static str = "doctor";
    const ABOUT: &'static str =
        "Repair what can be repaired and report it; exit 1 if problems remain";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        if let Some(role) = session.actor.role() {
            let what = format!(
                "doctor repairs the whole project, but role `{role}` may read only a part \
                    of it"
            );
            return Err(Failure::new(
                exit::REFUSED,
                what,
                "ask a person to run: quipu doctor",
            ));
        }
        let project = session.project()?;
        let fixed = project.store.doctor()?;
        let pruned = prune_runs(&project);
        let mut found = project.store.verify()?;
        if let Some(order) = project.store.commit_log() {
            let about = order.describe();
            let place = format!("{} at {}", about.project, about.address);
            match project.store.examine_commit_log() {
                Ok(faults) => found
                    .problems
                    .extend(faults.into_iter().map(|(what, remedy)| Problem {
                        place: place.clone(),
                        what,
                        remedy,
                    })),
                Err(StoreError::Unreachable { what, remedy, .. }) => {
                    let remedy = remedy
                        .unwrap_or("start the server, or check the network")
                        .into();
                    found.problems.push(Problem {
                        place,
                        what,
                        remedy,
                    });
                }
                Err(error) => return Err(error.into()),
            }
        }
        let language = project.contract.language;
        let said = |message: &str| render_message(language, message.to_owned());
        let mut text = fixed
            .iter()
            .map(|m| format!("{}\n", said(&m.what)))
            .collect::<String>();
        if !pruned.is_empty() {
            text.push_str(&in_language(
                language,
                format!(
                    "deleted {} of old attempts\n",
                    count(pruned.len(), "folder")
                ),
                format!("删除了旧运行的 {} 个文件夹\n", pruned.len()),
            ));
        }
        found
            .notices
            .iter()
            .for_each(|notice| text.push_str(&format!("{}\n", said(notice))));
        for problem in &found.problems {
            let Problem {
                place,
                what,
                remedy,
            } = problem;
            text.push_str(&in_language(
                language,
                format!("not repaired: {place}: {what}\n  help  {remedy}\n"),
                format!(
                    "没有修复：{place}：{}\n  help  {}\n",
                    said(what),
                    chinese::remedy(remedy)
                ),
            ));
        }
        let mut answer = Answer::new(
            json!({"fixed": fixed, "pruned": pruned, "left": found.problems}),
            text,
        );
        answer.exit = if found.problems.is_empty() {
            exit::FINE
        } else {
            exit::NO
        };
        Ok(answer)
    }
}
