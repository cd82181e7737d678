//! Paths excluded from directory walks: folders that tools generate, and the `ignore` patterns.
//!
//! Exclusion applies only to files that are not memory. A file that a rule names, or that a commit
//! ever touched, is never excluded; the directory walk enforces that.

use serde::Serializer;

use crate::contract::Contract;
use crate::pattern::Pattern;

/// Tool folders by name. Others are recognized by a file in them, see [`CACHE_MARKS`].
const TOOL_FOLDERS: [&str; 5] = ["node_modules", "__pycache__", ".hg", ".jj", ".svn"];

/// Files that mark their folder as a cache that a tool can rebuild, with their required first
/// bytes: <https://bford.info/cachedir/>, as cargo writes it, and the configuration of a Python
/// environment.
pub const CACHE_MARKS: [(&str, &[u8]); 2] = [
    (
        "CACHEDIR.TAG",
        b"Signature: 8a477f597d28d172789f06886806bc55",
    ),
    ("pyvenv.cfg", b""),
];

impl Contract {
    /// Whether a folder is excluded by its name.
    pub fn ignores_folder(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        TOOL_FOLDERS.contains(&name) || self.ignores_file(path)
    }

    /// Whether a file is excluded by its own name, not by its folder.
    pub fn ignores_file(&self, path: &str) -> bool {
        self.ignore
            .iter()
            .any(|pattern| pattern.matches(path).is_some())
    }

    /// Whether a rule may match a file below a folder.
    pub fn may_name_below(&self, folder: &str) -> bool {
        let below = Pattern::below(folder);
        self.files.iter().any(|rule| rule.path.overlaps(&below))
    }
}

/// Serializes patterns as text.
pub(crate) fn as_texts<S: Serializer>(
    patterns: &[Pattern],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(patterns.iter().map(Pattern::as_str))
}

/// Strips a trailing `/` or `/**`, which may follow a folder.
pub(crate) fn folder_or_file(text: &str) -> &str {
    text.strip_suffix("/**")
        .or_else(|| text.strip_suffix('/'))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use crate::resolve::resolve_contract;
    use crate::source::Source;

    #[test]
    fn a_folder_is_ignored_however_it_is_written_and_rules_reach_into_it() {
        let text = "quipu = 1\nignore = [\"a\", \"b/\", \"c/**\", \"**/*.tmp\"]\n[[files]]\npath = \"c/keep/*.md\"\nclass = \"append\"\n";
        let source = Source::new("quipu.toml", text.to_owned());
        let contract = resolve_contract(&source, &|_, _| Err("none".into())).unwrap();
        for folder in ["a", "b", "c", "x/node_modules", "x/y.tmp"] {
            assert!(contract.ignores_folder(folder), "{folder}");
        }
        for folder in ["x/a", "ab", "x"] {
            assert!(!contract.ignores_folder(folder), "{folder}");
        }
        assert!(contract.ignores_file("x/y.tmp") && !contract.ignores_file("node_modules"));
        assert!(
            contract.may_name_below("c")
                && contract.may_name_below("c/keep")
                && !contract.may_name_below("c/other")
        );
        assert!(!contract.may_name_below("a"));
    }

    #[test]
    fn a_pattern_that_leaves_the_project_is_a_fault() {
        let source = Source::new("quipu.toml", "quipu = 1\nignore = [\"../x\"]\n");
        let faults = resolve_contract(&source, &|_, _| Err("none".into())).unwrap_err();
        assert!(
            faults.to_string().contains("leaves the project"),
            "{faults}"
        );
    }
}
