//! Closes a task at a finish: drafts the record, the counts and the cleared task process in one
//! change.
//!
//! `closing.rs` computes the texts; `world.rs` drafts the world.

use quipu_contract::{Actor, Form, ProjectPath};
use serde::Deserialize;
use serde_json::Value;

use super::closing::{TaskReport, WorldChange, compose_session};
use super::knowledge::{Pattern, add_lesson, put_pattern, read_knowledge, recount};
use super::names::bare_step;
use super::past::{load_sessions, load_sessions_of};
use super::raw::one_line;
use super::session::{Outcome, Session, nth_name, render_session};
use super::task::{clear_task, read_task};
use crate::files::edit::Draft;
use crate::files::read::ReadError;
use crate::project::forms::{folders_of, label, resolve_form, template_of};
use crate::project::open::Project;
use crate::project::times::{now, render_moment};
use crate::session::error::WorkError;
use crate::session::finish::{Closing, Closure};

/// The keys of the material about a task.
pub(crate) const TASK_KEYS: &[&str] = &[
    "problem",
    "solution",
    "rounds",
    "pattern",
    "learnt",
    "lesson",
    "cause",
    "cure",
    "improvement",
    "outcome",
];
/// The keys of the material about the world, lists of `Section/key=value`: changed facts, and values of
/// others that they knowingly replace.
pub(crate) const WORLD_KEYS: &[&str] = &["world", "replaces"];

/// The task part of the material, as in a material file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    problem: Option<String>,
    solution: Option<String>,
    pattern: Option<String>,
    learnt: Option<String>,
    lesson: Option<String>,
    cause: Option<String>,
    cure: Option<String>,
    improvement: Option<String>,
    outcome: Outcome,
    world: Vec<String>,
    replaces: Vec<String>,
}

pub(super) fn read_said(closing: &Closing<'_>) -> Result<TaskReport, WorkError> {
    let told: Told =
        serde_json::from_value(Value::Object(closing.material.rest.clone())).map_err(|e| {
            WorkError::usage(
                format!("the report about the task is invalid: {e}"),
                "quipu finish --help",
            )
        })?;
    let facts = |name: &str, texts: &[String]| {
        let fact = |text: &String| {
            WorldChange::parse(text).ok_or_else(|| {
                WorkError::usage(
                    format!("`{text}` is not a fact"),
                    format!("--{name} \"Section/key=value\""),
                )
            })
        };
        texts.iter().map(fact).collect::<Result<Vec<_>, _>>()
    };
    let mut said = TaskReport {
        outcome: told.outcome,
        problem: told.problem,
        solution: told.solution,
        pattern: told.pattern,
        rounds: closing.calls,
        learnt: told.learnt,
        experience: told.lesson,
        cause: told.cause,
        cure: told.cure,
        improvement: told.improvement,
        world: facts("world", &told.world)?,
        replaces: facts("replaces", &told.replaces)?,
    };
    if let Some(why) = &closing.abandoned {
        (said.outcome, said.solution) = (Outcome::Abandoned, Some(why.clone()));
    }
    Ok(said)
}

/// The caller's own file of a form. A person has none; an agent without a name must give one.
pub(super) fn own_file(draft: &Draft<'_>, form: Form) -> Result<Option<ProjectPath>, WorkError> {
    match resolve_form(draft.project, draft.actor, form) {
        Ok(path) => Ok(Some(path)),
        Err(WorkError::NoForm(_)) => Ok(None),
        Err(WorkError::WhichAgent { .. }) if *draft.actor == Actor::Person => Ok(None),
        Err(error) => Err(error),
    }
}

/// Records the task, updates the agent's counts, and clears its task process.
pub(crate) fn close_task(
    draft: &mut Draft<'_>,
    closing: &Closing<'_>,
) -> Result<Closure, WorkError> {
    let said = read_said(closing)?;
    let process = own_file(draft, Form::Task)?;
    let text = process
        .as_ref()
        .map(|path| draft.text(path))
        .transpose()?
        .unwrap_or_default();
    let is_idle = read_task(&text).is_none() && said.problem.is_none();
    if is_idle && closing.abandoned.is_some() {
        return Ok(Closure::Closed);
    }
    // A record that was written directly only has to be counted.
    let written = is_idle && said.solution.is_none() && closing.has_created(draft, Form::Session);
    let mut session = None;
    if !written {
        let moment = render_moment(now(&draft.project.store));
        match compose_session(
            &text,
            &said,
            &label(draft.actor),
            &moment,
            draft.project.contract.language,
        ) {
            Ok(composed) => session = Some(draft_record(draft, composed)?),
            Err(lacks) => return Ok(Closure::Lacks(lacks)),
        }
    }
    count_task(draft, &said, session.as_ref())?;
    if let Some(path) = process
        && !text.is_empty()
    {
        let template = template_of(draft.project, &path)?;
        draft.replace(&path, clear_task(&text, &template)?)?;
    }
    Ok(Closure::Closed)
}

/// Drafts the record under a free name: `NAME`, `NAME-2`, … If the name is taken before the commit,
/// the whole composition is repeated with the next name.
fn draft_record(draft: &mut Draft<'_>, mut session: Session) -> Result<Session, WorkError> {
    let folder = folders_of(draft.project, Form::Session)
        .into_iter()
        .next()
        .unwrap_or_default();
    let stem = session.name.clone();
    let path_of = |nth: u32| {
        let name = nth_name(&stem, nth);
        let file = if folder.is_empty() {
            format!("{name}.md")
        } else {
            format!("{folder}/{name}.md")
        };
        ProjectPath::parse(&file).map_err(ReadError::Path)
    };
    let nth = first_free(|nth| -> Result<bool, WorkError> { draft.exists(&path_of(nth)?) })?;
    session.name = nth_name(&stem, nth);
    draft.replace(
        &path_of(nth)?,
        render_session(draft.project.contract.language, &session),
    )?;
    Ok(session)
}

/// Finds the first free number by exponential and binary search, because thousands of records may
/// share a name. If numbers in between were freed, it returns one of the free numbers.
fn first_free<E>(mut is_taken: impl FnMut(u32) -> Result<bool, E>) -> Result<u32, E> {
    let (mut taken, mut free) = (0, 1);
    while is_taken(free)? {
        (taken, free) = (free, free * 2);
    }
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        if is_taken(middle)? {
            taken = middle;
        } else {
            free = middle;
        }
    }
    Ok(free)
}

/// Updates the counts in the agent's knowledge, including the new session, and adds what it learnt.
fn count_task(
    draft: &mut Draft<'_>,
    said: &TaskReport,
    session: Option<&Session>,
) -> Result<(), WorkError> {
    let Some(path) = own_file(draft, Form::Knowledge)? else {
        return Ok(());
    };
    let language = draft.project.contract.language;
    let mut own = own_sessions(draft.project, draft.actor)?;
    own.extend(session.cloned());
    let mut text = draft.text_or_template(&path)?;
    if let (Some(session), Some(name)) = (session, said.learnt.as_deref()) {
        let known = read_knowledge(&text)
            .patterns
            .into_iter()
            .find(|p| super::knowledge::names_pattern(name, &p.name));
        if known.is_none() {
            let pattern = Pattern {
                name: name.trim().to_owned(),
                situation: session.problem.lines().next().map(str::to_owned),
                steps: session
                    .steps
                    .iter()
                    .map(|step| bare_step(step).to_owned())
                    .collect(),
                ..Pattern::default()
            };
            text = put_pattern(&text, language, &pattern)?;
        }
    }
    if let Some((session, lesson)) = session.and_then(|s| Some((s, s.experience.as_deref()?))) {
        text = add_lesson(
            &text,
            language,
            &one_line(lesson),
            std::slice::from_ref(&session.name),
        )?;
    }
    draft.replace(&path, recount(&text, language, &own)?)
}

/// The sessions of one agent, oldest first; all sessions for a caller without a name.
pub fn own_sessions(project: &Project, actor: &Actor) -> Result<Vec<Session>, WorkError> {
    let own = match actor.agent() {
        Some(agent) => load_sessions_of(project, actor, agent.as_str())?,
        None => load_sessions(project, actor)?,
    };
    Ok(own.into_iter().map(|(_, past)| past).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_name_is_found_in_few_looks() {
        for taken in [0, 1, 2, 3, 4, 7, 8, 9_999] {
            let mut looks = 0;
            let free = first_free(|nth| {
                looks += 1;
                Ok::<_, ()>(nth <= taken)
            });
            assert_eq!(free, Ok(taken + 1));
            assert!(looks <= 30, "{looks} looks for {taken}");
        }
    }
}
