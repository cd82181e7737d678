//! Composes a change: each file's text as read, and its new text.
//!
//! Every file is read once and written on the version that was read. If another commit comes first,
//! `revise` composes the change again from the newest texts: it repeats the operation, never the
//! old result.

use std::collections::BTreeMap;
use std::time::Duration;

use quipu_contract::{Actor, Form, ProjectPath, in_one_line};
use quipu_store::{Change, Expect, LeaseToken, Receipt, StoreError, Version};
use serde_json::Value;

use crate::files::difference::render_difference;
use crate::files::read::may_read_whole;
use crate::project::forms::{resolve_form, template_of};
use crate::project::open::Project;
use crate::session::error::WorkError;

/// How often a composition is retried. Each retry means that another commit succeeded, so many
/// concurrent agents all make progress.
const ATTEMPTS: usize = 100;

/// A change that is being composed.
pub struct Draft<'p> {
    pub project: &'p Project,
    pub actor: &'p Actor,
    files: BTreeMap<ProjectPath, Drafted>,
    /// Data that the journal stores beside the files.
    pub(crate) note: Option<Value>,
    /// Todos and decisions that the change adds, so that the caller can report them.
    pub made: Vec<Made>,
    /// Next steps that the change drops without a step of the same text.
    pub(crate) dropped_steps: Vec<String>,
    /// The change is a finish.
    pub(crate) at_finish: bool,
}

/// An entry with its own id that a change adds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Made {
    pub form: Form,
    pub id: String,
    pub title: String,
}

#[derive(Debug, Clone)]
struct Drafted {
    old: Option<(String, Version)>,
    new: String,
    /// The text appended, for a file that is only appended to.
    added: Option<String>,
}

/// The properties of a change besides its texts.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    pub why: String,
    pub lease: Option<LeaseToken>,
    /// The session that the commit ends.
    pub ends: Option<String>,
}

impl<'p> Draft<'p> {
    pub fn new(project: &'p Project, actor: &'p Actor) -> Draft<'p> {
        Draft {
            project,
            actor,
            files: BTreeMap::new(),
            note: None,
            made: Vec::new(),
            dropped_steps: Vec::new(),
            at_finish: false,
        }
    }

    fn load(&mut self, path: &ProjectPath) -> Result<&mut Drafted, WorkError> {
        if !self.files.contains_key(path) {
            may_read_whole(self.project, self.actor, path)?;
            let old = match self.project.store.read(path)? {
                None => None,
                Some((bytes, version)) => {
                    // Replace invalid UTF-8 so that the rest stays readable. An append leaves the
                    // stored bytes unchanged.
                    let text = String::from_utf8(bytes).unwrap_or_else(|error| {
                        String::from_utf8_lossy(error.as_bytes()).into_owned()
                    });
                    Some((text, version))
                }
            };
            let new = old
                .as_ref()
                .map(|(text, _)| text.clone())
                .unwrap_or_default();
            self.files.insert(
                path.clone(),
                Drafted {
                    old,
                    new,
                    added: None,
                },
            );
        }
        Ok(self.files.get_mut(path).expect("inserted above"))
    }

    /// The new text; empty for a missing file.
    pub fn text(&mut self, path: &ProjectPath) -> Result<String, WorkError> {
        Ok(self.load(path)?.new.clone())
    }

    /// The new text, or the filled template for a missing file.
    pub fn text_or_template(&mut self, path: &ProjectPath) -> Result<String, WorkError> {
        match self.exists(path)? {
            true => self.text(path),
            false => template_of(self.project, path),
        }
    }

    /// Whether the file exists, or will after the change.
    pub fn exists(&mut self, path: &ProjectPath) -> Result<bool, WorkError> {
        let file = self.load(path)?;
        Ok(file.old.is_some() || !file.new.is_empty())
    }

    pub fn replace(&mut self, path: &ProjectPath, text: String) -> Result<(), WorkError> {
        self.load(path)?.new = text;
        Ok(())
    }

    /// Appends text on lines of its own.
    pub fn append(&mut self, path: &ProjectPath, text: &str) -> Result<(), WorkError> {
        let file = self.load(path)?;
        let open = !file.new.is_empty() && !file.new.ends_with('\n');
        let text = format!("{}{text}", if open { "\n" } else { "" });
        file.new.push_str(&text);
        file.added.get_or_insert_default().push_str(&text);
        Ok(())
    }

    /// The paths with a changed text.
    pub fn changed(&self) -> impl Iterator<Item = &ProjectPath> {
        self.files
            .iter()
            .filter(|(_, f)| f.is_changed())
            .map(|(path, _)| path)
    }

    /// Renders the diff of all files.
    pub fn difference(&self) -> String {
        let told = |(path, file): (&ProjectPath, &Drafted)| {
            let old = file.old.as_ref().map_or("", |(text, _)| text.as_str());
            render_difference(path.as_str(), old, path.as_str(), &file.new)
        };
        self.files.iter().map(told).collect()
    }

    fn change(&self, terms: &Terms) -> Change {
        let mut change = Change::by(self.actor).why(in_one_line(&terms.why));
        change.revised = true;
        // The texts are complete by construction, so a shorter text is intended.
        change.force = true;
        change.at_finish = self.at_finish;
        (change.lease, change.ends, change.note) =
            (terms.lease.clone(), terms.ends.clone(), self.note.clone());
        for (path, file) in self.files.iter().filter(|(_, f)| f.is_changed()) {
            change = match (&file.old, &file.added) {
                (None, _) => change.create(path, file.new.clone()),
                (Some(_), Some(added)) => change.append(path, added.clone()),
                (Some((_, version)), None) => {
                    change.write(path, file.new.clone(), Expect::Version(version.clone()))
                }
            };
        }
        change
    }

    /// Refuses a change without effect if one of its files has a flagged external edit: the
    /// recorded text differs from the file on disk. If the change has an effect, the store reports
    /// the flag.
    fn refuse_flagged(&self) -> Result<(), WorkError> {
        if self.changed().next().is_some() {
            return Ok(());
        }
        for path in self.files.keys() {
            if let Some(file) = self.project.store.flagged(path)?
                && let Some(flag) = &file.flag
            {
                let line = flag
                    .line
                    .map(|line| format!(" (line {line})"))
                    .unwrap_or_default();
                return Err(WorkError::refused(
                    format!("`{path}` {}{line}", flag.what),
                    file.remedy(),
                ));
            }
        }
        Ok(())
    }

    /// Whether a refusal only means that another commit created a file in the meantime.
    fn was_overtaken(&self) -> bool {
        self.files.iter().any(|(path, f)| {
            f.old.is_none()
                && f.is_changed()
                && matches!(self.project.store.read(path), Ok(Some(_)))
        })
    }
}

impl Drafted {
    fn is_changed(&self) -> bool {
        self.old.as_ref().map_or("", |(text, _)| text.as_str()) != self.new
    }
}

/// Composes a change and commits it. Retries on the newest texts if another commit came first.
pub fn revise<T>(
    project: &Project,
    actor: &Actor,
    compose: impl Fn(&mut Draft<'_>) -> Result<(T, Terms), WorkError>,
) -> Result<(T, Receipt), WorkError> {
    for attempt in 0..ATTEMPTS {
        let mut draft = Draft::new(project, actor);
        let (outcome, terms) = compose(&mut draft)?;
        draft.refuse_flagged()?;
        let published = project
            .validate(draft.change(&terms))
            .and_then(|judged| judged.publish());
        match published {
            Ok(receipt) => return Ok((outcome, receipt)),
            Err(StoreError::Stale { .. }) => {}
            Err(StoreError::Refused(_)) if draft.was_overtaken() => {}
            Err(error) => return Err(error.into()),
        }
        if attempt > 1 {
            let chance = u64::from(quipu_store::fresh_bytes()[0]);
            std::thread::sleep(Duration::from_micros(chance * (attempt as u64).min(40)));
        }
    }
    Err(WorkError::Crowded(ATTEMPTS))
}

/// A file of a form: its current text, or the filled template.
#[derive(Debug, Clone)]
pub struct Formed {
    pub path: ProjectPath,
    /// None if the file does not exist yet.
    pub version: Option<Version>,
    pub text: String,
}

/// Loads the single file of a form, if the actor may read it.
pub fn load_formed(project: &Project, actor: &Actor, form: Form) -> Result<Formed, WorkError> {
    let path = resolve_form(project, actor, form)?;
    let mut draft = Draft::new(project, actor);
    let text = draft.text_or_template(&path)?;
    let version = draft
        .load(&path)?
        .old
        .as_ref()
        .map(|(_, version)| version.clone());
    Ok(Formed {
        path,
        version,
        text,
    })
}

/// Changes the single file of a form in one commit. `edit` is called again if the file has changed.
pub fn change_formed(
    project: &Project,
    actor: &Actor,
    terms: &Terms,
    form: Form,
    edit: impl Fn(&str) -> Result<String, WorkError>,
) -> Result<(Receipt, Formed), WorkError> {
    let path = resolve_form(project, actor, form)?;
    let (text, receipt) = revise(project, actor, |draft| {
        let text = edit(&draft.text_or_template(&path)?)?;
        draft.replace(&path, text.clone())?;
        Ok((text, terms.clone()))
    })?;
    Ok((
        receipt,
        Formed {
            path,
            version: None,
            text,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    use quipu_contract::{ActorName, Language, facts, set_fact};
    use quipu_store::Options;

    use crate::project::init::{Layout, lay_out};
    use crate::worldlog::{NewTask, add_todo, read_task, start_task};

    const AT_ONCE: usize = 8;

    #[test]
    fn changes_of_one_file_at_once_are_all_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout {
            profiles: vec!["worldlog".into()],
            ..Layout::default()
        };
        lay_out(folder.path(), &layout, Options::default()).unwrap();
        let name = |text: &str| ActorName::parse(text).ok();
        let actor = Actor::Agent {
            role: name("agent"),
            unit: None,
            agent: name("otto"),
        };
        let patient = Options {
            wait: Duration::from_secs(120),
            ..Options::default()
        };
        let open = || Project::open(folder.path(), patient.clone()).unwrap();
        let terms = Terms {
            why: "test".into(),
            ..Terms::default()
        };
        let new = NewTask {
            description: "much".into(),
            ..NewTask::default()
        };
        std::thread::scope(|scope| {
            for number in 0..AT_ONCE {
                let (open, new, terms, actor) = (&open, &new, &terms, &actor);
                scope.spawn(move || {
                    let project = open();
                    // The first writer begins the task.
                    let begun = |text: &str| {
                        start_task(text, Language::En, new).unwrap_or_else(|_| text.to_owned())
                    };
                    let plan = |text: &str| {
                        Ok(add_todo(
                            &begun(text),
                            Language::En,
                            &format!("item {number}"),
                            None,
                        )?)
                    };
                    change_formed(&project, actor, terms, Form::Task, plan).unwrap();
                    let set = |text: &str| {
                        Ok(set_fact(
                            text,
                            Some("Structure"),
                            &[],
                            &format!("key {number}"),
                            "x",
                            "t",
                        )?
                        .0)
                    };
                    change_formed(&project, &Actor::Person, terms, Form::World, set).unwrap();
                });
            }
        });
        let project = open();
        let task = read_task(&load_formed(&project, &actor, Form::Task).unwrap().text).unwrap();
        assert_eq!(task.todos.len(), AT_ONCE);
        let world = load_formed(&project, &actor, Form::World).unwrap().text;
        assert_eq!(
            facts(&world)
                .iter()
                .filter(|fact| fact.section == "Structure" && !fact.older)
                .count(),
            AT_ONCE,
            "{world}"
        );
    }
}
