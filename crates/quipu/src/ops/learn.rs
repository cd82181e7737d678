//! The `learn` command: finds a fact in the manuscripts, proposes it for memory, and accepts it.

use clap::Args;
use quipu_protocol::{
    AcceptedFact, LearnError, Learned, Project, Wanted, accept_merge, accept_proposal, learn,
    memory_size, merges, proposals, reject_proposal,
};
use quipu_text::Level;
use serde_json::json;

use super::{memory_check, metrics, receipt};
use crate::answer::{Answer, Failure, count, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Learn {
    /// The question
    #[arg(required_unless_present_any = ["list", "merges", "accept", "reject"])]
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
    /// List lines of memory that could be dropped: duplicates, and closed facts that no other line
    /// mentions
    #[arg(long, conflicts_with_all = ["question", "list"])]
    merges: bool,
    /// Accept a proposed fact into memory, or drop a line that --merges lists
    #[arg(long, value_name = "ID", conflicts_with_all = ["question", "list", "merges"])]
    accept: Option<String>,
    /// Reject a proposed fact
    #[arg(long, value_name = "ID", conflicts_with_all = ["question", "list", "merges", "accept"])]
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
        if self.merges {
            return list_merges(&project, session);
        }
        if let Some(id) = self.accept.as_ref().filter(|id| id.starts_with('m')) {
            let (merge, receipt) = accept_merge(&project, &session.actor, id, lease)?;
            let told = receipt::answer(&receipt);
            let text = format!("dropped {}: {}  ({})\n", merge.owner, merge.text, merge.at);
            return Ok(Answer {
                talk: told.talk,
                ..Answer::new(json!({"dropped": merge, "receipt": told.json}), text)
            });
        }
        if let Some(id) = &self.accept {
            let (accepted, receipt) = accept_proposal(&project, &session.actor, id, lease)?;
            let told = receipt::answer(&receipt);
            let told = memory_check::with_notes(told, &project, &session.actor, &receipt);
            let AcceptedFact { proposal, closed } = accepted;
            let mut text = format!("{} ← {}\n", proposal.to, proposal.entry);
            for old in &closed {
                let of = old.of.as_ref().map(|of| format!(" in {of}"));
                let (of, text_now) = (of.unwrap_or_default(), &old.text);
                text.push_str(&format!("closed{of}: {text_now}\n"));
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

/// Lists the lines of memory that could be dropped, with the size of memory.
fn list_merges(project: &Project, session: &Session) -> Result<Answer, Failure> {
    let found = merges(project, &session.actor)?;
    let size = memory_size(project, &session.actor)?;
    let mut text: String = found
        .iter()
        .map(|one| {
            let (id, at, owner, text, why) = (&one.id, &one.at, &one.owner, &one.text, &one.why);
            format!("{id}  {at}  {owner}\n    {text}\n    {why}\n")
        })
        .collect();
    text.push_str(&size.as_ref().map_or_else(String::new, metrics::render_size));
    let mut answer = Answer::new(json!({"merges": found, "memory": size}), text);
    if !found.is_empty() {
        answer = answer.say(
            "to drop a line: quipu learn --accept ID; to keep it for good: quipu waive ID --why \"…\"",
        );
    }
    Ok(answer.say(count(found.len(), "line") + " to drop"))
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
            LearnError::Place { fact, .. } => Failure::new(
                exit::REFUSED,
                what,
                format!(
                    "quipu learn --reject {}     (then write the fact into `{}` yourself)",
                    fact.id, fact.to
                ),
            ),
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
