//! What a killed program left in `.quipu/tmp`.
//!
//! A file lies there while it is written, and again after it was taken out of its place, until
//! someone has looked at it. Both happen under the apply lock, so whatever is there while this
//! process holds that lock was left. Quipu's own bytes are removed; anything else may be the only
//! copy of someone's edit, and is set aside.

use std::fs::DirEntry;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use quipu_contract::ProjectPath;

use crate::error::{Result, StoreError};
use crate::store::Store;
use crate::tree::path_in_name;
use crate::version::Version;

/// A process that has the number of one that is gone hides what that one left, for no longer than
/// this.
const HIDDEN_SECONDS: u64 = 60;

/// What became of something that was left.
pub(crate) struct Rescued {
    /// Its name in `.quipu/tmp`.
    pub name: String,
    /// The file it belongs to, if it was someone's edit: it is set aside.
    pub edit_of: Option<String>,
}

impl Store {
    /// Sets aside and journals edits that a killed program had taken out of their place, and
    /// removes its own bytes.
    pub(crate) fn rescue_leftovers(&self) -> Result<Vec<Rescued>> {
        let mut rescued = Vec::new();
        if self.is_read_only() || self.leftovers()?.is_empty() {
            return Ok(rescued);
        }
        {
            let _held = self.apply_lock.acquire()?;
            for entry in self.leftovers()? {
                let name = entry.file_name().to_string_lossy().into_owned();
                let io = || format!("cannot rescue `.quipu/tmp/{name}`");
                let edit = match self.edit_in(&entry) {
                    // What may not be read or changed stops nobody: `verify` names it.
                    Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => continue,
                    other => other.map_err(StoreError::io_at(io))?,
                };
                if let Some((path, bytes)) = &edit {
                    self.keep_aside(path, bytes)
                        .map_err(StoreError::io_at(io))?;
                }
                std::fs::remove_file(entry.path()).map_err(StoreError::io_at(io))?;
                rescued.push(Rescued {
                    name,
                    edit_of: edit.map(|(path, _)| path.to_string()),
                });
            }
        }
        self.journal_asides()?;
        Ok(rescued)
    }

    /// Edits that lie there, by the names of their files, for whoever only looks.
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

    /// The file and the bytes of an edit, if that is what was left.
    fn edit_in(&self, entry: &DirEntry) -> std::io::Result<Option<(ProjectPath, Vec<u8>)>> {
        let kind = entry.file_type()?;
        let bytes = if kind.is_file() {
            match std::fs::read(entry.path()) {
                // Its permissions came with it from its place, where nobody could read it either.
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

    /// Whether the journal holds some bytes as a version of a file, or as a beginning of the newest
    /// one.
    fn holds(&self, path: &ProjectPath, bytes: &[u8]) -> Result<bool> {
        let Some(head) = self.heads()?.head(path.as_str())? else {
            return Ok(false);
        };
        if self.was_version(path, &head, bytes)? {
            return Ok(true);
        }
        Ok(!head.gone && self.content_from_journal(path, &head)?.starts_with(bytes))
    }

    /// Whether the journal holds some bytes as a whole text of any file.
    fn holds_somewhere(&self, bytes: &[u8]) -> Result<bool> {
        let version = Version::of(bytes);
        let mut held = false;
        self.each_newest_first(usize::MAX, &mut |_, record| {
            held |= record.ops.iter().any(|op| op.version == version)
        })?;
        Ok(held)
    }
}

/// Whether the process that made something is gone: its number stands first in the name.
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
