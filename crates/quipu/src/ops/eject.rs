//! The `eject` command: removes Quipu from a project and leaves plain files. The work is done by
//! `crate::eject`.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use quipu_contract::Privilege;
use quipu_protocol::Project;
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::eject::{keep, plan_removal, remove};
use crate::session::Session;
use crate::table::Operate;
use crate::terminal;

#[derive(Debug, Args)]
pub struct Eject {
    /// List what is removed and lost; remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove without a question on the terminal
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// First pack the history and the contract into this new tar file
    #[arg(long, value_name = "FILE")]
    keep_journal: Option<PathBuf>,
}

impl Operate for Eject {
    const NAME: &'static str = "eject";
    const ABOUT: &'static str = "Remove Quipu from this project and leave plain files; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        session.actor.may(Privilege::DropHistory)?;
        let root = Project::find_root(&session.folder)?;
        let root = std::fs::canonicalize(&root).unwrap_or(root);
        let removal = plan_removal(&root)?;
        let shown = removal.render(self.keep_journal.as_ref());
        let report = |removed: bool| json!({"removed": removed, "root": &root, "plan": &removal});
        let left = |answer: Answer| {
            removal.left.iter().fold(answer, |answer, what| {
                answer.say(format!("left as it is: {what}"))
            })
        };
        if self.dry_run {
            return Ok(left(Answer::new(report(false), shown)).say("dry run: nothing was removed"));
        }
        if !self.yes && !ask(&shown) {
            let mut answer = Answer::new(report(false), shown);
            answer.exit = exit::NO;
            return Ok(
                answer.say("nothing was removed; to agree without a terminal: quipu eject --yes")
            );
        }
        if let Some(archive) = &self.keep_journal {
            keep(&session.folder.join(archive), &root, &removal)?;
        }
        remove(&root)?;
        Ok(
            left(Answer::new(report(true), shown))
                .say("removed: this is no Quipu project any more"),
        )
    }
}

/// Asks on the terminal; false without one. Only a complete `yes` counts.
fn ask(shown: &str) -> bool {
    if !std::io::stdin().is_terminal() || !terminal::stderr_is_terminal() {
        return false;
    }
    terminal::write_stderr(&format!("{shown}Remove this? Type yes to agree: "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("yes")
}
