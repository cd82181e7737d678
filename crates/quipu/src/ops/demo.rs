//! The `demo` command. The demonstration itself is in `crate::demo`.

use clap::Args;

use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Demo {
    /// The folder to create the project in; by default a temporary folder that is not deleted
    dir: Option<std::path::PathBuf>,
}

impl Operate for Demo {
    const NAME: &'static str = "demo";
    const ABOUT: &'static str =
        "Write a small book offline, in a new project, to see what Quipu does";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        crate::demo::run(self.dir.map(|d| session.folder.join(d)))
    }
}
