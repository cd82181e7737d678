use clap::Args;

use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Demo {
    /// Where to make the project; without it a temporary folder that is kept
    dir: Option<std::path::PathBuf>,
}

impl Operate for Demo {
    const NAME: &'static str = "demo";
    const ABOUT: &'static str = "A small book about Quipu's own source, rehearsed from outline to pages, in a project of its own";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        crate::demo::run(self.dir.map(|d| session.folder.join(d)))
    }
}
