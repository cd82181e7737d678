//! Records the user's requests and the agent's changes, reported by hooks without the agent's help.
//!
//! All of it is stored as journal notes, never in memory files, and only as far as `capture` in the
//! contract allows. Texts are bounded and scanned for credentials before they are stored. Recorded
//! text is untrusted: callers that show it must quote it.

use quipu_contract::{Actor, Capture, GuardRules, find_credentials};
use quipu_store::{Noted, OpenSession};
use serde::Serialize;
use serde_json::{Value, json};

use crate::project::open::Project;
use crate::session::conversation::HostProcess;
use crate::session::error::WorkError;

/// Longer texts are cut: `start` shows only a few lines of each.
const MOST_CHARS: usize = 2_000;
/// Only this much of a text is scanned and stored.
const MOST_LOOKED_AT: usize = 64 << 10;
/// A text with more lines that look like credentials is not stored at all.
const MOST_CREDENTIALS: usize = 20;

/// Everything recorded for a session since it began, or since it resumed after a finish.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Captured {
    /// The user's requests, oldest first.
    pub requests: Vec<Request>,
    /// Names of files that the agent changed with its host's tools, relative to the project root,
    /// in the order of the first change.
    pub changed: Vec<String>,
    /// The newest message of the agent.
    pub last_message: Option<String>,
    /// How often the stop gate refused to let the agent stop.
    pub refusals: u32,
    /// Whether something was changed, even if its name was not recorded.
    pub has_changed: bool,
    /// Whether the user asked something, even if the text was not recorded.
    pub was_asked: bool,
    /// Whether the agent stopped after the newest request.
    pub is_answered: bool,
    /// Whether the gate let the agent stop without a finish.
    pub is_let_go: bool,
    /// Whether the session is a conversation of a host.
    pub is_hosted: bool,
    /// The host's process as last observed.
    #[serde(skip)]
    pub process: Option<HostProcess>,
    /// The journal record up to which the agent last received the state of the project.
    #[serde(skip)]
    pub told: Option<u64>,
    /// The record of the newest compaction of the agent's context.
    #[serde(skip)]
    pub compacted: Option<u64>,
    /// How often the host had rewritten its transcript when a compaction was last found there.
    #[serde(skip)]
    pub rewrites: Option<u64>,
    /// A tool of the host runs that starts a subagent.
    #[serde(skip)]
    pub is_delegating: bool,
    /// Further session ids of the same conversation.
    #[serde(skip)]
    pub also: Vec<String>,
    /// Names of the subagents that the agent started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<String>,
    /// The journal record of the newest call of Quipu that a hook announced.
    #[serde(skip)]
    pub called: Option<u64>,
}

/// A request of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    pub at: String,
    pub text: String,
}

/// How many records of the journal are searched for notes of a session.
const SCAN_BACK: usize = 20_000;

/// Loads the recorded notes of a session.
pub fn load_captured(project: &Project, session: &OpenSession) -> Result<Captured, WorkError> {
    Ok(load_captured_of(project, std::slice::from_ref(session))?.remove(0))
}

/// Loads the notes of several sessions, in their order, with one pass over the journal.
pub(crate) fn load_captured_of(
    project: &Project,
    sessions: &[OpenSession],
) -> Result<Vec<Captured>, WorkError> {
    let mut captured = vec![Captured::default(); sessions.len()];
    let Some(oldest) = sessions.iter().map(|session| session.seq).min() else {
        return Ok(captured);
    };
    for note in project
        .store
        .noted_among(oldest.saturating_sub(1), SCAN_BACK)?
    {
        let of = sessions.iter().position(|s| {
            note.note["session"] == json!(s.id) && note.seq >= s.seq && note.who == s.who
        });
        if let Some(index) = of {
            captured[index].take(note);
        }
    }
    Ok(captured)
}

impl Captured {
    fn take(
        &mut self,
        Noted {
            seq,
            at,
            note,
            text,
            ..
        }: Noted,
    ) {
        if let Some(process) = note.get("host") {
            (self.is_hosted, self.process) = (true, HostProcess::parse(process));
        }
        if note["told"] == json!(true) {
            self.told = Some(seq);
        }
        self.also.extend(note["also"].as_str().map(str::to_owned));
        self.subagents
            .extend(note["subagent"].as_str().map(str::to_owned));
        if note["compacted"] == json!(true) {
            self.compacted = Some(seq);
        }
        self.rewrites = note["rewrites"].as_u64().or(self.rewrites);
        if let Some(delegating) = note["delegating"].as_bool() {
            self.is_delegating = delegating;
        }
        if note["calls"] == json!(true) {
            self.called = Some(seq);
        }
        match note["capture"].as_str() {
            Some("request") => {
                (self.was_asked, self.is_answered) = (true, false);
                self.is_delegating = false;
                self.requests.extend(text.map(|text| Request { at, text }));
            }
            Some("changed") => {
                self.has_changed = true;
                let new = text
                    .iter()
                    .flat_map(|text| text.lines())
                    .filter(|name| !self.changed.iter().any(|known| known == name));
                let new: Vec<String> = new.map(str::to_owned).collect();
                self.changed.extend(new);
            }
            Some("stop") => {
                (self.is_answered, self.is_delegating) = (true, false);
                self.last_message = text.or(self.last_message.take());
            }
            Some("held") => self.refusals += 1,
            Some("let go") => self.is_let_go = true,
            _ => {}
        }
    }

    /// Whether the agent's context was compacted since it last received the state of the project.
    pub fn has_forgotten(&self) -> bool {
        self.compacted > self.told
    }

    /// Whether the host's process still runs, so that the agent may still be working. None if this
    /// cannot be determined.
    pub fn is_alive(&self) -> Option<bool> {
        self.process.as_ref().and_then(HostProcess::is_alive)
    }
}

/// Records a request of the user.
pub fn record_request(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
    text: &str,
) -> Result<(), WorkError> {
    let text = (project.contract.capture >= Capture::Requests)
        .then(|| storable(&project.contract.guards, text))
        .flatten();
    note(
        project,
        actor,
        session,
        "request",
        "capture: request",
        text.as_deref(),
    )
}

/// Records the names of files that the agent changes. Names that are already recorded are skipped.
pub fn record_changed(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
    names: &[String],
) -> Result<(), WorkError> {
    let known = load_captured(project, session)?;
    let is_full = project.contract.capture == Capture::Full;
    let is_storable = |name: &&String| {
        !known.changed.contains(name) && find_credentials(&project.contract.guards, name).is_none()
    };
    let new: Vec<&str> = names
        .iter()
        .filter(|_| is_full)
        .filter(is_storable)
        .map(String::as_str)
        .collect();
    if names.is_empty() || (new.is_empty() && known.has_changed) {
        return Ok(());
    }
    let text = (!new.is_empty()).then(|| new.join("\n"));
    note(
        project,
        actor,
        session,
        "changed",
        "capture: changed files",
        text.as_deref(),
    )
}

/// Records that the agent stopped, with its last message.
pub fn record_last_message(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
    text: Option<&str>,
) -> Result<(), WorkError> {
    let text = text.filter(|_| project.contract.capture == Capture::Full);
    let text = text.and_then(|text| storable(&project.contract.guards, text));
    note(
        project,
        actor,
        session,
        "stop",
        "capture: last message",
        text.as_deref(),
    )
}

/// Records that the gate refused to let the agent stop, or let it stop without a finish.
pub fn record_gate(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
    is_let_go: bool,
    why: &str,
) -> Result<(), WorkError> {
    note(
        project,
        actor,
        session,
        if is_let_go { "let go" } else { "held" },
        why,
        None,
    )
}

/// Records that the host compacts the agent's context, which then has to be told everything again.
/// `rewrites`: what the compaction was found by, if the host calls no hook for it.
pub fn record_compaction(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
    rewrites: Option<u64>,
) -> Result<(), WorkError> {
    let why = "the context is compacted";
    let mut note = json!({"compacted": true});
    if let Some(rewrites) = rewrites {
        note["rewrites"] = json!(rewrites);
    }
    record_note(project, actor, session, why, note)
}

/// Records that a subagent begins or ends to work in the session, for a host whose hooks do not say
/// which agent calls.
pub fn record_delegating(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
    delegating: bool,
) -> Result<(), WorkError> {
    let why = match delegating {
        true => "a subagent begins",
        false => "the subagent has ended",
    };
    record_note(
        project,
        actor,
        session,
        why,
        json!({"delegating": delegating}),
    )
}

/// Records a note about a session that contains no text of the conversation.
pub(crate) fn record_note(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
    why: &str,
    mut note: Value,
) -> Result<(), WorkError> {
    note["session"] = json!(session.id);
    project.store.capture(actor, why, note, None)?;
    Ok(())
}

fn note(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
    what: &str,
    why: &str,
    text: Option<&str>,
) -> Result<(), WorkError> {
    project.store.capture(
        actor,
        why,
        json!({"session": session.id, "capture": what}),
        text,
    )?;
    Ok(())
}

/// Returns the text with credentials removed and cut to the bound. None if nothing is left to
/// store.
fn storable(rules: &GuardRules, text: &str) -> Option<String> {
    let end = text.floor_char_boundary(MOST_LOOKED_AT);
    let text = without_credentials(rules, text[..end].trim().replace('\0', ""));
    (!text.is_empty()).then(|| cut(&text, MOST_CHARS))
}

/// Replaces each line that contains a credential with a note.
pub(crate) fn without_credentials(rules: &GuardRules, mut text: String) -> String {
    for _ in 0..MOST_CREDENTIALS {
        let Some(found) = find_credentials(rules, &text) else {
            return text;
        };
        // A private key continues in the following lines, so leave out the whole text.
        if found.what.contains("private key") {
            return format!("[left out: it {}]", found.what);
        }
        let mask = |(index, line): (usize, &str)| match index + 1 == found.line {
            true => format!("[a line was left out: it {}]", found.what),
            false => line.to_owned(),
        };
        text = text
            .split('\n')
            .enumerate()
            .map(mask)
            .collect::<Vec<_>>()
            .join("\n");
    }
    "[left out: it looks like a list of credentials]".to_owned()
}

/// Cuts a text and marks the cut.
pub(crate) fn cut(text: &str, most_chars: usize) -> String {
    match text.char_indices().nth(most_chars) {
        Some((end, _)) => format!("{} […]", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_never_stored() {
        let rules = GuardRules::default();
        let key = format!("sk-ant-{}", "a1B2c3D4e5F6g7H8i9J0k1L2");
        let asked = format!("Deploy it.\nThe key is {key} for now\nand tell me");
        let stored = storable(&rules, &asked).unwrap();
        assert!(
            !stored.contains(&key)
                && stored.starts_with("Deploy it.\n[a line was left out")
                && stored.ends_with("and tell me"),
            "{stored}"
        );
        let pem = "Use this:\n-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7x\n-----END RSA PRIVATE KEY-----";
        assert!(!storable(&rules, pem).unwrap().contains("MIIEow"));
        // A key that the cut would split must be found before the cut.
        let late = format!("{} {key}", "x".repeat(MOST_CHARS - 12));
        assert!(!storable(&rules, &late).unwrap().contains("sk-ant-"));
        let many = (0..30).map(|n| format!("{key}{n}\n")).collect::<String>();
        assert!(!storable(&rules, &many).unwrap().contains("sk-ant-"));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let stored = storable(&GuardRules::default(), &"界".repeat(40_000)).unwrap();
        assert_eq!(stored.chars().count(), MOST_CHARS + " […]".chars().count());
        assert_eq!(storable(&GuardRules::default(), " \n"), None);
    }
}
