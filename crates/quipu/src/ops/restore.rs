//! The `restore` command: brings back a version of a file.

use clap::Args;
use quipu_contract::{Class, MANIFEST};
use quipu_protocol::{ReadError, is_of_faulty_rules, may_restore};
use quipu_store::{At, Change, StoreError};

use super::receipt;
use crate::answer::{Answer, Failure, exit, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Restore {
    /// The file
    path: String,
    /// More files, restored in the same commit
    #[arg(value_name = "PATH")]
    more: Vec<String>,
    /// The version: a hash (a1b2c3…), a commit (@12), versions ago (~1) or a time; by default the
    /// newest commit
    #[arg(long, value_name = "VERSION")]
    at: Option<String>,
    /// The reason, recorded in the journal
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    why: Option<String>,
}

impl Operate for Restore {
    const NAME: &'static str = "restore";
    const ABOUT: &'static str =
        "Bring back a version of a file; the current text stays in the journal";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let at = match &self.at {
            Some(text) => Some(At::parse(text).ok_or_else(|| ReadError::BadVersion {
                path: path.clone(),
                at: text.clone(),
            })?),
            None => None,
        };
        let project = session.history()?;
        // Restoring a faulty contract file needs no valid contract. Any other file is restored
        // under the contract.
        let project =
            match project.store.is_unruled() && !is_of_faulty_rules(project.store.root(), &path) {
                true => session.project()?,
                false => project,
            };
        // The history of a file is not searched for an actor that may not restore it.
        let mut paths = vec![path.clone()];
        for more in &self.more {
            paths.push(Session::path(more)?);
        }
        for path in &paths {
            may_restore(&project, &session.actor, path, at.is_some())?;
        }
        let mut change = Change::by(&session.actor);
        (change.why, change.lease) = (self.why, session.lease.clone());
        let mut change = match project.store.restoring(change, &path, at.as_ref()) {
            Err(StoreError::NotFound { what, .. })
                if path.as_str() == MANIFEST && project.store.is_unruled() =>
            {
                return Err(Failure::new(
                    exit::NOT_FOUND,
                    what,
                    "write it again, or: quipu init --profile NAME --force",
                ));
            }
            other => other?,
        };
        for path in &paths[1..] {
            change = project.store.restoring(change, path, at.as_ref())?;
        }
        let done = project.validate(change)?.publish()?;
        let answer = receipt::answer(project.contract.language, &done);
        // Only if an older version exists that may be restored.
        let may_go_back = matches!(
            project.contract.class(&path),
            Class::Overwrite | Class::State | Class::Free
        );
        let is_newest = done.unchanged
            && self.at.is_none()
            && self.more.is_empty()
            && may_go_back
            && project.store.events(&path)?.len() > 1;
        Ok(if is_newest {
            let command = format!("quipu restore {path} --at ~1");
            answer.say(in_language(
                project.contract.language,
                format!(
                    "it has not changed since it was last written; {command} restores the \
                     version before"
                ),
                format!("自上次写入以来没有改动；{command} 恢复前一个版本"),
            ))
        } else {
            answer
        })
    }
}
