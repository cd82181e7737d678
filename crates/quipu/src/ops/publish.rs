//! The `publish` command: writes pages and an EPUB of the final chapters.

use clap::Args;
use quipu_contract::Pattern;
use quipu_protocol::flow::settle_published;
use quipu_protocol::{Draw, PublishRequest, publish};
use serde_json::json;

use super::receipt;
use crate::agents::Drawing;
use crate::answer::{Answer, Failure, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Publish {
    /// Publish only files that match; repeatable
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,
}

impl Operate for Publish {
    const NAME: &'static str = "publish";
    const ABOUT: &'static str = "Write pages and an EPUB of the final chapters";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let only = self
            .only
            .iter()
            .map(|glob| Pattern::parse(glob))
            .collect::<Result<Vec<_>, _>>();
        let only = only.map_err(|what| Failure::usage(what, "--only 'publish/*.html'"))?;
        let project = session.project()?;
        let drawing = Drawing::of(&project.contract, project.store.root());
        let draw = drawing.as_ref().map(|drawing| drawing as &dyn Draw);
        let made = publish(
            &project,
            &PublishRequest {
                actor: &session.actor,
                lease: session.lease.clone(),
                only: &only,
                draw,
            },
        )?;
        let settled = match only.is_empty() && made.receipt.is_some() {
            true => settle_published(&project, &session.decider())?,
            false => Vec::new(),
        };
        let remarks: Vec<_> = made
            .remarks
            .iter()
            .map(|remark| json!({"path": remark.path, "line": remark.line, "what": remark.what}))
            .collect();
        let mut answer = match &made.receipt {
            Some(receipt) => receipt::answer(project.contract.language, receipt),
            None => Answer::new(
                json!({"unchanged": true}),
                format!("{}\n", receipt::unchanged(project.contract.language)),
            ),
        };
        answer.json["chapters"] = json!(made.chapters);
        answer.json["unfinished"] = json!(made.unfinished);
        answer.json["remarks"] = json!(remarks);
        for job in settled {
            answer = answer.say(in_language(
                project.contract.language,
                format!("job `{job}` is up to date again"),
                format!("任务 `{job}` 已是最新"),
            ));
        }
        for remark in &made.remarks {
            answer = answer.say(format!("{}:{}: {}", remark.path, remark.line, remark.what));
        }
        if !made.unfinished.is_empty() {
            let left = made.unfinished.join(", ");
            answer = answer.say(in_language(
                project.contract.language,
                format!("left out because they are not final: {left}"),
                format!("尚未定稿，故未收入：{left}"),
            ));
        }
        Ok(answer)
    }
}
