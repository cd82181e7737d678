//! Starts a task, and finds what is known about such tasks.

use quipu_contract::{Actor, Form};
use quipu_store::Receipt;

use super::knowledge::{Pattern, read_knowledge};
use super::matching::{Known, Match, Question, match_task};
use super::meanings::CachedEncoder;
use super::past::load_sessions;
use super::session::plan_keywords;
use super::task::{NewTask, read_task, start_task};
use crate::files::edit::{Formed, Terms, change_formed, load_formed};
use crate::project::open::Project;
use crate::project::times::{now, render_moment};
use crate::session::error::WorkError;

/// The patterns of the actor, and the sessions of all agents, that match a task.
pub fn find_matches(
    project: &Project,
    actor: &Actor,
    task: &str,
    suspect: Option<&str>,
) -> Result<Vec<Match>, WorkError> {
    // A role without readable knowledge still sees the sessions.
    let (path, patterns) = match own_patterns(project, actor) {
        Err(WorkError::NoForm(_) | WorkError::Read(_)) => Default::default(),
        own => own?,
    };
    let sessions = load_sessions(project, actor)?;
    let question = Question {
        task,
        suspect,
        language: project.contract.language,
    };
    let known = Known {
        knowledge: &path,
        patterns: &patterns,
        sessions: &sessions,
    };
    Ok(match_task(&question, &known, &CachedEncoder { project }))
}

fn own_patterns(project: &Project, actor: &Actor) -> Result<(String, Vec<Pattern>), WorkError> {
    let formed = load_formed(project, actor, Form::Knowledge)?;
    Ok((
        formed.path.as_str().to_owned(),
        read_knowledge(&formed.text).patterns,
    ))
}

/// Starts a task unless another one is under way. Without a time or keywords, the task gets the
/// current moment and words of its description.
pub fn begin_task(
    project: &Project,
    actor: &Actor,
    terms: &Terms,
    mut new: NewTask,
) -> Result<(Receipt, Formed), WorkError> {
    let language = project.contract.language;
    new.now = render_moment(now(&project.store));
    if new.keywords.is_empty() {
        new.keywords = plan_keywords(&new.description);
    }
    change_formed(project, actor, terms, Form::Task, |text| {
        Ok(start_task(text, language, &new)?)
    })
}

/// Whether the actor has a task under way.
pub(crate) fn has_task(project: &Project, actor: &Actor) -> Result<bool, WorkError> {
    Ok(read_task(&load_formed(project, actor, Form::Task)?.text).is_some())
}
