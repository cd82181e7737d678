//! The `store` commands: manage the shared PostgreSQL store of a project.

use clap::Args;
use quipu_contract::Privilege;
use quipu_postgres::{Address, Attachment, Postgres, SCHEMA, detach, push, roles};
use quipu_protocol::{Project, Setting, TRUST_COMMAND, is_trusted};
use quipu_store::{Options, StoreError};
use serde_json::json;

use super::trust::agree_to_store;
use crate::answer::{Answer, Failure, count, exit};
use crate::session::Session;
use crate::table::Operate;

/// Returns the address given by the caller, by the environment, or by a trusted contract.
fn address(said: Option<&str>, trusted: Option<&str>) -> Result<Address, Failure> {
    let given = std::env::var("QUIPU_STORE")
        .ok()
        .filter(|text| !text.is_empty());
    let text = said.or(given.as_deref()).or(trusted);
    let text = text.ok_or_else(|| {
        Failure::usage(
            "the address of the shared store is missing",
            "give postgres://USER@HOST/DATABASE, or set QUIPU_STORE",
        )
    })?;
    Ok(Address::parse(text)?)
}

#[derive(Debug, Args)]
pub struct StorePush {
    /// postgres://USER@HOST/DATABASE?project=NAME [env: QUIPU_STORE]
    address: Option<String>,
    /// The project's name in the store [default: the folder's name]
    #[arg(long)]
    project: Option<String>,
}

impl Operate for StorePush {
    const NAME: &'static str = "store push";
    const ABOUT: &'static str = "Move this project into a shared store, with its complete history";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let root = Project::find_root(&session.folder)?;
        if let Some(attached) = Attachment::load(&root)? {
            let what = format!(
                "this is already a working copy of `{}` at {}",
                attached.project, attached.address
            );
            return Err(Failure::new(
                crate::answer::exit::REFUSED,
                what,
                "quipu store pull     (makes it a local project again), then push",
            ));
        }
        let project = Project::open(
            &root,
            Options {
                alone: true,
                ..Options::default()
            },
        )?;
        let in_contract = project
            .contract
            .store
            .as_deref()
            .filter(|_| self.address.is_none());
        if in_contract.is_some_and(|address| !is_trusted(&root, &Setting::store(address))) {
            let what = "`store` of this project is not trusted: it was not contacted";
            return Err(Failure::new(
                crate::answer::exit::REFUSED,
                what,
                TRUST_COMMAND,
            ));
        }
        let address = address(self.address.as_deref(), in_contract)?;
        let folder = root.file_name().map_or_else(
            || "project".into(),
            |name| name.to_string_lossy().into_owned(),
        );
        let name = self.project.or(address.project.clone()).unwrap_or(folder);
        let moved = push(&project.store, &address, &name)?;
        let records = count(
            usize::try_from(moved.records).unwrap_or(usize::MAX),
            "record",
        );
        let text = format!(
            "`{}` is at {}: {records}, compared one by one\n",
            moved.project, moved.address
        );
        let answer = Answer::new(json!(moved), text).say(
            "this folder is now a working copy of it; for other folders: quipu checkout \
                ADDRESS",
        );
        Ok(agree_to_store(answer, &root, &moved.address))
    }
}

#[derive(Debug, Args)]
pub struct StorePull {}

impl Operate for StorePull {
    const NAME: &'static str = "store pull";
    const ABOUT: &'static str =
        "Turn this working copy into a local project with its complete history";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let project = session.project()?;
        let moved = detach(&project.store)?;
        let records = count(
            usize::try_from(moved.records).unwrap_or(usize::MAX),
            "record",
        );
        let text = format!("{records}, compared one by one: now a local project\n");
        let mut answer = Answer::new(json!(moved), text).say(format!(
            "{} still has its copy of `{}`",
            moved.address, moved.project
        ));
        if project.contract.store.is_some() {
            answer = answer.say("quipu.toml still names a shared store: remove `store` from it");
        }
        Ok(answer)
    }
}

#[derive(Debug, Args)]
pub struct StoreStatus {}

impl Operate for StoreStatus {
    const NAME: &'static str = "store status";
    const ABOUT: &'static str = "Show where the commit log is and how current this working copy is";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let project = session.project()?;
        let here = project.store.pulse()?;
        let Some(order) = project.store.commit_log() else {
            let text = format!("files and journal are in this folder, at @{here}; no server\n");
            return Ok(Answer::new(json!({"shared": false, "here": here}), text));
        };
        let about = order.describe();
        if order.offline().is_none() && Attachment::load(project.store.root())?.is_none() {
            let text = format!(
                "files and journal are in this folder, at @{here}; {} is configured, but this \
                 project is not in it\n  help  quipu store push     (moves the project there)\n",
                about.address
            );
            let mut answer = Answer::new(
                json!({"shared": false, "here": here, "named": about.address}),
                text,
            );
            answer.exit = exit::NO;
            return Ok(answer);
        }
        let newest = order
            .after(&project.store.cursor()?, quipu_store::WaitPolicy::OneTry)
            .map(|ruling| ruling.newest);
        let (state, there) = match newest {
            Ok(newest) if newest == here => ("the newest".to_owned(), Some(newest)),
            Ok(newest) => (
                format!("{} behind: quipu sync", newest.saturating_sub(here)),
                Some(newest),
            ),
            Err(StoreError::Unreachable { what, .. }) => {
                (format!("may be out of date: {what}"), None)
            }
            Err(error) => return Err(error.into()),
        };
        let text = format!(
            "`{}` at {}\nthis working copy is at revision {here}, {state}\n",
            about.project, about.address
        );
        Ok(Answer::new(
            json!({"shared": true, "address": about.address, "project": about.project, "here": here, "newest": there, "schema": SCHEMA}),
            text,
        ))
    }
}

#[derive(Debug, Args)]
pub struct StoreMigrate {
    /// postgres://OWNER@HOST/DATABASE [env: QUIPU_STORE]
    address: Option<String>,
}

impl Operate for StoreMigrate {
    const NAME: &'static str = "store migrate";
    const ABOUT: &'static str = "Create or upgrade the tables of a shared store";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let address = address(self.address.as_deref(), None)?;
        let before = Postgres::at(&address).migrate()?;
        let text = match before {
            SCHEMA => format!("schema {SCHEMA} is up to date\n"),
            0 => format!("created schema {SCHEMA}\n"),
            before => format!("upgraded schema {before} to {SCHEMA}\n"),
        };
        Ok(Answer::new(
            json!({"before": before, "schema": SCHEMA}),
            text,
        ))
    }
}

#[derive(Debug, Args)]
pub struct StoreRoles {
    /// Run the SQL on this server, as its owner, instead of printing it
    #[arg(long, value_name = "ADDRESS")]
    grant: Option<String>,
}

impl Operate for StoreRoles {
    const NAME: &'static str = "store roles";
    const ABOUT: &'static str = "Print the SQL that grants workers and keepers their rights";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        if let Some(text) = &self.grant {
            Postgres::at(&Address::parse(text)?).grant_roles()?;
            return Ok(Answer::new(
                json!({"granted": true}),
                "quipu_worker and quipu_keeper now have their rights\n",
            ));
        }
        Ok(Answer::new(json!({"sql": roles()}), roles()))
    }
}
