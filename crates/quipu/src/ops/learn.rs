//! The `learn` command: finds a fact in the manuscripts, proposes it for memory, and accepts it.

use clap::Args;
use quipu_contract::Language;
use quipu_protocol::chinese::in_language as render_message;
use quipu_protocol::{
    AcceptedFact, LearnError, Learned, Project, Wanted, accept_merge, accept_proposal,
    find_obstacle, learn, memory_size, merges, proposals, reject_proposal,
};
use quipu_text::Level;
use serde_json::json;

use super::{memory_check, metrics, receipt};
use crate::answer::{Answer, Failure, count, exit, in_language};
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
        let (lease, language) = (session.lease.clone(), project.contract.language);
        if self.list {
            let waiting = proposals(&project, &session.actor)?;
            let (mut text, mut listed) = (String::new(), Vec::new());
            for one in &waiting {
                text.push_str(&format!("{}  {}\n    {}\n", one.id, one.to, one.entry));
                let mut json = json!(one);
                if let Some(why) = find_obstacle(&project, one) {
                    let why = why.to_string();
                    json["waits"] = json!(why);
                    let why = render_message(language, why);
                    text.push_str(&in_language(
                        language,
                        format!("    waits: {why}\n"),
                        format!("    等待：{why}\n"),
                    ));
                }
                listed.push(json);
            }
            return Ok(
                Answer::new(json!({"proposals": listed}), text).say(in_language(
                    language,
                    count(waiting.len(), "fact") + " to accept or reject",
                    format!("{} 条事实待接受或拒绝", waiting.len()),
                )),
            );
        }
        if self.merges {
            return list_merges(&project, session);
        }
        if let Some(id) = self.accept.as_ref().filter(|id| id.starts_with('m')) {
            let (merge, receipt) = accept_merge(&project, &session.actor, id, lease)?;
            let told = receipt::answer(project.contract.language, &receipt);
            let dropped = in_language(language, "dropped", "已删去");
            let text = format!(
                "{dropped} {}: {}  ({})\n",
                merge.owner, merge.text, merge.at
            );
            return Ok(Answer {
                talk: told.talk,
                ..Answer::new(json!({"dropped": merge, "receipt": told.json}), text)
            });
        }
        if let Some(id) = &self.accept {
            let (accepted, receipt) = accept_proposal(&project, &session.actor, id, lease)?;
            let told = receipt::answer(project.contract.language, &receipt);
            let told = memory_check::with_notes(told, &project, &session.actor, &receipt);
            let AcceptedFact { proposal, closed } = accepted;
            let mut text = format!("{} ← {}\n", proposal.to, proposal.entry);
            for old in &closed {
                let text_now = &old.text;
                text.push_str(&match (language, &old.of) {
                    (Language::En, None) => format!("closed: {text_now}\n"),
                    (Language::En, Some(of)) => format!("closed in {of}: {text_now}\n"),
                    (Language::Zh, None) => format!("已终止：{text_now}\n"),
                    (Language::Zh, Some(of)) => format!("已终止（{of}）：{text_now}\n"),
                });
            }
            let json = json!({"accepted": proposal, "closed": closed, "receipt": told.json});
            return Ok(Answer {
                talk: told.talk,
                ..Answer::new(json, text)
            });
        }
        if let Some(id) = &self.reject {
            let (proposal, receipt) = reject_proposal(&project, &session.actor, id, lease)?;
            let told = receipt::answer(project.contract.language, &receipt);
            return Ok(Answer {
                talk: told.talk,
                ..Answer::new(
                    json!({"rejected": proposal}),
                    format!(
                        "{} {}\n",
                        in_language(language, "rejected", "已拒绝"),
                        proposal.entry
                    ),
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
                in_language(
                    language,
                    format!("memory  {at}  {text}\n"),
                    format!("记忆  {at}  {text}\n"),
                ),
            )
            .say(in_language(
                language,
                "memory already has it",
                "记忆里已经有了",
            ))),
            Learned::Proposed {
                proposal,
                sentence,
                at,
                ..
            } => {
                let text = format!(
                    "{}  {at}  {sentence}\n{}  {}\n    {}\n",
                    in_language(language, "manuscript", "定稿"),
                    proposal.id,
                    proposal.to,
                    proposal.entry
                );
                let answer = Answer::new(
                    json!({"tier": "L2", "at": at, "text": sentence, "proposal": proposal}),
                    text,
                );
                Ok(answer
                    .say(in_language(
                        language,
                        "not in memory; found in a manuscript",
                        "记忆里没有；在定稿中找到",
                    ))
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
    let language = project.contract.language;
    let shown = size
        .as_ref()
        .map(|size| metrics::render_size(language, size));
    text.push_str(&shown.unwrap_or_default());
    let mut answer = Answer::new(json!({"merges": found, "memory": size}), text);
    if !found.is_empty() {
        answer = answer.say(in_language(
            project.contract.language,
            "to drop a line: quipu learn --accept ID; to keep it for good: quipu waive ID --why \"…\"",
            "删去一行：quipu learn --accept ID；一直保留：quipu waive ID --why \"…\"",
        ));
    }
    Ok(answer.say(in_language(
        project.contract.language,
        count(found.len(), "line") + " to drop",
        format!("{} 行可以删去", found.len()),
    )))
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
