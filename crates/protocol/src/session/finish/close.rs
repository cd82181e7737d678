//! Finishes a session: composes the change, checks it, and commits it.
//!
//! A finish is one commit. If an item of the checklist is missing, nothing is written.

use quipu_contract::{Actor, Contract, Form, says_nothing};
use quipu_store::{LeaseToken, LogEntry, OpenSession, Receipt, Who};
use serde::Serialize;
use serde_json::json;

use super::check::{Missing, Outcome, check, may_write_form};
use super::left_behind::{LeftBehind, find_left_behind, tell_left_behind};
use super::{CLOSERS, Closing, Closure, Material};
use crate::files::edit::{Draft, Made, Terms, revise};
use crate::project::open::Project;
use crate::session::capture::load_captured;
use crate::session::conversation::{Caller, find_newest, find_session};
use crate::session::error::WorkError;
use crate::session::state::add_completed;
use crate::session::subagent::{find_parent, refuse_finish};

/// If a project has no file of these forms, the journal stores what the finish says for them.
const IN_JOURNAL: [Form; 3] = [Form::Decisions, Form::Todos, Form::State];
/// The prefix of a finish's reason in the journal.
pub(crate) const FINISH: &str = "finish: ";
/// How many records back the journal is searched for files that this session changed.
pub(super) const LOOK_BACK: usize = 2_000;

#[derive(Debug, Clone, Default)]
pub struct Finish {
    pub material: Material,
    /// The reason for which the task is abandoned.
    pub abandon: Option<String>,
    pub dry_run: bool,
    /// The session to end. Default: the session of the caller.
    pub session: Option<String>,
    pub caller: Caller,
    /// Unfinished sessions of other agents that this finish takes over.
    pub takes_over: Vec<String>,
    pub lease: Option<LeaseToken>,
    /// The calls since the task started, this one included, if they were counted.
    pub calls: Option<u32>,
}

/// The result of a finish.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Closed {
    Done {
        receipt: Box<Receipt>,
        session: Option<String>,
        /// Other unfinished sessions that this finish closed.
        closed: Vec<OpenSession>,
        /// The memory files of this session, including those of earlier commits.
        paths: Vec<String>,
        /// Todos and decisions that were added.
        made: Vec<Made>,
        /// Earlier next steps that this finish replaced.
        dropped_steps: Vec<String>,
    },
    Missing(Vec<Missing>),
    /// Dry run: the changes that would be written.
    Would {
        difference: String,
        missing: Vec<Missing>,
    },
}

/// Ends a session. Returns one commit of everything in the finish, or the list of missing items.
pub fn finish(project: &Project, actor: &Actor, asked: &Finish) -> Result<Closed, WorkError> {
    let mut asked = asked.clone();
    asked.takes_over.append(&mut asked.material.takes_over);
    asked.abandon = asked.abandon.or(asked.material.abandon.take());
    let sessions = project.store.sessions()?;
    if let Some(parent) = find_parent(project, actor)? {
        return Err(refuse_finish(&parent));
    }
    for id in asked.takes_over.iter_mut().chain(&mut asked.session) {
        *id = whole_session_id(&sessions, id);
    }
    let asked = &asked;
    let session = resolve_session(project, &sessions, actor, asked)?;
    for id in &asked.takes_over {
        let Some(theirs) = sessions.iter().find(|s| s.id == *id) else {
            return Err(WorkError::not_found(
                format!("session `{id}` is not open"),
                "quipu start     (shows unfinished work)",
            ));
        };
        // Ending a session releases its agent from all duties, so only a successor in the same role
        // may do that.
        let mine = Who::from(actor);
        if *actor != Actor::Person
            && (&theirs.who.role, &theirs.who.unit) != (&mine.role, &mine.unit)
        {
            let what = format!(
                "session `{id}` belongs to {}: {mine} may not take it over",
                theirs.who
            );
            return Err(WorkError::refused(
                what,
                "a person, or an agent with the same role and unit, may take it over",
            ));
        }
    }
    for (flag, said) in [
        ("--did", &asked.material.did),
        ("--next", &asked.material.next),
    ] {
        if let Some(empty) = said.iter().find(|text| says_nothing(text)) {
            return Err(WorkError::usage(
                format!("{flag} \"{empty}\" contains no text"),
                format!("quipu finish {flag} \"…\", or omit it"),
            ));
        }
    }
    let left_behind = find_left_behind(project, actor, &asked.takes_over, session, &sessions)?;
    if asked.dry_run {
        let mut draft = Draft::new(project, actor);
        let touched = session
            .map(|s| touched(project, actor, s))
            .transpose()?
            .unwrap_or_default();
        let missing = compose(&mut draft, asked, session, touched)?;
        if missing.is_empty() {
            record_left_behind(&mut draft, &left_behind)?;
        }
        return Ok(Closed::Would {
            difference: draft.difference(),
            missing,
        });
    }
    let outcome = revise(project, actor, |draft| {
        let mut paths = session
            .map(|s| touched(project, actor, s))
            .transpose()?
            .unwrap_or_default();
        let missing = compose(draft, asked, session, paths.clone())?;
        if !missing.is_empty() {
            return Err(WorkError::Unfinished(missing));
        }
        record_left_behind(draft, &left_behind)?;
        let mut why = match &asked.abandon {
            Some(why) => format!("abandon: {why}"),
            None if draft.note.is_some() => format!("{FINISH}{}", summary(&asked.material)),
            None => format!("{FINISH}{}", headline(&asked.material)),
        };
        for left in &left_behind {
            why.push_str(&format!(
                "; closed {} of {}",
                left.session.id, left.session.who
            ));
        }
        paths.extend(draft.changed().map(|p| p.as_str().to_owned()));
        // Files that `start` created belong to the session as well.
        let laid = project
            .contract
            .files
            .iter()
            .filter(|r| r.create)
            .filter_map(|r| r.path.as_literal());
        paths.extend(
            laid.filter(|p| project.store.root().join(p).is_file())
                .map(str::to_owned),
        );
        paths.sort();
        paths.dedup();
        Ok((
            (paths, draft.made.clone(), draft.dropped_steps.clone()),
            Terms {
                why,
                lease: asked.lease.clone(),
                ends: session.map(|s| s.id.clone()),
            },
        ))
    });
    let ((paths, made, dropped_steps), receipt) = match outcome {
        Err(WorkError::Unfinished(missing)) => return Ok(Closed::Missing(missing)),
        other => other?,
    };
    // The finish is already durable. If this fails, the next start only shows the old session
    // again.
    let is_ended = |left: &LeftBehind| project.store.end_session(actor, &left.session.id).is_ok();
    let closed = left_behind
        .into_iter()
        .filter(is_ended)
        .map(|left| left.session)
        .collect();
    Ok(Closed::Done {
        receipt: Box::new(receipt),
        session: session.map(|s| s.id.clone()),
        closed,
        paths,
        made,
        dropped_steps,
    })
}

/// Records in the state what became of the sessions that this finish closes, if the actor writes
/// one.
fn record_left_behind(draft: &mut Draft<'_>, left_behind: &[LeftBehind]) -> Result<(), WorkError> {
    let language = draft.project.contract.language;
    let lines: Vec<String> = left_behind
        .iter()
        .filter(|left| left.has_left_work)
        .map(|left| tell_left_behind(left, language))
        .collect();
    let has_state = draft.project.contract.of_form(Form::State).next().is_some()
        && may_write_form(draft, Form::State);
    if lines.is_empty() || !has_state {
        return Ok(());
    }
    add_completed(draft, &lines)
}

/// Drafts the contents of the finish and returns the missing items. `touched` are the files that
/// the session changed.
fn compose(
    draft: &mut Draft<'_>,
    asked: &Finish,
    session: Option<&OpenSession>,
    touched: Vec<String>,
) -> Result<Vec<Missing>, WorkError> {
    let contract = std::sync::Arc::clone(&draft.project.contract);
    draft.at_finish = true;
    let captured = session
        .map(|s| load_captured(draft.project, s))
        .transpose()?
        .unwrap_or_default();
    let closing = Closing {
        material: &asked.material,
        abandoned: asked.abandon.clone(),
        calls: asked.calls,
        session,
        touched,
        captured,
    };
    let mut outcome = Outcome::default();
    for closer in CLOSERS {
        let form = closer.forms[0];
        let is_said = (closer.is_said)(&asked.material);
        if contract.of_form(form).next().is_none() {
            if is_said && !IN_JOURNAL.contains(&form) {
                let what = format!(
                    "an entry needs a file of the form `{form}`, and this project has none"
                );
                return Err(WorkError::usage(what, "quipu contract show"));
            }
            if is_said {
                draft.note = Some(json!({"finish": asked.material}));
            }
            continue;
        }
        // A role need not close a form that it may not write. If it tries, the contract refuses by
        // name.
        if !is_said && !may_write_form(draft, form) {
            continue;
        }
        match (closer.close)(draft, &closing)? {
            Closure::Left => {}
            Closure::Closed => outcome.closed.extend(closer.forms),
            Closure::Lacks(lacks) => outcome.open.push((closer.forms, lacks)),
        }
    }
    let missing = check(draft, &closing, &outcome)?;
    // A project may drop the checklist items that would report this. Report it here, so that no
    // input is lost silently.
    if let (true, Some((_, lacks))) = (
        missing.is_empty() && asked.abandon.is_none(),
        outcome.open.first(),
    ) && let Some(lack) = lacks.first().filter(|_| !asked.material.rest.is_empty())
    {
        return Err(WorkError::usage(lack.what.clone(), lack.command.clone()));
    }
    // An agent that abandons the task records it in the state and the todos. Nothing more is
    // required.
    Ok(if asked.abandon.is_some() {
        Vec::new()
    } else {
        missing
    })
}

/// Resolves a session id from its beginning or ending, if exactly one open session matches.
/// Otherwise returns the input.
fn whole_session_id(sessions: &[OpenSession], asked: &str) -> String {
    /// Shorter input would match a wrong session too easily.
    const LEAST: usize = 4;
    let is_meant = |session: &&OpenSession| {
        let bare = session.id.strip_prefix("s-").unwrap_or(&session.id);
        let asked = asked.strip_prefix("s-").unwrap_or(asked);
        asked.len() >= LEAST && (bare.starts_with(asked) || bare.ends_with(asked))
    };
    let mut meant = sessions.iter().filter(is_meant);
    meant
        .next()
        .filter(|_| meant.next().is_none())
        .map_or_else(|| asked.to_owned(), |session| session.id.clone())
}

fn resolve_session<'s>(
    project: &Project,
    sessions: &'s [OpenSession],
    actor: &Actor,
    asked: &Finish,
) -> Result<Option<&'s OpenSession>, WorkError> {
    let open = |id: &String| sessions.iter().find(|s| s.id == *id);
    if let Some(id) = &asked.session {
        let missing = || {
            WorkError::not_found(
                format!("session `{id}` is not open: it was finished, or never started"),
                "quipu log",
            )
        };
        return open(id).map(Some).ok_or_else(missing);
    }
    Ok(match find_session(project, actor, &asked.caller)? {
        Some(found) => open(&found.id),
        // A conversation that has finished and not continued ends no other session.
        None if asked.caller.session.is_some() => None,
        None => find_newest(project, actor)?.and_then(|newest| open(&newest.id)),
    })
}

/// Files that this actor or an external edit changed since the session began.
fn touched(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
) -> Result<Vec<String>, WorkError> {
    let mine = Who::from(actor);
    let is_own = |e: &LogEntry| {
        e.seq > session.seq
            && (e.who == mine || e.who == Who::external())
            && e.kind != quipu_store::Kind::Lease
    };
    let recent = project
        .store
        .recent_until(LOOK_BACK, &mut |entry| entry.seq <= session.seq)?;
    let mut paths: Vec<String> = recent
        .iter()
        .filter(|e| is_own(e))
        .flat_map(|e| e.paths.clone())
        .collect();
    paths.retain(|p| !p.starts_with("session "));
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Whether the project has no file for some of the material, so that only the journal stores it.
pub fn is_in_journal_only(contract: &Contract, material: &Material) -> bool {
    let has_none = |form: &Form| contract.of_form(*form).next().is_none();
    CLOSERS.iter().any(|closer| {
        IN_JOURNAL.contains(&closer.forms[0])
            && has_none(&closer.forms[0])
            && (closer.is_said)(material)
    })
}

/// Joins all texts of the material, for a project that has no file for them.
fn summary(material: &Material) -> String {
    let mut parts: Vec<String> = material
        .did
        .iter()
        .chain(&material.in_progress)
        .chain(&material.notes)
        .chain(&material.facts)
        .cloned()
        .collect();
    parts.extend(
        material
            .decisions
            .iter()
            .map(|decision| format!("decided: {}", decision.title)),
    );
    parts.extend(
        material
            .todos
            .add
            .iter()
            .map(|todo| format!("todo: {}", todo.title)),
    );
    parts.extend(material.next.iter().map(|next| format!("next: {next}")));
    if parts.is_empty() {
        headline(material)
    } else {
        parts.join("; ")
    }
}

/// The reason recorded in the journal.
fn headline(material: &Material) -> String {
    let told = |key: &str| material.rest.get(key).and_then(serde_json::Value::as_str);
    let said = material
        .did
        .first()
        .or(material.in_progress.as_ref())
        .or(material.notes.first())
        .map(String::as_str);
    let said = said
        .or_else(|| told("solution"))
        .or_else(|| told("problem"))
        .unwrap_or("session");
    crate::files::quote::headline(said).into_owned()
}
