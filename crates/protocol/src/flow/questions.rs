//! Answers the questions that an agent puts while it works: a sentence of a text that its role may
//! only ask, and a check of its own text against memory.
//!
//! The answers obey the role's pointers, as `quipu ask --as ROLE` and `quipu check --as ROLE` do.

use quipu_contract::Actor;
use serde_json::Value;

use super::checked::{render_conflicts, render_evidence};
use super::engine::Engine;
use super::event::Event;
use super::job::PlannedJob;
use crate::novel::ask::ask_leaf;
use crate::novel::check::{CheckRequest, Draft, check_draft};

const ASK: &str = "ask";
const CHECK: &str = "check";
/// Evidence for one claim.
const EVIDENCE: usize = 4;

impl Engine<'_> {
    /// The questions that exist for a job: `ask` if its role may ask about a text, and `check` if
    /// the contract checks texts for conflicts.
    pub(super) fn questions_of(&self, job: &PlannedJob<'_>) -> Vec<String> {
        let asks = job.role.is_some_and(|role| !role.asks.is_empty());
        let mut files = self.project.contract.files.iter();
        let checks = job.role.is_some() && files.any(|rule| rule.conflicts.is_some());
        [(asks, ASK), (checks, CHECK)]
            .into_iter()
            .filter(|(exists, _)| *exists)
            .map(|(_, name)| name.to_owned())
            .collect()
    }

    pub(super) fn answer_question(
        &self,
        job: &PlannedJob<'_>,
        actor: &Actor,
        name: &str,
        arguments: &Value,
    ) -> Result<String, String> {
        let text = |key: &str| arguments[key].as_str().unwrap_or_default();
        let path = text("path");
        self.tell(Event::Progress {
            job: job.job.clone(),
            line: format!("{name} {path} {}", text("question"))
                .trim_end()
                .to_owned(),
        });
        match name {
            ASK => {
                let asked = ask_leaf(self.project, actor, path, text("question"), 0, None);
                let asking = asked.map_err(|error| error.to_string())?;
                Ok(format!("{} ({})", asking.answer, asking.at))
            }
            CHECK => {
                let draft = Draft::Text {
                    path,
                    text: text("text"),
                };
                let request = CheckRequest {
                    k: EVIDENCE,
                    ..CheckRequest::conflicts_of(draft)
                };
                let checking = check_draft(self.project, actor, &request)
                    .map_err(|error| error.to_string())?;
                let conflicts = render_conflicts(&checking);
                let conflicts = if conflicts.is_empty() {
                    "- none\n"
                } else {
                    &conflicts
                };
                let evidence = render_evidence(&checking);
                Ok(format!(
                    "Conflicts:\n{conflicts}\nWhat is written about the rest, with line numbers:\n{evidence}"
                ))
            }
            other => Err(format!("unknown question `{other}`")),
        }
    }
}
