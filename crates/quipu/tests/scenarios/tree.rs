//! Trees of files: copy, read, compare, record.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::redact::redact;

/// The files below a folder by their relative paths. A symbolic link is represented by its target.
#[derive(Debug, Default, PartialEq)]
pub struct Tree(BTreeMap<PathBuf, Entry>);

#[derive(Debug, PartialEq, Clone)]
enum Entry {
    File(Vec<u8>),
    Link(PathBuf),
}

impl Tree {
    /// Loads all files except the folders in `skip`; empty if the folder does not exist.
    pub fn load(folder: &Path, skip: &[&str]) -> io::Result<Tree> {
        let mut tree = Tree::default();
        if folder.is_dir() {
            tree.walk(folder, Path::new(""), skip)?;
        }
        Ok(tree)
    }

    fn walk(&mut self, root: &Path, at: &Path, skip: &[&str]) -> io::Result<()> {
        for entry in std::fs::read_dir(root.join(at))? {
            let (kind, name) = entry.and_then(|e| Ok((e.file_type()?, e.file_name())))?;
            if kind.is_dir() && skip.iter().any(|s| name == **s) {
                continue;
            }
            let path = at.join(name);
            if kind.is_dir() {
                self.walk(root, &path, skip)?;
            } else if kind.is_symlink() {
                let target = std::fs::read_link(root.join(&path))?;
                self.0.insert(path, Entry::Link(target));
            } else {
                let bytes = std::fs::read(root.join(&path))?;
                self.0.insert(path, Entry::File(bytes));
            }
        }
        Ok(())
    }

    /// Replaces all values that change from run to run.
    pub fn redacted(mut self, root: &Path) -> Tree {
        let named = |path: PathBuf| PathBuf::from(redact(&path.to_string_lossy(), root));
        self.0 = self
            .0
            .into_iter()
            .map(|(path, entry)| (named(path), entry))
            .collect();
        for entry in self.0.values_mut() {
            if let Entry::File(bytes) = entry
                && let Ok(text) = std::str::from_utf8(bytes)
            {
                *bytes = redact(text, root).into_bytes();
            }
        }
        self
    }

    /// Keeps only the paths that the other tree has.
    pub fn only(mut self, other: &Tree) -> Tree {
        self.0.retain(|path, _| other.0.contains_key(path));
        self
    }

    pub fn write(&self, folder: &Path) -> io::Result<()> {
        for (path, entry) in &self.0 {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("it lies in the folder"))?;
            match entry {
                Entry::File(bytes) => std::fs::write(path, bytes)?,
                Entry::Link(target) => std::os::unix::fs::symlink(target, path)?,
            }
        }
        Ok(())
    }

    /// Returns the differences from the expected tree, file by file; empty if there are none.
    pub fn difference(&self, expected: &Tree) -> String {
        let mut told = String::new();
        for (path, entry) in &self.0 {
            match expected.0.get(path) {
                None => told.push_str(&format!(
                    "`{}` is there, but not in the scenario\n",
                    path.display()
                )),
                Some(wanted) if wanted != entry => told.push_str(&difference(
                    &path.display().to_string(),
                    &wanted.text(),
                    &entry.text(),
                )),
                Some(_) => {}
            }
        }
        for path in expected.0.keys().filter(|p| !self.0.contains_key(*p)) {
            told.push_str(&format!("`{}` is missing\n", path.display()));
        }
        told
    }
}

impl Entry {
    fn text(&self) -> String {
        match self {
            Entry::File(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => format!(
                    "{} bytes that are no text: {}\n",
                    bytes.len(),
                    bytes.escape_ascii()
                ),
            },
            Entry::Link(target) => format!("a link to {}\n", target.display()),
        }
    }
}

pub fn difference(name: &str, wanted: &str, found: &str) -> String {
    let diff = similar::TextDiff::from_lines(wanted, found);
    diff.unified_diff()
        .context_radius(3)
        .header(&format!("{name} in the scenario"), &format!("{name} now"))
        .to_string()
}

pub fn subfolders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let mut folders: Vec<PathBuf> = entries
        .into_iter()
        .map(|e| e.path())
        .filter(|p| p.is_dir())
        .collect();
    folders.sort();
    Ok(folders)
}
