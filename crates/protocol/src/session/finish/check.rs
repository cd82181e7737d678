//! Checks a finish against the contract's checklist.
//!
//! The check runs on the drafted texts, so nothing has been written when an item is missing. Each
//! missing item comes with the lines or flags that supply it.

use quipu_contract::{
    Actor, Condition, FinishItem, Form, Language, Occasion, ProjectPath, did_you_mean, in_one_line,
    says_nothing,
};
use quipu_text::Document;
use quipu_text::json::{JsonPointer, parse_json};
use serde::Serialize;
use serde_json::Value;

use super::Closing;
use crate::files::edit::Draft;
use crate::files::read::find_section;
use crate::project::forms::{list_form, resolve_form};
use crate::project::ids::short_name;
use crate::project::open::Project;
use crate::session::error::WorkError;
use crate::session::todos::{Todo, parse_todos, unsettled};
use crate::worldlog::{Lack, read_task};

/// A missing item and the command that supplies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    pub name: String,
    pub text: String,
    /// Details, if available.
    pub detail: Option<String>,
    #[serde(rename = "do")]
    pub supply: String,
    /// Lines of a finish text that supply the item, and the equivalent flags. Empty if only the
    /// caller knows the content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    pub rule: String,
}

/// The result of the closers: closed forms, and open forms with the reasons.
#[derive(Default)]
pub(super) struct Outcome {
    pub closed: Vec<Form>,
    pub open: Vec<(&'static [Form], Vec<Lack>)>,
}

/// Returns every item that does not hold.
pub(super) fn check(
    draft: &mut Draft<'_>,
    closing: &Closing<'_>,
    outcome: &Outcome,
) -> Result<Vec<Missing>, WorkError> {
    let contract = std::sync::Arc::clone(&draft.project.contract);
    for name in &closing.material.none {
        let item = contract.finish.iter().find(|i| i.name == *name);
        if !item.is_some_and(|i| can_be_none(&i.need)) {
            let names: Vec<&str> = contract
                .finish
                .iter()
                .filter(|i| can_be_none(&i.need))
                .map(|i| i.name.as_str())
                .collect();
            let what = format!(
                "`--none {}` does not match an item of the checklist{}",
                in_one_line(name),
                did_you_mean(name, names.iter().copied())
            );
            let takes = if names.is_empty() {
                "omit it".to_owned()
            } else {
                format!("--none accepts {}", names.join(", "))
            };
            return Err(WorkError::usage(what, takes));
        }
    }
    let mut missing = Vec::new();
    for item in &contract.finish {
        if !counts(draft, closing, item)?
            || outcome.closed.contains(&item.form) && item.need != Condition::Cleared
        {
            continue;
        }
        // If a closer knows exactly what it lacks, report that in place of its items.
        if let Some((forms, lacks)) = outcome
            .open
            .iter()
            .find(|(forms, _)| forms.contains(&item.form))
        {
            if forms[0] == item.form {
                missing.extend(lacks.iter().map(|lack| tell(lack, item)));
            }
            continue;
        }
        if let Some(detail) = fault(draft, closing, item)? {
            let (lines, flags) = supply_lines(draft, closing, item)?;
            missing.push(Missing {
                lines,
                flags,
                name: item.name.clone(),
                text: item.text.in_language(contract.language).to_owned(),
                detail: Some(detail).filter(|d| !d.is_empty()),
                supply: item.supply.clone(),
                rule: item.place.to_string(),
            });
        }
    }
    Ok(missing)
}

fn tell(lack: &Lack, item: &FinishItem) -> Missing {
    Missing {
        name: lack.item.to_owned(),
        text: lack.what.clone(),
        detail: None,
        lines: Vec::new(),
        flags: Vec::new(),
        supply: lack.command.clone(),
        rule: item.place.to_string(),
    }
}

/// Whether an item applies to this actor at this finish.
fn counts(
    draft: &mut Draft<'_>,
    closing: &Closing<'_>,
    item: &FinishItem,
) -> Result<bool, WorkError> {
    let roles = &draft.project.contract.roles;
    let is_one = |role: &str, name: &String| {
        name == role || roles.get(role).is_some_and(|r| r.also.contains(name))
    };
    let is_asked = item.roles.is_empty()
        || draft
            .actor
            .role()
            .is_none_or(|r| item.roles.iter().any(|name| is_one(r.as_str(), name)));
    if item.when == Occasion::Never || !is_asked || !may_write_form(draft, item.form) {
        return Ok(false);
    }
    Ok(match item.when {
        Occasion::Worked => {
            !closing.touched.is_empty()
                || closing.captured.has_changed
                || draft.changed().next().is_some()
        }
        Occasion::Exists => !list_form(draft.project, draft.actor, item.form).is_empty(),
        Occasion::Always | Occasion::Never => true,
    })
}

pub(super) fn may_write_form(draft: &Draft<'_>, form: Form) -> bool {
    may_write(draft.project, draft.actor, form)
}

/// Whether the actor's role writes any file of a form.
pub(crate) fn may_write(project: &Project, actor: &Actor, form: Form) -> bool {
    let contract = &project.contract;
    let Ok(grant) = contract.grant(actor) else {
        return false;
    };
    let Some(role) = grant.role else {
        return contract.of_form(form).next().is_some();
    };
    let binding = contract.actor_binding(actor);
    contract.of_form(form).any(|rule| {
        let path = rule.path.fill(&binding);
        role.writes.iter().any(|w| {
            let own = w.path.fill(&binding);
            own.as_str() == path.as_str() || own.matches(&path.stand_in()).is_some()
        })
    })
}

/// Returns the fault of an item, or None if the item holds.
fn fault(
    draft: &mut Draft<'_>,
    closing: &Closing<'_>,
    item: &FinishItem,
) -> Result<Option<String>, WorkError> {
    let said_none = closing.material.none.contains(&item.name);
    let holds = match &item.need {
        Condition::Changed => has_changed(draft, closing, item.form)?,
        Condition::Answered => said_none || has_changed(draft, closing, item.form)?,
        Condition::Created => closing.has_created(draft, item.form),
        Condition::Cleared => match file(draft, item.form)? {
            Some((_, text)) if item.form == Form::Task => read_task(&text).is_none(),
            Some((_, text)) => is_hollow(&text),
            None => true,
        },
        Condition::Filled(place) => match file(draft, item.form)? {
            _ if said_none && closing.material.next.is_empty() && item.form == Form::State => {
                open_todos(draft)?.is_empty()
            }
            Some((_, text)) => is_filled(&text, place),
            None => false,
        },
        Condition::Settled => {
            let Some((path, text)) = file(draft, item.form)? else {
                return Ok(None);
            };
            let todos = parse_todos(&path, &text)?;
            let open: Vec<String> = unsettled(draft, closing, &path, &todos)?
                .iter()
                .map(|t| format!("{} {}", t.id, t.title))
                .collect();
            return Ok((!open.is_empty()).then(|| open.join("; ")));
        }
    };
    Ok((!holds).then(String::new))
}

/// Whether `none` is a valid answer, as in: nothing was decided, no step is left.
pub(super) fn can_be_none(need: &Condition) -> bool {
    matches!(need, Condition::Answered | Condition::Filled(_))
}

/// Titles of the todos that remain open after the finish, each with its short id.
fn open_todos(draft: &mut Draft<'_>) -> Result<Vec<String>, WorkError> {
    if !may_write_form(draft, Form::Todos) {
        return Ok(Vec::new());
    }
    let Some((path, text)) = file(draft, Form::Todos)? else {
        return Ok(Vec::new());
    };
    let todos = parse_todos(&path, &text)?;
    let ids = || todos.todos.iter().map(|t| t.id.as_str());
    // Todos that this finish adds have no usable id yet.
    let is_new = |id: &str| draft.made.iter().any(|made| made.id == id);
    let named = |t: &&Todo| {
        if is_new(&t.id) {
            t.title.clone()
        } else {
            format!("{} ({})", t.title, short_name(ids(), &t.id))
        }
    };
    Ok(todos.open().iter().map(named).collect())
}

/// At most this many files are named if the finish does not describe the work.
const PATHS_NAMED: usize = 5;

/// Returns the lines of a finish text and the flags that supply an item. They contain only
/// statements known to be true.
fn supply_lines(
    draft: &mut Draft<'_>,
    closing: &Closing<'_>,
    item: &FinishItem,
) -> Result<(Vec<String>, Vec<String>), WorkError> {
    let zh = draft.project.contract.language == Language::Zh;
    let said = |heading: &str, entries: Vec<String>, flags: Vec<String>| {
        let lines = std::iter::once(format!("## {heading}"))
            .chain(entries.into_iter().map(|entry| format!("- {entry}")))
            .collect();
        Ok((lines, flags))
    };
    let none = if zh { "无" } else { "none" };
    match (&item.need, item.form) {
        (Condition::Changed, Form::State) => {
            let memory = draft
                .changed()
                .map(|p| p.as_str().to_owned())
                .chain(closing.touched.iter().cloned());
            let mut paths: Vec<String> = closing
                .captured
                .changed
                .iter()
                .cloned()
                .chain(memory)
                .collect();
            let mut seen = std::collections::BTreeSet::new();
            paths.retain(|path| seen.insert(path.clone()));
            paths.truncate(PATHS_NAMED);
            let told = format!(
                "{} {}",
                if zh { "改动了" } else { "changed" },
                paths.join(", ")
            );
            said(
                if zh { "完成" } else { "Done" },
                vec![told.clone()],
                vec![format!("--did \"{told}\"")],
            )
        }
        (Condition::Filled(_), Form::State) => {
            let heading = if zh { "下一步" } else { "Next" };
            match open_todos(draft)?.into_iter().next() {
                Some(todo) => said(
                    heading,
                    vec![todo.clone()],
                    vec![format!("--next \"{}\"", todo.replace('"', "'"))],
                ),
                None => said(
                    heading,
                    vec![none.into()],
                    vec![format!("--none {}", item.name)],
                ),
            }
        }
        (Condition::Answered, form) => {
            let heading = match (form, zh) {
                (Form::Decisions, true) => "决策",
                (Form::Decisions, false) => "Decisions",
                _ => &item.name,
            };
            said(
                heading,
                vec![none.into()],
                vec![format!("--none {}", item.name)],
            )
        }
        (Condition::Settled, _) => {
            let Some((path, text)) = file(draft, item.form)? else {
                return Ok((Vec::new(), Vec::new()));
            };
            let todos = parse_todos(&path, &text)?;
            let ids = || todos.todos.iter().map(|t| t.id.as_str());
            let open: Vec<String> = unsettled(draft, closing, &path, &todos)?
                .iter()
                .map(|t| short_name(ids(), &t.id).to_owned())
                .collect();
            let flags = open.iter().map(|id| format!("--leave {id}")).collect();
            let leave = if zh { "保留" } else { "leave" };
            said(
                if zh { "待办" } else { "Todos" },
                open.iter().map(|id| format!("{leave} {id}")).collect(),
                flags,
            )
        }
        _ => Ok((Vec::new(), Vec::new())),
    }
}

fn file(draft: &mut Draft<'_>, form: Form) -> Result<Option<(ProjectPath, String)>, WorkError> {
    let Ok(path) = resolve_form(draft.project, draft.actor, form) else {
        return Ok(None);
    };
    let text = draft.text(&path)?;
    Ok(Some((path, text)))
}

fn has_changed(draft: &Draft<'_>, closing: &Closing<'_>, form: Form) -> Result<bool, WorkError> {
    match resolve_form(draft.project, draft.actor, form) {
        Ok(path) => closing.has_changed(draft, &path),
        Err(_) => Ok(closing.has_created(draft, form)),
    }
}

/// Whether a JSON value or a section has content.
fn is_filled(text: &str, place: &str) -> bool {
    if let Some(anchor) = place.strip_prefix('#') {
        let document = Document::parse(text);
        return find_section(&document, anchor).is_ok_and(|s| !is_hollow(document.slice(&s.body)));
    }
    let value = JsonPointer::parse(place)
        .ok()
        .and_then(|pointer| Some(parse_json(text).ok()?.at(&pointer)?.to_value()));
    value.is_some_and(|value| says_something(&value))
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !says_nothing(text),
        Value::Array(items) => items.iter().any(says_something),
        Value::Object(keys) => keys.values().any(says_something),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Whether a text has only headings, remarks in italics and comments, as a fresh template has.
fn is_hollow(text: &str) -> bool {
    let mut in_comment = false;
    text.lines().map(str::trim).all(|line| {
        let opens = line.starts_with("<!--");
        let hollow = in_comment || opens || line.starts_with('#') || says_nothing(line);
        in_comment = (in_comment || opens) && !line.ends_with("-->");
        hollow
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_nothing() {
        assert!(is_hollow("# T\n\n_say it_\n<!-- a\nb -->\n"));
        assert!(!is_hollow("# T\n\nsaid\n"));
        assert!(
            is_filled("# T\n\n## Goal\nwin\n", "#Goal")
                && !is_filled("## Goal\n_what?_\n", "#Goal")
        );
        assert!(
            is_filled("{\"a\": [1]}", "/a")
                && !is_filled("{\"a\": []}", "/a")
                && !is_filled("{}", "/a")
        );
        assert!(
            !is_filled("{\"a\": [\"\", \"TODO\"]}", "/a")
                && !is_filled("## Goal\nTBD\n", "#Goal")
                && is_filled("{\"a\": {\"b\": 0}}", "/a")
        );
    }
}
