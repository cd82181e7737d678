//! Computes the texts that close a task, or the list of missing inputs. This module does no I/O.
//!
//! The caller commits these texts together: the record (`compose_session`, `render_session`), the
//! knowledge (`recount`, including the new session), the world (`merge_world`), and the task
//! process (`clear_task`).

use quipu_contract::{KeyedError, Language, set_fact};
use serde::Serialize;

use super::session::{Outcome, Session, plan_keywords, session_stem};
use super::task::{Standing, Task, archive, read_task};

/// A fact of the world that the task changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldChange {
    pub section: Option<String>,
    pub key: String,
    pub value: String,
}

impl WorldChange {
    /// Parses `key=value` or `Section/key=value`.
    pub fn parse(text: &str) -> Option<WorldChange> {
        let (place, value) = text.split_once('=')?;
        let (section, key) = match place.rsplit_once('/') {
            Some((section, key)) => (Some(section.trim().to_owned()), key),
            None => (None, place),
        };
        let (key, value) = (key.trim(), value.trim());
        (!key.is_empty() && !value.is_empty()).then(|| WorldChange {
            section,
            key: key.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// The agent's report at the end of a task.
#[derive(Debug, Clone, Default)]
pub struct TaskReport {
    pub outcome: Outcome,
    pub problem: Option<String>,
    /// The completed work or, for an abandoned task, the reason.
    pub solution: Option<String>,
    pub pattern: Option<String>,
    /// The calls since the task started.
    pub rounds: Option<u32>,
    pub learnt: Option<String>,
    pub experience: Option<String>,
    pub cause: Option<String>,
    pub cure: Option<String>,
    pub improvement: Option<String>,
    pub world: Vec<WorldChange>,
    /// Values of others that the changes knowingly replace.
    pub replaces: Vec<WorldChange>,
}

/// An input without which a task cannot be closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lack {
    /// A short name: `task`, `plan`, `solution`, `lesson`.
    pub item: &'static str,
    pub what: String,
    /// The command that supplies it.
    pub command: String,
}

/// Composes the record of the task in a process file, under the first name from its date, type and
/// keywords. A trivial task needs the same inputs. A task that was not completed may have open
/// items.
pub fn compose_session(
    process: &str,
    said: &TaskReport,
    agent: &str,
    now: &str,
    language: Language,
) -> Result<Session, Vec<Lack>> {
    let say = |en: &str, zh: &str| {
        if language == Language::Zh {
            zh.to_owned()
        } else {
            en.to_owned()
        }
    };
    let miss = |item: &'static str, what: String, command: &str| Lack {
        item,
        what,
        command: command.to_owned(),
    };
    // A small task need not be started: it is described completely at its end.
    let small = || {
        said.problem.as_ref().map(|problem| Task {
            description: problem.clone(),
            ..Task::default()
        })
    };
    let Some(task) = read_task(process).or_else(small) else {
        let command = "quipu task start \"…\"     (or, for a small task, report it at the end: \
            quipu finish --problem \"…\" …)";
        return Err(vec![miss(
            "task",
            say(
                "Start a task: there is no current task",
                "先开始任务：目前没有当前任务",
            ),
            command,
        )]);
    };
    let mut missing = Vec::new();
    let open: Vec<&super::task::Todo> = task
        .todos
        .iter()
        .filter(|todo| todo.standing == Standing::Open)
        .collect();
    if said.outcome == Outcome::Done {
        for todo in &open {
            let command = format!(
                "quipu task todo done {0}     (or: quipu task todo strike {0} --why \"…\")",
                todo.number
            );
            missing.push(Lack {
                item: "plan",
                what: say(
                    &format!("Close item {}: {}", todo.number, todo.text),
                    &format!("完成或划去计划第 {} 项：{}", todo.number, todo.text),
                ),
                command,
            });
        }
    }
    let solution = said.solution.clone().filter(|text| !text.trim().is_empty());
    if solution.is_none() {
        let (what, command) = match said.outcome {
            Outcome::Done => (
                say("Describe the solution", "写明解决方法"),
                "quipu finish --solution \"…\"",
            ),
            _ => (
                say("Give the reason why it was not done", "写明没有完成的原因"),
                "quipu finish --abandon --why \"…\"",
            ),
        };
        missing.push(miss("solution", what, command));
    }
    // A cure is what a similar task needs to know.
    if said.outcome == Outcome::Done
        && said.cure.is_none()
        && said
            .experience
            .as_deref()
            .is_none_or(|text| text.trim().is_empty())
    {
        missing.push(miss(
            "lesson",
            say(
                "Name a lesson for similar tasks, or state that there is none",
                "写明可复用的经验，或说明没有",
            ),
            "quipu finish --lesson \"…\"     (or: --lesson none)",
        ));
    }
    if !missing.is_empty() {
        return Err(missing);
    }
    let kind = task.kind.clone().unwrap_or_else(|| "task".to_owned());
    let keywords = if task.keywords.is_empty() {
        plan_keywords(&task.description)
    } else {
        task.keywords.clone()
    };
    let date = now.get(..10).unwrap_or(now).to_owned();
    let done = task
        .todos
        .iter()
        .filter(|todo| todo.standing == Standing::Done);
    Ok(Session {
        name: session_stem(&date, &kind, &keywords),
        date,
        kind,
        keywords,
        time: Some(now.to_owned()),
        agent: Some(agent.to_owned()),
        problem: said.problem.clone().unwrap_or(task.description),
        solution: solution.unwrap_or_default(),
        pattern: said.pattern.clone().or(task.pattern),
        // An abandoned task says nothing about how many rounds its pattern needs.
        rounds: said.rounds.filter(|_| said.outcome != Outcome::Abandoned),
        seconds: task
            .started
            .as_deref()
            .and_then(|started| seconds_between(started, now)),
        outcome: said.outcome,
        steps: done.map(|todo| todo.text.clone()).collect(),
        learnt: said.learnt.clone(),
        experience: said
            .experience
            .clone()
            .and_then(|text| super::names::said(&text).map(str::to_owned)),
        cause: said.cause.clone(),
        cure: said.cure.clone(),
        improvement: said.improvement.clone(),
        world: said.world.iter().map(told).collect(),
        archive: archive(process),
        line: 1,
    })
}

fn told(change: &WorldChange) -> String {
    match &change.section {
        Some(section) => format!("{section} / {}: {}", change.key, change.value),
        None => format!("{}: {}", change.key, change.value),
    }
}

fn seconds_between(started: &str, now: &str) -> Option<u32> {
    let (started, now) = (
        started.parse::<jiff::Timestamp>().ok()?,
        now.parse::<jiff::Timestamp>().ok()?,
    );
    u32::try_from(now.as_second() - started.as_second()).ok()
}

/// The default sections for a new fact.
pub const FACTS: [&str; 2] = ["Current facts", "当前事实"];
pub const ACTIVITY: [&str; 2] = ["Agent activity", "Agent 活动"];

/// Applies a task's changes and the agent's activity to the world. Every recorded task is an
/// activity, whether or not it changed a fact.
pub fn merge_world(
    world: &str,
    changes: &[WorldChange],
    agent: &str,
    session: Option<&str>,
    now: &str,
    language: Language,
) -> Result<String, KeyedError> {
    let mut text = world.to_owned();
    for change in changes {
        text = set_fact(
            &text,
            change.section.as_deref(),
            &FACTS,
            &change.key,
            &change.value,
            now,
        )?
        .0;
    }
    let Some(session) = session else {
        return Ok(text);
    };
    let activity = match language {
        Language::En => format!("{session}, finished {now}"),
        Language::Zh => format!("{session}，完成于 {now}"),
    };
    // Sessions record earlier activity. The section is not created if it is missing.
    let named = ACTIVITY
        .iter()
        .find_map(|section| set_fact(&text, Some(section), &[], agent, &activity, "").ok());
    Ok(named.map_or(text, |(text, _)| text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worldlog::{
        NewTask, add_todo, finish_todo, note, read_session, render_session, start_task,
    };

    const NOW: &str = "2026-01-02T10:01:30Z";

    fn process() -> String {
        let new = NewTask {
            description: "NameError in add".into(),
            kind: "debug".into(),
            keywords: vec!["undefined".into(), "add".into()],
            pattern: Some("Undefined variable".into()),
            suspect: None,
            todos: vec!["find it".into()],
            now: "2026-01-02T10:00:00Z".into(),
        };
        start_task("", Language::En, &new).unwrap()
    }

    #[test]
    fn what_is_missing_is_told_item_by_item() {
        let items = |process: &str, said: &TaskReport| -> Vec<&str> {
            compose_session(process, said, "otto", NOW, Language::En)
                .unwrap_err()
                .iter()
                .map(|missing| missing.item)
                .collect()
        };
        assert_eq!(items("", &TaskReport::default()), ["task"]);
        assert_eq!(
            items(&process(), &TaskReport::default()),
            ["plan", "solution", "lesson"]
        );
        assert_eq!(
            items(
                &process(),
                &TaskReport {
                    outcome: Outcome::Abandoned,
                    ..TaskReport::default()
                }
            ),
            ["solution"]
        );
    }

    #[test]
    fn a_closed_task_is_a_record_a_world_and_a_count() {
        let text = finish_todo(&process(), 1, Some("x was renamed")).unwrap();
        let text = note(
            &add_todo(&text, Language::En, "fix it", None).unwrap(),
            Language::En,
            "seen",
        )
        .unwrap();
        let text = finish_todo(&text, 2, None).unwrap();
        let world = vec![WorldChange::parse("Environment/python=3.12").unwrap()];
        let said = TaskReport {
            solution: Some("restored x".into()),
            rounds: Some(2),
            experience: Some("none".into()),
            world,
            ..TaskReport::default()
        };
        let session = compose_session(&text, &said, "otto", NOW, Language::En).unwrap();
        assert_eq!(session.name, "2026-01-02_debug_undefined_add");
        assert_eq!(
            (session.rounds, session.seconds, session.steps.len()),
            (Some(2), Some(90), 2)
        );
        assert_eq!(session.steps[0], "find it → x was renamed");
        let again = read_session(&session.name, &render_session(Language::En, &session));
        assert_eq!(
            (again.pattern.as_deref(), again.experience),
            (Some("Undefined variable"), None)
        );
        let before = "## Environment\n\n- python: 3.11\n\n## Agent activity\n";
        let after = merge_world(
            before,
            &said.world,
            "otto",
            Some(&session.name),
            NOW,
            Language::En,
        )
        .unwrap();
        assert_eq!(
            after,
            format!(
                "## Environment\n\n- python: 3.12\n\n### History\n\n- python: 3.11 (until {NOW})\n\n## Agent activity\n\n- otto: 2026-01-02_debug_undefined_add, finished {NOW}\n"
            )
        );
        let twice = merge_world(
            &after,
            &[WorldChange::parse("python=3.13").unwrap()],
            "otto",
            Some("s2"),
            NOW,
            Language::En,
        )
        .unwrap();
        assert_eq!(twice.matches("### History").count(), 1, "{twice}");
        let none = |session| merge_world(before, &[], "otto", session, NOW, Language::En).unwrap();
        assert_eq!(none(None), before);
        assert_eq!(
            none(Some("s")),
            format!("{before}\n- otto: s, finished {NOW}\n")
        );
    }
}
