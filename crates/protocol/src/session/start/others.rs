//! The paragraph about commits by other actors.
//!
//! A role sees only commits that it may read (`ReadScope`).

use quipu_contract::{Form, Paragraph, ProjectPath};
use quipu_store::{Kind, LogEntry, Who};
use serde_json::json;

use super::lay::LAID_OUT;
use super::{Block, Waking};
use crate::files::quote::headline;
use crate::files::read_scope::ReadScope;
use crate::session::error::WorkError;

/// The number of newest commits shown to a new agent.
const FOR_A_STRANGER: usize = 5;
/// The maximum number of commits shown to a returning agent.
const FOR_A_RETURNER: usize = 50;

/// Commits by others since this agent's last visit.
pub(super) fn others(waking: &Waking<'_>) -> Result<Option<Block>, WorkError> {
    let mine = Who::from(waking.actor);
    let most = if waking.last_here.is_some() {
        FOR_A_RETURNER
    } else {
        FOR_A_STRANGER
    };
    let since = waking.last_here.unwrap_or(0);
    let is_work =
        |e: &LogEntry| !matches!(e.kind, Kind::Lease | Kind::Note) && !is_setting_up(waking, e);
    let new = waking
        .recent
        .iter()
        .filter(|e| e.seq > since && e.who != mine && is_work(e));
    let scope = ReadScope::of(waking.project, waking.actor);
    let told: Vec<LogEntry> = new.filter_map(|e| scope.entry(e)).take(most).collect();
    if told.is_empty() {
        return Ok(None);
    }
    let title = match waking.last_here {
        Some(_) => waking.say(
            "Changes by others since your last session",
            "你上次会话之后其他人的改动",
        ),
        None => waking.say(
            "Recent changes (this is your first session)",
            "最近的改动（这是你的第一次会话）",
        ),
    };
    let mut block = Block::new(Paragraph::Others, title, "quipu log PATH");
    block.entries = told.iter().map(line).collect();
    block.data = json!({"since": waking.last_here, "commits": told});
    Ok(Some(block))
}

/// Whether a commit only created initial files, or adopted a person's edit of the identity or the
/// contract. The files themselves show that.
fn is_setting_up(waking: &Waking<'_>, entry: &LogEntry) -> bool {
    let is_laid_out = entry
        .why
        .as_deref()
        .is_some_and(|why| why.starts_with(LAID_OUT));
    let is_of_people = |path: &String| {
        let rule = ProjectPath::parse(path)
            .ok()
            .and_then(|path| waking.project.contract.rule(&path));
        rule.is_some_and(|rule| rule.people_only || rule.form == Some(Form::Identity))
    };
    is_laid_out || (entry.kind == Kind::Adopt && entry.paths.iter().all(is_of_people))
}

pub(super) fn line(entry: &LogEntry) -> String {
    let paths = entry
        .paths
        .iter()
        .filter(|p| !p.starts_with("session "))
        .take(4)
        .cloned()
        .collect::<Vec<_>>()
        .join(" ");
    let more = if entry.paths.len() > 4 {
        format!(" +{}", entry.paths.len() - 4)
    } else {
        String::new()
    };
    let why = entry
        .why
        .as_ref()
        .map(|w| format!(": {}", headline(w)))
        .unwrap_or_default();
    let told = format!(
        "- @{} {} {} {paths}{more}{why}",
        entry.seq,
        entry.at.get(..19).unwrap_or(&entry.at),
        entry.who
    );
    told.trim_end().to_owned()
}
