//! The `replay` command: shows the brief and every text, with its version, that an attempt was
//! given.

use clap::Args;
use quipu_contract::Privilege;
use quipu_protocol::flow::replay;
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::flow_text::render_usage;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Replay {
    /// An attempt, a job such as write/ch05, or a file that an attempt wrote: PATH or PATH@VERSION
    #[arg(value_name = "ATTEMPT|PATH@VERSION")]
    asked: String,
    /// Print only the brief of the attempt
    #[arg(long)]
    brief: bool,
}

impl Operate for Replay {
    const NAME: &'static str = "replay";
    const ABOUT: &'static str =
        "Show what an attempt was given: its brief and every text with its version";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::SeeAll)?;
        let project = session.project()?;
        let found = replay(&project, &self.asked)?;
        let (fact, note) = (&found.fact, &found.fact.note);
        if self.brief {
            return match &found.brief {
                Some(brief) => Ok(Answer::new(json!(found), brief.clone())),
                None => Err(Failure::new(
                    exit::NOT_FOUND,
                    format!("the folder of attempt `{}` was deleted", note.attempt),
                    "quipu replay ATTEMPT     (the journal still records what it read)",
                )),
            };
        }
        let ruling = json!(note.ruling).as_str().unwrap_or_default().to_owned();
        let by = note
            .agent
            .as_deref()
            .map(|a| format!(" by {a}"))
            .unwrap_or_default();
        let mut text = format!(
            "attempt {}\n{} {ruling}{by} at {} (commit {})\n",
            note.attempt,
            note.job(),
            fact.at,
            fact.seq
        );
        if note.round > 0 {
            text.push_str(&format!(
                "round {}, sent back by {}, for {}\n",
                note.round,
                note.sent_by.as_deref().unwrap_or_default(),
                note.objectors.join(", ")
            ));
        }
        if let Some(why) = &note.why {
            text.push_str(&format!("why  {why}\n"));
        }
        if let Some(ended) = &note.ended {
            text.push_str(&format!("accepted although {ended}\n"));
        }
        if let Some(usage) = note.usage {
            text.push_str(&format!(
                "{}\n",
                render_usage(project.contract.language, usage)
            ));
        }
        if let Some(held_by) = &note.held_by {
            text.push_str(&format!("held by {held_by}\n"));
        }
        for attempt in &note.denied {
            text.push_str(&format!("  denied {attempt}\n"));
        }
        for path in &note.dropped {
            text.push_str(&format!("  dropped {path}\n"));
        }
        for warning in &note.warnings {
            text.push_str(&format!("  warning {warning}\n"));
        }
        for read in &note.reads {
            let section = read
                .section
                .as_ref()
                .map(|s| format!("#{s}"))
                .unwrap_or_default();
            text.push_str(&format!(
                "  read   {}  {}{section}\n",
                read.version, read.path
            ));
        }
        for file in &fact.files {
            text.push_str(&format!("  wrote  {}  {}\n", file.version, file.path));
        }
        let mut answer = Answer::new(json!(found), text);
        answer = match (&found.folder, &found.brief) {
            (Some(folder), Some(_)) => answer.say(format!(
                "its brief, view and transcript: {}",
                folder.display()
            )),
            (Some(_), None) | (None, _) if note.agent.is_none() => answer,
            _ => answer.say(
                "its folder was deleted ([attempts] in quipu.toml), together with the brief and \
                 the transcript; the texts it read and wrote are in the journal: quipu show PATH \
                 --at VERSION",
            ),
        };
        if !found.others.is_empty() {
            answer = answer.say(format!(
                "other attempts at {}: {}",
                note.job(),
                found.others.join(", ")
            ));
        }
        Ok(answer)
    }
}
