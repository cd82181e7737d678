//! The `waive` command: accepts a conflict with a reason, and lists or revokes such waivers.

use clap::Args;
use quipu_protocol::{CheckRequest, Draft, check_draft, revoke_waiver, waive, waivers_for};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Waive {
    /// The id that `check` printed with the conflict
    #[arg(required_unless_present = "list")]
    id: Option<String>,
    /// Why it may stand
    #[arg(
        long,
        value_name = "WHY",
        required_unless_present = "list",
        allow_hyphen_values = true
    )]
    why: Option<String>,
    /// The draft that the conflict is in: the waiver then says what it is about
    #[arg(long = "in", value_name = "FILE")]
    within: Option<String>,
    /// Take the waiver back
    #[arg(long)]
    revoke: bool,
    /// List the waivers that hold
    #[arg(long, conflicts_with_all = ["id", "why", "revoke"])]
    list: bool,
}

impl Operate for Waive {
    const NAME: &'static str = "waive";
    const ABOUT: &'static str = "Accept a conflict with a reason; list or revoke such waivers";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        if self.list {
            let held = waivers_for(&project, &session.actor)?;
            let mut text = String::new();
            for waiver in &held {
                text.push_str(&format!(
                    "{}  {}  {}\n",
                    waiver.id, waiver.at, waiver.reason
                ));
                if !waiver.about.is_empty() {
                    text.push_str(&format!("    {}\n", waiver.about));
                }
            }
            return Ok(Answer::new(json!({"waivers": held}), text));
        }
        let (id, why) = (self.id.unwrap_or_default(), self.why.unwrap_or_default());
        let lease = session.lease.clone();
        if self.revoke {
            return Ok(receipt::answer(&revoke_waiver(
                &project,
                &session.actor,
                &id,
                &why,
                lease,
            )?));
        }
        let about = match &self.within {
            None => String::new(),
            Some(file) => {
                let checking = check_draft(
                    &project,
                    &session.actor,
                    &CheckRequest {
                        draft: Draft::File(file),
                        k: 0,
                        judge: None,
                    },
                )?;
                let found = checking.conflicts.iter().find(|conflict| conflict.id == id);
                let Some(found) = found else {
                    return Err(Failure::new(
                        exit::NOT_FOUND,
                        format!("`{file}` has no conflict `{id}`"),
                        format!("quipu check {file}"),
                    ));
                };
                format!("{} ⇄ {}: {}", found.at, found.against, found.claim)
            }
        };
        Ok(receipt::answer(&waive(
            &project,
            &session.actor,
            &id,
            &why,
            &about,
            lease,
        )?))
    }
}
