//! Subagents of a host: registers them, tells them what they may do, and keeps them from ending the
//! session of the agent that started them.

use std::path::Path;

use quipu_protocol::{
    Caller, Project, find_session, load_captured, record_delegating, register_subagent,
    subagent_of, subagent_text,
};

use super::call::Call;
use super::capture::session_of;
use super::events::project_at;
use super::manner::Manner;
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;

/// The command of Quipu that ends a session.
const FINISH: &str = "finish";

/// Registers a subagent with the session that it works in, and tells it its name.
pub fn start(
    call: &Call,
    manner: Manner,
    cwd: &Path,
    session: &Session,
) -> Result<Answer, Failure> {
    let Some(project) = project_at(cwd, session)? else {
        return Ok(manner.nothing());
    };
    let (kind, id) = match &call.subagent {
        Some(subagent) => (subagent.kind.as_deref(), subagent.id.as_str()),
        None => (None, ""),
    };
    let named = subagent_of(&session.actor, kind, id);
    let open = session_of(call, &project, session)?;
    if let (Some(actor), Some(open)) = (&named, &open) {
        register_subagent(&project, &session.actor, open, actor)?;
    }
    // A name that nothing registered is not accepted.
    let actor = named.filter(|_| open.is_some());
    let text = subagent_text(&project, actor.as_ref().unwrap_or(&session.actor));
    Ok(manner.answer(call.event.as_deref(), text))
}

/// Records that a tool begins or ends which starts a subagent, if the host's hooks do not say which
/// agent calls. In between it is the subagent.
pub fn delegating(call: &Call, cwd: &Path, session: &Session, begins: bool) -> Result<(), Failure> {
    if !call.starts_nameless_subagent() {
        return Ok(());
    }
    if let Some(project) = project_at(cwd, session)?
        && let Some(open) = session_of(call, &project, session)?
    {
        record_delegating(&project, &session.actor, &open, begins)?;
    }
    Ok(())
}

/// Whether a subagent works in the session of this call, and its host does not say so.
fn is_delegating(project: &Project, call: &Call, session: &Session) -> bool {
    let caller = Caller::hook(&session.actor, call.conversation.as_deref());
    let open = find_session(project, &session.actor, &caller)
        .ok()
        .flatten();
    let captured = open.and_then(|open| load_captured(project, &open).ok());
    captured.is_some_and(|captured| captured.is_delegating)
}

/// Refuses a finish by a subagent: it would end its parent's session.
pub fn refusal(call: &Call, cwd: &Path, session: &Session) -> Option<Failure> {
    if !call.quipu_commands(cwd).contains(FINISH) {
        return None;
    }
    let project = project_at(cwd, session).ok().flatten()?;
    if call.subagent.is_none() && !is_delegating(&project, call, session) {
        return None;
    }
    Some(Failure::new(
        exit::REFUSED,
        "a subagent does not finish: the session belongs to the agent that started you",
        "say in your last message what you did and decided; that agent saves it",
    ))
}
