//! The `append` command: adds text at the end of a file.

use clap::Args;
use quipu_store::{Change, Op};

use super::input::Input;
use super::{memory_check, receipt};
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Append {
    /// The file, relative to the project root
    path: String,
    #[command(flatten)]
    input: Input,
    /// An idempotency key: a second append with this key returns the receipt of the first
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The reason, recorded in the journal
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    why: Option<String>,
}

impl Operate for Append {
    const NAME: &'static str = "append";
    const ABOUT: &'static str = "Add text at the end of a file";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        let bytes = self.input.lines(session)?;
        let mut change = Change::by(&session.actor).op(Op::Append {
            path,
            bytes,
            apart: true,
        });
        (change.key, change.why, change.lease) = (self.key, self.why, session.lease.clone());
        let receipt = project.validate(change)?.publish()?;
        Ok(memory_check::with_notes(
            receipt::answer(project.contract.language, &receipt),
            &project,
            &session.actor,
            &receipt,
        ))
    }
}
