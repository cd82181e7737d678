//! The `metrics` command: shows in figures and charts whether agents learn.

use std::path::PathBuf;

use clap::Args;
use quipu_contract::Form;
use quipu_protocol::worldlog::{
    load_sessions, load_sessions_of, measure, read_knowledge, render_blocks, render_svg,
};
use quipu_protocol::{AskedCounts, MemorySize, asked_counts, load_formed, memory_size};
use serde_json::json;

use crate::answer::{Answer, Failure, count};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Metrics {
    /// Count only sessions of this agent; agents see only their own unless they pass `all`
    #[arg(long, value_name = "NAME|all")]
    of: Option<String>,
    /// Draw the metrics into this file; `-` writes to stdout
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Operate for Metrics {
    const NAME: &'static str = "metrics";
    const ABOUT: &'static str =
        "Report pattern reuse, knowledge growth and execution gain from past sessions";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let own = session.actor.agent().map(|agent| agent.as_str().to_owned());
        let of = self.of.or(own).filter(|of| of != "all");
        let sessions = match &of {
            Some(of) => load_sessions_of(&project, &session.actor, of)?,
            None => load_sessions(&project, &session.actor)?,
        };
        let sessions: Vec<_> = sessions.into_iter().map(|(_, past)| past).collect();
        // The agent's knowledge file supplies patterns that its sessions do not name.
        let known = session
            .actor
            .agent()
            .filter(|agent| of.as_deref() == Some(agent.as_str()));
        let known = match known {
            Some(_) => {
                read_knowledge(&load_formed(&project, &session.actor, Form::Knowledge)?.text)
                    .patterns
            }
            None => Vec::new(),
        };
        let metrics = measure(&sessions, &known);
        let language = project.contract.language;
        let size = memory_size(&project, &session.actor)?;
        let mut text = String::new();
        // A novel has chapters and no sessions of tasks.
        if metrics.sessions > 0 || size.is_none() {
            text = format!(
                "{}\n{}",
                count(metrics.sessions, "session"),
                render_blocks(&metrics, language)
            );
        }
        for gain in &metrics.patterns {
            let number = |n: Option<u32>| n.map_or_else(|| "–".to_owned(), |n| n.to_string());
            let (first, best, last) = (
                number(gain.first_rounds),
                number(gain.best_rounds),
                number(gain.last_rounds),
            );
            text.push_str(&format!(
                "pattern  {}  used {}, rounds first {first}, best {best}, last {last}\n",
                gain.pattern, gain.uses
            ));
        }
        let asked = asked_counts(&project);
        if asked != AskedCounts::default() {
            text.push_str(&render_asked(&asked));
        }
        text.push_str(&size.as_ref().map_or_else(String::new, render_size));
        let mut answer = Answer::new(
            json!({"of": of, "metrics": metrics, "asked": asked, "memory": size}),
            text,
        );
        if let Some(file) = &self.svg {
            let drawn =
                super::picture::deliver(session, &project, file, &render_svg(&metrics, language))?;
            if drawn.raw.is_some() {
                return Ok(drawn);
            }
            answer.json["svg"] = json!(file.display().to_string());
            answer = answer.say(format!("drawn into {}", file.display()));
        }
        Ok(answer)
    }
}

/// Formats the size of memory beside the chapters that it was taken from.
pub(super) fn render_size(size: &MemorySize) -> String {
    let chapters = count(size.chapters, "chapter");
    let share = (size.memory * 100)
        .checked_div(size.manuscripts)
        .unwrap_or(0);
    let each = size.memory / size.chapters.max(1) as u64;
    let mut text = format!(
        "size         {} tokens of memory for {chapters} of {} tokens ({share} %), {each} a chapter\n",
        size.memory, size.manuscripts
    );
    if !size.by_chapter.is_empty() {
        let by = size.by_chapter.iter();
        let by: Vec<String> = by
            .map(|(chapter, tokens)| format!("ch{chapter:02} {tokens}"))
            .collect();
        text.push_str(&format!("             learnt from {}\n", by.join(", ")));
    }
    text
}

/// Formats how often each tier had the answer, with its share.
fn render_asked(asked: &AskedCounts) -> String {
    let line =
        |tier: &str, hits: usize, misses: usize| match (hits * 100).checked_div(hits + misses) {
            Some(share) => format!(
                "{tier}  {hits} of {} answered ({share} %)\n",
                count(hits + misses, "question")
            ),
            None => String::new(),
        };
    line("memory     ", asked.l1_hits, asked.l1_misses)
        + &line("manuscripts", asked.l2_hits, asked.l2_misses)
}
