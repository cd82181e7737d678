//! The hook events: session start, user prompt, before and after a tool, before compaction, and
//! stop.
//!
//! Each handler calls the part that does the work: `verdict.rs` judges, `capture.rs` records,
//! `gate.rs` holds a stop. Hooks never contact a shared store.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use quipu_contract::{Actor, Fail, Form, Language, Tokens};
use quipu_protocol::worldlog::read_task;
use quipu_protocol::{
    Caller, Project, ReadScope, StartRequest, find_session, load_captured, load_formed, quoted,
    read_manifest, record_compaction, resolve_form, start,
};
use quipu_store::{Change, Options};
use quipu_text::Counter;
use serde_json::json;

use super::UNJUDGED;
use super::call::{Call, Deed, Unread};
use super::manner::Manner;
use super::verdict::Judge;
use super::{after, capture, gate, subagent};
use crate::answer::{Answer, Failure, exit, in_language};
use crate::integrate::notices;
use crate::session::{PERSON, Session, language_at};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Event {
    /// Show the agent the state of the project
    SessionStart,
    /// Show a subagent what it may do; register it under a name of its own
    SubagentStart,
    /// Record the user's request
    Prompt,
    /// Deny an edit that the contract forbids, and record what is changed
    PreTool,
    /// Report files that break the contract after a tool has run
    PostTool,
    /// Adopt the files on disk before the context is compacted
    PreCompact,
    /// Record the last message; stop an agent that changed something from ending without `finish`
    Stop,
}

/// The answer format that the host requested.
#[derive(Debug, Clone, Copy)]
pub struct HookArguments {
    /// The token budget of the start text.
    pub budget: u64,
    /// Answers are fields of one JSON object.
    pub in_fields: bool,
    /// The host does not show the output of a start to its model.
    pub is_unheard: bool,
}

/// Handles an event. An error here is never a denial, unless the contract requires it for edits.
pub fn hear(
    event: Event,
    said: Result<String, String>,
    arguments: HookArguments,
    session: &Session,
) -> Answer {
    let call = said
        .map_err(Unread::Malformed)
        .and_then(|text| Call::parse(&text));
    let cwd = call
        .as_ref()
        .ok()
        .and_then(|c| c.cwd.clone())
        .filter(|c| c.is_dir())
        .unwrap_or_else(|| session.folder.clone());
    let cwd = std::fs::canonicalize(&cwd).unwrap_or(cwd);
    let manner = Manner::of(
        arguments.in_fields,
        call.as_ref().ok().and_then(|call| call.event.as_deref()),
    );
    // No host sends such a message by itself, so it is denied: it may hide something.
    if let (Event::PreTool, Err(Unread::Tool(what)), Ok(_)) =
        (event, &call, Project::find_root(&cwd))
    {
        let failure = Failure::new(
            exit::REFUSED,
            what.clone(),
            "call the tool with its own fields, as plain JSON values",
        );
        return manner.denied(&failure.in_language(language_of_call(&cwd, session)));
    }
    let unread = |unread| match unread {
        Unread::Malformed(what) | Unread::Tool(what) => Failure::usage(what, ""),
    };
    let heard = call.map_err(unread).and_then(|call| match event {
        Event::SubagentStart => subagent::start(&call, manner, &cwd, session),
        Event::SessionStart if call.subagent.is_some() => {
            subagent::start(&call, manner, &cwd, session)
        }
        // What a subagent is asked and says is between it and its parent, which the gate holds.
        Event::Prompt | Event::Stop if call.subagent.is_some() => Ok(manner.nothing()),
        Event::SessionStart => session_start(&call, manner, &cwd, arguments, session),
        Event::Prompt => capture::prompt(&call, manner, &cwd, session)
            .and_then(|answer| reminded(answer, &call, manner, &cwd, arguments, session)),
        Event::PreTool => pre_tool(&call, manner, &cwd, session),
        Event::PostTool => {
            let _ = subagent::delegating(&call, &cwd, session, false);
            let report = after::post_tool(&call, manner, &cwd, session);
            reminded(report, &call, manner, &cwd, arguments, session)
        }
        Event::PreCompact => pre_compact(&call, manner, &cwd, session),
        Event::Stop => gate::stop(&call, manner, &cwd, session),
    });
    heard.unwrap_or_else(|failure| {
        let language = language_of_call(&cwd, session);
        let failure = failure.in_language(language);
        if event == Event::PreTool && fail_of(&cwd) == Fail::Closed {
            return manner.denied(&failure).say(in_language(
                language,
                "quipu could not check this edit, and the contract says: hooks fail = \"closed\"",
                "quipu 无法检查这次编辑，而契约规定：hooks fail = \"closed\"",
            ));
        }
        let mut answer = Answer::new(failure.json(), "").say(failure.render());
        answer.exit = UNJUDGED;
        answer.say(in_language(
            language,
            "quipu could not process this event; the host continues",
            "quipu 无法处理这个事件；宿主程序继续运行",
        ))
    })
}

/// The language of the project that a call is about.
fn language_of_call(cwd: &Path, session: &Session) -> Language {
    match Project::find_root(cwd) {
        Ok(root) => language_at(&root),
        Err(_) => session.language(),
    }
}

/// The contract's setting for edits that cannot be judged, even if the contract itself has faults.
fn fail_of(cwd: &Path) -> Fail {
    let Ok(root) = Project::find_root(cwd) else {
        return Fail::Open;
    };
    match Project::load_contract(&root) {
        Ok(contract) => contract.hook_fail,
        Err(_) => read_manifest(&root).map_or(Fail::Open, |text| {
            Fail::from_broken_text(&String::from_utf8_lossy(&text))
        }),
    }
}

/// The project of a session. None is not an error: the hooks may be installed for every folder. A
/// host waits for its hooks, so a shared store is never contacted, and a working copy is judged by
/// its local state.
pub(super) fn project_at(cwd: &Path, session: &Session) -> Result<Option<Project>, Failure> {
    match Project::find_root(cwd).or_else(|_| Project::find_root(&session.folder)) {
        Ok(root) => Ok(Some(Project::open(
            &root,
            Options {
                offline: true,
                ..Options::default()
            },
        )?)),
        Err(_) => Ok(None),
    }
}

/// Whether this is a working copy, in which a hook cannot commit.
pub(super) fn is_offline(project: &Project) -> bool {
    project
        .store
        .commit_log()
        .is_some_and(|order| order.offline().is_some())
}

/// In a working copy the hook cannot record that a session begins, but the agent can.
fn begin_yourself(project: &Project) -> String {
    match (is_offline(project), project.contract.language) {
        (false, _) => String::new(),
        (true, Language::En) => {
            "\nThis project is in a shared store, and this text may be out of date. First run: \
             quipu start\n"
                .to_owned()
        }
        (true, Language::Zh) => {
            "\n本项目使用共享存储，以上内容可能不是最新。请先执行：quipu start\n".to_owned()
        }
    }
}

fn session_start(
    call: &Call,
    manner: Manner,
    cwd: &Path,
    arguments: HookArguments,
    session: &Session,
) -> Result<Answer, Failure> {
    let Some(project) = project_at(cwd, session)? else {
        return Ok(manner.nothing());
    };
    let actor = &session.actor;
    let source = call.source.as_deref().unwrap_or("startup");
    let caller = Caller {
        is_startup: source == "startup",
        has_forgotten: matches!(source, "compact" | "clear"),
        replaces: source == "clear",
        is_heard: !arguments.is_unheard,
        ..Caller::hook(actor, call.conversation.as_deref())
    };
    let counter = Counter::O200k;
    let task = task_at_hand(&project, actor, arguments.budget / 2, counter);
    let budget = Tokens(arguments.budget.saturating_sub(counter.count(&task).0));
    let peek = is_offline(&project);
    let given = caller.session.clone();
    let awake = start(
        &project,
        actor,
        &StartRequest {
            budget,
            scene: None,
            delegation: None,
            task: None,
            suspect: None,
            peek,
            full: false,
            notices: notices(&project),
            caller,
        },
    )?;
    let is_remembered = remember_name(
        actor,
        awake
            .session
            .as_ref()
            .map(|begun| begun.id.clone())
            .or(given)
            .filter(|_| *actor != Actor::Person),
    );
    if arguments.is_unheard {
        return Ok(manner.nothing());
    }
    let text = match awake.continues && source != "compact" && source != "clear" {
        true => awake.text,
        false if is_remembered => task + &awake.text + &begin_yourself(&project),
        false => named(
            &project,
            actor,
            &(task + &awake.text + &begin_yourself(&project)),
        ),
    };
    Ok(manner.answer(call.event.as_deref(), text))
}

/// The answer to an event after a compaction: everything that the agent has forgotten, unless its
/// host has started the session again since.
fn reminded(
    answer: Answer,
    call: &Call,
    manner: Manner,
    cwd: &Path,
    arguments: HookArguments,
    session: &Session,
) -> Result<Answer, Failure> {
    // A report on broken files goes first; what was forgotten comes with the next event.
    let is_report = !answer.text.is_empty() && answer.text != "{}";
    if is_report || arguments.is_unheard || call.subagent.is_some() {
        return Ok(answer);
    }
    let Ok(Some(project)) = project_at(cwd, session) else {
        return Ok(answer);
    };
    let caller = Caller::hook(&session.actor, call.conversation.as_deref());
    let Some(open) = find_session(&project, &session.actor, &caller)? else {
        return Ok(answer);
    };
    let captured = load_captured(&project, &open)?;
    // A transcript is written once whole when a conversation begins.
    let rewrites = call.rewrites();
    let is_compacted = rewrites.is_some_and(|found| found > captured.rewrites.unwrap_or(1));
    if is_compacted && !is_offline(&project) && !project.store.is_read_only() {
        record_compaction(&project, &session.actor, &open, rewrites)?;
    } else if !captured.has_forgotten() {
        return Ok(answer);
    }
    let mut compacted = Call::default();
    compacted.source = Some("compact".into());
    compacted.event = call.event.clone();
    compacted.conversation = call.conversation.clone();
    session_start(&compacted, manner, cwd, arguments, session)
}

/// The current task process, if there is one: an agent must not lose it.
fn task_at_hand(project: &Project, actor: &Actor, room: u64, counter: Counter) -> String {
    let Ok(formed) = load_formed(project, actor, Form::Task) else {
        return String::new();
    };
    if formed.version.is_none() || read_task(&formed.text).is_none() {
        return String::new();
    }
    let title = match project.contract.language {
        Language::En => "Current task",
        Language::Zh => "当前任务",
    };
    let body = match counter.count(&formed.text).0 <= room {
        true => quoted(formed.text.trim_end()),
        false => "quipu task status".to_owned(),
    };
    format!("## {title}: {}\n\n{body}\n\n", formed.path)
}

/// Adds the agent's names to the commands in the text, so that they belong to this session. Without
/// them, a host that keeps no shell variables would run the commands without a name.
pub(super) fn named(project: &Project, actor: &Actor, text: &str) -> String {
    let flags = [
        ("--as", actor.role().map(ToString::to_string)),
        ("--unit", actor.unit().map(ToString::to_string)),
        ("--agent", actor.agent().map(ToString::to_string)),
    ];
    let flags: Vec<String> = flags
        .into_iter()
        .filter_map(|(flag, name)| Some(format!("{flag} {}", name?)))
        .collect();
    if flags.is_empty() {
        return text.to_owned();
    }
    let flags = flags.join(" ");
    let text = text.replace(
        "quipu finish <<'EOF'",
        &format!("quipu finish {flags} <<'EOF'"),
    );
    match project.contract.language {
        Language::En => {
            format!("{text}\nIn a shell, pass your identity with every call: quipu … {flags}\n")
        }
        Language::Zh => format!("{text}\n在终端里，每次调用都带上身份参数：quipu … {flags}\n"),
    }
}

/// Stores the agent's name and session for a host that keeps shell variables. Returns whether the
/// host does; for other hosts, the text contains the name.
fn remember_name(actor: &Actor, session: Option<String>) -> bool {
    let Some(file) = std::env::var_os("CLAUDE_ENV_FILE").map(PathBuf::from) else {
        return false;
    };
    let names = [
        ("QUIPU_ROLE", actor.role().map(ToString::to_string)),
        ("QUIPU_UNIT", actor.unit().map(ToString::to_string)),
        ("QUIPU_AGENT", actor.agent().map(ToString::to_string)),
        ("QUIPU_SESSION", session),
    ];
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    let lines = names
        .into_iter()
        .filter_map(|(variable, name)| Some(format!("export {variable}={}\n", name?)));
    let new: String = lines
        .filter(|line| !known.contains(line.as_str()))
        .collect();
    let opened = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file);
    opened.is_ok_and(|mut file| file.write_all(new.as_bytes()).is_ok())
}

/// Judging this many deeds is fast unless the disk is slow, which is not a fault of the call.
const QUICK_DEEDS: usize = 500;
/// Hosts wait longer than this.
const LONGEST: Duration = Duration::from_secs(20);

fn pre_tool(call: &Call, manner: Manner, cwd: &Path, session: &Session) -> Result<Answer, Failure> {
    let denied = |refusal: Failure| {
        let language = language_of_call(cwd, session);
        Ok(manner.denied(&refusal.in_language(language)))
    };
    if let Some(refusal) = subagent::refusal(call, cwd, session) {
        return denied(refusal);
    }
    if call.claims_person(cwd) && project_at(cwd, session)?.is_some() {
        return denied(Failure::new(
            exit::REFUSED,
            "an agent does not run Quipu as a person",
            format!("ask the user to run it, or omit the role `{PERSON}`"),
        ));
    }
    // Reports of the host are taken as they are: an agent could report words of the person.
    if call.quipu_commands(cwd).contains("hook") && project_at(cwd, session)?.is_some() {
        return denied(Failure::new(
            exit::REFUSED,
            "`quipu hook` is for the host, not for its agent",
            "omit it: the host calls its hooks itself",
        ));
    }
    let mut judge = Judge::new(session);
    let deeds = call.deeds(cwd);
    let others: Vec<PathBuf> = call
        .folders(cwd)
        .iter()
        .map(|folder| cwd.join(folder))
        .collect();
    let elsewhere = others.iter().flat_map(|folder| {
        call.deeds(folder)
            .into_iter()
            .map(move |deed| (deed, folder.as_path()))
    });
    let mut unjudged = None;
    let begun = Instant::now();
    for (at, (deed, folder)) in deeds
        .iter()
        .map(|deed| (deed.clone(), cwd))
        .chain(elsewhere)
        .enumerate()
    {
        // A host that has waited too long continues without an answer.
        let deed = if at >= QUICK_DEEDS && begun.elapsed() > LONGEST {
            Deed::TooMuch {
                what: "it takes too long".into(),
            }
        } else {
            deed
        };
        match judge.refusal(folder, &deed) {
            Ok(None) => {}
            Ok(Some(refusal)) => return denied(refusal),
            // If one deed cannot be judged, the others are still judged.
            Err(failure) => drop(unjudged.get_or_insert(failure)),
        }
    }
    if let Some(failure) = unjudged {
        return Err(failure);
    }
    // An allowed edit is never denied because it could not be recorded.
    let _ = subagent::delegating(call, cwd, session, true);
    let _ = capture::changed(call, &deeds, cwd, session);
    let _ = capture::called(call, cwd, session);
    Ok(manner.nothing())
}

/// The reasons for compaction that are journalled. Any other value is dropped.
const TRIGGERS: [&str; 2] = ["auto", "manual"];

fn pre_compact(
    call: &Call,
    manner: Manner,
    cwd: &Path,
    session: &Session,
) -> Result<Answer, Failure> {
    let Some(project) = project_at(cwd, session)? else {
        return Ok(manner.nothing());
    };
    if project.store.is_read_only() || is_offline(&project) {
        return Ok(manner.nothing());
    }
    // Adopt the agent's direct edits now, while the reason for them is still known.
    let mut scan = project.store.scan_status()?;
    ReadScope::of(&project, &session.actor).narrow(&mut scan);
    let task = resolve_form(&project, &session.actor, Form::Task).ok();
    let kept = task
        .as_ref()
        .and_then(|path| scan.files.iter().find(|f| f.path == path.as_str()));
    let note = json!({"hook": "pre-compact", "trigger": call.source.as_deref().filter(|source| TRIGGERS.contains(source)), "task": kept.map(|f| json!({"path": f.path, "version": f.version}))});
    let receipt = project
        .validate(
            Change::by(&session.actor)
                .why("before the context is compacted")
                .note(note.clone()),
        )?
        .publish()?;
    let caller = Caller::hook(&session.actor, call.conversation.as_deref());
    if call.subagent.is_none()
        && let Some(open) = find_session(&project, &session.actor, &caller)?
    {
        record_compaction(&project, &session.actor, &open, None)?;
    }
    let mut answer = manner.nothing().say(format!("saved as @{}", receipt.seq));
    answer.json = note;
    for file in scan.flagged() {
        answer = answer.say(format!("flagged: {}; quipu status", file.path));
    }
    Ok(answer)
}
