//! Paragraphs about the world, the current task, related knowledge, and past sessions.
//!
//! The newest sessions are read for lists; a task is matched with the cache of all of them.

use quipu_contract::{Form, Paragraph, facts};
use quipu_text::Document;
use serde_json::json;

use super::relay::plain;
use super::{Block, Waking};
use crate::files::edit::load_formed;
use crate::files::quote::{below, headline};
use crate::project::forms::{list_form, resolve_form};
use crate::session::error::WorkError;
use crate::worldlog::{
    ACTIVITY, Knowledge, MatchKind, PastSession, Session, Standing, Task, find_matches,
    newest_sessions, pattern_after, propose, read_knowledge, read_task,
};

/// The numbers of lessons and past sessions shown.
const LESSONS_TOLD: usize = 7;
const SESSIONS_TOLD: usize = 5;
/// Sections of the world about the past.
const HISTORY: [&str; 2] = ["History", "历史"];

/// The shared world, section by section.
pub(super) fn world(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    if !waking.may_see(Form::World) {
        return Ok(None);
    }
    let formed = load_formed(waking.project, waking.actor, Form::World)?;
    let title = waking.say("World state", "世界状态");
    let mut block = Block::new(Paragraph::World, title, "quipu world get");
    let document = Document::parse(&formed.text);
    for section in document
        .sections()
        .iter()
        .filter(|s| s.level > 1 && !HISTORY.contains(&s.title.as_str()))
        // Matching finds the finished tasks of other agents, if they serve this one.
        .filter(|s| waking.task.is_none() || !ACTIVITY.contains(&s.title.as_str()))
    {
        let body = plain(document.slice(&section.body));
        if !body.is_empty() {
            block.entries.push(below(&section.title, &body));
        }
    }
    block.data = json!({"path": formed.path, "facts": facts(&formed.text).into_iter().filter(|fact| !fact.older).collect::<Vec<_>>()});
    Ok((!block.entries.is_empty()).then_some(block))
}

/// The caller's current task: its own, or that of a predecessor that never finished.
fn task_at_hand(waking: &Waking<'_>) -> Result<Option<Task>, WorkError> {
    match resolve_form(waking.project, waking.actor, Form::Task) {
        Ok(_) if waking.may_see(Form::Task) => {}
        // An agent without a name has no notes, so it can neither begin nor end a task.
        Err(error @ WorkError::WhichAgent { .. }) if keeps_notes(waking) => return Err(error),
        _ => return Ok(None),
    }
    Ok(read_task(
        &load_formed(waking.project, waking.actor, Form::Task)?.text,
    ))
}

fn keeps_notes(waking: &Waking<'_>) -> bool {
    let role = waking
        .project
        .contract
        .grant(waking.actor)
        .ok()
        .and_then(|grant| grant.role);
    role.is_some_and(|role| {
        role.writes
            .iter()
            .any(|write| write.path.as_str().contains("{agent}"))
    })
}

/// The unfinished task, as far as its agent wrote it down.
pub(super) fn task(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(task) = task_at_hand(waking)? else {
        return Ok(None);
    };
    let title = waking.say("Your unfinished task", "你未完成的任务");
    let mut block = Block::new(Paragraph::Task, title, "quipu task status");
    block.entries.push(below("", &task.description));
    let started = task.started.as_deref().unwrap_or("–");
    let pattern = task
        .pattern
        .as_ref()
        .map(|p| format!("{}{p}", waking.say(", pattern ", "，模式 ")))
        .unwrap_or_default();
    block.entries.push(match waking.say("en", "zh") {
        "zh" => format!("（开始于 {started}{pattern}）"),
        _ => format!("(since {started}{pattern})"),
    });
    for todo in &task.todos {
        let sign = match todo.standing {
            Standing::Open => ' ',
            Standing::Done => 'x',
            Standing::Struck => '~',
        };
        block
            .entries
            .push(format!("{:>3} [{sign}] {}", todo.number, todo.text));
    }
    block.entries.extend(
        task.notes
            .iter()
            .map(|note| format!("- {}{note}", waking.say("noted: ", "已记："))),
    );
    block.data = json!(task);
    Ok(Some(block))
}

/// The agent's patterns, errors and newest lessons.
fn tell_knowledge(waking: &Waking<'_>, knowledge: &Knowledge, block: &mut Block) {
    for pattern in &knowledge.patterns {
        let situation = pattern
            .situation
            .as_ref()
            .map(|s| format!(": {s}"))
            .unwrap_or_default();
        let number = |n: Option<u32>| n.map_or_else(|| "–".to_owned(), |n| n.to_string());
        let (used, first, best) = (
            number(pattern.frequency),
            number(pattern.first_rounds),
            number(pattern.best_rounds),
        );
        block.entries.push(match waking.say("en", "zh") {
            "zh" => format!(
                "- 模式 {}{situation}（用过 {used} 次，首次 {first} 轮，最佳 {best} 轮）",
                pattern.name
            ),
            _ => format!(
                "- pattern {}{situation} (used {used}, rounds first {first}, best {best})",
                pattern.name
            ),
        });
    }
    for error in &knowledge.errors {
        let told = [&error.symptom, &error.cure]
            .into_iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
            .join(" → ");
        block.entries.push(format!(
            "- {} {}: {told}",
            waking.say("error", "错误模式"),
            error.name
        ));
    }
    let skipped = knowledge.lessons.len().saturating_sub(LESSONS_TOLD);
    block.entries.extend(
        knowledge.lessons[skipped..]
            .iter()
            .rev()
            .map(|l| format!("- {} {l}", waking.say("lesson:", "经验："))),
    );
}

/// The agent's lessons, and candidates for patterns.
pub(super) fn knowledge(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    if waking.readable(Form::Knowledge).is_none() {
        return Ok(None);
    }
    let knowledge =
        read_knowledge(&load_formed(waking.project, waking.actor, Form::Knowledge)?.text);
    let mut block = Block::new(
        Paragraph::Knowledge,
        waking.say("What you have learnt", "你学到的"),
        "quipu knowledge show",
    );
    let own = waking
        .actor
        .agent()
        .map(|agent| agent.as_str().to_lowercase());
    let is_own =
        |past: &Session| own.is_some() && past.agent.as_ref().map(|a| a.to_lowercase()) == own;
    let newest: Vec<Session> = waking
        .newest()?
        .iter()
        .map(|(_, past)| past)
        .filter(|past| is_own(past))
        .cloned()
        .collect();
    let proposals = propose(
        &newest,
        &knowledge.patterns,
        pattern_after(&waking.project.contract),
    );
    for proposal in &proposals {
        block.entries.push(match waking.say("en", "zh") {
            "zh" => format!(
                "- 可以建立模式：{}，同样的做法已有 {} 次 → quipu knowledge pattern",
                proposal.name,
                proposal.sessions.len()
            ),
            _ => format!(
                "- possible pattern: {}, done {} times in the same way → quipu knowledge pattern",
                proposal.name,
                proposal.sessions.len()
            ),
        });
    }
    // A start with a task shows those that match it.
    if waking.task.is_none() {
        tell_knowledge(waking, &knowledge, &mut block);
    }
    let given = guidance(waking)?;
    block.entries.extend(given.iter().map(|(path, title)| {
        let read = waking.say("read it with", "查看：");
        format!("- {path}: {title}     ({read} quipu read {path})")
    }));
    block.data = json!({"knowledge": knowledge, "proposals": proposals, "guidance": given});
    Ok((!block.entries.is_empty()).then_some(block))
}

/// The files that people give to all agents, with their titles.
fn guidance(waking: &Waking<'_>) -> Result<Vec<(String, String)>, WorkError> {
    if !waking.may_see(Form::Guidance) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for path in list_form(waking.project, waking.actor, Form::Guidance) {
        if let Some((bytes, _)) = waking.project.store.read(&path)? {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let title = headline(&text).trim_start_matches('#').trim().to_owned();
            found.push((path.as_str().to_owned(), title));
        }
    }
    Ok(found)
}

/// Patterns and past sessions that match the task, each with its score and source.
pub(super) fn matches(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(task) = waking.topic()? else {
        return Ok(None);
    };
    let (task, suspect) = task;
    let found = find_matches(waking.project, waking.actor, &task, suspect.as_deref())?;
    if found.is_empty() {
        return Ok(None);
    }
    let first = headline(&task);
    let title = format!(
        "{}{first}",
        waking.say("Similar cases: ", "已知的同类情况：")
    );
    let mut block = Block::new(Paragraph::Matches, title, "quipu sessions search \"…\"");
    for one in &found {
        let kind = match one.kind {
            MatchKind::Pattern => waking.say("pattern", "模式"),
            MatchKind::Session => waking.say("session", "会话"),
        };
        block.entries.push(format!(
            "- {}/100 {kind} {} ({}) {}{}",
            one.score,
            one.name,
            one.why,
            one.source,
            one.lesson
                .as_ref()
                .map(|lesson| format!("\n  {}{lesson}", waking.say("learnt: ", "经验：")))
                .unwrap_or_default()
        ));
    }
    block.data = json!({"task": task, "matches": found});
    Ok(Some(block))
}

fn rounds(count: u32) -> String {
    if count == 1 {
        "1 round".to_owned()
    } else {
        format!("{count} rounds")
    }
}

/// The newest sessions of all agents.
pub(super) fn sessions(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let known = waking.newest()?;
    if known.is_empty() {
        return Ok(None);
    }
    let newest: Vec<&PastSession> = known.iter().rev().take(SESSIONS_TOLD).collect();
    let mut block = Block::new(
        Paragraph::Sessions,
        waking.say("Newest sessions", "最近的会话"),
        "quipu sessions list",
    );
    for (path, past) in &newest {
        let agent = past.agent.as_deref().unwrap_or("–");
        let rounds = match (past.rounds, waking.say("en", "zh")) {
            (Some(n), "zh") => format!("，{n} 轮"),
            (Some(n), _) => format!(", {}", rounds(n)),
            (None, _) => String::new(),
        };
        let problem = headline(&past.problem);
        block.entries.push(
            format!("- {path} ({agent}{rounds}) {problem}")
                .trim_end()
                .to_owned(),
        );
    }
    block.data = json!(
        newest
            .iter()
            .map(|(path, past)| json!({"path": path, "session": past}))
            .collect::<Vec<_>>()
    );
    Ok(Some(block))
}

impl Waking<'_> {
    /// The task to match and its suspected cause: those that the caller states, or the current ones.
    fn topic(&self) -> Result<Option<(String, Option<String>)>, WorkError> {
        if let Some(task) = self.task {
            return Ok(Some((task.to_owned(), self.suspect.map(str::to_owned))));
        }
        Ok(task_at_hand(self)?.map(|task| (task.description, task.suspect)))
    }

    /// The newest past sessions, read once.
    fn newest(&self) -> Result<&[PastSession], WorkError> {
        if let Some(known) = self.newest.get() {
            return Ok(known);
        }
        let found = match self.project.contract.of_form(Form::Session).next() {
            Some(_) => newest_sessions(self.project, self.actor)?,
            None => Vec::new(),
        };
        Ok(self.newest.get_or_init(|| found))
    }
}
