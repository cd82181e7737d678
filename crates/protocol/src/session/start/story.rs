//! Paragraphs about the written work: threads that are due, the file index, and the reports of the
//! last finished sessions.
//!
//! A role sees the reports of its own sessions; actors that may see all see everyone's.

use quipu_claims::{Memory, Standing};
use quipu_contract::{Form, Language, Listing, Paragraph, Privilege};
use quipu_store::{LogEntry, Who};
use serde_json::json;

use super::{Block, Waking};
use crate::files::edit::Draft;
use crate::files::index_file::refresh_index;
use crate::files::quote::headline;
use crate::novel::check::last_chapter;
use crate::session::error::WorkError;
use crate::session::finish::FINISH;
use crate::view::pages::gather;

/// The number of finishes shown, and the number of records searched.
const FINISHES_TOLD: usize = 3;
const LOOK_BACK: usize = 400;

/// Threads that must be resolved soon, or are overdue.
pub(super) fn threads(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    if waking.readable(Form::Threads).is_none() {
        return Ok(None);
    }
    let pages = gather(waking.project, waking.actor)?.pages;
    let at = last_chapter(&pages);
    let memory = Memory::of(&pages);
    let mut threads: Vec<_> = memory
        .threads
        .iter()
        .map(|thread| (thread.standing(at), thread))
        .collect();
    threads.retain(|(standing, _)| *standing != Standing::Closed);
    if threads.is_empty() {
        return Ok(None);
    }
    threads.sort_by_key(|(standing, thread)| (*standing, thread.at.clone()));
    let (due, open): (Vec<_>, Vec<_>) = threads
        .iter()
        .partition(|(standing, _)| matches!(standing, Standing::Overdue | Standing::Due));
    let mut block = Block::new(
        Paragraph::Threads,
        waking.say("Threads that are due", "该收的伏笔"),
        "quipu threads",
    );
    for (standing, thread) in &due {
        let name = match (waking.language, standing) {
            (Language::Zh, Standing::Overdue) => "已逾期",
            (Language::Zh, _) => "该收",
            (Language::En, standing) => standing.as_str(),
        };
        let by = thread
            .due
            .as_ref()
            .map(|due| format!(" ({})", headline(due)))
            .unwrap_or_default();
        let promise = thread
            .promise
            .as_ref()
            .map(|promise| format!(": {}", headline(promise)))
            .unwrap_or_default();
        block
            .entries
            .push(format!("- {name} {}{by}{promise}", headline(&thread.name)));
    }
    block.entries.push(match waking.language {
        Language::En if due.is_empty() => format!("- none is due; {} open", open.len()),
        Language::En => format!("- {} more open", open.len()),
        Language::Zh if due.is_empty() => format!("- 没有该收的；{} 条未收", open.len()),
        Language::Zh => format!("- 另有 {} 条未收", open.len()),
    });
    block.data = json!(
        due.iter()
            .map(|(standing, thread)| json!({"standing": standing, "thread": thread}))
            .collect::<Vec<_>>()
    );
    Ok(Some(block))
}

/// Every file with its first line.
pub(super) fn index(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let Some(path) = waking.readable(Form::Index) else {
        return Ok(None);
    };
    refresh_index(waking.project)?;
    let text = Draft::new(waking.project, waking.actor).text(&path)?;
    let mut block = Block::new(
        Paragraph::Index,
        waking.say("Files", "文件"),
        format!("quipu read {path}"),
    );
    block.entries = Listing::from_first_row(&text)
        .lines()
        .map(str::to_owned)
        .collect();
    block.data = json!({"path": path});
    Ok((!block.entries.is_empty()).then_some(block))
}

/// The reports of the last sessions at their finish.
pub(super) fn finished(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let mine = Who::from(waking.actor);
    let sees_all = waking.actor.may(Privilege::SeeAll).is_ok();
    let recent = waking.project.store.recent(LOOK_BACK)?;
    let said = |entry: &LogEntry| {
        entry
            .why
            .as_deref()
            .and_then(|why| why.strip_prefix(FINISH))
            .map(str::to_owned)
    };
    let own = recent.iter().filter(|entry| sees_all || entry.who == mine);
    let told: Vec<(&LogEntry, String)> = own
        .filter_map(|entry| Some((entry, said(entry)?)))
        .take(FINISHES_TOLD)
        .collect();
    let mut block = Block::new(
        Paragraph::Finished,
        waking.say("Messages of the last sessions", "前几次会话的留言"),
        "quipu log",
    );
    for (entry, said) in &told {
        let day = entry.at.get(..10).unwrap_or(&entry.at);
        block
            .entries
            .push(format!("- {day} {}: {}", entry.who, headline(said)));
    }
    block.data = json!(
        told.iter()
            .map(|(entry, said)| json!({"at": entry.at, "who": entry.who, "said": said}))
            .collect::<Vec<_>>()
    );
    Ok((!block.entries.is_empty()).then_some(block))
}
