//! Paths inside a project.
//!
//! A [`ProjectPath`] is relative, uses `/`, is in Unicode NFC and can name neither anything outside
//! the project nor the folders that belong to Quipu and git, in any spelling. Whether a
//! component is a symbolic link is not known here: the store opens without following any.

use std::fmt;

use serde::Serialize;
use thiserror::Error;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::characters::{is_invisible, is_line_break, is_stand_in, quotable};

/// Folders no path may enter: the journal is not memory, and git has its own rules.
pub const RESERVED: [&str; 2] = [".quipu", ".git"];

/// The file that makes a folder a project.
pub const MANIFEST: &str = "quipu.toml";

/// A checked path relative to the project root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ProjectPath(String);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadPath {
    #[error("the path is empty")]
    Empty,
    #[error("`{0}` is absolute; name it relative to the project root")]
    Absolute(String),
    #[error("`{0}` leaves the project or has a `.`, `..` or empty part")]
    Leaves(String),
    #[error("`{path}` is in `{folder}/`, which only the program itself may change")]
    Reserved { path: String, folder: &'static str },
    #[error("`{path}` is not in normal form; write `{normal}`")]
    NotNormal { path: String, normal: String },
    #[error(
        "`{0}` contains a control or invisible character, a backslash or a part ending in a dot \
         or space"
    )]
    OddCharacter(String),
    #[error("`{0}` is longer than 1,024 bytes or has a part longer than 255")]
    TooLong(String),
}

/// A name as paths are kept: Unicode NFC.
pub fn normal_form(name: &str) -> String {
    name.nfc().collect()
}

/// The settings of agent hosts in which `quipu integrate` writes, folded.
pub const HOST_FILES: [&str; 27] = [
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".qwen/settings.json",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
    ".gemini/.env",
    ".qwen/.env",
    ".vscode/mcp.json",
    ".opencode/plugin/quipu.js",
    ".agents/plugins/quipu/plugin.json",
    ".agents/plugins/quipu/hooks/hooks.json",
    ".cursor/mcp.json",
    ".cursor/hooks.json",
    ".github/hooks/quipu.json",
    ".github/mcp.json",
    ".windsurf/hooks.json",
    ".zed/settings.json",
    ".kiro/settings/mcp.json",
    ".amp/settings.json",
    ".agents/mcp_config.json",
    ".agents/hooks.json",
];

/// Folders of which hosts load and run every file, folded.
const HOST_FOLDERS: [&str; 12] = [
    ".opencode/plugin/",
    ".opencode/plugins/",
    ".opencode/tool/",
    ".opencode/tools/",
    ".agents/plugins/",
    ".gemini/extensions/",
    ".qwen/extensions/",
    ".claude/plugins/",
    ".github/hooks/",
    ".clinerules/hooks/",
    ".cline/hooks/",
    ".cline/plugins/",
];

impl ProjectPath {
    pub fn parse(text: &str) -> Result<ProjectPath, BadPath> {
        let shown = || quotable(text);
        let text = text.strip_prefix("./").unwrap_or(text);
        if text.is_empty() {
            return Err(BadPath::Empty);
        }
        if text.starts_with('/') || text.get(1..3) == Some(":\\") || text.get(1..3) == Some(":/") {
            return Err(BadPath::Absolute(shown()));
        }
        if text.chars().any(is_odd) {
            return Err(BadPath::OddCharacter(shown()));
        }
        if text.len() > 1024 {
            return Err(BadPath::TooLong(shown()));
        }
        for part in text.split('/') {
            if part.is_empty() || part == "." || part == ".." {
                return Err(BadPath::Leaves(shown()));
            }
            if part.ends_with(|c: char| c == '.' || c.is_whitespace())
                || part.starts_with(char::is_whitespace)
            {
                return Err(BadPath::OddCharacter(shown()));
            }
            if part.len() > 255 {
                return Err(BadPath::TooLong(shown()));
            }
            if let Some(folder) = reserved(part) {
                return Err(BadPath::Reserved {
                    path: shown(),
                    folder,
                });
            }
        }
        // `GIT~1` is how some file systems abbreviate `.git`.
        for (short, folder) in [("git~1", ".git"), ("quipu~1", ".quipu")] {
            if text.split('/').any(|part| part.eq_ignore_ascii_case(short)) {
                return Err(BadPath::Reserved {
                    path: shown(),
                    folder,
                });
            }
        }
        if !text.is_ascii() && !is_nfc(text) {
            return Err(BadPath::NotNormal {
                path: show_marks(text),
                normal: text.nfc().collect(),
            });
        }
        Ok(ProjectPath(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parts from the root down.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    pub fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(parent, _)| parent)
    }

    /// Whether a part of it, in any spelling, would make its folder a project with rules of
    /// its own.
    pub fn begins_a_project(&self) -> bool {
        self.parts().any(|part| {
            if part.is_ascii() {
                part.eq_ignore_ascii_case(MANIFEST)
            } else {
                fold(part) == MANIFEST
            }
        })
    }

    /// Whether it is a file with which agent hosts are set up: their hooks and servers, and with
    /// them what holds an agent to the contract.
    pub fn sets_up_hosts(&self) -> bool {
        let look = self.look();
        let is_below =
            |folder: &str| look.starts_with(folder) || look.contains(&format!("/{folder}"));
        HOST_FILES.iter().any(|file| {
            look.strip_suffix(file)
                .is_some_and(|above| above.is_empty() || above.ends_with('/'))
        }) || HOST_FOLDERS.into_iter().any(is_below)
    }

    /// The path as a careless reader or a case-insensitive file system sees it. Two paths with one
    /// appearance are never both legal under the contract.
    pub fn look(&self) -> String {
        fold(&self.0)
    }
}

impl std::borrow::Borrow<str> for ProjectPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Compatibility-normalised and lower-cased, the coarsest equality a file system uses.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        // Nearly every path; the tables of Unicode would say the same, much more slowly.
        return text.to_ascii_lowercase();
    }
    text.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

/// The reserved folder that a part of a path names, in any spelling.
fn reserved(part: &str) -> Option<&'static str> {
    let named = |folded: &str| {
        let is = |r: &&str| {
            folded
                .strip_prefix(*r)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        RESERVED.into_iter().find(is)
    };
    // Compatibility forms of a dot and of letters are not ASCII; what is ASCII only has its case to
    // fold.
    match part.is_ascii() {
        true if !part.starts_with('.') => None,
        true => named(&part.to_ascii_lowercase()),
        false => named(&fold(part)),
    }
}

/// With combining marks spelled out: the two forms look the same on a screen.
fn show_marks(text: &str) -> String {
    let spelled = |c: char| unicode_normalization::char::is_combining_mark(c);
    text.chars()
        .map(|c| {
            if spelled(c) {
                c.escape_unicode().to_string()
            } else {
                c.to_string()
            }
        })
        .collect()
}

fn is_odd(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() || c == '\\';
    }
    c.is_control() || is_invisible(c) || is_line_break(c) || is_stand_in(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_paths_are_kept_as_they_are() {
        for path in [
            "meta/glossary.md",
            "./PROJECT.md",
            "手稿/第三章.md",
            ".notes/otto/task_process.md",
            "a b/c.md",
            ".github/x",
        ] {
            assert_eq!(
                ProjectPath::parse(path).unwrap().as_str(),
                path.trim_start_matches("./")
            );
        }
    }

    #[test]
    fn nothing_leaves_the_project() {
        for path in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "a/./b",
            "C:\\x",
            "C:/x",
            "a\\..\\b",
            "a\0b",
            "a\n",
            "a/b/",
        ] {
            assert!(ProjectPath::parse(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn reserved_folders_are_closed_in_every_spelling() {
        for path in [
            ".quipu/journal",
            ".QUIPU/x",
            "a/.git/config",
            ".Git",
            ".git./x",
            ".git /x",
            ".g\u{200c}it/x",
            "．git/x",
            "git~1/x",
            "quipu.toml\u{3000}",
            "a/decisions.md\u{a0}",
            "\u{2003}x.md",
            ".ｇｉｔ/x",
        ] {
            assert!(ProjectPath::parse(path).is_err(), "{path:?}");
        }
        assert!(ProjectPath::parse(".gitignore").is_ok());
    }

    #[test]
    fn characters_that_draw_nothing_are_refused() {
        let family = [
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{180b}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{2028}',
            '\u{202e}',
            '\u{2060}',
            '\u{2065}',
            '\u{2066}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff0}',
            '\u{fff9}',
            '\u{fffc}',
            '\u{fffd}',
            '\u{fdd0}',
            '\u{ffff}',
            '\u{13430}',
            '\u{16fe4}',
            '\u{1bca0}',
            '\u{1d159}',
            '\u{1d173}',
            '\u{1d17a}',
            '\u{1fffe}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{e0fff}',
            '\u{7f}',
            '\u{9b}',
        ];
        for c in family {
            let path = format!("notes/a{c}b.md");
            let error = ProjectPath::parse(&path).unwrap_err();
            assert!(
                matches!(error, BadPath::OddCharacter(_)),
                "{path:?}: {error}"
            );
            assert!(
                error.to_string().contains(&c.escape_unicode().to_string()),
                "{error}"
            );
        }
    }

    #[test]
    fn unnormalised_unicode_names_the_normal_form() {
        let error = ProjectPath::parse("cafe\u{301}.md").unwrap_err();
        assert_eq!(
            error,
            BadPath::NotNormal {
                path: "cafe\\u{301}.md".into(),
                normal: "café.md".into()
            }
        );
    }

    #[test]
    fn a_contract_is_known_wherever_it_lies() {
        for path in [
            "quipu.toml",
            "meta/quipu.toml",
            "a/b/Quipu.TOML",
            "quipu.toml/x.md",
            "ｑuipu.toml",
        ] {
            assert!(
                ProjectPath::parse(path).unwrap().begins_a_project(),
                "{path}"
            );
        }
        assert!(
            !ProjectPath::parse("meta/quipu.toml.md")
                .unwrap()
                .begins_a_project()
        );
    }

    #[test]
    fn paths_that_look_alike_share_their_look() {
        let a = ProjectPath::parse("meta/Glossary.md").unwrap();
        let b = ProjectPath::parse("meta/glossary.md").unwrap();
        assert_eq!(a.look(), b.look());
    }

    proptest! {
        #[test]
        fn an_accepted_path_has_only_plain_parts(text in "[a-zA-Z./\\\\ ~:g-i\u{301}\u{200b}．]{0,24}") {
            if let Ok(path) = ProjectPath::parse(&text) {
                for part in path.parts() {
                    prop_assert!(!part.is_empty() && part != "." && part != "..");
                    prop_assert!(!RESERVED.contains(&fold(part).as_str()));
                }
                prop_assert_eq!(ProjectPath::parse(path.as_str()).unwrap(), path);
            }
        }
    }
}
