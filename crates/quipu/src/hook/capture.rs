//! Records a conversation from hooks: requests, names of changed files, the last message.
//!
//! Recording never denies a call and never makes a host wait: on an error, nothing is recorded.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use quipu_contract::Actor;
use quipu_protocol::{
    Caller, Project, begin_or_continue, find_session, record_call, record_changed, record_request,
};
use quipu_store::OpenSession;
use serde_json::Value;

use super::call::{Call, Deed, Subagent};
use super::events::{is_offline, project_at};
use super::gate::is_of_gate;
use super::manner::Manner;
use super::verdict::resolve;
use crate::answer::{Answer, Failure};
use crate::session::Session;

/// How many bytes at the end of a transcript are searched for the last message.
const TRANSCRIPT_BYTES: u64 = 256 << 10;

/// Records a request of the user.
pub fn prompt(
    call: &Call,
    manner: Manner,
    cwd: &Path,
    session: &Session,
) -> Result<Answer, Failure> {
    let asked = call.prompt.as_deref().filter(|text| !is_of_gate(text));
    if let (Some(text), Some(project)) = (asked, project_at(cwd, session)?)
        && let Some(open) = session_of(call, &project, session)?
    {
        record_request(&project, &session.actor, &open, text)?;
    }
    Ok(manner.nothing())
}

/// Records the files that a tool is about to change.
pub fn changed(call: &Call, deeds: &[Deed], cwd: &Path, session: &Session) -> Result<(), Failure> {
    if deeds.is_empty() {
        return Ok(());
    }
    let Some(project) = project_at(cwd, session)? else {
        return Ok(());
    };
    let root = project
        .store
        .root()
        .canonicalize()
        .unwrap_or_else(|_| project.store.root().to_owned());
    let names: Vec<String> = deeds
        .iter()
        .filter_map(|deed| name_of(&resolve(&cwd.join(deed.path()?)), &root, cwd))
        .collect();
    if !names.is_empty()
        && let Some(open) = session_of(call, &project, session)?
    {
        record_changed(&project, &session.actor, &open, &names)?;
    }
    Ok(())
}

/// Records which conversation is about to call Quipu.
pub fn called(call: &Call, cwd: &Path, session: &Session) -> Result<(), Failure> {
    if call.quipu_commands(cwd).is_empty() {
        return Ok(());
    }
    let Some(project) = project_at(cwd, session)? else {
        return Ok(());
    };
    let actor = &session.actor;
    let caller = Caller::hook(actor, call.conversation.as_deref());
    if *actor == Actor::Person || is_offline(&project) || project.store.is_read_only() {
        return Ok(());
    }
    if let Some(open) = find_session(&project, actor, &caller)? {
        record_call(&project, actor, &open)?;
    }
    Ok(())
}

/// The session of the conversation; a finished one begins again. None if nothing can be recorded.
pub(super) fn session_of(
    call: &Call,
    project: &Project,
    session: &Session,
) -> Result<Option<OpenSession>, Failure> {
    let actor = &session.actor;
    if *actor == Actor::Person || is_offline(project) || project.store.is_read_only() {
        return Ok(None);
    }
    let caller = Caller::hook(actor, call.conversation.as_deref());
    let open = find_session(project, actor, &caller)?;
    // Some hosts name a subagent's own thread as the conversation. It has no session.
    let is_thread = |subagent: &Subagent| call.conversation.as_ref() == Some(&subagent.id);
    if open.is_none() && call.subagent.as_ref().is_some_and(is_thread) {
        return Ok(find_session(project, actor, &Caller::default())?);
    }
    Ok(Some(begin_or_continue(project, actor, &caller, open)?))
}

/// The name of a changed file: relative to the project root, even if the file is beside the root
/// but in the host's working folder. None for other files, and for git's and Quipu's own.
fn name_of(path: &Path, root: &Path, cwd: &Path) -> Option<String> {
    let inside = path.strip_prefix(root).map(Path::to_owned);
    let beside = || {
        let rest = path.strip_prefix(cwd).ok()?;
        let up = root.strip_prefix(cwd).ok()?.components().count();
        Some(
            (0..up)
                .map(|_| Component::ParentDir.as_os_str())
                .collect::<PathBuf>()
                .join(rest),
        )
    };
    let name = inside.ok().or_else(beside)?;
    let is_own = name.components().any(|part| {
        [".git", ".quipu"]
            .iter()
            .any(|own| part.as_os_str() == *own)
    });
    let text = name.to_str().filter(|text| !text.is_empty() && !is_own)?;
    (!text.chars().any(char::is_control)).then(|| text.to_owned())
}

/// The agent's last message: from the host's message, or from the end of its transcript.
pub fn last_message(call: &Call) -> Option<String> {
    call.last_message
        .clone()
        .or_else(|| said_last(&read_end(call.transcript.as_deref()?)?))
}

/// The end of a file that the host named. It may be anything.
fn read_end(path: &Path) -> Option<String> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TRANSCRIPT_BYTES)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(TRANSCRIPT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The newest text of an assistant in a transcript of JSON lines.
fn said_last(lines: &str) -> Option<String> {
    lines
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|entry| {
            let message = entry
                .get("message")
                .or_else(|| entry.get("payload"))
                .or_else(|| entry.get("data"))
                .unwrap_or(&entry);
            let is_assistant = [&entry, message].iter().any(|of| {
                of["role"] == "assistant"
                    || of["type"] == "assistant"
                    || of["type"] == "assistant.message"
            });
            let content = is_assistant.then(|| message.get("content"))??;
            let parts = content
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|part| part["text"].as_str());
            let text = content
                .as_str()
                .map_or_else(|| parts.collect::<Vec<_>>().join("\n"), str::to_owned);
            (!text.trim().is_empty()).then_some(text)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_named_from_the_root() {
        let named = |path: &str, root: &str, cwd: &str| {
            name_of(Path::new(path), Path::new(root), Path::new(cwd))
        };
        assert_eq!(named("/p/src/a.rs", "/p", "/p"), Some("src/a.rs".into()));
        assert_eq!(
            named("/p/src/a.rs", "/p", "/p/src"),
            Some("src/a.rs".into())
        );
        assert_eq!(
            named("/p/src/a.rs", "/p/memory", "/p"),
            Some("../src/a.rs".into())
        );
        assert_eq!(named("/tmp/a.rs", "/p", "/p"), None);
        assert_eq!(named("/p/.quipu/x", "/p", "/p"), None);
        assert_eq!(named("/p/a\n## Now", "/p", "/p"), None);
    }

    #[test]
    fn the_last_message_is_found_in_transcripts() {
        let claude = concat!(
            r#"{"type":"user","message":{"role":"user","content":"hi"}}"#,
            "\n",
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Done so far."}]}}"#,
            "\n",
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","name":"x","input":{}}]}}"#,
            "\n",
        );
        assert_eq!(said_last(claude).as_deref(), Some("Done so far."));
        let codex = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}}"#;
        assert_eq!(said_last(codex).as_deref(), Some("Yes."));
        for odd in [
            "",
            "{",
            "[1]",
            "null",
            r#"{"message":3}"#,
            r#"{"role":"assistant","content":{"text":1}}"#,
        ] {
            assert_eq!(said_last(odd), None, "{odd}");
        }
    }
}
