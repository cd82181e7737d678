//! Resolves the agent names that `--by` accepts.
//!
//! `rehearse` and `script` are built in. Every other name is a host of `quipu-agents`: from its
//! table, from `[agents.NAME]` in `quipu.toml`, or described inline (`command:…`, `http:…`).

mod by;
mod diagram;
mod external;
mod rehearsal;

use std::path::{Path, PathBuf};

use quipu_agents::{Adapter, Host, HostError, Hosts, Sandbox, Setting, Via, resolve_agent};
use quipu_contract::{ActorName, Contract, did_you_mean};
use quipu_protocol::flow::{Agent, Scripted};
use quipu_protocol::{TRUST_COMMAND, is_trusted};
use serde::Serialize;

use crate::answer::{Failure, exit};
use crate::integrate::find_program;
pub use by::By;
pub use diagram::Drawing;
use external::ExternalAgent;
use rehearsal::RehearsalAgent;

/// Examples of agent names, for messages.
const EXAMPLES: &str = "rehearse (offline), claude, codex, gemini, opencode, person, command:'PROGRAM ARGUMENTS', http:ADDRESS";

/// The failure of a flow command without `--by`. The caller's own agent name is not a default: a
/// run that a host starts must not start the same host again.
pub fn unnamed(command: &str) -> Failure {
    let others = EXAMPLES.trim_start_matches("rehearse (offline), ");
    let remedy = format!("quipu {command} --by rehearse     (offline; or {others})");
    Failure::usage(
        "`--by` is missing: it names the agent that performs the steps",
        remedy,
    )
}

/// Returns the agent for a name.
pub fn agent<'c>(
    asked: &str,
    model: Option<&str>,
    contract: &'c Contract,
    root: &Path,
) -> Result<Box<dyn Agent + 'c>, Failure> {
    match asked {
        "rehearse" => {
            return Ok(Box::new(RehearsalAgent {
                contract,
                pause: pause("QUIPU_REHEARSE_PAUSE"),
            }));
        }
        "script" => return script(),
        _ => {}
    }
    let (agent, server) = resolve(asked, model, contract, root)?;
    // Otherwise each job would fail as often as it may, and then wait for a person.
    agent.ready().map_err(|why| {
        Failure::usage(
            format!("agent `{}` cannot start: {why}", agent.name()),
            "quipu self check     (shows which agent programs are installed)",
        )
    })?;
    Ok(Box::new(ExternalAgent::new(
        agent,
        contract.language,
        server,
    )))
}

/// Whether an agent may report the tokens that it uses.
pub fn counts_tokens(by: &str) -> bool {
    !matches!(by, "rehearse" | "script" | "person")
}

/// The name under which an agent is recorded: `claude`; `http` for an address. A program that the
/// command line describes has the name of its file, so that two of them can be told apart, unless
/// that is the name of a known agent.
pub fn actor_name(by: &str) -> Result<ActorName, Failure> {
    let parsed =
        |name: &str| ActorName::parse(name).map_err(|e| Failure::usage(e.to_string(), EXAMPLES));
    let Some((kind, what)) = by.split_once(':') else {
        return parsed(by);
    };
    let program = split_words(what).into_iter().next().unwrap_or_default();
    let stem = Path::new(&program)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .filter(|stem| kind == "command" && !Hosts::is_known(stem));
    match stem.and_then(|stem| ActorName::parse(stem).ok()) {
        Some(name) => Ok(name),
        None => parsed(kind),
    }
}

/// Opens the adapter for a name: a program in its sandbox, a model over HTTP, a person.
pub fn open_adapter(
    asked: &str,
    model: Option<&str>,
    contract: &Contract,
    root: &Path,
) -> Result<Box<dyn Adapter>, Failure> {
    Ok(resolve(asked, model, contract, root)?.0)
}

/// Loads the built-in hosts and those of the project.
fn hosts_of(contract: &Contract) -> Result<Hosts, Failure> {
    let mut hosts = Hosts::built_in().map_err(faulty)?;
    if !contract.agents.is_empty() {
        hosts
            .add_project(&toml::to_string(&contract.agents).unwrap_or_default())
            .map_err(faulty)?;
    }
    Ok(hosts)
}

/// An agent that can be named without a description.
#[derive(Debug, Serialize)]
pub struct KnownAgent {
    pub name: String,
    pub about: String,
    /// Whether its program is on this machine; true for an agent without a program.
    pub found: bool,
}

/// Returns the agents that Quipu or the contract names, the offline one first.
pub fn known_agents(contract: &Contract) -> Result<Vec<KnownAgent>, Failure> {
    let hosts = hosts_of(contract)?;
    let mut known = vec![KnownAgent {
        name: "rehearse".into(),
        about: String::new(),
        found: true,
    }];
    for name in hosts.names() {
        let host = hosts.resolve(name).map_err(faulty)?;
        let program = host.program.as_deref();
        known.push(KnownAgent {
            name: name.to_owned(),
            found: program.is_none_or(|program| find_program(program).is_some()),
            about: host.about,
        });
    }
    Ok(known)
}

/// Describes what the agents of a project run, contact and receive, one line each.
pub fn describe_agents(contract: &Contract) -> Result<Vec<String>, Failure> {
    let hosts = hosts_of(contract)?;
    contract
        .agents
        .keys()
        .map(|name| Ok(describe(name, &hosts.resolve(name).map_err(faulty)?)))
        .collect()
}

fn describe(name: &str, host: &Host) -> String {
    let mut text = match host.via {
        Via::Command | Via::Acp => format!(
            "agent `{name}` runs `{}` in a sandbox",
            host.program.as_deref().unwrap_or_default()
        ),
        Via::Http => format!(
            "agent `{name}` sends everything its role may read to {}",
            host.base.as_deref().unwrap_or_default()
        ),
        Via::Person => format!("agent `{name}` is a person"),
    };
    if let Some(variable) = &host.base_from {
        text.push_str(&format!(", or to the address in {variable}"));
    }
    if let Some(key) = &host.key {
        text.push_str(&format!(", with the key in {key}"));
    }
    for (what, given) in [
        ("receives your variables", &host.pass),
        ("receives copies of your files", &host.credentials),
        ("may also read", &host.reads),
    ] {
        if !given.is_empty() {
            text.push_str(&format!("; it {what}: {}", given.join(", ")));
        }
    }
    match host.via {
        Via::Command | Via::Acp if host.offline => text + "; it has no network",
        Via::Command | Via::Acp => text + "; it may use the network",
        Via::Http | Via::Person => text,
    }
}

/// Refuses an agent that the project describes, unless a person has trusted it.
fn check_trust(name: &str, contract: &Contract, root: &Path) -> Result<(), Failure> {
    let setting =
        quipu_protocol::Setting::agents(contract).filter(|_| contract.agents.contains_key(name));
    match setting {
        Some(setting) if !is_trusted(root, &setting) => {
            let what = format!(
                "`[agents]` of this project is not trusted: agent `{name}` was not started"
            );
            Err(Failure::new(exit::REFUSED, what, TRUST_COMMAND))
        }
        _ => Ok(()),
    }
}

/// Resolves an agent, and the program that serves it memory if it asks for that.
fn resolve(
    asked: &str,
    model: Option<&str>,
    contract: &Contract,
    root: &Path,
) -> Result<(Box<dyn Adapter>, Option<PathBuf>), Failure> {
    let mut hosts = hosts_of(contract)?;
    let name = actor_name(asked)?.to_string();
    match asked.split_once(':') {
        None => check_trust(asked, contract, root)?,
        Some((kind, what)) => {
            let table = described(&name, kind, what)?;
            hosts.add(&table).map_err(faulty)?;
        }
    }
    let sandbox = Sandbox::of_this_program().map_err(|e| {
        Failure::new(
            exit::IO,
            format!("quipu cannot find its own program file: {e}"),
            "",
        )
    })?;
    let server = hosts
        .resolve(&name)
        .map_err(faulty)?
        .with_mcp
        .then(|| sandbox.helper.clone());
    let setting = Setting {
        model: model.map(str::to_owned),
        sandbox,
    };
    Ok((
        resolve_agent(&name, &hosts, &setting).map_err(faulty)?,
        server,
    ))
}

fn faulty(error: HostError) -> Failure {
    match error {
        HostError::Unknown { name, known } => {
            let known = known
                .split(", ")
                .map(|known| known.trim_matches('`'))
                .chain(["rehearse", "script"]);
            Failure::new(
                exit::NOT_FOUND,
                format!("unknown agent `{name}`{}", did_you_mean(&name, known)),
                EXAMPLES,
            )
        }
        HostError::BuiltIn(ref name) => {
            let remedy = format!(
                "in quipu.toml, rename the agent to [agents.my-{name}]; then run: quipu \
                    trust"
            );
            Failure::new(exit::REFUSED, error.to_string(), remedy)
        }
        other => Failure::new(
            exit::USAGE,
            other.to_string(),
            "declare the agent in quipu.toml: [agents.NAME]",
        ),
    }
}

/// Returns the table of an agent that the command line describes.
fn described(name: &str, kind: &str, what: &str) -> Result<String, Failure> {
    let mut table = toml::Table::new();
    match kind {
        "command" => {
            let mut words = split_words(what).into_iter();
            let program = words.next().ok_or_else(|| {
                Failure::usage("`command:` is not followed by a program", EXAMPLES)
            })?;
            let args: Vec<String> = words.collect();
            table.insert("via".into(), "command".into());
            table.insert("program".into(), program.into());
            // A program without a prompt argument reads the prompt from stdin.
            if !args.iter().any(|arg| {
                ["{{brief}}", "{{whole_brief}}", "{{inline}}"]
                    .iter()
                    .any(|place| arg.contains(place))
            }) {
                table.insert("stdin".into(), "{{whole_brief}}".into());
            }
            table.insert("args".into(), args.into());
        }
        "http" => {
            table.insert("like".into(), "local".into());
            table.insert("base".into(), what.into());
        }
        other => {
            return Err(Failure::usage(
                format!("unknown kind of agent `{other}:`"),
                EXAMPLES,
            ));
        }
    }
    Ok(toml::to_string(&toml::Table::from_iter([(
        name.to_owned(),
        toml::Value::Table(table),
    )]))
    .unwrap_or_default())
}

/// Returns the folders that no agent may read directly, regardless of its host: the project, and
/// Quipu's files for the user.
pub fn kept_out(root: &Path) -> Vec<PathBuf> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    std::iter::once(real(root))
        .chain(quipu_protocol::state_folder().map(|folder| real(&folder)))
        .collect()
}

/// Splits a command line into words; quotes group words.
pub fn split_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn script() -> Result<Box<dyn Agent>, Failure> {
    let Some(folder) = std::env::var_os("QUIPU_SCRIPT") else {
        return Err(Failure::usage(
            "agent `script` has no prepared texts: QUIPU_SCRIPT is not set",
            "QUIPU_SCRIPT=FOLDER quipu run --by script",
        ));
    };
    let mut script = Scripted::of(Path::new(&folder));
    script.pause = pause("QUIPU_SCRIPT_PAUSE");
    Ok(Box::new(script))
}

/// Reads a number of milliseconds from an environment variable.
fn pause(variable: &str) -> std::time::Duration {
    std::time::Duration::from_millis(
        std::env::var(variable)
            .ok()
            .and_then(|ms| ms.parse().ok())
            .unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_apart_by_their_files() {
        let name = |by: &str| actor_name(by).unwrap().to_string();
        assert_eq!(name("command:./tools/ana.sh --go"), "ana");
        assert_eq!(name("command:'./my agent'"), "command");
        assert_eq!(name("command:claude -p"), "command");
        assert_eq!(name("command:./rehearse"), "command");
        assert_eq!(name("http:http://127.0.0.1:80/v1"), "http");
        assert_eq!(name("claude"), "claude");
    }

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(
            split_words("sh -c 'cat > \"$X\"' \"a b\" ''"),
            ["sh", "-c", "cat > \"$X\"", "a b", ""]
        );
    }

    #[test]
    fn a_program_that_is_told_nothing_reads_its_task() {
        assert!(
            described("ana", "command", "my-agent --go")
                .unwrap()
                .contains("stdin")
        );
        assert!(
            !described("ana", "command", "my-agent {{brief}}")
                .unwrap()
                .contains("stdin")
        );
        assert!(described("ana", "smoke", "signals").is_err());
    }
}
