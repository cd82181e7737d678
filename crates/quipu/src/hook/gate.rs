//! The stop gate: an agent that changed something has to leave a finish for the next agent before
//! it stops.
//!
//! The gate holds only a session with changes since it began or was last finished, and at most
//! twice. After that the agent may stop, and the journal records that the session is not finished.

use std::path::Path;

use quipu_contract::{Actor, Language, in_one_line};
use quipu_protocol::{
    Caller, Captured, Closed, Finish, Project, find_session, finish, finish_template,
    load_captured, record_gate, record_last_message,
};
use quipu_store::{Kind, OpenSession, Who};
use serde_json::{Value, json};

use super::call::Call;
use super::capture::last_message;
use super::events::{is_offline, named, project_at};
use super::manner::Manner;
use crate::answer::{Answer, Failure};
use crate::session::Session;

/// How often an agent is held before it may stop.
const MOST_REFUSALS: u32 = 2;
/// How many records of the journal are searched for the agent's commits.
const LOOK_BACK: usize = 2_000;
/// How the gate's message begins. A host may pass it on as a request of the user.
const ASKS: [&str; 2] = [
    "This session changed files and is not finished. Before you stop, fill in this command and \
     run it:",
    "本次会话改动了文件，尚未收尾。停止之前，请填好并执行以下命令：",
];

/// Whether a text is the gate's own message.
pub fn is_of_gate(text: &str) -> bool {
    ASKS.iter().any(|asks| text.trim_start().starts_with(asks))
}

pub fn stop(call: &Call, manner: Manner, cwd: &Path, session: &Session) -> Result<Answer, Failure> {
    let Some(project) = project_at(cwd, session)? else {
        return Ok(manner.nothing());
    };
    let actor = &session.actor;
    let caller = Caller::hook(actor, call.conversation.as_deref());
    let Some(open) = find_session(&project, actor, &caller)? else {
        return Ok(manner.nothing());
    };
    let captured = load_captured(&project, &open)?;
    let can_record = !is_offline(&project) && !project.store.is_read_only();
    if can_record {
        record_last_message(&project, actor, &open, last_message(call).as_deref())?;
    }
    if call.is_broken_off
        || captured.is_let_go
        || !(captured.has_changed || has_committed(&project, actor, &open)?)
    {
        return Ok(manner.nothing());
    }
    let Some(lacks) = find_lacks(&project, actor, &open)? else {
        return Ok(manner.nothing());
    };
    judge(
        call,
        manner,
        &project,
        actor,
        (&open, &captured),
        &lacks,
        can_record,
    )
}

fn judge(
    call: &Call,
    manner: Manner,
    project: &Project,
    actor: &Actor,
    (open, captured): (&OpenSession, &Captured),
    lacks: &Lacks,
    can_record: bool,
) -> Result<Answer, Failure> {
    // If nothing can be recorded, hold an agent only if its host reports that it was not held
    // before.
    if !can_record && call.again != Some(false) {
        return Ok(manner.nothing());
    }
    if can_record && captured.refusals >= MOST_REFUSALS {
        let why = format!(
            "stopped without a finish: {} missing",
            in_one_line(&lacks.names.join(", "))
        );
        record_gate(project, actor, open, true, &why)?;
        return Ok(manner.nothing().say(format!(
            "allowed to stop without a finish; missing: {}",
            lacks.names.join(", ")
        )));
    }
    if can_record {
        record_gate(
            project,
            actor,
            open,
            false,
            "blocked at the stop gate: the session is not finished",
        )?;
    }
    let asks = ASKS[usize::from(project.contract.language == Language::Zh)];
    let told = named(
        project,
        actor,
        &format!("{asks}\n{}{}", lacks.text, finish_template(project, actor)),
    );
    Ok(manner.held(lacks.missing.clone(), told.trim_end()))
}

/// Whether the agent committed something since its session began.
fn has_committed(project: &Project, actor: &Actor, open: &OpenSession) -> Result<bool, Failure> {
    let mine = Who::from(actor);
    let recent = project
        .store
        .recent_until(LOOK_BACK, &mut |entry| entry.seq <= open.seq)?;
    let is_own = |kind: Kind| !matches!(kind, Kind::Lease | Kind::Note);
    Ok(recent
        .iter()
        .any(|entry| entry.seq > open.seq && entry.who == mine && is_own(entry.kind)))
}

/// The parts that a finish would lack.
struct Lacks {
    names: Vec<String>,
    missing: Value,
    /// The error that prevents a check of the finish, if there is one.
    text: String,
}

fn find_lacks(
    project: &Project,
    actor: &Actor,
    open: &OpenSession,
) -> Result<Option<Lacks>, Failure> {
    let asked = Finish {
        dry_run: true,
        session: Some(open.id.clone()),
        ..Finish::default()
    };
    Ok(match finish(project, actor, &asked) {
        Ok(Closed::Would { missing, .. } | Closed::Missing(missing)) if !missing.is_empty() => {
            let names = missing.iter().map(|m| m.name.clone()).collect();
            Some(Lacks {
                names,
                text: String::new(),
                missing: json!(missing),
            })
        }
        Ok(_) => None,
        // An error that prevents the check also prevents the finish, so the agent has to fix it.
        Err(error) => {
            let failure = Failure::from(error).in_language(project.contract.language);
            Some(Lacks {
                names: vec![failure.what.clone()],
                text: format!("{}\n", failure.render()),
                missing: json!([failure.json()]),
            })
        }
    })
}
