//! The `remove` command: removes a file, if its class allows that.

use clap::Args;
use quipu_protocol::may_expect;
use quipu_store::{Change, Expect, Op, Version};

use super::receipt;
use crate::answer::{Answer, Failure, in_language};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Remove {
    /// The file
    path: String,
    /// Remove only if the file is still at this version
    #[arg(long, value_name = "VERSION")]
    expect: Option<String>,
    /// The reason, recorded in the journal
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    why: Option<String>,
}

impl Operate for Remove {
    const NAME: &'static str = "remove";
    const ABOUT: &'static str = "Remove a file, if its class allows it; `restore` brings it back";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        let expect = self
            .expect
            .map_or(Expect::Any, |v| Expect::Version(Version::parse(&v)));
        let mut change = Change::by(&session.actor).op(Op::Remove { path, expect });
        (change.why, change.lease) = (self.why, session.lease.clone());
        may_expect(&project, &change)?;
        let receipt = project.validate(change)?.publish()?;
        let language = project.contract.language;
        let command = format!("quipu restore {}", self.path);
        Ok(receipt::answer(language, &receipt).say(in_language(
            language,
            format!("{command} restores it"),
            format!("{command} 可恢复"),
        )))
    }
}
