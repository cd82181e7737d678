//! The `story report` command: a continuity report of the whole book.

use clap::Args;
use quipu_claims::{Lint, Memory, Standing, Thread, appearances, cut_scenes, is_dead, lint};
use quipu_contract::{Actor, Language};
use quipu_protocol::{
    CheckRequest, Draft, MemoryChecking, Project, Unwaived, check_draft, check_own_memory,
    last_chapter, most_links,
};
use quipu_recall::Tier;
use serde::Serialize;
use serde_json::json;

use super::Book;
use super::wording::label;
use crate::answer::{Answer, Failure, count, exit};
use crate::check_text::since;
use crate::ops::memory_check;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct StoryReport {
    /// Report people who are not named in this many final chapters before the end
    #[arg(long, value_name = "CHAPTERS", default_value_t = 3)]
    absent: u64,
}

/// Someone who leaves the story without a reason.
#[derive(Debug, Serialize)]
struct Vanished {
    name: String,
    last_chapter: u64,
    last: String,
}

impl Operate for StoryReport {
    const NAME: &'static str = "story report";
    const ABOUT: &'static str =
        "Report the continuity of the whole book: conflicts, memory, threads, sources, people";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let book = Book::open(session)?;
        let project = session.project()?;
        let Checked {
            conflicts,
            old,
            unjudged,
        } = check_chapters(&project, &session.actor, &book)?;
        let language = project.contract.language;
        let memory = check_own_memory(&project, &session.actor)?;
        let last = last_chapter(&book.pages);
        let overdue: Vec<&Thread> = book
            .memory
            .threads
            .iter()
            .filter(|thread| thread.standing(last) == Standing::Overdue)
            .collect();
        let mut unsourced = lint(&book.pages, most_links(&project));
        unsourced.retain(|one| one.rule == "source");
        let vanished = find_vanished(&book, last.unwrap_or_default(), self.absent);
        let text = render_conflicts("chapter", &conflicts, language)
            + &render_conflicts("old", &old, language)
            + &render_memory(&memory, language)
            + &render_threads(&overdue, language)
            + &render_sources(&unsourced, language)
            + &render_vanished(&vanished, language)
            + &render_unjudged(&unjudged, language);
        let mut answer = Answer::new(
            json!({
                "chapters": last, "conflicts": conflicts, "old": old, "memory": memory, "overdue": overdue,
                "without_source": unsourced, "vanished": vanished, "unjudged": unjudged
            }),
            text,
        );
        let contradictions = conflicts.len() + memory.conflicts.len();
        if contradictions + overdue.len() > 0 {
            answer.exit = exit::NO;
        }
        Ok(answer.say(match language {
            Language::En => format!(
                "{}, {} overdue, {} without a source, {} vanished",
                count(contradictions, "open contradiction"),
                count(overdue.len(), "thread"),
                count(unsourced.len(), "fact"),
                count(vanished.len(), "name"),
            ),
            Language::Zh => format!(
                "未解决的矛盾 {contradictions} 处，逾期线索 {} 条，无出处的事实 {} 条，失踪的人名 {} 个",
                overdue.len(),
                unsourced.len(),
                vanished.len(),
            ),
        }))
    }
}

/// The result of checking every final chapter.
#[derive(Default)]
struct Checked {
    conflicts: Vec<Unwaived>,
    /// Findings of models in scenes that have changed since.
    old: Vec<Unwaived>,
    unjudged: Vec<Unjudged>,
}

/// A final chapter with scenes that no model has judged as they are.
#[derive(Debug, Serialize)]
struct Unjudged {
    path: String,
    scenes: Vec<usize>,
}

/// Checks every final chapter against memory, with the rules alone. Also returns what models have
/// found: conflicts if the scene has not changed since, else old ones.
fn check_chapters(project: &Project, actor: &Actor, book: &Book) -> Result<Checked, Failure> {
    let mut checked = Checked::default();
    for page in book.pages.iter().filter(|page| page.tier == Tier::L2) {
        let request = CheckRequest::conflicts_of(Draft::File(&page.path));
        let checking = check_draft(project, actor, &request)?;
        checked.conflicts.extend(checking.conflicts);
        checked.old.extend(checking.old);
        if !checking.unjudged.is_empty() {
            checked.unjudged.push(Unjudged {
                path: page.path.clone(),
                scenes: checking.unjudged,
            });
        }
    }
    Ok(checked)
}

/// Finds people of two chapters or more who are not named before the end, and are not dead.
fn find_vanished(book: &Book, last: u64, absent: u64) -> Vec<Vanished> {
    let scenes = cut_scenes(&book.pages, &book.memory);
    let memory: &Memory = &book.memory;
    let mut found = Vec::new();
    for entity in 0..memory.entities.len() {
        if memory.first_of(entity) != entity {
            continue;
        }
        let seen = appearances(memory, &scenes, entity);
        let Some(end) = seen.by_chapter.keys().next_back().copied() else {
            continue;
        };
        let is_explained = memory.facts_of(entity).any(is_dead);
        if seen.by_chapter.len() >= 2 && end + absent <= last && !is_explained {
            found.push(Vanished {
                name: memory.entities[entity].name.clone(),
                last_chapter: end,
                last: seen.last.map(|at| at.to_string()).unwrap_or_default(),
            });
        }
    }
    found
}

fn render_conflicts(heading: &str, conflicts: &[Unwaived], language: Language) -> String {
    let mut text = String::new();
    for one in conflicts {
        let Unwaived {
            at,
            against,
            judge,
            id,
            ..
        } = one;
        text.push_str(&format!(
            "{}  {at} ⇄ {against}  {judge}  {id}\n    {}\n    {}\n    {}\n",
            label(language, heading),
            one.claim,
            one.evidence,
            one.why
        ));
        if let Some(kept) = &one.kept {
            text.push_str(&format!("    {}\n", since(kept, language)));
        }
    }
    text
}

fn render_memory(memory: &MemoryChecking, language: Language) -> String {
    let conflicts = memory.conflicts.iter();
    conflicts
        .map(|one| memory_check::render(one, language))
        .collect()
}

fn render_threads(threads: &[&Thread], language: Language) -> String {
    threads
        .iter()
        .map(|thread| {
            let due = thread.due.as_deref().unwrap_or_default();
            let due = match language {
                Language::En => format!("due {due}"),
                Language::Zh => format!("应于 {due}"),
            };
            let label = label(language, "overdue");
            format!("{label}  {}  {due}  ({})\n", thread.name, thread.at)
        })
        .collect()
}

fn render_sources(lints: &[Lint], language: Language) -> String {
    lints
        .iter()
        .map(|one| format!("{}  {}  {}\n", label(language, "source"), one.at, one.what))
        .collect()
}

fn render_unjudged(unjudged: &[Unjudged], language: Language) -> String {
    let of = |one: &Unjudged| {
        let scenes: Vec<String> = one.scenes.iter().map(usize::to_string).collect();
        let (label, path) = (label(language, "unjudged"), &one.path);
        match language {
            Language::En => format!(
                "{label}  {path}  no model has judged scene {}: quipu check {path} --prompt\n",
                scenes.join(", ")
            ),
            Language::Zh => format!(
                "{label}  {path}  场景 {} 没有模型判过：quipu check {path} --prompt\n",
                scenes.join("、")
            ),
        }
    };
    unjudged.iter().map(of).collect()
}

fn render_vanished(vanished: &[Vanished], language: Language) -> String {
    vanished
        .iter()
        .map(|one| {
            let label = label(language, "vanished");
            let Vanished {
                name,
                last_chapter,
                last,
            } = one;
            match language {
                Language::En => format!("{label}  {name}  last in ch{last_chapter:02} ({last})\n"),
                Language::Zh => format!("{label}  {name}  末见 ch{last_chapter:02} ({last})\n"),
            }
        })
        .collect()
}
