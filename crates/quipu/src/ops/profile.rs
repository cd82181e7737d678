//! The `profile` commands: list, show and eject profiles.

use clap::Args;
use quipu_contract::{Language, Privilege, unknown};
use quipu_protocol::{Library, Project, ProjectError, eject_profile};
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct ProfileList {}

impl Operate for ProfileList {
    const NAME: &'static str = "profile list";
    const ABOUT: &'static str = "List the built-in profiles and what they are for";

    fn operate(self, _: &Session) -> Result<Answer, Failure> {
        let summaries = Library::summaries(Language::En);
        let text = summaries
            .iter()
            .map(|s| format!("{:<10} {}\n", s.name, s.about))
            .collect::<String>();
        Ok(Answer::new(json!(summaries), text))
    }
}

#[derive(Debug, Args)]
pub struct ProfileShow {
    /// The profile
    name: String,
    /// Print only this file of the profile; by default the contract files
    file: Option<String>,
}

impl Operate for ProfileShow {
    const NAME: &'static str = "profile show";
    const ABOUT: &'static str = "Print a built-in profile";

    fn operate(self, _: &Session) -> Result<Answer, Failure> {
        let files = Library::files(&self.name);
        if files.is_empty() {
            let what = unknown(
                "profile",
                &self.name,
                Library::built_in().iter().map(String::as_str),
            );
            return Err(Failure::new(exit::NOT_FOUND, what, "quipu profile list"));
        }
        let chosen: Vec<&(String, String)> = match &self.file {
            Some(name) => files.iter().filter(|(path, _)| path == name).collect(),
            None => files
                .iter()
                .filter(|(path, _)| path.ends_with(".toml"))
                .collect(),
        };
        if chosen.is_empty() {
            let known = files
                .iter()
                .map(|(path, _)| path.as_str())
                .collect::<Vec<_>>()
                .join("\n  ");
            let what = format!(
                "profile `{}` has no such file; its files are\n  {known}",
                self.name
            );
            return Err(Failure::new(
                exit::NOT_FOUND,
                what,
                format!("quipu profile show {} FILE", self.name),
            ));
        }
        let text = match chosen.as_slice() {
            [(_, text)] => text.clone(),
            many => many
                .iter()
                .map(|(path, text)| format!("# ── profiles/{}/{path}\n{text}\n", self.name))
                .collect(),
        };
        let listing: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        Ok(Answer::new(
            json!({"name": self.name, "files": listing, "text": text}),
            text,
        ))
    }
}

#[derive(Debug, Args)]
pub struct ProfileEject {
    /// The profile
    name: String,
}

impl Operate for ProfileEject {
    const NAME: &'static str = "profile eject";
    const ABOUT: &'static str = "Copy a built-in profile into the project, to change it";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        // Works without a project too, for a user who is about to create one.
        let root = match Project::find_root(&session.folder) {
            Err(ProjectError::NotFound(folder)) => folder,
            found => found?,
        };
        let ejected = eject_profile(&root, &self.name)?;
        let text = ejected
            .files
            .iter()
            .map(|f| format!("{f}\n"))
            .collect::<String>();
        Ok(Answer::new(json!(ejected), text).say(format!(
            "in quipu.toml, under profiles, replace \"{}\" with \"{}\"",
            ejected.folder, self.name
        )))
    }
}
