//! The `lint` command: reports facts without cause or source, dense sections, unknown levels, and
//! links in leaves.

use clap::Args;
use quipu_claims::lint;
use quipu_protocol::{gather, most_links};
use serde_json::json;

use crate::answer::{Answer, Failure, count, exit, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Lint {
    /// Check only this file
    path: Option<String>,
}

impl Operate for Lint {
    const NAME: &'static str = "lint";
    const ABOUT: &'static str =
        "Report facts without cause or source, dense sections, unknown levels, links in leaves";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = self.path.as_deref().map(Session::path).transpose()?;
        let project = session.project()?;
        let pages = gather(&project, &session.actor)?.pages;
        let mut found = lint(&pages, most_links(&project));
        found.retain(|one| {
            path.as_ref()
                .is_none_or(|path| one.at.path == path.as_str())
        });
        let text: String = found
            .iter()
            .map(|one| format!("{:<7} {}  {}\n", one.rule, one.at, one.what))
            .collect();
        let mut answer = Answer::new(json!({"lints": found}), text).say(in_language(
            project.contract.language,
            count(found.len(), "piece") + " of advice",
            format!("{} 条建议", found.len()),
        ));
        if !found.is_empty() {
            answer.exit = exit::NO;
        }
        Ok(answer)
    }
}
