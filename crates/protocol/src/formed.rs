//! Files by their form: found through the contract, made from their template, changed in one commit.
//!
//! A change of part of a file is planned on the text that was read and committed on that version. If someone
//! else was faster it is planned again on the new text, a few times.

use quipu_contract::{Actor, Form, ProjectPath, Readable};
use quipu_store::{Change, Expect, LeaseToken, Receipt, StoreError, Version, render_second};
use thiserror::Error;

use crate::experience::nth_name;
use crate::library::Library;
use crate::project::Project;
use crate::reading::ReadError;
use crate::template::{TemplateError, render_template, template_values};

/// So often a change is planned anew when others are faster; each time one of them got through.
const TRIES: usize = 64;

#[derive(Debug, Error)]
pub enum FormedError {
    #[error("the contract has no file of the form `{0}`")]
    NoFile(Form),
    #[error("`{path}` is for one agent: say for which")]
    WhichAgent { path: String },
    #[error("`{0}` is not text")]
    NotText(ProjectPath),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A file of a form, as it is now or as its template makes it.
#[derive(Debug, Clone)]
pub struct Formed {
    pub path: ProjectPath,
    /// None where the file is not there yet.
    pub version: Option<Version>,
    pub text: String,
}

/// Where the file of a form lies for an actor.
pub fn path_of(project: &Project, actor: &Actor, form: Form) -> Result<ProjectPath, FormedError> {
    let binding = project.contract.actor_binding(actor);
    let mut open = None;
    for rule in project.contract.of_form(form) {
        let filled = rule.path.fill(&binding);
        match filled.as_literal().map(ProjectPath::parse) {
            Some(Ok(path)) => return Ok(path),
            _ => open = open.or(Some(filled.as_str().to_owned())),
        }
    }
    Err(open.map_or(FormedError::NoFile(form), |path| FormedError::WhichAgent { path }))
}

/// What the template of a file says, with the project's values; empty where there is none.
pub fn template_of(project: &Project, path: &ProjectPath) -> Result<String, FormedError> {
    let Some((rule, profile)) = project.contract.rule(path).and_then(|rule| Some((rule, rule.profile.as_ref()?))) else {
        return Ok(String::new());
    };
    let file = format!("templates/{}/{}", project.contract.language.as_str(), rule.path);
    let text = project.library.read(profile, &file).unwrap_or_default();
    let now = jiff::Timestamp::from_microsecond(project.store.now().wall_us).unwrap_or_default();
    let mut values = template_values(&project.contract.binding(), now);
    values.extend(rule.path.matches(path.as_str()).unwrap_or_default());
    Ok(render_template(&Library::shown(profile, &file), &text, &values)?)
}

/// Reads the file of a form, if the actor may.
pub fn load_formed(project: &Project, actor: &Actor, form: Form) -> Result<Formed, FormedError> {
    let path = path_of(project, actor, form)?;
    let grant = project.contract.grant(actor).map_err(ReadError::UnknownActor)?;
    match grant.may_read(&path, &project.contract.actor_binding(actor)).map_err(ReadError::Denied)? {
        Readable::Whole => {}
        Readable::Sections(sections) => return Err(ReadError::OnlySections { path, sections }.into()),
    }
    match project.store.read(&path)? {
        Some((bytes, version)) => {
            let text = String::from_utf8(bytes).map_err(|_| FormedError::NotText(path.clone()))?;
            Ok(Formed { path, version: Some(version), text })
        }
        None => Ok(Formed { text: template_of(project, &path)?, version: None, path }),
    }
}

/// Who changes a file, and why.
#[derive(Debug, Clone)]
pub struct By<'a> {
    pub actor: &'a Actor,
    pub lease: Option<&'a LeaseToken>,
    pub why: String,
}

impl By<'_> {
    fn change(&self) -> Change {
        let mut change = Change::by(self.actor).why(self.why.clone());
        change.lease = self.lease.cloned();
        // Parts of a file are replaced here, never the whole by less: the guard against that would only be in the way.
        change.force = true;
        change
    }
}

/// Changes the file of a form in one commit. `edit` is called again if the file has moved on.
pub fn change_formed<E: From<FormedError>>(
    project: &Project,
    by: &By<'_>,
    form: Form,
    edit: impl Fn(&Formed) -> Result<String, E>,
) -> Result<(Receipt, Formed), E> {
    let store = |error: StoreError| E::from(FormedError::Store(error));
    let mut tried = 0;
    loop {
        tried += 1;
        let mut formed = load_formed(project, by.actor, form)?;
        let text = edit(&formed)?;
        let change = match &formed.version {
            Some(version) => by.change().write(&formed.path, text.clone(), Expect::Version(version.clone())),
            None => by.change().create(&formed.path, text.clone()),
        };
        match project.store.judge(change).and_then(|judged| judged.publish()) {
            Ok(receipt) => {
                formed.text = text;
                return Ok((receipt, formed));
            }
            Err(StoreError::Stale { .. }) if tried < TRIES => {}
            // Someone else made it meanwhile.
            Err(StoreError::Refused(refused)) => {
                match formed.version.is_none() && tried < TRIES && project.store.read(&formed.path).map_err(store)?.is_some() {
                    true => {}
                    false => return Err(store(StoreError::Refused(refused))),
                }
            }
            Err(error) => return Err(store(error)),
        }
    }
}

/// Where a session of this name goes: the folder of the first rule for sessions.
pub fn session_path(project: &Project, name: &str) -> Result<ProjectPath, FormedError> {
    let rule = project.contract.of_form(Form::Session).next().ok_or(FormedError::NoFile(Form::Session))?;
    let fixed = rule.path.as_str().split(['*', '{', '?', '[']).next().unwrap_or_default();
    let folder = fixed.rsplit_once('/').map_or("", |(folder, _)| folder);
    let text = if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") };
    Ok(ProjectPath::parse(&text).map_err(ReadError::Path)?)
}

/// Commits a new session together with whatever `rest` adds, under the first free name: `NAME`, `NAME-2`, …
/// `rest` is given the name, because other files tell it; it is called again if the name was taken meanwhile.
pub fn record_session<E: From<FormedError>>(
    project: &Project,
    by: &By<'_>,
    stem: &str,
    render: impl Fn(&str) -> String,
    rest: impl Fn(Change, &str) -> Result<Change, E>,
) -> Result<(Receipt, ProjectPath), E> {
    let store = |error: StoreError| E::from(FormedError::Store(error));
    let mut nth = 1;
    for _ in 0..TRIES {
        let (mut name, mut path);
        loop {
            name = nth_name(stem, nth);
            path = session_path(project, &name)?;
            if project.store.read(&path).map_err(store)?.is_none() {
                break;
            }
            nth += 1;
        }
        let change = rest(by.change().create(&path, render(&name)), &name)?;
        match project.store.judge(change).and_then(|judged| judged.publish()) {
            Ok(receipt) => return Ok((receipt, path)),
            Err(StoreError::Stale { .. }) => {}
            Err(StoreError::Refused(refused)) => {
                if project.store.read(&path).map_err(store)?.is_none() {
                    return Err(store(StoreError::Refused(refused)));
                }
            }
            Err(error) => return Err(store(error)),
        }
    }
    let what = format!("`{stem}` was taken by others again and again");
    Err(store(StoreError::NotFound { what, mend: "the same command again".into() }))
}

/// The moment as memory files tell it: `2026-11-15T14:00:00Z`.
pub fn now(project: &Project) -> String {
    render_second(project.store.now().wall_us)
}
