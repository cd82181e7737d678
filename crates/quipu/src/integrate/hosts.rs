//! The table of agent hosts, embedded from `hosts/hosts.toml`.

use std::path::{Path, PathBuf};

use quipu_contract::{Contract, Language};
use serde::Deserialize;

const TABLE: &str = include_str!("../../hosts/hosts.toml");

/// The texts that the table names, in English and Chinese.
const TEXTS: [(&str, &str, &str); 4] = [
    (
        "AGENTS.md",
        include_str!("../../hosts/AGENTS.md"),
        include_str!("../../hosts/AGENTS.zh.md"),
    ),
    (
        "SKILL.md",
        include_str!("../../hosts/SKILL.md"),
        include_str!("../../hosts/SKILL.zh.md"),
    ),
    (
        "opencode.js",
        include_str!("../../hosts/opencode.js"),
        include_str!("../../hosts/opencode.js"),
    ),
    (
        "cline.js",
        include_str!("../../hosts/cline.js"),
        include_str!("../../hosts/cline.js"),
    ),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    hosts: Vec<Host>,
}

/// An agent host and its files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub name: String,
    pub about: String,
    /// Further steps that a person must do.
    #[serde(default)]
    pub note: Option<String>,
    /// The program that is searched in PATH to detect the host.
    #[serde(default)]
    program: Option<String>,
    /// Files and folders in a project that show the host's use.
    #[serde(default)]
    traces: Vec<String>,
    pub files: Vec<HostFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    pub path: String,
    pub kind: Kind,
    #[serde(default)]
    pub mark: CommentStyle,
    /// The host runs the file.
    #[serde(default)]
    pub executable: bool,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    json: Option<String>,
    #[serde(default)]
    lines: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Json,
    Block,
    Whole,
}

/// The comment syntax of the block markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommentStyle {
    #[default]
    Html,
    Hash,
}

/// The project's values for the files of its hosts.
#[derive(Debug, Clone)]
pub struct Fillings {
    pub language: Language,
    /// The default role of agents.
    pub role: Option<String>,
    /// The profiles' instructions for agents, as list items.
    pub guide: String,
    /// The skill's text about the start and end of a session, as list items.
    pub session: &'static str,
}

impl Fillings {
    pub fn of(contract: &Contract) -> Fillings {
        let language = contract.language;
        let guides = contract
            .profiles
            .iter()
            .map(|profile| profile.guide.in_language(language).trim())
            .filter(|guide| !guide.is_empty());
        let guide = guides.collect::<Vec<_>>().join("\n");
        let guide = if guide.is_empty() {
            Self::anywhere(language).guide
        } else {
            guide
        };
        // The project's own instructions contain this text, and it must not appear twice.
        let session = match language {
            Language::En => {
                "- The instructions of this project (CLAUDE.md, AGENTS.md or similar) explain how \
                 to start and end a session."
            }
            Language::Zh => "- 如何开始和结束会话，见本项目的说明（CLAUDE.md、AGENTS.md 等）。",
        };
        Fillings {
            language,
            role: contract.session_role().map(str::to_owned),
            guide,
            session,
        }
    }

    /// Fills the role placeholders of a text.
    pub fn fill_role(&self, text: &str) -> String {
        let role = self.role.as_deref();
        text.replace(
            "{as}",
            &role.map(|role| format!("--as {role} ")).unwrap_or_default(),
        )
        .replace(
            "{as-words}",
            &role
                .map(|role| format!("\"--as\", \"{role}\", "))
                .unwrap_or_default(),
        )
    }

    /// Returns the values for files that serve every project.
    pub fn anywhere(language: Language) -> Fillings {
        let guide = match language {
            Language::En => {
                "- It also lists the commands of this project and explains how to end a session: \
                 `quipu finish`."
            }
            Language::Zh => "- 其中也列出本项目使用的命令，并说明如何结束会话：`quipu finish`。",
        };
        let session = match language {
            Language::En => {
                "- The output of `quipu start` is in your context when a session begins. If it is \
                 not, run it. It lists the commands of this project and explains how to end a \
                 session: one `quipu finish`."
            }
            Language::Zh => {
                "- 会话开始时，`quipu start` \
                 的输出在你的上下文里；如果没有，请运行一次。其中列出本项目使用的命令，并说明如何用一条 \
                 `quipu finish` 结束会话。"
            }
        };
        Fillings {
            language,
            role: None,
            guide: guide.to_owned(),
            session,
        }
    }
}

impl Host {
    /// Whether the host is installed on this machine, or was used in this project.
    pub fn is_found(&self, root: &Path) -> bool {
        self.place().is_some()
            || self
                .traces
                .iter()
                .any(|trace| root.join(trace).symlink_metadata().is_ok())
    }

    pub fn has_program(&self) -> bool {
        self.program.is_some()
    }

    /// Returns where the host's program is installed.
    pub fn place(&self) -> Option<PathBuf> {
        find_program(self.program.as_deref()?)
    }

    /// Returns the command that opens the host.
    pub fn program(&self) -> &str {
        self.program.as_deref().unwrap_or(&self.name)
    }
}

impl HostFile {
    /// Returns the content of a file for a host and a project.
    pub fn content(&self, host: &str, fillings: &Fillings) -> String {
        let zh = fillings.language == Language::Zh;
        let named = |name: &String| {
            TEXTS
                .iter()
                .find(|(n, ..)| n == name)
                .map(|(_, en, other)| if zh { *other } else { *en })
        };
        let text = self
            .text
            .as_ref()
            .and_then(named)
            .or(self.json.as_deref())
            .or(self.lines.as_deref())
            .unwrap_or_default();
        fillings
            .fill_role(text)
            .replace("{guide}", &fillings.guide)
            .replace("{session}", fillings.session)
            .replace("{host}", host)
    }
}

/// Finds a program in PATH.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|place| place.is_file())
}

/// Returns all known hosts.
pub fn hosts() -> Vec<Host> {
    toml::from_str::<Table>(TABLE)
        .expect("the table is checked by a test")
        .hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    use quipu_contract::ProjectPath;

    #[test]
    fn the_table_is_sound() {
        for host in hosts() {
            for file in &host.files {
                let given = [&file.text, &file.json, &file.lines]
                    .iter()
                    .filter(|t| t.is_some())
                    .count();
                assert_eq!(given, 1, "{} {}", host.name, file.path);
                let with_role = Fillings {
                    role: Some("main".into()),
                    ..Fillings::anywhere(Language::Zh)
                };
                for fillings in [&with_role, &Fillings::anywhere(Language::En)] {
                    let content = file.content(&host.name, fillings);
                    assert!(
                        !content.is_empty()
                            && !content.contains("{as")
                            && !content.contains("{guide}"),
                        "{} {}",
                        host.name,
                        file.path
                    );
                    if file.kind == Kind::Json {
                        serde_json::from_str::<serde_json::Value>(&content).unwrap();
                    }
                    let calls = content.contains("quipu hook") || content.contains("\"mcp\", ");
                    assert_eq!(
                        calls && fillings.role.is_some(),
                        calls && content.contains("main"),
                        "{} {}",
                        host.name,
                        file.path
                    );
                }
            }
        }
    }

    #[test]
    fn agents_may_change_no_settings_of_the_table() {
        for file in hosts().iter().flat_map(|host| &host.files).filter(|file| {
            file.json.is_some()
                || file.lines.is_some()
                || file.executable
                || file.path.ends_with(".js")
        }) {
            assert!(
                ProjectPath::parse(&file.path).unwrap().sets_up_hosts(),
                "{}",
                file.path
            );
        }
    }
}
