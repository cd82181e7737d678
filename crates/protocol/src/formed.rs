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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use quipu_contract::{ActorName, Language, facts, set_fact};
    use quipu_store::Options;

    use crate::experience::{NewTask, add_todo, load_sessions, near_sessions, read_task, start_task};
    use crate::init::{Layout, lay_out};

    const AT_ONCE: usize = 8;

    fn project() -> (tempfile::TempDir, Actor) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout { profiles: vec!["worldlog".into()], language: Language::En, vars: BTreeMap::new(), force: false };
        lay_out(folder.path(), &layout, Options::default()).unwrap();
        let name = |text: &str| ActorName::parse(text).ok();
        (folder, Actor::Agent { role: name("agent"), unit: None, agent: name("otto") })
    }

    fn open(folder: &tempfile::TempDir) -> Project {
        let patient = Options { wait: std::time::Duration::from_secs(120), ..Options::default() };
        Project::open(folder.path(), patient).unwrap()
    }

    fn at_once(work: impl Fn(usize) + Sync) {
        std::thread::scope(|scope| {
            (0..AT_ONCE).for_each(|number| {
                drop(scope.spawn({
                    let work = &work;
                    move || work(number)
                }))
            })
        });
    }

    #[test]
    fn sessions_of_one_name_at_once_all_exist() {
        let (folder, actor) = project();
        at_once(|number| {
            let by = By { actor: &actor, lease: None, why: "test".into() };
            let render = |name: &str| format!("# Session: {name}\n\nby {number}\n");
            let rest = |change, _: &str| Ok::<_, FormedError>(change);
            record_session(&open(&folder), &by, "2026-01-02_fix_x", render, rest).unwrap();
        });
        let found = load_sessions(&open(&folder), &actor).unwrap();
        let names: Vec<String> = found.into_iter().map(|(_, session)| session.name).collect();
        assert_eq!(names.len(), AT_ONCE);
        for nth in 1..=u32::try_from(AT_ONCE).unwrap() {
            let name = nth_name("2026-01-02_fix_x", nth);
            assert!(names.contains(&name), "{names:?}");
            let text = std::fs::read_to_string(folder.path().join(format!(".sessions/{name}.md"))).unwrap();
            assert!(text.starts_with(&format!("# Session: {name}\n")), "{text}");
        }
    }

    #[test]
    fn changes_of_one_file_at_once_are_all_in_it() {
        let (folder, actor) = project();
        let by = By { actor: &actor, lease: None, why: "test".into() };
        let new = NewTask { description: "much".into(), ..NewTask::default() };
        at_once(|number| {
            let project = open(&folder);
            // Whoever is first begins the task.
            let begun = |text: &str| start_task(text, Language::En, &new).unwrap_or_else(|_| text.to_owned());
            let plan = |formed: &Formed| add_todo(&begun(&formed.text), Language::En, &format!("item {number}"), None);
            change_formed(&project, &by, Form::Task, |formed| Ok::<_, FormedError>(plan(formed).unwrap())).unwrap();
            let set = |formed: &Formed| set_fact(&formed.text, Some("Structure"), &[], &format!("key {number}"), "x", "t").unwrap().0;
            change_formed(&project, &by, Form::World, |formed| Ok::<_, FormedError>(set(formed))).unwrap();
        });
        let project = open(&folder);
        let task = read_task(&load_formed(&project, &actor, Form::Task).unwrap().text).unwrap();
        assert_eq!(task.todos.len(), AT_ONCE);
        let world = load_formed(&project, &actor, Form::World).unwrap().text;
        assert_eq!(facts(&world).iter().filter(|fact| fact.section == "Structure" && !fact.older).count(), AT_ONCE, "{world}");
    }

    #[test]
    fn a_match_reads_a_bounded_number_of_sessions() {
        let (folder, actor) = project();
        let write = |name: &str| std::fs::write(folder.path().join(format!(".sessions/{name}.md")), "## Problem\n\nx\n").unwrap();
        write("2020-01-01_debug_undefined_var_add");
        (0..300).for_each(|number| write(&format!("2026-01-01_fix_case_{number}")));
        let project = open(&folder);
        let near = near_sessions(&project, &actor, "an undefined variable").unwrap();
        assert_eq!((near.len(), near[0].1.name.as_str()), (41, "2020-01-01_debug_undefined_var_add"));
        assert_eq!(load_sessions(&project, &actor).unwrap().len(), 301);
        assert_eq!(load_sessions(&project, &actor).unwrap().len(), 301);
    }
}
