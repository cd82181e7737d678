//! The directory walk: every file with its stat, or a fingerprint of all of them.
//!
//! Links are never followed. Folders that tools fill, and paths that the contract ignores, are
//! skipped, unless a rule may name or the journal knows something there: then only those files are
//! visited. A file with a history therefore never counts as deleted because it was skipped.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use quipu_contract::{CACHE_MARKS, ProjectPath, RESERVED};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, statat};

use crate::error::{Result, StoreError};
use crate::files::tree::{FOLDER, FileStat, file_stat_of, is_absent};
use crate::journal::watermarks::Tail;
use crate::worktree::external_edit::WorkTree;

/// The tree fingerprint: a hash of all file stats and the journal position. While it is unchanged,
/// a status scan would find the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeFingerprint(pub u64);

/// All files with their stats, and everything that is neither file nor folder, both sorted by path.
#[derive(Default)]
pub(crate) struct Found {
    pub files: Vec<(String, FileStat)>,
    pub odd: Vec<String>,
}

impl Found {
    /// The fingerprint of these files at a position of the journal.
    pub fn fingerprint(&self, applied: &Tail) -> TreeFingerprint {
        let mut hasher = DefaultHasher::new();
        self.files.hash(&mut hasher);
        self.odd.hash(&mut hasher);
        (applied.at, applied.seq, applied.hash).hash(&mut hasher);
        TreeFingerprint(hasher.finish())
    }
}

/// Which files of a folder are visited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visited {
    All,
    /// A tool fills the folder, or the contract ignores it: only files that a rule or the journal
    /// knows.
    KnownOnly,
}

struct Entry {
    inode: u64,
    name: String,
    kind: FileType,
}

/// The entries of a folder, by inode, because the kernel finds neighbouring inodes faster. Names
/// that are not UTF-8 are skipped.
fn read_names(folder: &OwnedFd) -> io::Result<Vec<Entry>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if name == "." || name == ".." {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown
            && let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        {
            kind = FileType::from_raw_mode(stat.st_mode); // not every file system reports it
        }
        names.push(Entry {
            inode: entry.ino(),
            name: name.to_owned(),
            kind,
        });
    }
    names.sort_unstable_by_key(|entry| entry.inode);
    Ok(names)
}

/// Whether a file marks its folder as a cache that a tool can rebuild.
fn marks_cache(folder: &OwnedFd, name: &str) -> bool {
    let Some((_, signature)) = CACHE_MARKS.iter().find(|(cursor, _)| *cursor == name) else {
        return false;
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(fd) = rustix::fs::openat(folder, name, flags, Mode::empty()) else {
        return false;
    };
    let mut start = Vec::new();
    let read = std::fs::File::from(fd)
        .take(signature.len() as u64)
        .read_to_end(&mut start);
    read.is_ok() && start == *signature
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        [folder, "/", name].concat()
    }
}

impl WorkTree {
    /// Folders at paths that a rule names as a file.
    pub fn folders_for_files(&self, found: &[(String, FileStat)]) -> Vec<(String, String)> {
        let named = self
            .rules
            .contract()
            .files
            .iter()
            .filter_map(|rule| rule.path.as_literal());
        let missing = named.filter(|path| {
            found
                .binary_search_by(|(text, _)| text.as_str().cmp(path))
                .is_err()
        });
        let is_folder =
            |path: &&str| !path.ends_with('/') && self.tree.open_at(path, FOLDER).is_ok();
        missing
            .filter(is_folder)
            .map(|path| {
                (
                    path.to_owned(),
                    "is a folder, but the contract names a file here".to_owned(),
                )
            })
            .collect()
    }

    /// Every regular file below the root with its stat, except in reserved folders and skipped
    /// paths.
    pub(crate) fn walk_files(&self) -> Result<Found> {
        let mut found = Found::default();
        let mut folders = vec![(String::new(), Visited::All)];
        while let Some((folder, visited)) = folders.pop() {
            self.walk_folder(&folder, visited, &mut folders, &mut found)?;
        }
        found.odd.sort_unstable();
        found.files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Visits the entries of one folder, and adds its subfolders to those that remain.
    fn walk_folder(
        &self,
        folder: &str,
        mut visited: Visited,
        folders: &mut Vec<(String, Visited)>,
        found: &mut Found,
    ) -> Result<()> {
        let fd = match self
            .tree
            .open_at(if folder.is_empty() { "." } else { folder }, FOLDER)
        {
            Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(());
            }
            other => other.map_err(StoreError::io("cannot list the project's files"))?,
        };
        let names = read_names(&fd).map_err(StoreError::io("cannot list the project's files"))?;
        if visited == Visited::All
            && !folder.is_empty()
            && names.iter().any(|entry| marks_cache(&fd, &entry.name))
        {
            if !self.knows_below(folder)? {
                return Ok(());
            }
            visited = Visited::KnownOnly;
        }
        // Checked once per folder of a tool, which may hold thousands of files.
        let may_have_history = visited == Visited::All || self.index.open()?.any_below(folder)?;
        for Entry { name, kind, .. } in names {
            let path = join(folder, &name);
            if kind == FileType::Directory {
                let known_only =
                    visited == Visited::KnownOnly || self.rules.contract().ignores_folder(&path);
                if !RESERVED.contains(&name.as_str()) && (!known_only || self.knows_below(&path)?) {
                    let visited = if known_only {
                        Visited::KnownOnly
                    } else {
                        Visited::All
                    };
                    folders.push((path, visited));
                }
            } else if self.leaves_out(&path, visited, may_have_history)? {
            } else if kind != FileType::RegularFile {
                found.odd.push(path);
            } else if let Ok(stat) = statat(&fd, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
                found.files.push((path, file_stat_of(&stat)));
            }
        }
        Ok(())
    }

    /// Whether a file is skipped: it is ignored, and neither a rule nor the journal knows it.
    fn leaves_out(&self, path: &str, visited: Visited, may_have_history: bool) -> Result<bool> {
        if visited == Visited::All && !self.rules.contract().ignores_file(path) {
            return Ok(false);
        }
        let Ok(parsed) = ProjectPath::parse(path) else {
            return Ok(true);
        };
        Ok(self.rules.contract().rule(&parsed).is_none()
            && !(may_have_history && self.index.open()?.head(path)?.is_some()))
    }

    /// Whether a rule may name, or the journal knows, anything below a folder.
    fn knows_below(&self, folder: &str) -> Result<bool> {
        Ok(self.rules.contract().may_name_below(folder) || self.index.open()?.any_below(folder)?)
    }
}
