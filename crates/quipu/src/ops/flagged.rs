//! Warns if a shown file differs from the file on disk, or is not valid, and if any file does.

use quipu_contract::{Actor, Form, ProjectPath};
use quipu_protocol::{Project, ReadScope, resolve_form};
use quipu_store::FileStatus;

use crate::answer::{Answer, Failure};

/// Adds the problem of a shown file, and the command that repairs it.
pub fn with_flag(answer: Answer, project: &Project, path: &ProjectPath) -> Result<Answer, Failure> {
    let Some(file) = project.store.flagged(path)? else {
        return Ok(answer);
    };
    let shown = if file.version.is_some() {
        "the last committed version is shown"
    } else {
        "it was never committed; the file on disk is shown"
    };
    Ok(answer.say(format!(
        "{}; {shown}\n  help  {}",
        fault(&file),
        file.remedy()
    )))
}

/// The fault of a flagged file, with its line.
fn fault(file: &FileStatus) -> String {
    let (what, line) = file
        .flag
        .as_ref()
        .map_or(("", None), |flag| (flag.what.as_str(), flag.line));
    let line = line
        .map(|line| format!(", line {line}"))
        .unwrap_or_default();
    format!("{} {what}{line}", file.path)
}

/// At most this many files are named; `quipu status` lists the rest.
const MOST_NAMED: usize = 8;

/// Names the flagged files that an actor reads, so that a session does not end without a word on
/// what was done behind its hooks. The finish is durable, so a failure here does not undo it.
pub fn with_flagged_files(answer: Answer, project: &Project, actor: &Actor) -> Answer {
    let Ok(mut flagged) = project.store.scan_flagged() else {
        return answer;
    };
    let scope = ReadScope::of(project, actor);
    flagged.retain(|file| scope.names_all(std::slice::from_ref(&file.path)));
    let mut answer = flagged
        .iter()
        .take(MOST_NAMED)
        .fold(answer, |answer, file| {
            answer.say(format!(
                "flagged: {}\n  help  {}",
                fault(file),
                file.remedy()
            ))
        });
    if flagged.len() > MOST_NAMED {
        let rest = flagged.len() - MOST_NAMED;
        answer = answer.say(format!("and {rest} more: quipu status"));
    }
    answer
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
