//! The `amend` command: changes a sealed file, or accepts a flagged edit, with a reason.

use std::path::PathBuf;

use clap::Args;
use quipu_contract::{Actor, Class, ProjectPath};
use quipu_store::{Change, Op};

use super::input::Input;
use super::{memory_check, receipt};
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Amend {
    /// The sealed file, or the state file with the flagged edit to accept
    path: String,
    /// More files to amend in the same commit
    #[arg(value_name = "PATH", conflicts_with_all = ["text", "file"])]
    more: Vec<String>,
    /// The reason for the change, or for accepting the edit
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    why: String,
    /// The new text; without --text and --file, accept the edit that is in the file
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    text: Option<String>,
    /// Read the new text from a file or a PDF; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write even if most of the text disappears or it looks like a placeholder
    #[arg(long)]
    force: bool,
}

impl Operate for Amend {
    const NAME: &'static str = "amend";
    const ABOUT: &'static str =
        "Change a sealed file, or accept a flagged edit, with a reason; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        let is_given = self.text.is_some() || self.file.is_some();
        let input = Input {
            text: self.text,
            file: self.file,
        };
        let bytes = if is_given {
            Some(super::pdf::as_text(path.as_str(), input.lines(session)?)?)
        } else {
            None
        };
        let mut kept: Vec<ProjectPath> = self
            .more
            .iter()
            .map(|path| Session::path(path))
            .collect::<Result<_, _>>()?;
        if !is_given {
            kept.push(path.clone());
        }
        // The contract refuses other actors regardless of the content of the file.
        for path in kept.iter().filter(|_| session.actor == Actor::Person) {
            let is_sealed = project.contract.class(path) == Class::Sealed;
            if is_sealed
                && project
                    .store
                    .flagged(path)?
                    .is_none_or(|file| file.flag.is_none())
            {
                let what =
                    format!("`{path}` has no flagged edit to accept, and no new text is given");
                return Err(Failure::new(
                    exit::REFUSED,
                    what,
                    format!("quipu amend {path} --why \"…\" --file FILE     (`-`: stdin)"),
                ));
            }
        }
        let mut change = Change::by(&session.actor)
            .why(self.why)
            .op(Op::Amend { path, bytes });
        for path in self.more {
            change = change.op(Op::Amend {
                path: Session::path(&path)?,
                bytes: None,
            });
        }
        (change.force, change.lease) = (self.force, session.lease.clone());
        let receipt = project.validate(change)?.publish()?;
        Ok(memory_check::with_notes(
            receipt::answer(project.contract.language, &receipt),
            &project,
            &session.actor,
            &receipt,
        ))
    }
}
