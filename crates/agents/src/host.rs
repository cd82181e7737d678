//! Host tables: program, flags, environment, how the host takes an MCP server, how its answer is
//! read.
//!
//! The built-in table is `hosts.toml`. A user's own table has the same form; with `like`, it
//! inherits every missing setting from another host.

use crate::assignment::Bounds;
use crate::beneath::parse_relative;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The built-in host tables.
const BUILT_IN: &str = include_str!("../hosts.toml");

/// Agent names that are not hosts of the table.
const RESERVED: [&str; 4] = ["rehearse", "script", "command", "http"];

/// The reason why a host cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("unknown agent `{name}`: the agents are {known}")]
    Unknown { name: String, known: String },
    #[error("agent `{name}`: {why}")]
    Faulty { name: String, why: String },
    /// `--by claude` must mean the same program in every project.
    #[error("`[agents.{0}]` would replace the built-in agent `{0}`")]
    BuiltIn(String),
    #[error("agents: {0}")]
    Syntax(#[from] toml::de::Error),
}

/// The adapter a host is driven by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    Command,
    Acp,
    Http,
    Person,
}

/// The API of a model over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    Openai,
    Anthropic,
}

/// The way a model over HTTP gets its material.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Material {
    /// Tools to list, read and write.
    #[default]
    Tools,
    /// Everything is in the prompt; the final message is the result.
    Inline,
}

/// One host. Strings may hold `{{…}}` placeholders, which the adapter fills.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub via: Via,
    #[serde(default)]
    pub about: String,
    /// The program: a name to look for in `PATH`, or a path.
    #[serde(default)]
    pub program: Option<String>,
    #[serde(default)]
    pub args: Vec<String>,
    /// Added if a model was selected.
    #[serde(default)]
    pub model_args: Vec<String>,
    /// Added for each file of the view.
    #[serde(default)]
    pub each_read: Vec<String>,
    /// Added for each output.
    #[serde(default)]
    pub each_output: Vec<String>,
    /// Standard input of the program.
    #[serde(default)]
    pub stdin: Option<String>,
    /// All arguments of a second turn in the same session. Without them the brief is sent again
    /// with the fault.
    #[serde(default)]
    pub again: Vec<String>,
    /// Environment variables to set.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Environment variables to pass on from the caller.
    #[serde(default)]
    pub pass: Vec<String>,
    /// Files below the caller's home to copy into the private home: logins and settings.
    #[serde(default)]
    pub credentials: Vec<String>,
    /// Files to write into the private home, by path. JSON is merged over files copied by
    /// `credentials`.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Further paths that the program reads; `~` is the caller's home.
    #[serde(default)]
    pub reads: Vec<String>,
    /// Denies sockets.
    #[serde(default)]
    pub offline: bool,
    /// Size limit of the private home, in MiB.
    #[serde(default)]
    pub home_mib: Option<u64>,
    /// Memory limit of all processes of the agent together, in MiB.
    #[serde(default)]
    pub memory_mib: Option<u64>,
    /// Limit on processes and threads that exist at once.
    #[serde(default)]
    pub processes: Option<u64>,
    #[serde(default)]
    pub mcp: Mcp,
    /// Gives the host an MCP server over its view and its out folder.
    #[serde(default)]
    pub with_mcp: bool,
    #[serde(default)]
    pub answer: Answer,
    /// Texts in the output that mean a refusal, regardless of the exit code.
    #[serde(default)]
    pub lies: Vec<String>,
    /// ACP: the host uses its own file tools; the client offers none.
    #[serde(default)]
    pub own_files: bool,
    /// HTTP: the address before the path of the API.
    #[serde(default)]
    pub base: Option<String>,
    /// HTTP: an environment variable that takes precedence over `base`.
    #[serde(default)]
    pub base_from: Option<String>,
    #[serde(default)]
    pub api: Option<Api>,
    /// HTTP: the variable that holds the key. Without one, no key is sent.
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// HTTP: maximum tokens of an answer.
    #[serde(default)]
    pub max_output: Option<u64>,
    #[serde(default)]
    pub material: Material,
    /// HTTP: number of retries after a transient failure.
    #[serde(default)]
    pub retries: Option<u32>,
    /// HTTP: additional fields of each request.
    #[serde(default)]
    pub body: serde_json::Map<String, serde_json::Value>,
}

impl Host {
    /// Returns the bounds for this host. Values in its table override the general ones.
    pub(crate) fn bounds(&self, general: &Bounds) -> Bounds {
        let bytes = |mib: u64| mib.saturating_mul(1 << 20);
        Bounds {
            home: self.home_mib.map_or(general.home, bytes),
            memory: self.memory_mib.map_or(general.memory, bytes),
            tasks: self.processes.unwrap_or(general.tasks),
            ..*general
        }
    }

    /// Returns the first path of the table that leaves the private home, with its field.
    fn leaving_home(&self) -> Option<(&'static str, &str)> {
        let leaves =
            |path: &str| path.starts_with('~') || parse_relative(Path::new(path)).is_none();
        let credentials = self.credentials.iter().map(|path| ("credentials", path));
        let files = self.files.keys().map(|path| ("files", path));
        let of_mcp = self.mcp.files.keys().map(|path| ("mcp.files", path));
        credentials
            .chain(files)
            .chain(of_mcp)
            .map(|(field, path)| (field, path.as_str()))
            .find(|(_, path)| leaves(path))
    }
}

/// The way a host receives an MCP server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Files to write into the private home, by path. JSON is merged over existing JSON.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

impl Mcp {
    pub(crate) fn is_empty(&self) -> bool {
        self.args.is_empty() && self.set.is_empty() && self.files.is_empty()
    }
}

/// Rules that read a host's answer from its standard output.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Standard output is JSON lines. Otherwise all of it is the final message.
    #[serde(default)]
    pub lines: bool,
    #[serde(default)]
    pub message: Vec<Pick>,
    #[serde(default)]
    pub fault: Vec<Pick>,
    #[serde(default)]
    pub progress: Vec<Pick>,
    #[serde(default)]
    pub usage: Vec<UsagePick>,
}

/// Picks a text out of the JSON lines that match.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pick {
    /// JSON pointers and the values they must have.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// The JSON pointer of the text.
    pub text: String,
    /// Joins the pieces instead of keeping the last one; a line of another kind starts a new
    /// message.
    #[serde(default)]
    pub join: bool,
}

/// Picks token counts out of the JSON lines that match.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsagePick {
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// JSON pointers to numbers that are added up.
    pub input: Vec<String>,
    pub output: Vec<String>,
    /// Each line counts one call and all are added. Otherwise the last line counts all calls.
    #[serde(default)]
    pub each: bool,
}

/// All hosts by name.
#[derive(Clone, Debug)]
pub struct Hosts {
    tables: BTreeMap<String, toml::Table>,
}

impl Hosts {
    /// Loads the built-in hosts.
    pub fn built_in() -> Result<Self, HostError> {
        let mut hosts = Hosts {
            tables: BTreeMap::new(),
        };
        hosts.add(BUILT_IN)?;
        Ok(hosts)
    }

    /// Adds a project's tables. They cannot redefine the names of built-in agents.
    pub fn add_project(&mut self, text: &str) -> Result<(), HostError> {
        let parsed: BTreeMap<String, toml::Table> = toml::from_str(text)?;
        if let Some(name) = parsed
            .keys()
            .find(|name| self.tables.contains_key(*name) || RESERVED.contains(&name.as_str()))
        {
            return Err(HostError::BuiltIn(name.clone()));
        }
        self.add(text)
    }

    /// Adds tables, one per host. A known name is replaced.
    pub fn add(&mut self, text: &str) -> Result<(), HostError> {
        let parsed: BTreeMap<String, toml::Table> = toml::from_str(text)?;
        let names: Vec<String> = parsed.keys().cloned().collect();
        for (name, table) in parsed {
            // A host may inherit from the host that it replaces.
            let table = self.inherit(&name, table)?;
            self.tables.insert(name, table);
        }
        for name in names {
            self.resolve(&name)?;
        }
        Ok(())
    }

    /// Whether a name belongs to a built-in host or has a meaning of its own.
    pub fn is_known(name: &str) -> bool {
        RESERVED.contains(&name)
            || Hosts::built_in().is_ok_and(|hosts| hosts.tables.contains_key(name))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// Returns the host with this name.
    pub fn resolve(&self, name: &str) -> Result<Host, HostError> {
        let table = self.tables.get(name).ok_or_else(|| self.unknown(name))?;
        let host: Host =
            table
                .clone()
                .try_into()
                .map_err(|why: toml::de::Error| HostError::Faulty {
                    name: name.to_string(),
                    why: why.message().to_string(),
                })?;
        if let Some((field, path)) = host.leaving_home() {
            let why = format!(
                "`{field}` names `{path}`, which is not below the private home: give a relative path without `..`, such as `.config/x`"
            );
            return Err(HostError::Faulty {
                name: name.to_string(),
                why,
            });
        }
        let missing = match host.via {
            Via::Command | Via::Acp if host.program.is_none() => "`program` is missing",
            Via::Http if host.api.is_none() => "`api` is missing: \"openai\" or \"anthropic\"",
            Via::Http if host.base.is_none() => "`base` is missing: the address of the server",
            Via::Http if host.with_mcp => {
                "`with_mcp` applies only to programs: a model over HTTP already has these tools"
            }
            Via::Person if host.with_mcp => {
                "`with_mcp` applies only to programs: a person uses \
                files"
            }
            Via::Command if host.with_mcp && host.mcp.is_empty() => {
                "`with_mcp` needs `mcp`, the way the program accepts a server"
            }
            _ => return Ok(host),
        };
        Err(HostError::Faulty {
            name: name.to_string(),
            why: missing.to_string(),
        })
    }

    fn inherit(&self, name: &str, mut table: toml::Table) -> Result<toml::Table, HostError> {
        let Some(like) = table.remove("like") else {
            return Ok(table);
        };
        let like = like.as_str().unwrap_or_default();
        let base = self
            .tables
            .get(like)
            .ok_or_else(|| match self.unknown(like) {
                HostError::Unknown { known, .. } => HostError::Faulty {
                    name: name.to_string(),
                    why: format!("unknown agent in `like = \"{like}\"`: the agents are {known}"),
                },
                other => other,
            })?;
        let mut whole = base.clone();
        overlay(&mut whole, table);
        Ok(whole)
    }

    fn unknown(&self, name: &str) -> HostError {
        let known = self
            .names()
            .map(|known| format!("`{known}`"))
            .collect::<Vec<_>>()
            .join(", ");
        HostError::Unknown {
            name: name.to_string(),
            known,
        }
    }
}

/// Merges one table over another: nested tables are merged, everything else is replaced.
fn overlay(below: &mut toml::Table, above: toml::Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(known)), toml::Value::Table(more)) => overlay(known, more),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// The values of the `{{…}}` placeholders in a host's strings.
#[derive(Clone, Debug, Default)]
pub struct Places(BTreeMap<&'static str, String>);

impl Places {
    pub fn put(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.insert(name, value.into());
    }

    /// Fills all placeholders. Inserted text is not scanned again, so a brief may hold any text.
    pub fn fill(&self, template: &str) -> String {
        let mut filled = String::new();
        let mut rest = template;
        while let Some(at) = rest.find("{{") {
            filled.push_str(&rest[..at]);
            let after = &rest[at + 2..];
            let known = after
                .find("}}")
                .and_then(|end| Some((self.0.get(&after[..end])?, end)));
            match known {
                Some((value, end)) => {
                    filled.push_str(value);
                    rest = &after[end + 2..];
                }
                None => {
                    filled.push_str("{{");
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    pub fn fill_all<'t>(&self, templates: impl IntoIterator<Item = &'t String>) -> Vec<String> {
        templates
            .into_iter()
            .map(|template| self.fill(template))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_that_is_built_in_resolves() {
        let hosts = Hosts::built_in().unwrap();
        for name in hosts.names() {
            hosts.resolve(name).unwrap();
        }
        for name in [
            "claude", "codex", "gemini", "opencode", "goose", "qwen", "aider", "llm", "person",
        ] {
            assert!(hosts.names().any(|known| known == name), "{name}");
        }
    }

    #[test]
    fn a_host_like_another_says_only_what_differs() {
        let mut hosts = Hosts::built_in().unwrap();
        hosts
            .add("[mine]\nlike = \"claude\"\nprogram = \"/opt/claude\"\nset = { A = \"1\" }")
            .unwrap();
        let (mine, claude) = (
            hosts.resolve("mine").unwrap(),
            hosts.resolve("claude").unwrap(),
        );
        assert_eq!(mine.args, claude.args);
        assert_eq!(mine.program.as_deref(), Some("/opt/claude"));
        assert_eq!(mine.set.len(), claude.set.len() + 1);
    }

    #[test]
    fn a_project_cannot_replace_a_built_in_agent() {
        let mut hosts = Hosts::built_in().unwrap();
        let names: Vec<String> = hosts
            .names()
            .map(str::to_owned)
            .chain(RESERVED.map(str::to_owned))
            .collect();
        for name in names {
            let error = hosts
                .add_project(&format!(
                    "[{name}]\nvia = \"command\"\nprogram = \"/bin/sh\""
                ))
                .unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("would replace the built-in agent"),
                "{name}: {error}"
            );
        }
        assert_ne!(
            hosts.resolve("claude").unwrap().program.as_deref(),
            Some("/bin/sh")
        );
        hosts.add_project("[mine]\nlike = \"claude\"").unwrap();
    }

    #[test]
    fn faults_say_what_is_wrong() {
        let mut hosts = Hosts::built_in().unwrap();
        let said = |result: Result<(), HostError>| result.unwrap_err().to_string();
        assert!(said(hosts.add("[a]\nvia = \"command\"")).contains("`program` is missing"));
        assert!(
            said(hosts.add("[b]\nlike = \"nobody\""))
                .contains("unknown agent in `like = \"nobody\"`")
        );
        assert!(
            said(hosts.add("[d]\nlike = \"aider\"\nwith_mcp = true"))
                .contains("`with_mcp` needs `mcp`")
        );
        assert!(
            said(hosts.add("[e]\nlike = \"local\"\nwith_mcp = true"))
                .contains("already has these tools")
        );
        assert!(
            said(hosts.add("[c]\nvia = \"command\"\nprogram = \"x\"\nflags = []"))
                .contains("flags")
        );
        assert!(
            hosts
                .resolve("nobody")
                .unwrap_err()
                .to_string()
                .contains("`claude`")
        );
    }

    #[test]
    fn what_fills_a_place_is_not_filled_again() {
        let mut places = Places::default();
        places.put("brief", "say {{model}} and {{nothing}}");
        places.put("model", "m");
        assert_eq!(
            places.fill("-p {{brief}} {{model}} {{unknown}} {{"),
            "-p say {{model}} and {{nothing}} m {{unknown}} {{"
        );
    }
}
