//! Finds the files of a form for an actor.
//!
//! This module resolves paths from the contract's rules. It does not check read rights; readers of
//! the files do.

use std::path::Path;

use quipu_contract::{Actor, Form, Pattern, ProjectPath};

use crate::project::library::Library;
use crate::project::open::Project;
use crate::project::template::{render_template, template_values};
use crate::project::times::now;
use crate::session::error::WorkError;

/// Further names in one folder are ignored.
const MOST_NAMES: usize = 20_000;

/// The single file of a form: the first rule with a path that has no unfilled variables for this
/// actor.
pub fn resolve_form(
    project: &Project,
    actor: &Actor,
    form: Form,
) -> Result<ProjectPath, WorkError> {
    let binding = project.contract.actor_binding(actor);
    let literal = |pattern: &Pattern| {
        pattern
            .fill(&binding)
            .as_literal()
            .and_then(|text| ProjectPath::parse(text).ok())
    };
    if let Some(path) = project
        .contract
        .of_form(form)
        .find_map(|rule| literal(&rule.path))
    {
        return Ok(path);
    }
    let open = project
        .contract
        .of_form(form)
        .map(|rule| rule.path.fill(&binding))
        .find(|path| path.as_str().contains("{agent}"));
    Err(
        open.map_or(WorkError::NoForm(form), |path| WorkError::WhichAgent {
            path: path.as_str().to_owned(),
        }),
    )
}

/// Renders the template of a file with the project's values; empty if there is none.
pub fn template_of(project: &Project, path: &ProjectPath) -> Result<String, WorkError> {
    let Some((rule, profile)) = project
        .contract
        .rule(path)
        .and_then(|rule| Some((rule, rule.profile.as_ref()?)))
    else {
        return Ok(String::new());
    };
    let file = project
        .contract
        .template_path(project.contract.language, rule.path.as_str());
    let text = project.library.read(profile, &file).unwrap_or_default();
    let mut values = template_values(&project.contract.binding(), now(&project.store));
    values.extend(rule.path.matches(path.as_str()).unwrap_or_default());
    Ok(render_template(
        &Library::shown(profile, &file),
        &text,
        &values,
    )?)
}

/// The folders that contain files of a form.
pub fn folders_of(project: &Project, form: Form) -> Vec<String> {
    let fixed = |pattern: &Pattern| {
        let text = pattern.as_str();
        let open = text.find(['*', '?', '{', '[']).unwrap_or(text.len());
        text[..open]
            .rfind('/')
            .map_or(String::new(), |slash| text[..slash].to_owned())
    };
    let mut folders: Vec<String> = project
        .contract
        .of_form(form)
        .map(|rule| fixed(&rule.path))
        .collect();
    folders.dedup();
    folders
}

/// The file of a form for one unit, as in `delegations/{unit}.md`.
pub fn resolve_unit_form(
    project: &Project,
    form: Form,
    unit: &str,
) -> Result<ProjectPath, WorkError> {
    let mut binding = project.contract.binding();
    binding.insert("unit".into(), unit.to_owned());
    let literal = |pattern: &Pattern| {
        pattern
            .fill(&binding)
            .as_literal()
            .and_then(|text| ProjectPath::parse(text).ok())
    };
    project
        .contract
        .of_form(form)
        .find_map(|rule| literal(&rule.path))
        .ok_or(WorkError::NoForm(form))
}

/// The existing files of a form. Reads only the folders that the rules name.
pub fn list_form(project: &Project, actor: &Actor, form: Form) -> Vec<ProjectPath> {
    let binding = project.contract.actor_binding(actor);
    let mut found = Vec::new();
    for rule in project.contract.of_form(form) {
        let pattern = rule.path.fill(&binding);
        let text = pattern.as_str();
        if let Some(path) = pattern
            .as_literal()
            .and_then(|literal| ProjectPath::parse(literal).ok())
        {
            if project.store.root().join(path.as_str()).is_file() {
                found.push(path);
            }
            continue;
        }
        let open = text.find(['*', '?', '{']).unwrap_or(text.len());
        let folder = text[..open].rfind('/').map_or("", |slash| &text[..slash]);
        walk(
            project.store.root(),
            folder,
            text.contains("**"),
            &mut |path| {
                // A path belongs to the first rule that matches it.
                if project
                    .contract
                    .rule(&path)
                    .is_some_and(|r| r.form == Some(form))
                {
                    found.push(path);
                }
            },
        );
    }
    found.sort();
    found.dedup();
    found
}

fn walk(root: &Path, folder: &str, deep: bool, visit: &mut dyn FnMut(ProjectPath)) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        return;
    };
    for entry in entries.flatten().take(MOST_NAMES) {
        let (Ok(kind), Some(name)) = (
            entry.file_type(),
            entry.file_name().to_str().map(str::to_owned),
        ) else {
            continue;
        };
        let path = if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        };
        if kind.is_dir() && deep {
            walk(root, &path, deep, visit);
        } else if kind.is_file()
            && let Ok(path) = ProjectPath::parse(&path)
        {
            visit(path);
        }
    }
}

/// The name of an actor in files: its agent name, else its role, else `person`.
pub fn label(actor: &Actor) -> String {
    let named = actor.agent().or(actor.role()).map(ToString::to_string);
    named.unwrap_or_else(|| match actor {
        Actor::Person => "person".into(),
        Actor::Runtime => "quipu".into(),
        Actor::Agent { .. } => "agent".into(),
    })
}
