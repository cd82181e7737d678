//! Finds the sessions that a finish closes besides its own: earlier unfinished sessions of the same
//! actor, and sessions that it takes over.
//!
//! `start` shows such a session only while it is open. The finish that closes it therefore records
//! it in the state, where a later reader finds it.

use quipu_contract::{Actor, Language};
use quipu_store::{Kind, LogEntry, OpenSession, Who};

use super::close::LOOK_BACK;
use crate::project::open::Project;
use crate::session::capture::{Captured, load_captured_of};
use crate::session::error::WorkError;

/// An unfinished session that the finish closes.
pub(super) struct LeftBehind {
    pub session: OpenSession,
    /// Whether it changed something or owes an answer, so that it must be recorded.
    pub has_left_work: bool,
}

/// Finds the sessions that a finish closes besides its own. A conversation with a running host
/// stays open.
pub(super) fn find_left_behind(
    project: &Project,
    actor: &Actor,
    takes_over: &[String],
    session: Option<&OpenSession>,
    sessions: &[OpenSession],
) -> Result<Vec<LeftBehind>, WorkError> {
    let mine = Who::from(actor);
    let is_earlier =
        |old: &OpenSession| session.is_some_and(|s| old.seq < s.seq && old.who == mine);
    let open: Vec<OpenSession> = sessions
        .iter()
        .filter(|old| is_earlier(old) || takes_over.contains(&old.id))
        .cloned()
        .collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let oldest = open.iter().map(|old| old.seq).min().unwrap_or_default();
    let recent = project
        .store
        .recent_until(LOOK_BACK, &mut |entry| entry.seq <= oldest)?;
    let until = session.map_or(u64::MAX, |s| s.seq);
    let is_work = |e: &LogEntry, old: &OpenSession| {
        e.who == old.who
            && e.seq > old.seq
            && e.seq < until
            && !matches!(e.kind, Kind::Lease | Kind::Note)
    };
    let captured = load_captured_of(project, &open)?;
    let all = open.into_iter().zip(captured);
    // A conversation of which the host cannot be seen from here may go on.
    let is_left = |old: &OpenSession, captured: &Captured| match captured.is_alive() {
        Some(is_alive) => !is_alive,
        None => !captured.is_hosted || old.over,
    };
    let left = all.filter(|(old, captured)| is_left(old, captured) || takes_over.contains(&old.id));
    let with_work = left.map(|(session, captured)| {
        let is_unanswered = captured.was_asked && !captured.is_answered;
        let has_left_work =
            captured.has_changed || is_unanswered || recent.iter().any(|e| is_work(e, &session));
        LeftBehind {
            session,
            has_left_work,
        }
    });
    Ok(with_work.collect())
}

/// The ends of the line for the state, in English and Chinese.
const CUT_OFF: (&str, &str) = (", was cut off without a finish)", "，被中断，没有收尾）");

/// Whether a line of the state only says that a session was closed: it answers no question.
pub(crate) fn is_left_behind(line: &str) -> bool {
    line.starts_with("(session s-") && line.ends_with(CUT_OFF.0)
        || line.starts_with('（') && line.ends_with(CUT_OFF.1)
}

/// Renders one line for the state. Requests and messages stay in the journal, where `capture purge`
/// removes them.
pub(super) fn tell_left_behind(left: &LeftBehind, language: Language) -> String {
    let (id, who) = (&left.session.id, &left.session.who);
    let since = left.session.since.get(..19).unwrap_or(&left.session.since);
    match language {
        Language::En => {
            format!("(session {id} of {who}, started {since}{}", CUT_OFF.0)
        }
        Language::Zh => format!("（{who} 的会话 {id} 始于 {since}{}", CUT_OFF.1),
    }
}
