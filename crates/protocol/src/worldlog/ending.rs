//! Closes a task at a finish: drafts the record, the counts, the world and the cleared task process
//! in one change.
//!
//! `closing.rs` computes the texts.

use quipu_contract::{Actor, Form, Occasion, ProjectPath};
use serde::Deserialize;
use serde_json::Value;

use super::closing::{TaskReport, WorldChange, compose_session, merge_world};
use super::knowledge::{Pattern, add_lesson, put_pattern, read_knowledge, recount};
use super::names::bare_step;
use super::past::load_sessions;
use super::raw::one_line;
use super::session::{Outcome, Session, nth_name, render_session};
use super::task::{clear_task, read_task};
use crate::files::edit::{Draft, load_formed};
use crate::files::read::ReadError;
use crate::project::forms::{folders_of, label, resolve_form, template_of};
use crate::project::open::Project;
use crate::project::times::{now, render_moment};
use crate::session::error::{WorkError, in_language};
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
/// The key of the material with changes to the world: a list of `Section/key=value`.
pub(crate) const WORLD_KEYS: &[&str] = &["world"];

/// The task part of the material, as in a material file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    problem: Option<String>,
    solution: Option<String>,
    rounds: Option<u32>,
    pattern: Option<String>,
    learnt: Option<String>,
    lesson: Option<String>,
    cause: Option<String>,
    cure: Option<String>,
    improvement: Option<String>,
    outcome: Outcome,
    world: Vec<String>,
}

fn read_said(closing: &Closing<'_>) -> Result<TaskReport, WorkError> {
    let told: Told =
        serde_json::from_value(Value::Object(closing.material.rest.clone())).map_err(|e| {
            WorkError::usage(
                format!("the report about the task is invalid: {e}"),
                "quipu finish --help",
            )
        })?;
    let world = |text: &String| {
        WorldChange::parse(text).ok_or_else(|| {
            WorkError::usage(
                format!("`{text}` is not a fact"),
                "--world \"Section/key=value\"",
            )
        })
    };
    let mut said = TaskReport {
        outcome: told.outcome,
        problem: told.problem,
        solution: told.solution,
        pattern: told.pattern,
        rounds: told.rounds,
        learnt: told.learnt,
        experience: told.lesson,
        cause: told.cause,
        cure: told.cure,
        improvement: told.improvement,
        world: told.world.iter().map(world).collect::<Result<_, _>>()?,
    };
    if let Some(why) = &closing.abandoned {
        (said.outcome, said.solution) = (Outcome::Abandoned, Some(why.clone()));
    }
    Ok(said)
}

/// The caller's own file of a form. A person has none; an agent without a name must give one.
fn own_file(draft: &Draft<'_>, form: Form) -> Result<Option<ProjectPath>, WorkError> {
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
    let agent = actor.agent().map(|agent| agent.as_str().to_lowercase());
    let is_own = |past: &Session| {
        agent.as_ref().is_none_or(|agent| {
            past.agent
                .as_ref()
                .is_some_and(|a| a.to_lowercase() == *agent)
        })
    };
    Ok(load_sessions(project, actor)?
        .into_iter()
        .map(|(_, past)| past)
        .filter(is_own)
        .collect())
}

/// Merges the task's changes into the world, with a line about this agent's last activity.
pub(crate) fn close_world(
    draft: &mut Draft<'_>,
    closing: &Closing<'_>,
) -> Result<Closure, WorkError> {
    let said = read_said(closing)?;
    let contract = std::sync::Arc::clone(&draft.project.contract);
    // The activity line must not pass for an answer to "what changed in the world?".
    let mut asked = contract
        .finish
        .iter()
        .filter(|item| item.form == Form::World && item.when != Occasion::Never);
    let is_answered =
        !said.world.is_empty() || asked.all(|item| closing.material.none.contains(&item.name));
    if !is_answered || own_file(draft, Form::World)?.is_none() {
        return Ok(Closure::Left);
    }
    let path = resolve_form(draft.project, draft.actor, Form::World)?;
    let is_record = |path: &&ProjectPath| {
        contract
            .rule(path)
            .is_some_and(|rule| rule.form == Some(Form::Session))
    };
    let record = draft
        .changed()
        .find(is_record)
        .map(|path| super::past::stem(path).to_owned());
    if said.world.is_empty() && record.is_none() {
        return Ok(Closure::Left);
    }
    let moment = render_moment(now(&draft.project.store));
    let text = draft.text_or_template(&path)?;
    let merged = merge_world(
        &text,
        &said.world,
        &label(draft.actor),
        record.as_deref(),
        &moment,
        contract.language,
    )?;
    draft.replace(&path, merged)?;
    Ok(Closure::Closed)
}

/// Refuses a change of the world by an agent with a task under way: others rely on the world as it
/// was, until the task's finish merges its changes.
pub fn refuse_during_task(project: &Project, actor: &Actor) -> Result<(), WorkError> {
    let Some(agent) = actor.agent() else {
        return Ok(());
    };
    if project.contract.of_form(Form::Task).next().is_none() {
        return Ok(());
    }
    let process = match load_formed(project, actor, Form::Task) {
        Ok(formed) => formed.text,
        Err(WorkError::NoForm(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some(task) = read_task(&process) else {
        return Ok(());
    };
    let task = crate::files::quote::headline(&task.description).into_owned();
    Err(WorkError::refused(
        in_language(
            project.contract.language,
            format!("{agent} has a task under way ({task}): the world changes when it is finished"),
            format!("{agent} 有未收尾的任务（{task}）：世界状态在任务结束时才变更"),
        ),
        "quipu finish --solution \"…\" --lesson \"…\" --world \"Section/key=value\"",
    ))
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
