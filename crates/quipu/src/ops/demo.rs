//! The `demo` command. The demonstrations are in `crate::demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Demo {
    /// Another demonstration than the tour
    what: Option<What>,
    /// The new folder to work in; by default a temporary folder that is not deleted
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// The rehearsal agent plans, writes and reviews a small book about Quipu's own source
    Book,
}

impl Operate for Demo {
    const NAME: &'static str = "demo";
    const ABOUT: &'static str = "Show what Quipu does, offline, in a temporary folder";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let dir = self.dir.map(|dir| session.folder.join(dir));
        match self.what {
            None => crate::demo::run_tour(dir),
            Some(What::Book) => crate::demo::run_book(dir),
        }
    }
}
