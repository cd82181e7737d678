//! Warns if a shown file differs from the file on disk, or is not valid.

use quipu_contract::{Actor, Form, ProjectPath};
use quipu_protocol::{Project, resolve_form};

use crate::answer::{Answer, Failure};

/// Adds the problem of a shown file, and the command that repairs it.
pub fn with_flag(answer: Answer, project: &Project, path: &ProjectPath) -> Result<Answer, Failure> {
    let Some(file) = project.store.flagged(path)? else {
        return Ok(answer);
    };
    let (what, line) = file
        .flag
        .as_ref()
        .map_or((String::new(), None), |flag| (flag.what.clone(), flag.line));
    let line = line
        .map(|line| format!(", line {line}"))
        .unwrap_or_default();
    let shown = if file.version.is_some() {
        "the last committed version is shown"
    } else {
        "it was never committed; the file on disk is shown"
    };
    Ok(answer.say(format!(
        "{path} {what}{line}; {shown}\n  help  {}",
        file.remedy()
    )))
}

/// Like `with_flag`, for the file of a form.
pub fn with_flag_of(
    answer: Answer,
    project: &Project,
    actor: &Actor,
    form: Form,
) -> Result<Answer, Failure> {
    with_flag(answer, project, &resolve_form(project, actor, form)?)
}
