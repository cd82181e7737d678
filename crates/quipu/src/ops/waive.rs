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
    /// The reason for accepting the conflict
    #[arg(
        long,
        value_name = "WHY",
        required_unless_present = "list",
        allow_hyphen_values = true
    )]
    why: Option<String>,
    /// The draft with the conflict; the waiver then records the sentence it accepts
    #[arg(long = "in", value_name = "FILE")]
    within: Option<String>,
    /// Revoke the waiver
    #[arg(long)]
    revoke: bool,
    /// List the waivers in force
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
            return Ok(receipt::answer(
                project.contract.language,
                &revoke_waiver(&project, &session.actor, &id, &why, lease)?,
            ));
        }
        let about = match &self.within {
            None => String::new(),
            Some(file) => {
                let checking = check_draft(
                    &project,
                    &session.actor,
                    &CheckRequest {
                        k: 1,
                        ..CheckRequest::conflicts_of(Draft::File(file))
                    },
                )?;
                let Some(found) = checking.describe(&id) else {
                    return Err(Failure::new(
                        exit::NOT_FOUND,
                        format!("`{file}` has no conflict `{id}`"),
                        format!("quipu check {file}"),
                    ));
                };
                found
            }
        };
        Ok(receipt::answer(
            project.contract.language,
            &waive(&project, &session.actor, &id, &why, &about, lease)?,
        ))
    }
}
