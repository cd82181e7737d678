//! Reports conflict copies: edits that conflicted with newer commits and were saved by the current
//! command.

use std::path::{Path, PathBuf};

use quipu_contract::Actor;
use quipu_protocol::{Project, ReadScope};
use quipu_store::{Conflict, ConflictCopy, Options, Store, conflict_names, take_conflict_copies};

use crate::answer::{Answer, Failure};

/// The conflict copies that existed before a command.
#[derive(Debug, Clone)]
pub struct ConflictNotice {
    root: PathBuf,
    /// The reader. A role is shown no file that it may not read.
    actor: Actor,
    before: Vec<String>,
}

impl ConflictNotice {
    pub fn of(root: &Path, actor: &Actor) -> ConflictNotice {
        ConflictNotice {
            root: root.to_owned(),
            actor: actor.clone(),
            before: conflict_names(&root.join(".quipu")),
        }
    }

    /// Returns the notice about conflict copies that the command made, unless its answer already
    /// names them.
    pub fn render(&self, result: &Result<Answer, Failure>, json: bool) -> Option<String> {
        let mut names = conflict_names(&self.root.join(".quipu"));
        names.retain(|name| !self.before.contains(name) && !names_it(result, json, name));
        let mut copies = take_conflict_copies(&self.root);
        copies.retain(|kept| !names_it(result, json, &kept_at(kept)));
        if names.is_empty() && copies.is_empty() {
            return None;
        }
        let project = Project::open(&self.root, Options::default()).ok()?;
        let scope = ReadScope::of(&project, &self.actor);
        // In a working copy, the notice about the conflict copy covers it.
        copies.retain(|kept| {
            project.store.commit_log().is_none()
                && scope.names_all(std::slice::from_ref(&kept.path))
        });
        let told = copies
            .iter()
            .map(told_kept)
            .chain(told_conflicts(&project.store, &names))
            .collect::<Vec<_>>();
        (!told.is_empty()).then(|| told.join("\n"))
    }
}

fn names_it(result: &Result<Answer, Failure>, json: bool, name: &str) -> bool {
    match result {
        Ok(answer) if json => answer.json.to_string().contains(name),
        Ok(answer) => {
            answer.text.contains(name) || answer.talk.iter().any(|line| line.contains(name))
        }
        Err(failure) => failure.what.contains(name),
    }
}

fn told_kept(kept: &ConflictCopy) -> String {
    format!(
        "an external edit of {} conflicted with a commit; Quipu kept it as a conflict copy: quipu \
         show {}",
        kept.path,
        kept_at(kept)
    )
}

/// Returns the arguments that show an edit stored in the journal.
pub fn kept_at(kept: &ConflictCopy) -> String {
    format!("{} --at @{} --conflict-copy", kept.path, kept.seq)
}

/// Describes conflict copies: what was saved, where, and how to restore it.
pub fn told_conflicts(store: &Store, names: &[String]) -> Option<String> {
    let all = store.conflicts().unwrap_or_default();
    let known = |name: &String| {
        all.iter()
            .find(|conflict| conflict.kept == *name)
            .and_then(|conflict| conflict.path.clone())
    };
    let told = |name: &String| match known(name) {
        Some(path) => format!(
            "an edit of {path} conflicted with a newer commit and was kept as a conflict copy: {}",
            take_back(&path, name)
        ),
        None => format!(
            "an edit conflicted with a newer commit and was kept as a conflict copy: \
            {name}"
        ),
    };
    (!names.is_empty()).then(|| names.iter().map(told).collect::<Vec<_>>().join("\n"))
}

/// Returns the line of `status` about a conflict copy.
pub fn render_in_status(conflict: &Conflict) -> String {
    match &conflict.path {
        Some(path) => {
            format!(
                "  conflict {path}: an edit made here conflicted with a newer commit\n           \
                 help  {}\n",
                take_back(path, &conflict.kept)
            )
        }
        None => format!(
            "  conflict {}: an edit made here conflicted with a newer commit\n",
            conflict.kept
        ),
    }
}

fn take_back(path: &str, kept: &str) -> String {
    format!("quipu write {path} --file {kept}; or delete that file")
}
