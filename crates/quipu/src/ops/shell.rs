//! The commands `completions` and `man`: generate shell completions and the manual page.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use quipu_contract::{Actor, in_one_line};
use serde_json::json;

use crate::answer::{Answer, Failure, count, exit};
use crate::cli::command;
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell: bash, zsh or fish
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(["bash", "zsh", "fish"]))]
    shell: String,
}

impl Operate for Completions {
    const NAME: &'static str = "completions";
    const ABOUT: &'static str = "Print shell completions (bash, zsh or fish)";

    fn operate(self, _: &Session) -> Result<Answer, Failure> {
        let shell = match self.shell.as_str() {
            "zsh" => Shell::Zsh,
            "fish" => Shell::Fish,
            _ => Shell::Bash,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command(), "quipu", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        Ok(Answer::data(
            json!({"shell": self.shell, "script": script}),
            script,
        ))
    }
}

#[derive(Debug, Args)]
pub struct Man {
    /// The folder for the pages; it is created if necessary
    dir: PathBuf,
}

impl Operate for Man {
    const NAME: &'static str = "man";
    const ABOUT: &'static str = "Write a man page for each command into a folder; people only";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        if session.actor != Actor::Person {
            return Err(Failure::new(
                exit::REFUSED,
                "only people may write man pages",
                "ask a person to run it",
            ));
        }
        let dir = session.folder.join(&self.dir);
        let io = |e: std::io::Error| {
            Failure::new(
                exit::IO,
                format!("cannot write to `{}`: {e}", self.dir.display()),
                "",
            )
        };
        std::fs::create_dir_all(&dir).map_err(io)?;
        clap_mangen::generate_to(command(), &dir).map_err(io)?;
        let pages = std::fs::read_dir(&dir).map_err(io)?.count();
        let text = format!(
            "{} in {}\n",
            count(pages, "page"),
            in_one_line(&self.dir.display().to_string())
        );
        Ok(Answer::new(
            json!({"folder": self.dir.display().to_string(), "pages": pages}),
            text,
        ))
    }
}
