//! The `integrate` command: writes the configuration of an agent host. The work is done by
//! `crate::integrate`.

use std::path::Path;

use clap::Args;
use quipu_contract::{Contract, Language, Privilege, nearest, unknown};
use quipu_protocol::{Project, render_difference};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, exit};
use crate::integrate::{Fillings, Host, Planned, change_host, hosts, plan};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Integrate {
    /// The host, such as claude or codex; without it, list all hosts
    #[arg(conflicts_with = "all")]
    host: Option<String>,
    /// Every host that is installed here or used in this project
    #[arg(long)]
    all: bool,
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
            if self.all {
                return self.change_all(session, &hosts);
            }
            return Ok(list(&hosts));
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
        let (data, text, notes) = self.change(&root, &contract, host)?;
        let notes = notes
            .into_iter()
            .chain(self.advice(&contract, !text.is_empty()));
        Ok(notes.fold(Answer::new(data, text), Answer::say))
    }
}

impl Integrate {
    /// Changes every host that is found. A host that cannot be changed does not stop the others.
    fn change_all(&self, session: &Session, hosts: &[Host]) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let root = Project::find_root(&session.folder)?;
        let contract = Project::load_contract(&root)?;
        let found: Vec<&Host> = hosts.iter().filter(|host| host.is_found(&root)).collect();
        if found.is_empty() {
            let what = "no agent host is installed here or used in this project";
            return Err(Failure::new(
                exit::NOT_FOUND,
                what,
                "quipu integrate agents-md",
            ));
        }
        let (mut all, mut text, mut notes) = (Vec::new(), String::new(), Vec::new());
        let mut code = exit::FINE;
        for host in found {
            match self.change(&root, &contract, host) {
                Ok((data, changes, said)) => {
                    all.push(data);
                    text.push_str(&changes);
                    notes.extend(
                        said.into_iter()
                            .map(|line| format!("{}: {line}", host.name)),
                    );
                }
                Err(failure) => {
                    code = failure.exit;
                    notes.push(format!("{}: {}", host.name, failure.what));
                }
            }
        }
        notes.extend(self.advice(&contract, !text.is_empty()));
        let mut answer = notes
            .into_iter()
            .fold(Answer::new(json!(all), text), Answer::say);
        answer.exit = code;
        Ok(answer)
    }

    /// The next step for the files that were written.
    fn advice(&self, contract: &Contract, is_changed: bool) -> Option<String> {
        let is_written = is_changed && !self.dry_run && !self.remove;
        is_written.then(|| match contract.language {
            Language::Zh => "把这些文件提交到 git，同事的 Agent 就会遵守同样的规则".to_owned(),
            Language::En => "commit these files to git, and your colleagues' agents follow the \
                             same rules"
                .to_owned(),
        })
    }

    /// Changes one host. Returns the data, what is printed, and messages.
    fn change(
        &self,
        root: &Path,
        contract: &Contract,
        host: &Host,
    ) -> Result<(Value, String, Vec<String>), Failure> {
        let planned = plan(root, contract, host, self.remove)?;
        let mut notes = Vec::new();
        if !self.dry_run {
            notes.extend(change_host(root, host, &planned, self.remove)?);
        }
        let difference: String = planned.iter().map(difference).collect();
        let files: Vec<_> = planned
            .iter()
            .map(|f| json!({"path": f.path, "act": f.act()}))
            .collect();
        let changed = planned.iter().filter(|f| f.act() != "same").count();
        let data = json!({"host": host.name, "files": files, "difference": difference});
        let zh = contract.language == Language::Zh;
        let text = match self.dry_run {
            true => difference,
            false => planned.iter().filter_map(|file| told(file, zh)).collect(),
        };
        match (changed, self.dry_run, zh) {
            (0, _, true) => notes.push("没有需要改动的内容".to_owned()),
            (0, ..) => notes.push("nothing to change".to_owned()),
            (_, true, true) => notes.push("试运行：没有写入任何内容".to_owned()),
            (_, true, false) => notes.push("dry run: nothing was written".to_owned()),
            _ => {}
        }
        if let Some(note) = host.note.as_ref().filter(|_| !self.remove) {
            notes.push(Fillings::of(contract).fill_role(note));
        }
        Ok((data, text, notes))
    }
}

/// One line on a file that was written.
fn told(file: &Planned, zh: bool) -> Option<String> {
    let act = match (file.act(), zh) {
        ("same", _) => return None,
        ("created", true) => "新建",
        ("removed", true) => "删除",
        (_, true) => "更新",
        (act, false) => act,
    };
    Some(format!("{act}  {}\n", file.path))
}

fn list(hosts: &[Host]) -> Answer {
    let text: String = hosts
        .iter()
        .map(|h| format!("{:<11} {}\n", h.name, h.about))
        .collect();
    let list: Vec<_> = hosts
        .iter()
        .map(|h| json!({"name": h.name, "about": h.about}))
        .collect();
    Answer::new(json!(list), text)
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
