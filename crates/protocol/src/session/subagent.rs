//! Subagents of a host: an agent that another agent started within its conversation.
//!
//! A subagent has a name of its own in the journal and no session: it works in the session of the
//! agent that started it, and never ends that session. A hook registers it, because only the host
//! knows it.

use quipu_contract::{Actor, ActorName, Language};
use quipu_store::{OpenSession, Who};
use serde_json::json;

use crate::project::open::Project;
use crate::session::capture::{load_captured, load_captured_of, record_note};
use crate::session::error::WorkError;

/// The maximum length of an agent's name.
const LONGEST_NAME: usize = 64;
/// How much of a host's id of a subagent its name contains.
const ID_CHARS: usize = 8;

/// The actor that a subagent is: in the role of its parent, under a name of its own, such as
/// `claude-explore-1f2e3d4c`. None for a parent without a name.
pub fn subagent_of(parent: &Actor, kind: Option<&str>, id: &str) -> Option<Actor> {
    let Actor::Agent { role, unit, agent } = parent else {
        return None;
    };
    let plain = |text: &str| -> String {
        let kept = text.chars().filter(char::is_ascii_alphanumeric);
        kept.collect::<String>().to_lowercase()
    };
    let id: String = plain(id).chars().rev().take(ID_CHARS).collect();
    let id: String = id.chars().rev().collect();
    let kind = kind.map(plain).filter(|kind| !kind.is_empty());
    let kind = kind.unwrap_or_else(|| "subagent".to_owned());
    let name = format!("{}-{kind}", agent.as_ref()?);
    let room = LONGEST_NAME.saturating_sub(id.len() + 1);
    let name: String = name.chars().take(room).collect();
    let agent = ActorName::parse_given(format!("{name}-{id}").trim_end_matches('-')).ok()?;
    Some(Actor::Agent {
        role: role.clone(),
        unit: unit.clone(),
        agent: Some(agent),
    })
}

/// Registers a subagent of a session, once.
pub fn register_subagent(
    project: &Project,
    parent: &Actor,
    session: &OpenSession,
    subagent: &Actor,
) -> Result<(), WorkError> {
    let Some(name) = subagent.agent().map(ToString::to_string) else {
        return Ok(());
    };
    if load_captured(project, session)?.subagents.contains(&name) {
        return Ok(());
    }
    let why = format!("started the subagent {name}");
    record_note(project, parent, session, &why, json!({"subagent": name}))
}

/// The open session that an actor works in as a subagent.
pub fn find_parent(project: &Project, actor: &Actor) -> Result<Option<OpenSession>, WorkError> {
    let mine = Who::from(actor);
    let Some(name) = actor.agent().map(ToString::to_string) else {
        return Ok(None);
    };
    // The name of a subagent begins with the name of its parent.
    let is_parent = |session: &OpenSession| {
        let parent = session.who.agent.as_deref().unwrap_or_default();
        let is_above = name
            .strip_prefix(parent)
            .is_some_and(|rest| rest.starts_with('-'));
        is_above && (&session.who.role, &session.who.unit) == (&mine.role, &mine.unit)
    };
    let mut sessions = project.store.sessions()?;
    sessions.retain(is_parent);
    let captured = load_captured_of(project, &sessions)?;
    Ok(sessions
        .into_iter()
        .zip(captured)
        .rfind(|(_, captured)| captured.subagents.contains(&name))
        .map(|(session, _)| session))
}

/// What a subagent is told when it starts.
pub fn subagent_text(project: &Project, actor: &Actor) -> String {
    let flags = [
        ("--as", actor.role().map(ToString::to_string)),
        ("--unit", actor.unit().map(ToString::to_string)),
        ("--agent", actor.agent().map(ToString::to_string)),
    ];
    let flags: String = flags
        .into_iter()
        .filter_map(|(flag, name)| Some(format!(" {flag} {}", name?)))
        .collect();
    match project.contract.language {
        Language::En => format!(
            "You are a subagent. The memory of this project is under rules, kept by Quipu. The \
             agent that started you starts and finishes the session: do not run `quipu start` or \
             `quipu finish`. Say in your last message what you did, found and decided, so that it \
             can be saved.\nTo look something up: quipu recall \"…\"{flags}\nPass these names \
             with every call: quipu …{flags}\n"
        ),
        Language::Zh => format!(
            "你是子代理。本项目的记忆受规则约束，由 Quipu 保管。会话由启动你的代理开始和收尾：\
             不要运行 `quipu start` 或 `quipu finish`。请在最后一条消息里写明你做了什么、发现了什么、\
             决定了什么，以便保存。\n查找内容：quipu recall \"……\"{flags}\n每次调用都带上这些名字：\
             quipu …{flags}\n"
        ),
    }
}

/// Refuses a finish by a subagent.
pub fn refuse_finish(parent: &OpenSession) -> WorkError {
    let what = format!(
        "a subagent does not finish: session {} belongs to {}, the agent that started you",
        parent.id, parent.who
    );
    WorkError::refused(
        what,
        "say in your last message what you did and decided; that agent saves it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagent_has_a_name_of_its_own() {
        let parent = Actor::Agent {
            role: None,
            unit: None,
            agent: ActorName::parse("claude").ok(),
        };
        let name = |kind, id| {
            let actor = subagent_of(&parent, kind, id)?;
            actor.agent().map(ToString::to_string)
        };
        assert_eq!(
            name(Some("Explore"), "a1b2-c3d4-e5f6").as_deref(),
            Some("claude-explore-c3d4e5f6")
        );
        assert_eq!(name(None, "").as_deref(), Some("claude-subagent"));
        assert_eq!(
            name(Some("调研"), "7").as_deref(),
            Some("claude-subagent-7")
        );
        assert_eq!(
            name(Some(&"x".repeat(99)), "abc").map(|name| name.len()),
            Some(LONGEST_NAME)
        );
        assert_eq!(subagent_of(&Actor::Person, None, "1"), None);
    }
}
