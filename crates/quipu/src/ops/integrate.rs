//! The `integrate` command: writes the configuration of an agent host. The work is done by
//! `crate::integrate`.

use clap::Args;
use quipu_contract::{Privilege, nearest, unknown};
use quipu_protocol::{Project, render_difference};
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::integrate::{Fillings, Planned, apply, hosts, plan};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Integrate {
    /// The host: claude, codex, gemini, opencode, goose, qwen, cursor or agents-md; without it,
    /// list all hosts
    host: Option<String>,
    /// Remove the integration
    #[arg(long)]
    remove: bool,
    /// Show the changes; write nothing
    #[arg(long)]
    dry_run: bool,
}

impl Operate for Integrate {
    const NAME: &'static str = "integrate";
    const ABOUT: &'static str =
        "Connect an agent host such as claude or codex: MCP server, hooks, skill";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let hosts = hosts();
        let Some(name) = &self.host else {
            let text: String = hosts
                .iter()
                .map(|h| format!("{:<10} {}\n", h.name, h.about))
                .collect();
            let list: Vec<_> = hosts
                .iter()
                .map(|h| json!({"name": h.name, "about": h.about}))
                .collect();
            return Ok(Answer::new(json!(list), text));
        };
        let Some(host) = hosts.iter().find(|h| h.name == *name) else {
            let known = || hosts.iter().map(|h| h.name.as_str());
            let remedy = nearest(name, known())
                .map_or("quipu integrate     (lists them)".to_owned(), |near| {
                    format!("quipu integrate {near}")
                });
            return Err(Failure::new(
                exit::NOT_FOUND,
                unknown("host", name, known()),
                remedy,
            ));
        };
        session.actor.may(Privilege::MakeRules)?;
        let root = Project::find_root(&session.folder)?;
        let contract = Project::load_contract(&root)?;
        let planned = plan(&root, &contract, host, self.remove)?;
        if !self.dry_run {
            apply(&root, &planned)?;
        }
        let text: String = planned.iter().map(difference).collect();
        let files: Vec<_> = planned
            .iter()
            .map(|f| json!({"path": f.path, "act": f.act()}))
            .collect();
        let changed = planned.iter().filter(|f| f.act() != "same").count();
        let answer = Answer::new(
            json!({"host": name, "files": files, "difference": text}),
            text,
        );
        let answer = answer.say(match (changed, self.dry_run) {
            (0, _) => "nothing to change".to_owned(),
            (_, true) => "dry run: nothing was written".to_owned(),
            (changed, false) => crate::answer::count(changed, "file") + " written",
        });
        Ok(match host.note.as_ref().filter(|_| !self.remove) {
            Some(note) => answer.say(Fillings::of(&contract).fill_role(note)),
            None => answer,
        })
    }
}

fn difference(file: &Planned) -> String {
    let name = |text: &Option<String>| {
        if text.is_some() {
            file.path.as_str()
        } else {
            "/dev/null"
        }
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    render_difference(
        name(&file.before),
        &text(&file.before),
        name(&file.after),
        &text(&file.after),
    )
}
