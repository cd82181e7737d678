//! Cleans up files that a killed process left in `.quipu/tmp`.
//!
//! A file is there while it is written, and again after it was taken out of the tree, until it has
//! been inspected. Both happen under the apply lock, so every file that is there while this process
//! holds the lock is a leftover. Quipu's own bytes are deleted. Anything else may be the only copy
//! of an edit, and becomes a conflict copy.

use std::fs::DirEntry;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use quipu_contract::ProjectPath;

use crate::error::{Result, StoreError};
use crate::files::tree::path_in_name;
use crate::store::Store;
use crate::version::Version;

/// If a process id is reused, the leftovers of the dead process stay hidden for at most this long.
const HIDDEN_SECONDS: u64 = 60;

/// The result for one leftover.
pub(crate) struct Rescued {
    /// Its name in `.quipu/tmp`.
    pub name: String,
    /// The file that it belongs to, if it was an edit, which is now a conflict copy.
    pub edit_of: Option<String>,
}

impl Store {
    /// Makes and journals conflict copies of edits that a killed process had taken out of the tree,
    /// and deletes that process's own bytes.
    pub(crate) fn rescue_leftovers(&self) -> Result<Vec<Rescued>> {
        let mut rescued = Vec::new();
        if self.is_read_only() || self.leftovers()?.is_empty() {
            return Ok(rescued);
        }
        {
            let _held = self.applier.lock()?;
            for entry in self.leftovers()? {
                let name = entry.file_name().to_string_lossy().into_owned();
                let io = || format!("cannot rescue `.quipu/tmp/{name}`");
                let edit = match self.edit_in(&entry) {
                    // Skip a leftover that may not be read or changed: `verify` lists it.
                    Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => continue,
                    other => other.map_err(StoreError::io(io()))?,
                };
                if let Some((path, bytes)) = &edit {
                    self.copies
                        .keep_conflict_copy(path, bytes)
                        .map_err(StoreError::io(io()))?;
                }
                std::fs::remove_file(entry.path()).map_err(StoreError::io(io()))?;
                rescued.push(Rescued {
                    name,
                    edit_of: edit.map(|(path, _)| path.to_string()),
                });
            }
        }
        self.journal_conflict_copies()?;
        Ok(rescued)
    }

    /// The names of leftover edits, for readers.
    pub(crate) fn unrescued(&self) -> Result<Vec<String>> {
        let edits = self
            .leftovers()?
            .into_iter()
            .filter(|entry| !matches!(self.edit_in(entry), Ok(None)));
        Ok(edits
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect())
    }

    fn leftovers(&self) -> Result<Vec<DirEntry>> {
        let entries = match std::fs::read_dir(self.quipu().join("tmp")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(StoreError::io("cannot list `.quipu/tmp`"))?,
        };
        Ok(entries.flatten().filter(is_left).collect())
    }

    /// The path and the bytes of a leftover, if it is an edit.
    fn edit_in(&self, entry: &DirEntry) -> std::io::Result<Option<(ProjectPath, Vec<u8>)>> {
        let kind = entry.file_type()?;
        let bytes = if kind.is_file() {
            match std::fs::read(entry.path()) {
                // The file kept its permissions when it was taken out of the tree, where nobody
                // could read it either.
                Err(error)
                    if error.kind() == std::io::ErrorKind::PermissionDenied
                        && !self.is_read_only() =>
                {
                    std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o600))?;
                    std::fs::read(entry.path())?
                }
                other => other?,
            }
        } else if kind.is_symlink() {
            [
                b"a symbolic link to ",
                std::fs::read_link(entry.path())?.as_os_str().as_bytes(),
                b"\n",
            ]
            .concat()
        } else {
            return Ok(None);
        };
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let known = path_in_name(&name);
        let is_own = match &known {
            Some(path) => self.holds(path, &bytes),
            None => self.holds_somewhere(&bytes),
        };
        if is_own.unwrap_or(false) {
            return Ok(None);
        }
        let path = known.map_or_else(
            || ProjectPath::parse(&format!("leftover-{name}")).map_err(std::io::Error::other),
            Ok,
        )?;
        Ok(Some((path, bytes)))
    }

    /// Whether the journal holds these bytes as a version of a file, or as the beginning of the
    /// newest one.
    fn holds(&self, path: &ProjectPath, bytes: &[u8]) -> Result<bool> {
        let Some(head) = self.index.open()?.head(path.as_str())? else {
            return Ok(false);
        };
        if self.texts.was_version(path, &head, bytes)? {
            return Ok(true);
        }
        Ok(!head.gone
            && self
                .texts
                .content_from_journal(path, &head)?
                .starts_with(bytes))
    }

    /// Whether the journal holds these bytes as a whole text of any file.
    fn holds_somewhere(&self, bytes: &[u8]) -> Result<bool> {
        let version = Version::of(bytes);
        let mut held = false;
        self.journal
            .each_newest_first(usize::MAX, &mut |_, record| {
                held |= record.ops.iter().any(|op| op.version == version)
            })?;
        Ok(held)
    }
}

/// Whether the process that created the file has ended. The name begins with the process id.
fn is_left(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy().into_owned();
    let lives = name
        .split('-')
        .next()
        .is_some_and(|process| std::path::Path::new("/proc").join(process).exists());
    let age = entry
        .metadata()
        .and_then(|m| m.modified())
        .ok()
        .and_then(|time| time.elapsed().ok());
    !lives || age.is_some_and(|age| age.as_secs() > HIDDEN_SECONDS)
}
