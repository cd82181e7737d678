//! The `ask` command: asks one question about one text. The answer is a sentence and its line.

use clap::Args;
use quipu_protocol::{AskError, ask_leaf};
use serde_json::json;

use crate::answer::{Answer, Failure, exit, in_language};
use crate::command_agent::depth;
use crate::judge_client::JudgeClient;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Ask {
    /// The file, or one section of it, to search for the answer
    #[arg(value_name = "PATH[#SECTION]")]
    pointer: String,
    /// The question
    question: String,
    /// The agent that answers, as for `quipu run`, or command:PROGRAM; without it, quote the
    /// sentence nearest to the question
    #[arg(long, value_name = "AGENT")]
    by: Option<String>,
}

impl Operate for Ask {
    const NAME: &'static str = "ask";
    const ABOUT: &'static str =
        "Ask one question of one text; the answer is a sentence and its line";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let agent = self
            .by
            .as_deref()
            .map(|name| JudgeClient::of(name, &project.contract, project.store.root()))
            .transpose()?;
        let read = |text: &str, line: usize, question: &str| match &agent {
            Some(agent) => agent.read(text, line, question),
            None => Err("no agent answers".into()),
        };
        let reader = agent
            .as_ref()
            .map(|agent| (agent.name(), &read as quipu_protocol::Reader<'_>));
        let asking = ask_leaf(
            &project,
            &session.actor,
            &self.pointer,
            &self.question,
            depth(),
            reader,
        )?;
        let text = format!("{} ({})\n", asking.answer, asking.at);
        let asking_cut = asking.cut;
        let mut answer = Answer::new(json!(asking), text);
        if asking_cut {
            answer = answer.say(format!(
                "the sentence is longer than {} characters and was cut",
                quipu_protocol::MOST_ANSWER_CHARS
            ));
        }
        if agent.is_none() {
            answer = answer.say(in_language(
                project.contract.language,
                "quoted, not understood: --by AGENT lets an agent answer",
                "只是摘引，并未理解：--by AGENT 可由 Agent 回答",
            ));
        }
        Ok(answer)
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Failure {
        let what = error.to_string();
        match error {
            AskError::TooDeep(_) => Failure::new(
                exit::REFUSED,
                what,
                "answer the question, or reply that the text \
                    does not answer it",
            ),
            AskError::Silent(pointer) => Failure::new(
                exit::NO,
                what,
                format!("quipu recall \"…\"; or quipu read {pointer}"),
            ),
            AskError::Reader(_) => Failure::new(
                exit::AGENT,
                what,
                "run without --by: Quipu then quotes the nearest sentence",
            ),
            AskError::ForeignReader { rule, .. } => Failure {
                rule: Some((rule, "ask".into())),
                ..Failure::new(
                    exit::REFUSED,
                    what,
                    "run without --by: Quipu then quotes the nearest sentence; or --by NAME of \
                     [agents.NAME] in quipu.toml",
                )
            },
            AskError::NoSection { path, .. } => Failure::new(
                exit::NOT_FOUND,
                what,
                format!("quipu ask {path} \"…\"     (searches the whole file)"),
            ),
            AskError::Path(error) => error.into(),
            AskError::Read(error) => error.into(),
        }
    }
}
