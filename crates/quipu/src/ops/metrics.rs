//! The `metrics` command: shows in figures and charts whether agents learn.

use std::path::PathBuf;

use clap::Args;
use quipu_contract::{Form, Language};
use quipu_protocol::worldlog::{
    load_sessions, load_sessions_of, measure, read_knowledge, render_blocks, render_svg,
};
use quipu_protocol::{AskedCounts, MemorySize, asked_counts, load_formed, memory_size};
use serde_json::json;

use crate::answer::{Answer, Failure, count, in_language};
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
            let sessions = in_language(
                language,
                count(metrics.sessions, "session"),
                format!("{} 次会话", metrics.sessions),
            );
            text = format!("{sessions}\n{}", render_blocks(&metrics, language));
        }
        for gain in &metrics.patterns {
            let number = |n: Option<u32>| n.map_or_else(|| "–".to_owned(), |n| n.to_string());
            let (first, best, last) = (
                number(gain.first_rounds),
                number(gain.best_rounds),
                number(gain.last_rounds),
            );
            let (pattern, uses) = (&gain.pattern, gain.uses);
            text.push_str(&in_language(
                language,
                format!(
                    "pattern  {pattern}  used {uses}, rounds first {first}, best {best}, last \
                     {last}\n"
                ),
                format!(
                    "模式  {pattern}  用过 {uses} 次，轮数：首次 {first}，最少 {best}，最近 {last}\n"
                ),
            ));
        }
        let asked = asked_counts(&project);
        if asked != AskedCounts::default() {
            text.push_str(&render_asked(language, &asked));
        }
        let size_text = size.as_ref().map(|size| render_size(language, size));
        text.push_str(&size_text.unwrap_or_default());
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
            answer = answer.say(in_language(
                language,
                format!("drawn into {}", file.display()),
                format!("已画入 {}", file.display()),
            ));
        }
        Ok(answer)
    }
}

/// Formats the size of memory beside the chapters that it was taken from.
pub(super) fn render_size(language: Language, size: &MemorySize) -> String {
    let chapters = count(size.chapters, "chapter");
    let share = (size.memory * 100)
        .checked_div(size.manuscripts)
        .unwrap_or(0);
    let each = size.memory / size.chapters.max(1) as u64;
    let (memory, whole) = (size.memory, size.manuscripts);
    let mut text = in_language(
        language,
        format!(
            "size         {memory} tokens of memory for {chapters} of {whole} tokens ({share} %), \
             {each} a chapter\n"
        ),
        format!(
            "大小         {} 章共 {whole} 个词元，记忆 {memory} 个（{share} %），平均每章 {each} 个\n",
            size.chapters
        ),
    );
    if !size.by_chapter.is_empty() {
        let by = size.by_chapter.iter();
        let by: Vec<String> = by
            .map(|(chapter, tokens)| format!("ch{chapter:02} {tokens}"))
            .collect();
        let learnt = in_language(language, "learnt from", "学自");
        text.push_str(&format!("             {learnt} {}\n", by.join(", ")));
    }
    text
}

/// Formats how often each tier had the answer, with its share.
fn render_asked(language: Language, asked: &AskedCounts) -> String {
    let line = |tier: (&str, &str), hits: usize, misses: usize| {
        let all = hits + misses;
        let Some(share) = (hits * 100).checked_div(all) else {
            return String::new();
        };
        in_language(
            language,
            format!(
                "{}  {hits} of {} answered ({share} %)\n",
                tier.0,
                count(all, "question")
            ),
            format!("{}  {all} 个问题中答出 {hits} 个（{share} %）\n", tier.1),
        )
    };
    line(
        ("memory     ", "记忆       "),
        asked.l1_hits,
        asked.l1_misses,
    ) + &line(
        ("manuscripts", "书稿       "),
        asked.l2_hits,
        asked.l2_misses,
    )
}
