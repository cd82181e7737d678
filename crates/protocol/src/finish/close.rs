//! Finishing: compose, check, publish.

use quipu_contract::{Actor, Contract, Form, says_nothing};
use quipu_store::{LeaseToken, LogEntry, OpenSession, Receipt, Who};
use serde::Serialize;
use serde_json::json;

use super::check::{Missing, Outcome, check, may_write_form};
use super::left_behind::{LeftBehind, find_left_behind, tell_left_behind};
use super::{CLOSERS, Closing, Closure, Material};
use crate::capture::load_captured;
use crate::conversation::{Caller, find_session};
use crate::draft::{Draft, Made, Terms, revise};
use crate::project::Project;
use crate::state::add_completed;
use crate::work::WorkError;

/// What was said for files of these forms is kept in the journal where a project has none.
const IN_JOURNAL: [Form; 3] = [Form::Decisions, Form::Todos, Form::State];
/// How the reason of a finish begins in the journal.
pub(crate) const FINISH: &str = "finish: ";
/// How far back the journal is searched for what this session touched.
pub(super) const LOOK_BACK: usize = 2_000;

/// What a finish is asked to do.
#[derive(Debug, Clone, Default)]
pub struct Finish {
    pub material: Material,
    /// The task is given up, for this reason.
    pub abandon: Option<String>,
    pub dry_run: bool,
    /// The session to end; without it the one that the caller belongs to.
    pub session: Option<String>,
    /// Where the call comes from.
    pub caller: Caller,
    /// Unfinished sessions of others whose work was taken over.
    pub takes_over: Vec<String>,
    pub lease: Option<LeaseToken>,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Closed {
    Done {
        receipt: Receipt,
        session: Option<String>,
        /// Unfinished sessions that this finish closed besides.
        closed: Vec<OpenSession>,
        /// The memory files of this session, those of earlier commits included.
        paths: Vec<String>,
        /// Todos and decisions that were added.
        made: Vec<Made>,
    },
    /// Nothing was written.
    Missing(Vec<Missing>),
    /// Nothing was written: this is what would be.
    Would {
        difference: String,
        missing: Vec<Missing>,
    },
}

/// Ends a session: one commit of everything that was said, or a list of what is missing.
pub fn finish(project: &Project, actor: &Actor, asked: &Finish) -> Result<Closed, WorkError> {
    let mut asked = asked.clone();
    asked.takes_over.append(&mut asked.material.takes_over);
    asked.abandon = asked.abandon.or(asked.material.abandon.take());
    let sessions = project.store.sessions()?;
    for id in asked.takes_over.iter_mut().chain(&mut asked.session) {
        *id = whole_session_id(&sessions, id);
    }
    let asked = &asked;
    let session = resolve_session(project, &sessions, actor, asked)?;
    for id in &asked.takes_over {
        let Some(theirs) = sessions.iter().find(|s| s.id == *id) else {
            return Err(WorkError::not_found(
                format!("no session `{id}` is open"),
                "quipu start     (shows unfinished work)",
            ));
        };
        // A session that is ended asks nothing of its agent any more: only a successor in its role
        // may do that.
        let mine = Who::from(actor);
        if *actor != Actor::Person
            && (&theirs.who.role, &theirs.who.unit) != (&mine.role, &mine.unit)
        {
            let what = format!(
                "session `{id}` is of {}: {mine} is no successor of it",
                theirs.who
            );
            return Err(WorkError::refused(
                what,
                "a person, or the same role and unit, takes it over",
            ));
        }
    }
    for (flag, said) in [
        ("--did", &asked.material.did),
        ("--next", &asked.material.next),
    ] {
        if let Some(empty) = said.iter().find(|text| says_nothing(text)) {
            return Err(WorkError::usage(
                format!("{flag} \"{empty}\" says nothing"),
                format!("quipu finish {flag} \"…\", or leave it out"),
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
        // What a start laid out belongs to the session as well.
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
            (paths, draft.made.clone()),
            Terms {
                why,
                lease: asked.lease.clone(),
                ends: session.map(|s| s.id.clone()),
            },
        ))
    });
    let ((paths, made), receipt) = match outcome {
        Err(WorkError::Unfinished(missing)) => return Ok(Closed::Missing(missing)),
        other => other?,
    };
    // The finish is durable: if this fails, the next start merely shows the old session again.
    let is_ended = |left: &LeftBehind| project.store.end_session(actor, &left.session.id).is_ok();
    let closed = left_behind
        .into_iter()
        .filter(is_ended)
        .map(|left| left.session)
        .collect();
    Ok(Closed::Done {
        receipt,
        session: session.map(|s| s.id.clone()),
        closed,
        paths,
        made,
    })
}

/// Notes in the state, where the actor keeps one, what became of the sessions that this finish
/// closes.
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

/// Drafts what was said, and returns what is missing. `touched` are the files that the session
/// changed.
fn compose(
    draft: &mut Draft<'_>,
    asked: &Finish,
    session: Option<&OpenSession>,
    touched: Vec<String>,
) -> Result<Vec<Missing>, WorkError> {
    let contract = std::sync::Arc::clone(&draft.project.contract);
    let captured = session
        .map(|s| load_captured(draft.project, s))
        .transpose()?
        .unwrap_or_default();
    let closing = Closing {
        material: &asked.material,
        abandoned: asked.abandon.clone(),
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
                    "something was said for a file of the form `{form}`, and this project has none"
                );
                return Err(WorkError::usage(what, "quipu contract show"));
            }
            if is_said {
                draft.note = Some(json!({"finish": asked.material}));
            }
            continue;
        }
        // What a role may not write it need not close; if it tries to, the contract refuses it by
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
    // A project may drop the items that would tell it: what was said is not lost in silence.
    if let (true, Some((_, lacks))) = (
        missing.is_empty() && asked.abandon.is_none(),
        outcome.open.first(),
    ) && let Some(lack) = lacks.first().filter(|_| !asked.material.rest.is_empty())
    {
        return Err(WorkError::usage(lack.what.clone(), lack.command.clone()));
    }
    // Whoever gives up says so in the state and the todos; more cannot be asked.
    Ok(if asked.abandon.is_some() {
        Vec::new()
    } else {
        missing
    })
}

/// The id of the one open session that is meant by its beginning or its ending; else what was said.
fn whole_session_id(sessions: &[OpenSession], asked: &str) -> String {
    /// Fewer letters would hit a wrong session too easily.
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
                format!("no session `{id}` is open: it was finished, or never begun"),
                "quipu log",
            )
        };
        return open(id).map(Some).ok_or_else(missing);
    }
    let mine = Who::from(actor);
    Ok(match find_session(project, actor, &asked.caller)? {
        Some(found) => open(&found.id),
        // A conversation that was finished and has not gone on ends no other.
        None if asked.caller.session.is_some() => None,
        None => sessions.iter().rfind(|s| s.who == mine),
    })
}

/// What this actor, or a hand outside Quipu, changed since a session began.
fn touched(
    project: &Project,
    actor: &Actor,
    session: &OpenSession,
) -> Result<Vec<String>, WorkError> {
    let mine = Who::from(actor);
    let is_own = |e: &LogEntry| {
        e.seq > session.seq
            && (e.who == mine || e.who == Who::outside())
            && e.kind != quipu_store::Kind::Lease
    };
    let recent = project.store.recent(LOOK_BACK)?;
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

/// Whether a project has no file for some of what was said, so that only the journal keeps it.
pub fn is_in_journal_only(contract: &Contract, material: &Material) -> bool {
    let has_none = |form: &Form| contract.of_form(*form).next().is_none();
    CLOSERS.iter().any(|closer| {
        IN_JOURNAL.contains(&closer.forms[0])
            && has_none(&closer.forms[0])
            && (closer.is_said)(material)
    })
}

/// Everything that was said in words, for a project whose files have no place for it.
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

/// What the journal says of it.
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
    crate::quoting::headline(said).into_owned()
}
