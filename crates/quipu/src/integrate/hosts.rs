//! The table of hosts, as it lies beside the program's source.

use quipu_contract::Language;
use serde::Deserialize;

const TABLE: &str = include_str!("../../hosts/hosts.toml");

/// The texts that the table names, in English and Chinese.
const TEXTS: [(&str, &str, &str); 3] = [
    ("AGENTS.md", include_str!("../../hosts/AGENTS.md"), include_str!("../../hosts/AGENTS.zh.md")),
    ("SKILL.md", include_str!("../../hosts/SKILL.md"), include_str!("../../hosts/SKILL.zh.md")),
    ("opencode.js", include_str!("../../hosts/opencode.js"), include_str!("../../hosts/opencode.js")),
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
    /// What a person has to do besides.
    #[serde(default)]
    pub note: Option<String>,
    pub files: Vec<HostFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    pub path: String,
    pub kind: Kind,
    #[serde(default)]
    pub mark: Mark,
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

/// The comment that a block is marked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    #[default]
    Html,
    Hash,
}

impl HostFile {
    /// What is written, for a host and a language.
    pub fn content(&self, host: &str, language: Language) -> String {
        let named =
            |name: &String| TEXTS.iter().find(|(n, ..)| n == name).map(|(_, en, zh)| if language == Language::Zh { *zh } else { *en });
        let text = self.text.as_ref().and_then(named).or(self.json.as_deref()).or(self.lines.as_deref()).unwrap_or_default();
        text.replace("{host}", host)
    }
}

/// Every host that is known.
pub fn hosts() -> Vec<Host> {
    toml::from_str::<Table>(TABLE).expect("the table is checked by a test").hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        for host in hosts() {
            for file in &host.files {
                let given = [&file.text, &file.json, &file.lines].iter().filter(|t| t.is_some()).count();
                assert_eq!(given, 1, "{} {}", host.name, file.path);
                assert!(!file.content(&host.name, Language::Zh).is_empty(), "{} {}", host.name, file.path);
                if file.kind == Kind::Json {
                    serde_json::from_str::<serde_json::Value>(&file.content(&host.name, Language::En)).unwrap();
                }
            }
        }
    }
}
