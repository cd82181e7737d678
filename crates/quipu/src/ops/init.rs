use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use quipu_contract::{Language, Privilege};
use quipu_protocol::{Layout, lay_out};
use quipu_store::Options;
use serde_json::json;

use crate::answer::{Answer, Failure};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Init {
    /// The folder; without it this one
    dir: Option<PathBuf>,
    /// Profiles, joined by commas (quipu profile list)
    #[arg(long, value_name = "P,P…", value_delimiter = ',', required = true)]
    profile: Vec<String>,
    /// The language of the files: en or zh
    #[arg(long, value_name = "LANG", default_value = "en", value_parser = ["en", "zh"])]
    lang: String,
    /// A value for a variable of the profile
    #[arg(long, value_name = "NAME=VALUE")]
    var: Vec<String>,
    /// Replace quipu.toml and the files whose class allows it; the journal keeps what was there
    #[arg(long)]
    force: bool,
}

impl Operate for Init {
    const NAME: &'static str = "init";
    const ABOUT: &'static str = "Create a project in this folder, or adopt files that are already there";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let mut vars = BTreeMap::new();
        for pair in &self.var {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(Failure::usage(format!("`--var {pair}` has no value"), "--var NAME=VALUE"));
            };
            if name.trim().is_empty() {
                return Err(Failure::usage(format!("`--var {pair}` has no name"), "--var NAME=VALUE"));
            }
            vars.insert(name.trim().to_owned(), value.to_owned());
        }
        let root = match &self.dir {
            Some(dir) => session.folder.join(dir),
            None => session.folder.clone(),
        };
        let layout = Layout { profiles: self.profile, language: Language::parse(&self.lang).unwrap_or_default(), vars, force: self.force };
        let laid = lay_out(&root, &layout, Options::default()).map_err(|error| {
            // Advice for the folder that was named, not for this one.
            let there = self.dir.as_ref().map(|dir| dir.display().to_string());
            let failure = Failure::from(error);
            match (there, &failure.mend) {
                (Some(there), Some(mend)) => {
                    let mend = mend.replace("quipu init --profile", &format!("quipu init {there} --profile"));
                    let mend = mend.replace("quipu status", &format!("quipu -C {there} status"));
                    let mend = mend.replace("quipu restore", &format!("quipu -C {there} restore"));
                    Failure { mend: Some(mend), ..failure }
                }
                _ => failure,
            }
        })?;
        let mut answer = Answer::new(json!(laid), laid.welcome.join("\n\n"));
        let told =
            [("created", &laid.created), ("replaced", &laid.replaced), ("adopted as it is", &laid.adopted), ("folders", &laid.folders)];
        for (what, paths) in told {
            if !paths.is_empty() {
                answer = answer.say(format!("{what}: {}", paths.join(" ")));
            }
        }
        for name in &laid.unknown_vars {
            let known = laid.known_vars.join(", ");
            answer = answer.say(format!("noted in quipu.toml, but no profile here knows the variable `{name}`; they know {known}"));
        }
        for flagged in &laid.flagged {
            answer = answer.say(format!("not taken over: {flagged} (quipu status)"));
        }
        Ok(answer)
    }
}
