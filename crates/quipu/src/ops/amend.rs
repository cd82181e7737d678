use clap::Args;
use quipu_store::{Change, Op};

use super::input::Input;
use super::receipt;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Amend {
    /// The sealed file, or the state file whose external edit is to be kept
    path: String,
    /// More such files
    #[arg(value_name = "PATH", conflicts_with_all = ["text", "file"])]
    more: Vec<String>,
    /// Why what was settled is settled anew, or why the edit is kept
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    why: String,
    #[command(flatten)]
    input: Input,
    /// A large loss, or words that look like a stand-in for text, are meant
    #[arg(long)]
    force: bool,
}

impl Operate for Amend {
    const NAME: &'static str = "amend";
    const ABOUT: &'static str = "Change a sealed file, or accept a flagged edit, with a reason; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        let bytes = if self.input.is_given() { Some(super::pdf::as_text(path.as_str(), self.input.lines(session)?)?) } else { None };
        let mut change = Change::by(&session.actor).why(self.why).op(Op::Amend { path, bytes });
        for path in &self.more {
            change = change.op(Op::Amend { path: Session::path(path)?, bytes: None });
        }
        (change.force, change.lease) = (self.force, session.lease.clone());
        Ok(receipt::answer(&project.judge(change)?.publish()?))
    }
}
