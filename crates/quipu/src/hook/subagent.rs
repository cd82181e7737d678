//! Subagents of a host: registers them, tells them what they may do, and keeps them from ending the
//! session of the agent that started them.

use std::path::Path;

use quipu_protocol::{register_subagent, subagent_of, subagent_text};

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

/// Refuses a finish by a subagent: it would end its parent's session.
pub fn refusal(call: &Call, cwd: &Path, session: &Session) -> Option<Failure> {
    call.subagent.as_ref()?;
    if !call.quipu_commands(cwd).contains(FINISH) {
        return None;
    }
    project_at(cwd, session).ok().flatten()?;
    Some(Failure::new(
        exit::REFUSED,
        "a subagent does not finish: the session belongs to the agent that started you",
        "say in your last message what you did and decided; that agent saves it",
    ))
}
