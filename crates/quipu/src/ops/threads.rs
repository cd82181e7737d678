//! The `threads` command: lists threads as planted, due, overdue or closed.

use clap::Args;
use quipu_claims::{Memory, Standing, Thread, chapter_number};
use quipu_contract::Language;
use quipu_protocol::{gather, last_chapter};
use serde_json::json;

use crate::answer::{Answer, Failure, count, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Threads {
    /// Show the threads at this chapter (9, ch09); by default at the last final chapter
    #[arg(long, value_name = "CHAPTER")]
    at: Option<String>,
}

/// Parses `9`, `ch09`, `第九章`.
pub fn chapter(text: &str) -> Result<u64, Failure> {
    let number = text.parse().ok().or_else(|| chapter_number(text));
    number.ok_or_else(|| {
        Failure::usage(
            format!("`{text}` is not a chapter"),
            "write 9, ch09 or \
        第九章",
        )
    })
}

impl Operate for Threads {
    const NAME: &'static str = "threads";
    const ABOUT: &'static str = "List threads: planted, due, overdue, closed";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let at = self.at.as_deref().map(chapter).transpose()?;
        let project = session.project()?;
        let pages = gather(&project, &session.actor)?.pages;
        let at = at.or_else(|| last_chapter(&pages));
        let memory = Memory::of(&pages);
        let mut threads: Vec<(Standing, &Thread)> = memory
            .threads
            .iter()
            .map(|thread| (thread.standing(at), thread))
            .collect();
        threads.sort_by_key(|(standing, thread)| (*standing, thread.at.clone()));
        let mut text = String::new();
        for (standing, thread) in &threads {
            let language = project.contract.language;
            let say = |en: &str, zh: &str, value: &Option<String>| {
                let name = in_language(language, en, zh);
                value
                    .as_ref()
                    .map(|value| format!("  {name} {value}"))
                    .unwrap_or_default()
            };
            text.push_str(&format!(
                "{:<8} {}{}{}{}\n",
                in_language(
                    language,
                    standing.as_str(),
                    match standing {
                        Standing::Overdue => "已逾期",
                        Standing::Due => "该收了",
                        Standing::Open => "未收",
                        Standing::Ahead => "未到",
                        Standing::Closed => "已收",
                    }
                ),
                thread.name,
                say("planted", "埋于", &thread.planted),
                say("due", "应收于", &thread.due),
                say("closed", "收于", &thread.closed)
            ));
            if let (true, Some(promise)) = (*standing != Standing::Closed, &thread.promise) {
                text.push_str(&format!("         {promise}  ({})\n", thread.at));
            }
        }
        let overdue = threads
            .iter()
            .filter(|(standing, _)| *standing == Standing::Overdue)
            .count();
        let told: Vec<_> = threads
            .iter()
            .map(|(standing, thread)| json!({"standing": standing, "thread": thread}))
            .collect();
        let number = threads.len();
        let said = match (project.contract.language, at) {
            (Language::En, None) => format!("{}, {overdue} overdue", count(number, "thread")),
            (Language::En, Some(at)) => {
                let threads = count(number, "thread");
                format!("{threads} at ch{at:02}, {overdue} overdue")
            }
            (Language::Zh, None) => format!("伏笔 {number} 条，逾期 {overdue} 条"),
            (Language::Zh, Some(at)) => {
                format!("至 ch{at:02}：伏笔 {number} 条，逾期 {overdue} 条")
            }
        };
        Ok(Answer::new(json!({"at": at, "threads": told}), text).say(said))
    }
}
