//! Sessions that a finish closes besides its own: what the same actor began earlier and never
//! finished, and what it took over.
//!
//! What such a session left is told by the journal only as long as it is open. So the finish that
//! closes it notes it in the state, where a later reader finds it.

use quipu_contract::{Actor, Language};
use quipu_store::{Kind, LogEntry, OpenSession, Who};

use super::close::LOOK_BACK;
use crate::capture::load_captured_of;
use crate::project::Project;
use crate::work::WorkError;

/// An unfinished session that the finish closes.
pub(super) struct LeftBehind {
    pub session: OpenSession,
    /// It changed something, or owes an answer: whoever comes later may want to know.
    pub has_left_work: bool,
}

/// The sessions that a finish closes besides its own. A conversation whose host still runs goes on.
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
    let recent = project.store.recent(LOOK_BACK)?;
    let until = session.map_or(u64::MAX, |s| s.seq);
    let is_work = |e: &LogEntry, old: &OpenSession| {
        e.who == old.who
            && e.seq > old.seq
            && e.seq < until
            && !matches!(e.kind, Kind::Lease | Kind::Note)
    };
    let captured = load_captured_of(project, &open)?;
    let all = open.into_iter().zip(captured);
    let left = all.filter(|(old, captured)| {
        captured.is_alive() != Some(true) || takes_over.contains(&old.id)
    });
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

/// One line for the state. What was asked and said stays in the journal, where `capture purge`
/// removes it.
pub(super) fn tell_left_behind(left: &LeftBehind, language: Language) -> String {
    let (id, who) = (&left.session.id, &left.session.who);
    let since = left.session.since.get(..19).unwrap_or(&left.session.since);
    match language {
        Language::En => {
            format!(
                "closed session {id} of {who}, begun {since}: it was cut off before it finished; the next start showed it still open"
            )
        }
        Language::Zh => format!(
            "了结了 {who} 的会话 {id}（始于 {since}）：它被中断、没有收尾，下一次启动时显示它仍未结束"
        ),
    }
}
