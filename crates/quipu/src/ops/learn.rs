//! The `learn` command: finds a fact in the manuscripts, proposes it for memory, and accepts it.

use clap::Args;
use quipu_protocol::{
    LearnError, Learned, Wanted, accept_proposal, learn, proposals, reject_proposal,
};
use quipu_text::Level;
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure, count, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Learn {
    /// What is asked, in words
    #[arg(required_unless_present_any = ["list", "accept", "reject"])]
    question: Option<String>,
    /// The section of memory that should know it
    #[arg(long, value_name = "PATH#SECTION", requires = "question")]
    to: Option<String>,
    /// How hard it is to overturn: premise, arc, chapter or scene
    #[arg(long, value_name = "LEVEL", default_value = "scene")]
    level: String,
    /// The fact in your own words, with its cause; without it the sentence that was found
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// List the facts that wait
    #[arg(long, conflicts_with = "question")]
    list: bool,
    /// Put a fact into memory
    #[arg(long, value_name = "ID", conflicts_with_all = ["question", "list"])]
    accept: Option<String>,
    /// Take a fact off the list
    #[arg(long, value_name = "ID", conflicts_with_all = ["question", "list", "accept"])]
    reject: Option<String>,
}

impl Operate for Learn {
    const NAME: &'static str = "learn";
    const ABOUT: &'static str = "Find a fact in the manuscripts, propose it for memory, accept it";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let lease = session.lease.clone();
        if self.list {
            let waiting = proposals(&project, &session.actor)?;
            let text: String = waiting
                .iter()
                .map(|one| format!("{}  {}\n    {}\n", one.id, one.to, one.entry))
                .collect();
            return Ok(Answer::new(json!({"proposals": waiting}), text)
                .say(count(waiting.len(), "fact") + " to accept or reject"));
        }
        if let Some(id) = &self.accept {
            let (proposal, receipt) = accept_proposal(&project, &session.actor, id, lease)?;
            let told = receipt::answer(&receipt);
            let text = format!("{} ← {}\n", proposal.to, proposal.entry);
            return Ok(Answer {
                talk: told.talk,
                ..Answer::new(json!({"accepted": proposal, "receipt": told.json}), text)
            });
        }
        if let Some(id) = &self.reject {
            let (proposal, receipt) = reject_proposal(&project, &session.actor, id, lease)?;
            let told = receipt::answer(&receipt);
            return Ok(Answer {
                talk: told.talk,
                ..Answer::new(
                    json!({"rejected": proposal}),
                    format!("rejected {}\n", proposal.entry),
                )
            });
        }
        let question = self.question.unwrap_or_default();
        let to = self
            .to
            .ok_or_else(|| Failure::usage("which section should know it?", "--to PATH#SECTION"))?;
        let level = Level::parse(&self.level).ok_or_else(|| {
            Failure::usage(
                format!("no level `{}`", self.level),
                "premise, arc, chapter or scene",
            )
        })?;
        let wanted = Wanted {
            question: &question,
            to: &to,
            level,
            text: self.text.as_deref(),
        };
        match learn(&project, &session.actor, &wanted, lease)? {
            Learned::Known { text, at } => Ok(Answer::new(
                json!({"tier": "L1", "at": at, "text": text}),
                format!("memory  {at}  {text}\n"),
            )
            .say("memory knows it already")),
            Learned::Proposed {
                proposal,
                sentence,
                at,
                ..
            } => {
                let text = format!(
                    "manuscript  {at}  {sentence}\n{}  {}\n    {}\n",
                    proposal.id, proposal.to, proposal.entry
                );
                let answer = Answer::new(
                    json!({"tier": "L2", "at": at, "text": sentence, "proposal": proposal}),
                    text,
                );
                Ok(answer
                    .say("memory did not know; the manuscript does")
                    .say(format!("quipu learn --accept {}", proposal.id)))
            }
        }
    }
}

impl From<LearnError> for Failure {
    fn from(error: LearnError) -> Failure {
        let what = error.to_string();
        match error {
            LearnError::Unknown => Failure::new(
                exit::NO,
                what,
                "ask in other words, or write the fact yourself",
            ),
            LearnError::NoProposal(_) => Failure::new(exit::NOT_FOUND, what, "quipu learn --list"),
            LearnError::Splice(_) => Failure::new(exit::REFUSED, what, "put it there by hand"),
            LearnError::NotText(path) => Failure::new(
                exit::REFUSED,
                what,
                format!("save {path} as UTF-8, then again"),
            ),
            LearnError::Path(error) => error.into(),
            LearnError::Read(error) => error.into(),
            LearnError::Store(error) => error.into(),
            LearnError::Search(_) | LearnError::Recall(_) => Failure::new(exit::IO, what, ""),
        }
    }
}
