//! The `checkout` command: makes a working copy of a project in a shared store.

use std::path::PathBuf;

use clap::Args;
use quipu_contract::Privilege;
use quipu_postgres::{Address, checkout};
use serde_json::json;

use super::trust::agree_to_store;
use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Checkout {
    /// postgres://USER@HOST/DATABASE?project=NAME
    address: String,
    /// The folder to create [default: the project's name]
    #[arg(value_name = "DIR")]
    into: Option<PathBuf>,
    /// The project's name, if the address does not contain it
    #[arg(long)]
    project: Option<String>,
}

impl Operate for Checkout {
    const NAME: &'static str = "checkout";
    const ABOUT: &'static str = "Make a working copy of a project in a shared store";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let address = Address::parse(&self.address)?;
        let name = self
            .project
            .or(address.project.clone())
            .ok_or_else(|| Failure::usage("the project is missing", "--project NAME"))?;
        let folder = session.folder.join(
            self.into
                .unwrap_or_else(|| PathBuf::from(name.replace('/', "-"))),
        );
        let moved = checkout(&address, &name, &folder)?;
        let text = format!(
            "{}: `{}` at revision {}\n",
            folder.display(),
            moved.project,
            moved.records
        );
        let answer = Answer::new(
            json!({"folder": folder.display().to_string(), "moved": moved}),
            text,
        );
        Ok(agree_to_store(answer, &folder, &moved.address))
    }
}
