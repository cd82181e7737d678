//! The `learn` command: finds a fact in the manuscripts, proposes it for memory, and accepts it.

use clap::Args;
use quipu_protocol::{
    AcceptedFact, LearnError, Learned, Wanted, accept_proposal, learn, proposals, reject_proposal,
};
use quipu_text::Level;
use serde_json::json;

use super::{memory_check, receipt};
use crate::answer::{Answer, Failure, count, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Learn {
    /// The question
    #[arg(required_unless_present_any = ["list", "accept", "reject"])]
    question: Option<String>,
    /// The section of memory that the fact belongs to
    #[arg(long, value_name = "PATH#SECTION", requires = "question")]
    to: Option<String>,
    /// The level of the fact, from hardest to easiest to overturn: premise, arc, chapter or scene
    #[arg(long, value_name = "LEVEL", default_value = "scene")]
    level: String,
    /// The fact in your own words, with its cause; by default the sentence that was found
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// List the proposed facts
    #[arg(long, conflicts_with = "question")]
    list: bool,
    /// Accept a proposed fact into memory
    #[arg(long, value_name = "ID", conflicts_with_all = ["question", "list"])]
    accept: Option<String>,
    /// Reject a proposed fact
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
            let (accepted, receipt) = accept_proposal(&project, &session.actor, id, lease)?;
            let told = receipt::answer(&receipt);
            let told = memory_check::with_notes(told, &project, &session.actor, &receipt);
            let AcceptedFact { proposal, closed } = accepted;
            let mut text = format!("{} ← {}\n", proposal.to, proposal.entry);
            for old in &closed {
                text.push_str(&format!("closed: {old}\n"));
            }
            let json = json!({"accepted": proposal, "closed": closed, "receipt": told.json});
            return Ok(Answer {
                talk: told.talk,
                ..Answer::new(json, text)
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
            .ok_or_else(|| Failure::usage("the section is missing", "--to PATH#SECTION"))?;
        let level = Level::parse(&self.level).ok_or_else(|| {
            Failure::usage(
                format!("unknown level `{}`", self.level),
                "use premise, arc, chapter or scene",
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
            .say("memory already has it")),
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
                    .say("not in memory; found in a manuscript")
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
                "rephrase the question, or write the fact yourself",
            ),
            LearnError::NoProposal(_) => Failure::new(exit::NOT_FOUND, what, "quipu learn --list"),
            LearnError::Place(_) => Failure::new(exit::REFUSED, what, "write it there yourself"),
            LearnError::NotText(path) => Failure::new(
                exit::REFUSED,
                what,
                format!("save {path} as UTF-8, then run the command again"),
            ),
            LearnError::Path(error) => error.into(),
            LearnError::Read(error) => error.into(),
            LearnError::Store(error) => error.into(),
            LearnError::Search(_) | LearnError::Recall(_) => Failure::new(exit::IO, what, ""),
        }
    }
}
