//! What others did, and what someone began and never finished.

use quipu_contract::{Paragraph, ProjectPath};
use quipu_store::{Kind, LogEntry, OpenSession, Who};
use serde_json::json;

use super::{Block, Waking};
use crate::quoting::headline;
use crate::reading::may_read;
use crate::work::WorkError;

/// For an agent that was never here, so many of the newest commits are told.
const FOR_A_STRANGER: usize = 5;
/// For one that was, at most so many.
const FOR_A_RETURNER: usize = 50;
/// Of sessions that wrote nothing, so many are named; `--json` names all.
const SILENT_NAMED: usize = 3;

/// Commits of others since this agent was last here.
pub(super) fn others(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let mine = Who::from(waking.actor);
    let most = if waking.last_here.is_some() { FOR_A_RETURNER } else { FOR_A_STRANGER };
    let since = waking.last_here.unwrap_or(0);
    let new = waking.recent.iter().filter(|e| e.seq > since && e.who != mine && e.kind != Kind::Lease);
    let told: Vec<LogEntry> = new.filter_map(|e| seen(waking, e)).take(most).collect();
    if told.is_empty() {
        return Ok(None);
    }
    let title = match waking.last_here {
        Some(_) => waking.say("What others did since you were last here", "你上次离开之后，其他人做了什么"),
        None => waking.say("What was done last (you were not here before)", "最近做了什么（你是第一次来）"),
    };
    let mut block = Block::new(Paragraph::Others, title, "quipu log PATH");
    block.entries = told.iter().map(line).collect();
    block.data = json!({"since": waking.last_here, "commits": told});
    Ok(Some(block))
}

/// A commit with the paths that the one who wakes may read; none if there is not one of them.
fn seen(waking: &Waking<'_>, entry: &LogEntry) -> Option<LogEntry> {
    let project = waking.project;
    // What the contract says is told to everyone.
    let is_contract = |path: &ProjectPath| project.contract.rule(path).is_some_and(|rule| rule.people_only);
    let is_read =
        |path: &str| ProjectPath::parse(path).is_ok_and(|path| is_contract(&path) || may_read(project, waking.actor, &path).is_ok());
    let is_file = |path: &&String| !path.starts_with("session ");
    let paths: Vec<String> = entry.paths.iter().filter(|path| !is_file(path) || is_read(path)).cloned().collect();
    let is_hidden = entry.paths.iter().any(|path| is_file(&path)) && !paths.iter().any(|path| is_file(&path));
    (!is_hidden).then(|| LogEntry { paths, ..entry.clone() })
}

fn line(entry: &LogEntry) -> String {
    let paths = entry.paths.iter().filter(|p| !p.starts_with("session ")).take(4).cloned().collect::<Vec<_>>().join(" ");
    let more = if entry.paths.len() > 4 { format!(" +{}", entry.paths.len() - 4) } else { String::new() };
    let why = entry.why.as_ref().map(|w| format!(": {}", headline(w))).unwrap_or_default();
    let told = format!("- @{} {} {} {paths}{more}{why}", entry.seq, entry.at.get(..19).unwrap_or(&entry.at), entry.who);
    told.trim_end().to_owned()
}

/// Sessions that were begun and never finished, with what they wrote.
pub(super) fn unfinished(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let mine = Who::from(waking.actor);
    if waking.sessions.is_empty() {
        return Ok(None);
    }
    // A session of one's own name, or one that is over, has lost its agent; another's may be at work.
    let is_lost = |s: &OpenSession| s.over || s.who == mine;
    let (lost, at_work): (Vec<_>, Vec<_>) = waking.sessions.iter().partition(|s| is_lost(s));
    let title = waking.say("Begun and not finished", "已开始而未收尾");
    let mut block = Block::new(Paragraph::Unfinished, title, "quipu log PATH");
    let wrote = |session: &OpenSession| {
        // What came after the next start under the same name is that one's.
        let next = waking.sessions.iter().filter(|s| s.who == session.who && s.seq > session.seq).map(|s| s.seq).min();
        let is_within = |e: &&LogEntry| e.seq > session.seq && next.is_none_or(|next| e.seq < next);
        let own = waking.recent.iter().filter(|e| e.who == session.who && e.kind != Kind::Lease).filter(is_within);
        // That something was written is told of every commit; what, only to whoever may read it.
        let hidden = |e: &LogEntry| LogEntry { paths: Vec::new(), why: None, ..e.clone() };
        own.take(6).map(|e| line(&seen(waking, e).unwrap_or_else(|| hidden(e)))).collect::<Vec<_>>()
    };
    let mut silent: Vec<&OpenSession> = Vec::new();
    for session in &lost {
        let commits = wrote(session);
        if commits.is_empty() {
            silent.push(session);
            continue;
        }
        let since = session.since.get(..19).unwrap_or(&session.since);
        let head = match waking.say("en", "zh") {
            "zh" => format!("- {} 于 {since} 开始（{}），没有收尾；它写过：", session.who, session.id),
            _ => format!("- {} began at {since} ({}) and never finished; it wrote:", session.who, session.id),
        };
        let body = commits.iter().map(|c| format!("\n  {c}")).collect::<String>();
        block.entries.push(head + &body);
    }
    block.entries.extend(tell_silent(waking, &silent));
    if !lost.is_empty() {
        let advice = waking.say(
            "  Look at the work itself before you trust the state; your finish closes what ran under your name, `--takes-over ID` the rest.",
            "  先看实际成果，再信状态；你的收尾会一并了结以你的名字开始的会话，其余用 `--takes-over ID`。",
        );
        block.entries.push(advice.to_owned());
    }
    for session in &at_work {
        let since = session.since.get(..19).unwrap_or(&session.since);
        // How long it has been silent is all that can be known of another's session.
        let last = wrote(session).into_iter().next().map(|line| line.trim_start_matches("- ").to_owned());
        block.entries.push(match (last, waking.say("en", "zh")) {
            (Some(last), "zh") => format!("- {} 可能仍在工作（{}，自 {since}）；最后写入：{last}", session.who, session.id),
            (None, "zh") => format!("- {} 可能仍在工作（{}，自 {since}）；尚未写入", session.who, session.id),
            (Some(last), _) => format!("- {} may be at work ({}, since {since}); it last wrote {last}", session.who, session.id),
            (None, _) => format!("- {} may be at work ({}, since {since}); it has written nothing", session.who, session.id),
        });
    }
    block.data = json!({"lost": lost, "at_work": at_work});
    Ok(Some(block))
}

/// Sessions that wrote nothing, oldest first, in one line for each agent: a host that starts again and again must not fill the text.
fn tell_silent(waking: &Waking<'_>, silent: &[&OpenSession]) -> Vec<String> {
    let mut agents: Vec<(&Who, Vec<&OpenSession>)> = Vec::new();
    for session in silent {
        match agents.iter_mut().find(|(who, _)| **who == session.who) {
            Some((_, of_one)) => of_one.push(session),
            None => agents.push((&session.who, vec![session])),
        }
    }
    let line = |(who, of_one): (&Who, Vec<&OpenSession>)| {
        let newest = of_one.last()?;
        let since = newest.since.get(..19).unwrap_or(&newest.since);
        let ids = of_one.iter().rev().take(SILENT_NAMED).map(|session| session.id.as_str()).collect::<Vec<_>>().join(", ");
        let more = of_one.len().saturating_sub(SILENT_NAMED);
        let ids = if more > 0 { format!("{ids} +{more}") } else { ids };
        Some(match (of_one.len(), waking.say("en", "zh")) {
            (1, "zh") => format!("- {who} 于 {since} 开始（{ids}），没有收尾，也没有写下任何东西"),
            (1, _) => format!("- {who} began at {since} ({ids}), never finished and wrote nothing"),
            (times, "zh") => format!("- {who} 开始过 {times} 次，最近一次于 {since}（{ids}），都没有收尾，也没有写下任何东西"),
            (times, _) => format!("- {who} began {times} times, last at {since} ({ids}), never finished and wrote nothing"),
        })
    };
    agents.into_iter().filter_map(line).collect()
}
