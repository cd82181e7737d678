//! The `split` command: splits a file that is too long by its sections, and updates links.

use clap::Args;
use quipu_protocol::{Grown, GrowthError, split_page};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure, count, exit, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Split {
    /// The file, such as chronicle.md; the variable chronicle_tokens sets its limit
    path: String,
    /// Split the file even if it is within its limit
    #[arg(long)]
    now: bool,
}

impl Operate for Split {
    const NAME: &'static str = "split";
    const ABOUT: &'static str = "Split a file that is too long by its sections; links are updated";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        match split_page(
            &project,
            &session.actor,
            &path,
            self.now,
            session.lease.clone(),
        )? {
            Grown::Within {
                tokens,
                bound,
                variable,
            } => {
                let set = format!("{variable} = \"…\"");
                let (en, zh) = match bound {
                    Some(bound) => (format!("may have {bound}"), format!("上限 {bound}")),
                    None => (
                        format!("has no limit (set it in quipu.toml under [vars]: {set})"),
                        format!("没有上限（在 quipu.toml 的 [vars] 下设定：{set}）"),
                    ),
                };
                Ok(Answer::new(
                    json!({"split": false, "tokens": tokens, "bound": bound}),
                    "",
                )
                .say(in_language(
                    project.contract.language,
                    format!("{path} has {tokens} tokens and {en}"),
                    format!("{path} 有 {tokens} 个词元，{zh}"),
                )))
            }
            Grown::Split {
                receipt,
                created,
                fixed,
            } => {
                let language = project.contract.language;
                let told = receipt::answer(language, &receipt);
                let made = in_language(language, "created", "新建");
                let mended = in_language(language, "fixed ", "已改");
                let mut text: String = created
                    .iter()
                    .map(|path| format!("{made} {path}\n"))
                    .collect();
                fixed
                    .iter()
                    .for_each(|place| text.push_str(&format!("{mended} {place}\n")));
                let mut answer = Answer::new(
                    json!({"split": true, "created": created, "fixed": fixed, "receipt": told.json}),
                    text,
                );
                answer.talk = told.talk;
                Ok(answer.say(in_language(
                    language,
                    format!("{} fixed", count(fixed.len(), "link")),
                    format!("改正了 {} 个链接", fixed.len()),
                )))
            }
        }
    }
}

impl From<GrowthError> for Failure {
    fn from(error: GrowthError) -> Failure {
        let what = error.to_string();
        match error {
            GrowthError::NotFound(_) => Failure::new(exit::NOT_FOUND, what, "quipu status --files"),
            GrowthError::Whole(_) => Failure::new(
                exit::REFUSED,
                what,
                "divide it into `##` sections, one for each arc",
            ),
            GrowthError::Unchangeable { .. } => Failure::new(
                exit::REFUSED,
                what,
                "a person can amend them first: quipu amend PATH --why \"…\"",
            ),
            GrowthError::Unseen(_) => {
                Failure::new(exit::REFUSED, what, "ask a person to run: quipu split PATH")
            }
            GrowthError::Read(error) => error.into(),
            GrowthError::Store(error) => error.into(),
        }
    }
}
