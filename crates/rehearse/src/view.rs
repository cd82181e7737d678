//! The folder that the agent may read, and nothing beyond it.

use std::collections::BTreeMap;
use std::path::Path;

use quipu_contract::Pattern;

use crate::RehearseError;

/// A file larger than this is listed, not read: no author of a source file wrote so much by hand.
const READABLE_BYTES: u64 = 2 << 20;

/// The files of a view, by path, in order.
pub(crate) struct View {
    pub texts: BTreeMap<String, String>,
    /// What is no text, or too large to be one.
    pub unread: Vec<String>,
}

impl View {
    pub fn read(folder: &Path) -> Result<View, RehearseError> {
        let mut view = View { texts: BTreeMap::new(), unread: Vec::new() };
        view.walk(folder, "")?;
        view.unread.sort();
        Ok(view)
    }

    fn walk(&mut self, folder: &Path, prefix: &str) -> Result<(), RehearseError> {
        let fail = |source| RehearseError::View { path: folder.display().to_string(), source };
        for entry in std::fs::read_dir(folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() {
                self.walk(&entry.path(), &path)?;
            } else if kind.is_file() {
                let small = entry.metadata().map_err(fail)?.len() <= READABLE_BYTES;
                let text = if small { std::fs::read(entry.path()).map_err(fail)? } else { vec![0] };
                match String::from_utf8(text) {
                    Ok(text) if !text.contains('\0') => drop(self.texts.insert(path, text)),
                    _ => self.unread.push(path),
                }
            }
        }
        Ok(())
    }

    /// The texts that a pattern names.
    pub fn matching<'v>(&'v self, pattern: &'v Pattern) -> impl Iterator<Item = (&'v str, &'v str)> {
        let named = self.texts.iter().filter(|(path, _)| pattern.matches(path).is_some());
        named.map(|(path, text)| (path.as_str(), text.as_str()))
    }
}
