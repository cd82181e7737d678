//! What is left out when a project is looked through: folders that tools fill by themselves, and
//! what `ignore` names.
//!
//! Leaving out is for files that nobody calls memory. A file that a rule names, or that a commit
//! ever touched, is never left out, wherever it lies; that is for whoever looks through the files
//! to see to.

use serde::Serializer;

use crate::contract::Contract;
use crate::pattern::Pattern;

/// Folders of tools, by name. Others are known by what lies in them, see [`CACHE_MARKS`].
const TOOL_FOLDERS: [&str; 5] = ["node_modules", "__pycache__", ".hg", ".jj", ".svn"];

/// Files that mark the folder they lie in as one that a tool can make anew, with what they must
/// begin with: <https://bford.info/cachedir/>, as cargo writes it, and the configuration of a
/// Python environment.
pub const CACHE_MARKS: [(&str, &[u8]); 2] = [
    (
        "CACHEDIR.TAG",
        b"Signature: 8a477f597d28d172789f06886806bc55",
    ),
    ("pyvenv.cfg", b""),
];

impl Contract {
    /// Whether a folder is left out, as far as its name tells.
    pub fn ignores_folder(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        TOOL_FOLDERS.contains(&name) || self.ignores_file(path)
    }

    /// Whether a file is left out for its own name, and not for the folder that it lies in.
    pub fn ignores_file(&self, path: &str) -> bool {
        self.ignore
            .iter()
            .any(|pattern| pattern.matches(path).is_some())
    }

    /// Whether a rule may name a file below a folder.
    pub fn may_name_below(&self, folder: &str) -> bool {
        let below = Pattern::below(folder);
        self.files.iter().any(|rule| rule.path.overlaps(&below))
    }
}

/// Patterns as they are written.
pub(crate) fn as_texts<S: Serializer>(
    patterns: &[Pattern],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(patterns.iter().map(Pattern::as_str))
}

/// A folder may be written with or without what stands for all below it.
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
