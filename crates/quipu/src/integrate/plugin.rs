//! Generates the Claude Code plugin and the agent skill of a release (`plugins/`) from the table of
//! hosts.
//!
//! `QUIPU_RECORD=1 cargo test -p quipu plugin` rewrites them. The plugin gives every project the
//! same server, hooks and skill that `integrate claude` writes into one project.

use std::path::{Path, PathBuf};

use quipu_contract::Language;
use serde_json::{Value, json};

use super::hosts::{Fillings, Host, hosts};

const HOST: &str = "claude";
const ABOUT: &str = "Project memory under a contract: start text, denial of forbidden edits, a \
    finish gate, recall and notes over MCP.";

/// Returns every file of the folder, by its path.
fn files() -> Vec<(PathBuf, String)> {
    let all = hosts();
    let host = all
        .iter()
        .find(|host| host.name == HOST)
        .expect("the table has this host");
    let author = json!({"name": "The Quipu authors"});
    let plugin = json!({
        "name": "quipu",
        "version": env!("CARGO_PKG_VERSION"),
        "description": ABOUT,
        "author": author,
        "license": env!("CARGO_PKG_LICENSE"),
        "keywords": ["memory", "contract", "mcp"],
    });
    let market = json!({
        "name": "quipu",
        "owner": author,
        "metadata": {"description": "Enforced file memory for AI agents"},
        "plugins": [{"name": "quipu", "source": "./quipu", "description": ABOUT}],
    });
    let named = |path: &str, text: String| (PathBuf::from(path), text);
    vec![
        named(".claude-plugin/marketplace.json", pretty(&market)),
        named("quipu/.claude-plugin/plugin.json", pretty(&plugin)),
        named("quipu/.mcp.json", pretty(&json_of(host, ".mcp.json"))),
        named(
            "quipu/hooks/hooks.json",
            pretty(&json_of(host, ".claude/settings.json")),
        ),
        named("quipu/skills/quipu/SKILL.md", skill(host)),
    ]
}

fn content(host: &Host, path: &str) -> String {
    let file = host
        .files
        .iter()
        .find(|file| file.path == path)
        .expect("the table has this file");
    file.content(HOST, &Fillings::anywhere(Language::En))
}

fn json_of(host: &Host, path: &str) -> Value {
    serde_json::from_str(&content(host, path)).expect("the table is checked by a test")
}

/// Returns the skill without the line that names its writer in a project.
fn skill(host: &Host) -> String {
    content(host, ".claude/skills/quipu/SKILL.md")
        .replace("<!-- Written by `quipu integrate`. -->\n\n", "")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("a value is JSON") + "\n"
}

#[test]
fn the_plugin_is_what_the_table_says() {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../plugins");
    for (path, text) in files() {
        let path = folder.join(path);
        if std::env::var_os("QUIPU_RECORD").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            there,
            text,
            "{} is out of date: QUIPU_RECORD=1 cargo test -p quipu plugin",
            path.display()
        );
    }
}
