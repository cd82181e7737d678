//! The `write` command: creates a file, or replaces all of its text.

use clap::Args;
use quipu_protocol::may_expect;
use quipu_store::{Change, Expect, Op, Version};

use super::input::Input;
use super::{memory_check, receipt};
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Write {
    /// The file, relative to the project root
    path: String,
    #[command(flatten)]
    input: Input,
    /// Write only if the file is still at this version
    #[arg(long, value_name = "VERSION")]
    expect: Option<String>,
    /// Write even if most of the text disappears, it looks like a placeholder, or a new name is
    /// close to one in the contract
    #[arg(long)]
    force: bool,
    /// An idempotency key: a second write with this key returns the receipt of the first
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The reason, recorded in the journal
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    why: Option<String>,
}

impl Operate for Write {
    const NAME: &'static str = "write";
    const ABOUT: &'static str = "Create a file, or replace all of its text";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        let bytes = super::pdf::as_text(path.as_str(), self.input.lines(session)?)?;
        let expect = self
            .expect
            .map_or(Expect::Any, |v| Expect::Version(Version::parse(&v)));
        let written = path.clone();
        let mut change = Change::by(&session.actor).op(Op::Write {
            path,
            bytes,
            expect,
        });
        (change.key, change.why, change.lease, change.force) =
            (self.key, self.why, session.lease.clone(), self.force);
        change.new_name = self.force;
        may_expect(&project, &change)?;
        let receipt = project.validate(change)?.publish()?;
        let answer = receipt::with_open_conflicts(
            &project,
            &session.actor,
            &[written],
            receipt::answer(&receipt),
        )?;
        Ok(memory_check::with_notes(
            answer,
            &project,
            &session.actor,
            &receipt,
        ))
    }
}
