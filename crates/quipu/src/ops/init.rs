//! The `init` command: creates a project, integrates the hosts found, and suggests a first step.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use quipu_contract::{Actor, Contract, Language, Privilege, ProjectPath, Tokens};
use quipu_protocol::{
    Caller, InitError, Laid, Layout, Project, Repository, StartRequest, lay_out, start,
};
use quipu_store::Options;
use serde_json::json;

use crate::answer::{Answer, Failure, exit};
use crate::integrate::{Fillings, Host, Record, change_host, hosts, plan};
use crate::session::Session;
use crate::table::Operate;
use crate::terminal;

/// The profile used by default.
const DEFAULT_PROFILE: &str = "relay";
/// Folders that a refusal proposes for the memory files, if the root already has other files with
/// their names.
const PROPOSED: [&str; 3] = ["memory", "quipu-memory", "agent-memory"];
/// Maximum number of paths listed; the rest is counted.
const NAMED: usize = 8;
/// Token budget of `start`.
const START_BUDGET: Tokens = Tokens(1_200);

#[derive(Debug, Args)]
pub struct Init {
    /// The project's folder; by default the current folder
    project: Option<PathBuf>,
    /// The profiles, separated by commas (quipu profile list) [default: relay]
    #[arg(long, value_name = "P,P…", value_delimiter = ',')]
    profile: Vec<String>,
    /// The folder for the memory files; by default the project's folder
    #[arg(long, value_name = "FOLDER")]
    dir: Option<String>,
    /// The language of the files: en or zh; by default the language of the README
    #[arg(long, value_name = "LANG", value_parser = ["en", "zh"])]
    lang: Option<String>,
    /// Set a variable of the profile; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    var: Vec<String>,
    /// Integrate the agent hosts that are found here, without asking
    #[arg(long, conflicts_with = "no_integrate")]
    yes: bool,
    /// Do not integrate agent hosts, and do not ask
    #[arg(long)]
    no_integrate: bool,
    /// Replace quipu.toml and all files that may be replaced; the journal keeps the old versions
    #[arg(long)]
    force: bool,
}

impl Operate for Init {
    const NAME: &'static str = "init";
    const ABOUT: &'static str =
        "Create a project in this folder, or adopt files that are already there";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        session.actor.may(Privilege::MakeRules)?;
        let vars = parse_vars(&self.var)?;
        let root = self.project.as_ref().map_or_else(
            || session.folder.clone(),
            |project| session.folder.join(project),
        );
        if self.project.is_none() && !self.force {
            refuse_inside(&root)?;
        }
        let before = root
            .join("quipu.toml")
            .is_file()
            .then(|| Project::load_contract(&root).ok())
            .flatten();
        let language = self.lang.as_deref().and_then(Language::parse);
        let repository = Repository::survey(&root, language);
        let layout = Layout {
            profiles: self.profiles(before.as_ref()),
            language: repository.language,
            dir: self
                .memory_folder()?
                .or_else(|| before.as_ref().and_then(|contract| contract.dir.clone())),
            repository,
            vars,
            force: self.force,
        };
        let laid = lay_out(&root, &layout, Options::default())
            .map_err(|error| self.explain(error, &root, before.as_ref()))?;
        if before.is_none() {
            // It would be of an earlier project in this folder. Without a home there is none.
            drop(Record::forget(&root));
        }
        let Integrated {
            found,
            integrated,
            mut talk,
        } = self.integrate(&root, &laid, session)?;
        let sees = count_start(&root);
        let mut welcome = laid.welcome.clone();
        welcome.push(render_end(&laid, sees, &found, &integrated));
        let mut json = json!(laid);
        json["start_tokens"] = json!(sees);
        json["integrated"] = json!(integrated);
        let answer = Answer::new(json, welcome.join("\n\n"));
        talk.splice(0..0, told(&laid));
        Ok(talk.into_iter().fold(answer, Answer::say))
    }
}

impl Init {
    /// Returns the profiles named on the command line, or else those of the replaced contract.
    fn profiles(&self, before: Option<&Contract>) -> Vec<String> {
        let named = || {
            before.map(|contract| {
                contract
                    .profiles
                    .iter()
                    .map(|profile| profile.name.clone())
                    .collect()
            })
        };
        match self.profile.is_empty() {
            true => named()
                .filter(|names: &Vec<String>| !names.is_empty())
                .unwrap_or_else(|| vec![DEFAULT_PROFILE.to_owned()]),
            false => self.profile.clone(),
        }
    }

    fn memory_folder(&self) -> Result<Option<String>, Failure> {
        let Some(dir) = &self.dir else {
            return Ok(None);
        };
        let plain = dir.trim_start_matches("./").trim_end_matches('/');
        if plain.is_empty() || plain == "." {
            return Ok(None);
        }
        let is_pattern = plain.contains(['*', '?', '{', '}', '[', ']']);
        match ProjectPath::parse(plain) {
            Ok(path) if !is_pattern => Ok(Some(path.as_str().to_owned())),
            _ => Err(Failure::usage(
                format!("`--dir {dir}` is not a folder of the project"),
                "quipu init --dir memory",
            )),
        }
    }

    /// Explains an error, with the command that works here.
    fn explain(&self, error: InitError, root: &Path, before: Option<&Contract>) -> Failure {
        let failure = match &error {
            InitError::Exists => match before {
                Some(contract) => {
                    let remedy = "quipu start --peek     (what agents see); quipu integrate     \
                        (agent hosts); quipu contract show     (the rules)";
                    Failure::new(exit::REFUSED, describe(contract), remedy)
                }
                None => Failure::from(error),
            },
            InitError::Foreign(_) => {
                let free = PROPOSED
                    .iter()
                    .find(|name| root.join(name).symlink_metadata().is_err())
                    .unwrap_or(&PROPOSED[0]);
                let profile = if self.profile.is_empty() {
                    String::new()
                } else {
                    format!(" --profile {}", self.profile.join(","))
                };
                Failure::new(
                    exit::REFUSED,
                    error.to_string(),
                    format!(
                        "quipu init{profile} --dir {free}     (keeps the memory files in {free}/)"
                    ),
                )
            }
            _ => Failure::from(error),
        };
        // The advice concerns the named folder, not the current one.
        let there = self.project.as_ref().filter(|_| root.is_dir());
        let remedy = there.and_then(|there| {
            Some(
                failure
                    .remedy
                    .as_ref()?
                    .replace("quipu ", &format!("quipu -C {} ", there.display())),
            )
        });
        Failure {
            remedy: remedy.or(failure.remedy),
            ..failure
        }
    }

    /// Integrates the hosts found, as far as the user wants that.
    fn integrate(
        &self,
        root: &Path,
        laid: &Laid,
        session: &Session,
    ) -> Result<Integrated, Failure> {
        let found: Vec<Host> = hosts()
            .into_iter()
            .filter(|host| host.is_found(root))
            .collect();
        let mut integrated = Vec::new();
        let mut talk = Vec::new();
        let can_ask = !self.no_integrate && session.door.is_none() && !session.json;
        if found.is_empty() || !(self.yes || can_ask && ask(laid.language, &found)) {
            return Ok(Integrated {
                found,
                integrated,
                talk,
            });
        }
        let contract = Project::load_contract(root)?;
        for host in &found {
            let changed = plan(root, &contract, host, false)
                .and_then(|planned| change_host(root, host, &planned, false));
            match changed {
                Ok(note) => {
                    talk.extend(note);
                    integrated.push(host.name.clone());
                    talk.extend(
                        host.note
                            .as_ref()
                            .map(|note| Fillings::of(&contract).fill_role(note)),
                    );
                }
                Err(failure) => talk.push(format!(
                    "{} is not integrated: {}",
                    host.about, failure.what
                )),
            }
        }
        Ok(Integrated {
            found,
            integrated,
            talk,
        })
    }
}

/// The hosts found, the names of the integrated ones, and messages.
struct Integrated {
    found: Vec<Host>,
    integrated: Vec<String>,
    talk: Vec<String>,
}

fn parse_vars(pairs: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut vars = BTreeMap::new();
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Failure::usage(
                format!("`--var {pair}` has no value"),
                "--var NAME=VALUE",
            ));
        };
        if name.trim().is_empty() {
            return Err(Failure::usage(
                format!("`--var {pair}` has no name"),
                "--var NAME=VALUE",
            ));
        }
        vars.insert(name.trim().to_owned(), value.to_owned());
    }
    Ok(vars)
}

/// Refuses to create a project inside another one by accident.
fn refuse_inside(folder: &Path) -> Result<(), Failure> {
    let Ok(above) = Project::find_root(folder) else {
        return Ok(());
    };
    if std::fs::canonicalize(folder).is_ok_and(|folder| folder == above) {
        return Ok(());
    }
    let what = format!(
        "this folder belongs to the project in `{}`",
        above.display()
    );
    Err(Failure::new(
        exit::REFUSED,
        what,
        "quipu status; or, for a project of its own: quipu init .",
    ))
}

/// Describes an existing project.
fn describe(contract: &Contract) -> String {
    let names = contract
        .profiles
        .iter()
        .map(|profile| profile.name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let place = contract
        .dir
        .as_ref()
        .map(|dir| format!(", with its memory in {dir}/"))
        .unwrap_or_default();
    format!("`quipu.toml` already exists: this is a project of {names}{place}")
}

fn told(laid: &Laid) -> Vec<String> {
    let lists = [
        ("replaced", &laid.replaced),
        ("adopted unchanged", &laid.adopted),
    ];
    let mut lines: Vec<String> = lists
        .iter()
        .filter(|(_, paths)| !paths.is_empty())
        .map(|(what, paths)| format!("{what}: {}", paths.join(" ")))
        .collect();
    let known = laid.known_vars.join(", ");
    let unknown = |name: &String| {
        format!(
            "saved in quipu.toml, but no profile here uses the variable `{name}`; they use {known}"
        )
    };
    lines.extend(laid.unknown_vars.iter().map(unknown));
    lines.extend(
        laid.flagged
            .iter()
            .map(|flagged| format!("not adopted: {flagged} (quipu status)")),
    );
    lines
}

/// Asks on the terminal whether to integrate the hosts; false without a terminal.
fn ask(language: Language, found: &[Host]) -> bool {
    if !std::io::stdin().is_terminal() || !terminal::stderr_is_terminal() {
        return false;
    }
    let names = found
        .iter()
        .map(|host| host.about.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let mut files: Vec<&str> = found
        .iter()
        .flat_map(|host| &host.files)
        .map(|file| file.path.as_str())
        .collect();
    files.sort_unstable();
    files.dedup();
    let files = files.join(", ");
    terminal::write_stderr(&match language {
        Language::En => format!(
            "Set up {names} here? This writes hooks, the MCP server entry and short instructions \
             ({files}). [Y/n] "
        ),
        Language::Zh => {
            format!(
                "在这里接入 {names}？将写入钩子、MCP \
                服务器配置和一段简短说明（{files}）。[Y/n] "
            )
        }
    });
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .is_ok_and(|read| read > 0)
        && ["", "y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

/// Counts the tokens that an agent gets at the start of a session.
fn count_start(root: &Path) -> Option<u64> {
    let project = Project::open(root, Options::default()).ok()?;
    let request = StartRequest {
        budget: START_BUDGET,
        scene: None,
        delegation: None,
        task: None,
        suspect: None,
        peek: true,
        full: true,
        notices: Vec::new(),
        caller: Caller::default(),
    };
    start(&project, &Actor::Person, &request)
        .ok()
        .map(|awake| awake.tokens)
}

/// Formats three lines: the created project, the agent's first view, the first command.
fn render_end(laid: &Laid, sees: Option<u64>, found: &[Host], integrated: &[String]) -> String {
    let zh = laid.language == Language::Zh;
    let made: Vec<String> = laid
        .created
        .iter()
        .cloned()
        .chain(laid.folders.iter().map(|folder| format!("{folder}/")))
        .collect();
    let more = made.len().saturating_sub(NAMED);
    let mut first = made[..made.len() - more].join(" ");
    if more > 0 {
        first.push_str(&if zh {
            format!("，另有 {more} 项")
        } else {
            format!(" and {more} more")
        });
    }
    if let Some(filled) = &laid.filled_in {
        let from = filled.from.join(", ");
        first.push_str(&match zh {
            true => format!("；{} 已依据 {from} 填写，请核对", filled.path),
            false => format!("; {} is filled in from {from}: check it", filled.path),
        });
    }
    let sees = sees.unwrap_or_default();
    let opened = found.iter().find(|host| integrated.contains(&host.name));
    let (second, third) = match zh {
        true => (
            format!("{sees} 个词元，每次会话开始时给出     （quipu start --peek）"),
            match (opened, found.first()) {
                (Some(host), _) => format!(
                    "在这里打开 {}，问它：“这个项目进展到哪里了？”",
                    host.program()
                ),
                (None, Some(host)) => {
                    format!("quipu integrate {}     （接入 {}）", host.name, host.about)
                }
                (None, None) => "quipu integrate     （列出可以接入的 Agent 程序）".to_owned(),
            },
        ),
        false => (
            format!("{sees} tokens at the start of each session     (quipu start --peek)"),
            match (opened, found.first()) {
                (Some(host), _) => format!(
                    "open {} here and ask: \"What is the state of this project?\"",
                    host.program()
                ),
                (None, Some(host)) => {
                    format!("quipu integrate {}     (sets up {})", host.name, host.about)
                }
                (None, None) => {
                    "quipu integrate     (lists the agent programs that can be set up)".to_owned()
                }
            },
        ),
    };
    match zh {
        true => format!("已建立：{first}\nAgent 会看到：{second}\n试试：{third}"),
        false => format!("Created: {first}\nAgents see: {second}\nTry: {third}"),
    }
}
