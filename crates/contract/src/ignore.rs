//! What is left out when a project is looked through: folders that tools fill by themselves, and what `ignore` names.
//!
//! Leaving out is for files that nobody calls memory. A file that a rule names, or that a commit ever touched, is never
//! left out, wherever it lies; that is for whoever looks through the files to see to.

use serde::Serializer;

use crate::contract::Contract;
use crate::path::ProjectPath;
use crate::pattern::Pattern;

/// Folders of tools, by name. Others are known by what lies in them, see [`CACHE_MARKS`].
const TOOL_FOLDERS: [&str; 5] = ["node_modules", "__pycache__", ".hg", ".jj", ".svn"];

/// Files that mark the folder they lie in as one that a tool can make anew, with what they must begin with:
/// <https://bford.info/cachedir/>, as cargo writes it, and the configuration of a Python environment.
pub const CACHE_MARKS: [(&str, &[u8]); 2] = [("CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55"), ("pyvenv.cfg", b"")];

impl Contract {
    /// Whether a folder is left out, as far as its name tells.
    pub fn ignores_folder(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        TOOL_FOLDERS.contains(&name) || self.ignores_file(path)
    }

    /// Whether a file is left out for its own name, and not for the folder that it lies in.
    pub fn ignores_file(&self, path: &str) -> bool {
        self.ignore.iter().any(|pattern| pattern.matches(path).is_some())
    }

    /// Whether a rule names this file.
    pub fn names(&self, path: &str) -> bool {
        ProjectPath::parse(path).is_ok_and(|path| self.rule(&path).is_some())
    }

    /// Whether a rule may name a file below a folder.
    pub fn may_name_below(&self, folder: &str) -> bool {
        let below = Pattern::below(folder);
        self.files.iter().any(|rule| rule.path.overlaps(&below))
    }
}

/// Patterns as they are written.
pub(crate) fn as_texts<S: Serializer>(patterns: &[Pattern], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(patterns.iter().map(Pattern::as_str))
}

/// A folder may be written with or without what stands for all below it.
pub(crate) fn folder_or_file(text: &str) -> &str {
    text.strip_suffix("/**").or_else(|| text.strip_suffix('/')).unwrap_or(text)
}
