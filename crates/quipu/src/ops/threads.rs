//! The `threads` command: lists threads as planted, due, overdue or closed.

use clap::Args;
use quipu_claims::{Memory, Standing, Thread, chapter_number};
use quipu_protocol::{gather, last_chapter};
use serde_json::json;

use crate::answer::{Answer, Failure, count};
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
            let say = |name: &str, value: &Option<String>| {
                value
                    .as_ref()
                    .map(|value| format!("  {name} {value}"))
                    .unwrap_or_default()
            };
            text.push_str(&format!(
                "{:<8} {}{}{}{}\n",
                standing.as_str(),
                thread.name,
                say("planted", &thread.planted),
                say("due", &thread.due),
                say("closed", &thread.closed)
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
        let when = at.map(|at| format!(" at ch{at:02}")).unwrap_or_default();
        Ok(
            Answer::new(json!({"at": at, "threads": told}), text).say(format!(
                "{}{when}, {overdue} overdue",
                count(threads.len(), "thread")
            )),
        )
    }
}
