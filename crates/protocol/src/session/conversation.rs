//! Finds the session that a call belongs to: one conversation of a host is one session.
//!
//! A hook receives the host's conversation id, and the session id derives from it. Any other call
//! belongs to the session that its caller names (`QUIPU_SESSION`), else to the session of the host
//! that started the caller, else to the newest session of the same actor.

use quipu_contract::Actor;
use quipu_store::{OpenSession, Who, session_id};
use serde_json::{Value, json};

use crate::project::open::Project;
use crate::session::capture::{Captured, load_captured_of, record_note};
use crate::session::error::WorkError;

/// A session without a host is considered dead after this time.
pub(crate) const LONGEST_SESSION_SECONDS: u64 = 12 * 60 * 60;
/// Programs that only start others. The search for the host continues with their parent.
const STARTERS: [&str; 12] = [
    "sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "env", "timeout", "nice", "quipu",
];
/// A plugin in a process of its own names here the process of the conversation, in which the agent's
/// shell runs too.
const HOST_VARIABLE: &str = "QUIPU_HOST_PID";
/// The search stops after this many ancestors.
const MOST_ANCESTORS: usize = 64;

/// The origin of a call.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The session that the caller names.
    pub session: Option<String>,
    /// The call comes from a hook: a session that begins here is a conversation of the host.
    pub is_hook: bool,
    /// The host is starting: without a conversation id, no earlier session is continued.
    pub is_startup: bool,
    /// The host shows the output of `start` to its model.
    pub is_heard: bool,
    /// The agent lost its context, so the next report must be complete.
    pub has_forgotten: bool,
    /// The host replaced the previous conversation with a new one.
    pub replaces: bool,
}

impl Caller {
    /// A hook call, with the host's conversation id if the host provides one.
    pub fn hook(actor: &Actor, conversation: Option<&str>) -> Caller {
        let session = conversation.map(|conversation| session_id(&Who::from(actor), conversation));
        Caller {
            session,
            is_hook: true,
            is_heard: true,
            ..Caller::default()
        }
    }

    fn note(&self, told: bool) -> Option<Value> {
        let id = self.session.as_deref()?;
        Some(
            json!({"session": id, "host": HostProcess::of_caller().map_or(Value::Null, |host| host.render()), "told": told}),
        )
    }
}

/// Finds the open session that a call belongs to.
pub fn find_session(
    project: &Project,
    actor: &Actor,
    caller: &Caller,
) -> Result<Option<OpenSession>, WorkError> {
    if *actor == Actor::Person {
        return Ok(None);
    }
    let mine = Who::from(actor);
    let (sessions, others): (Vec<_>, Vec<_>) = project
        .store
        .sessions()?
        .into_iter()
        .partition(|s| s.who == mine);
    // A child process inherits the variable from its parent, but its work is a session of its own.
    let caller = match others
        .iter()
        .any(|s| Some(&s.id) == caller.session.as_ref())
    {
        true => &Caller {
            session: None,
            ..caller.clone()
        },
        false => caller,
    };
    if let Some(named) = sessions
        .iter()
        .find(|s| Some(&s.id) == caller.session.as_ref())
    {
        return Ok(Some(named.clone()));
    }
    let captured = load_captured_of(project, &sessions)?;
    let with: Vec<(OpenSession, Captured)> = sessions.into_iter().zip(captured).collect();
    if let Some(id) = &caller.session {
        let known = with
            .iter()
            .rfind(|(_, captured)| captured.also.contains(id));
        // The replaced conversation ran in the same process.
        let replaced = || {
            let here = HostProcess::of_caller();
            with.iter()
                .rfind(|(_, captured)| captured.is_hosted && captured.process == here)
        };
        let found = known.or_else(|| if caller.replaces { replaced() } else { None });
        return Ok(found.map(|(session, _)| session.clone()));
    }
    if caller.is_hook {
        return Ok(with
            .into_iter()
            .filter(|_| !caller.is_startup)
            .rfind(|(session, _)| !session.over)
            .map(|(session, _)| session));
    }
    let around: Vec<_> = Ancestors::new().collect();
    let is_of_caller = |captured: &Captured| {
        let is_host = |host: &HostProcess| around.iter().any(|(above, _)| above == host);
        captured.process.as_ref().is_some_and(is_host)
    };
    let hosted: Vec<_> = with
        .into_iter()
        .filter(|(_, captured)| captured.is_hosted && captured.is_alive() != Some(false))
        .filter(|(_, captured)| !is_of_another_window(captured, &around))
        .collect();
    // One process may hold several conversations: the one that called last is meant.
    let found = hosted
        .iter()
        .filter(|(_, captured)| is_of_caller(captured))
        .max_by_key(|(session, captured)| captured.called.unwrap_or(session.seq))
        .or(hosted.last());
    Ok(found.map(|(session, _)| session.clone()))
}

/// Finds the open session of the host that started a caller who gives no name: the one that called
/// last, if several conversations share the process.
pub fn find_host_session(project: &Project) -> Result<Option<OpenSession>, WorkError> {
    let sessions = project.store.sessions()?;
    if sessions.is_empty() {
        return Ok(None);
    }
    let around: Vec<_> = Ancestors::new().map(|(above, _)| above).collect();
    let captured = load_captured_of(project, &sessions)?;
    let is_above = |captured: &Captured| {
        let process = captured.process.as_ref();
        captured.is_hosted && process.is_some_and(|process| around.contains(process))
    };
    Ok(sessions
        .into_iter()
        .zip(captured)
        .filter(|(_, captured)| is_above(captured))
        .max_by_key(|(session, captured)| captured.called.unwrap_or(session.seq))
        .map(|(session, _)| session))
}

/// Whether a session runs in another process of the program that started the caller.
fn is_of_another_window(captured: &Captured, around: &[(HostProcess, String)]) -> bool {
    let Some(host) = captured.process.as_ref() else {
        return false;
    };
    host.is_alive() == Some(true)
        && !around.iter().any(|(above, _)| above == host)
        && stat(host.pid).is_some_and(|host| around.iter().any(|(_, name)| *name == host.name))
}

/// Finds the newest session of an actor that no other window of the caller's host is working in.
/// For a call of which the conversation is unknown.
pub(crate) fn find_newest(
    project: &Project,
    actor: &Actor,
) -> Result<Option<OpenSession>, WorkError> {
    let mine = Who::from(actor);
    let mut sessions = project.store.sessions()?;
    sessions.retain(|session| session.who == mine);
    let captured = load_captured_of(project, &sessions)?;
    let around: Vec<_> = Ancestors::new().collect();
    Ok(sessions
        .into_iter()
        .zip(captured)
        .rfind(|(_, captured)| !is_of_another_window(captured, &around))
        .map(|(session, _)| session))
}

/// Records that a conversation is about to call Quipu, if its host has several in one process: the
/// call itself does not say which one it belongs to.
pub fn record_call(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
) -> Result<(), WorkError> {
    let mut sessions = project.store.sessions()?;
    sessions.retain(|other| other.who == session.who);
    if sessions.len() < 2 {
        return Ok(());
    }
    let captured = load_captured_of(project, &sessions)?;
    let own = sessions.iter().position(|other| other.id == session.id);
    let process = own.map(|own| &captured[own].process);
    let is_shared = |captured: &&Captured| captured.is_hosted && Some(&captured.process) == process;
    if captured.iter().filter(is_shared).count() > 1 {
        let why = "the conversation calls Quipu";
        record_note(project, actor, session, why, json!({"calls": true}))?;
    }
    Ok(())
}

/// Continues the session that a call belongs to (`open`, from [`find_session`]), or begins one.
pub fn begin_or_continue(
    project: &Project,
    actor: &Actor,
    caller: &Caller,
    open: Option<OpenSession>,
) -> Result<OpenSession, WorkError> {
    let Some(open) = open else {
        let note = caller.note(caller.is_heard);
        let is_anothers = |id: &String| {
            project
                .store
                .sessions()
                .is_ok_and(|all| all.iter().any(|s| s.id == *id))
        };
        return Ok(
            match caller.session.as_ref().filter(|id| !is_anothers(id)) {
                Some(id) => project.store.begin_session_as(
                    actor,
                    id,
                    LONGEST_SESSION_SECONDS,
                    note.as_ref(),
                )?,
                None => project
                    .store
                    .begin_session(actor, LONGEST_SESSION_SECONDS)?,
            },
        );
    };
    // A resumed conversation has a new process; a cleared one has a new id.
    let Some(mut note) = caller.note(false).filter(|_| caller.is_hook) else {
        return Ok(open);
    };
    let captured = crate::session::capture::load_captured(project, &open)?;
    let is_new_id = caller
        .session
        .as_ref()
        .is_some_and(|id| *id != open.id && !captured.also.contains(id));
    if is_new_id {
        note["also"] = json!(caller.session);
    }
    if is_new_id || captured.process != HostProcess::of_caller() {
        record_note(project, actor, &open, "the conversation continues", note)?;
    }
    Ok(open)
}

/// Identifies a host process, to distinguish a dead process from a running one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostProcess {
    pid: u32,
    /// Start time in ticks since boot. The system reuses process ids, but not pairs of id and start
    /// time.
    began: u64,
    /// The boot id; `space` is the process namespace in which the pid is valid.
    boot: String,
    space: String,
}

impl HostProcess {
    pub(crate) fn parse(value: &Value) -> Option<HostProcess> {
        Some(HostProcess {
            pid: u32::try_from(value["pid"].as_u64()?).ok()?,
            began: value["began"].as_u64()?,
            boot: value["boot"].as_str()?.to_owned(),
            space: value["space"].as_str()?.to_owned(),
        })
    }

    fn render(&self) -> Value {
        json!({"pid": self.pid, "began": self.began, "boot": self.boot, "space": self.space})
    }

    /// The ancestor that the caller names, or the nearest one that is not a starter. None if the
    /// system does not provide it.
    pub(crate) fn of_caller() -> Option<HostProcess> {
        let named = std::env::var(HOST_VARIABLE).ok();
        let named = named.and_then(|pid| pid.parse::<u32>().ok());
        let is_named = |process: &HostProcess| Some(process.pid) == named;
        Ancestors::new()
            .find(|(process, _)| is_named(process))
            .or_else(|| Ancestors::new().find(|(_, name)| !STARTERS.contains(&name.as_str())))
            .map(|(process, _)| process)
    }

    /// Whether the process still runs. None if this cannot be determined from here.
    pub(crate) fn is_alive(&self) -> Option<bool> {
        let (boot, space) = here()?;
        if self.boot != boot {
            return Some(false);
        }
        (self.space == space)
            .then(|| stat(self.pid).is_some_and(|stat| stat.began == self.began && !stat.has_ended))
    }
}

/// Iterates over the ancestors of this process with their names, nearest first.
struct Ancestors {
    place: Option<(String, String)>,
    next: u32,
    left: usize,
}

impl Ancestors {
    fn new() -> Ancestors {
        let next = stat(std::process::id()).map_or(0, |own| own.parent);
        Ancestors {
            place: here(),
            next,
            left: MOST_ANCESTORS,
        }
    }
}

impl Iterator for Ancestors {
    type Item = (HostProcess, String);

    fn next(&mut self) -> Option<Self::Item> {
        let (boot, space) = self.place.clone()?;
        self.left = self.left.checked_sub(1)?;
        let found = stat(self.next).filter(|_| self.next > 0)?;
        let process = HostProcess {
            pid: self.next,
            began: found.began,
            boot,
            space,
        };
        self.next = found.parent;
        Some((process, found.name))
    }
}

/// The fields of `/proc/PID/stat` that are needed here.
struct Stat {
    name: String,
    parent: u32,
    began: u64,
    /// The process is a zombie: it has ended, and its parent has not collected its exit status.
    has_ended: bool,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may itself contain spaces and parentheses.
    let (name, rest) = text.split_once('(')?.1.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let has_ended = fields.first().is_some_and(|state| *state == "Z");
    Some(Stat {
        has_ended,
        name: name.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        began: fields.get(19)?.parse().ok()?,
    })
}

fn here() -> Option<(String, String)> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some((boot.trim().to_owned(), space.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_is_dead() {
        let Some((boot, space)) = here() else { return };
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let began = stat(child.id()).unwrap().began;
        let process = HostProcess {
            pid: child.id(),
            began,
            boot,
            space,
        };
        assert_eq!(process.is_alive(), Some(true));
        assert_eq!(HostProcess::parse(&process.render()), Some(process.clone()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(process.is_alive(), Some(false));
        assert_eq!(
            HostProcess {
                boot: "another".into(),
                ..process.clone()
            }
            .is_alive(),
            Some(false)
        );
        assert_eq!(
            HostProcess {
                space: "another".into(),
                ..process
            }
            .is_alive(),
            None
        );
    }

    #[test]
    fn the_programs_above_are_known() {
        if here().is_some() {
            assert!(
                HostProcess::of_caller()
                    .is_some_and(|host| Ancestors::new().any(|(above, _)| above == host))
            );
        }
    }
}
