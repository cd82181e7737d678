//! Conflict copies: edits that a commit or a recovery had to replace.
//!
//! A copy is saved and synced in `.quipu/conflict-copies` before its original disappears, and
//! journalled later (`history/restore.rs`). In a working copy it is also kept in `.quipu/conflicts`,
//! where its author finds it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use quipu_contract::ProjectPath;
use serde::Serialize;

use crate::lock::locked;
use crate::settings::Settings;

/// A conflict copy: replaced bytes of an edit, kept in a record and not current.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictCopy {
    pub path: String,
    pub seq: u64,
}

/// The conflict copies that this process has made, by the root of the project. A command may open
/// its project several times, and its user has to be notified.
static CONFLICT_COPIES: Mutex<Vec<(PathBuf, ConflictCopy)>> = Mutex::new(Vec::new());

/// Returns and clears the conflict copies that this process has made in a project.
pub fn take_conflict_copies(root: &Path) -> Vec<ConflictCopy> {
    let mut all = CONFLICT_COPIES
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    all.extract_if(.., |(of, _)| of == root)
        .map(|(_, kept)| kept)
        .collect()
}

const CONFLICTS: &str = ".quipu/conflicts/";

/// The path of a conflict copy.
pub(crate) fn conflict_place(id: &str, path: &str) -> String {
    let name: String = format!("{id}-{}", path.replace('/', "-"))
        .chars()
        .take(120)
        .collect();
    format!("{CONFLICTS}{name}")
}

pub(crate) fn kept_id(place: &str) -> &str {
    let name = place.strip_prefix(CONFLICTS).unwrap_or(place);
    name.split('-').next().unwrap_or(name)
}

/// The conflict copies in `.quipu/conflicts`, as paths from the root of the project.
pub fn conflict_names(quipu: &std::path::Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(quipu.join("conflicts")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|e| format!("{CONFLICTS}{}", e.file_name().to_string_lossy()))
        .collect();
    names.sort_unstable();
    names
}

pub(crate) struct ConflictCopies {
    settings: Arc<Settings>,
    is_shared: bool,
    /// Copies since the last status scan, which reports them.
    unreported: Mutex<Vec<ConflictCopy>>,
    /// Leftovers of a killed process were searched for.
    are_sought: AtomicBool,
}

impl ConflictCopies {
    pub fn new(settings: Arc<Settings>, is_shared: bool) -> ConflictCopies {
        ConflictCopies {
            settings,
            is_shared,
            unreported: Mutex::new(Vec::new()),
            are_sought: AtomicBool::new(false),
        }
    }

    /// The folder of copies that are not journalled yet.
    fn folder(&self) -> PathBuf {
        self.settings.quipu().join("conflict-copies")
    }

    /// The copies that are not journalled yet. Deletes old unfinished ones: their original is still
    /// in place.
    pub fn saved(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.folder()) else {
            return Vec::new();
        };
        let (names, parts): (Vec<_>, Vec<_>) = entries
            .flatten()
            .map(|entry| entry.path())
            .partition(|path| path.extension().is_none());
        let is_unfinished = |part: &&PathBuf| {
            part.extension().is_some_and(|ending| ending == "part") && is_old(part)
        };
        for part in parts.iter().filter(is_unfinished) {
            if !self.settings.read_only {
                let _ = std::fs::remove_file(part);
            }
        }
        names
    }

    /// Whether this process has not searched for leftovers yet. It is about to.
    pub fn begin_search(&self) -> bool {
        !self.are_sought.swap(true, Ordering::SeqCst)
    }

    /// A killed process may have left copies.
    pub fn search_again(&self) {
        self.are_sought.store(false, Ordering::SeqCst);
    }

    /// Notes copies that were journalled, for the user of this process and for the next scan.
    pub fn report(&self, copies: &[ConflictCopy]) {
        let root = &self.settings.root;
        locked(&CONFLICT_COPIES).extend(copies.iter().map(|kept| (root.to_owned(), kept.clone())));
        locked(&self.unreported).extend_from_slice(copies);
    }

    /// Returns and clears the copies that no status scan has reported.
    pub fn take_unreported(&self) -> Vec<ConflictCopy> {
        std::mem::take(&mut *locked(&self.unreported))
    }

    /// Keeps the bytes of an external edit where a commit had to write.
    pub(crate) fn keep_conflict_copy(
        &self,
        path: &ProjectPath,
        bytes: &[u8],
    ) -> std::io::Result<()> {
        self.save_conflict_copy(path, bytes)?;
        if self.is_shared {
            // A commit from another machine came first: the author of the edit will look for it
            // here.
            self.keep_conflict(path.as_str(), bytes)?;
        }
        Ok(())
    }

    /// Saves bytes in `.quipu/conflict-copies` and returns the path. They stay there until they are
    /// journalled.
    pub(crate) fn save_conflict_copy(
        &self,
        path: &ProjectPath,
        bytes: &[u8],
    ) -> std::io::Result<PathBuf> {
        let folder = self.folder();
        std::fs::create_dir_all(&folder)?;
        let name = crate::ident::short_id();
        let temp = folder.join(format!("{name}.part"));
        let file = std::fs::File::create_new(&temp)?;
        std::io::Write::write_all(
            &mut &file,
            &[format!("{path}\n").as_bytes(), bytes].concat(),
        )?;
        // The only other copy is about to be deleted.
        file.sync_all()?;
        let saved = folder.join(name);
        std::fs::rename(temp, &saved)?;
        std::fs::File::open(folder)?.sync_all()?;
        Ok(saved)
    }

    /// Writes a conflict copy under `.quipu/conflicts` and returns its path.
    pub(crate) fn keep_conflict(&self, path: &str, bytes: &[u8]) -> std::io::Result<String> {
        let folder = self.settings.quipu().join("conflicts");
        std::fs::create_dir_all(&folder)?;
        let place = conflict_place(&crate::ident::short_id(), path);
        let file = std::fs::File::create_new(
            folder.join(place.strip_prefix(CONFLICTS).unwrap_or(&place)),
        )?;
        std::io::Write::write_all(&mut &file, bytes)?;
        file.sync_all()?;
        Ok(place)
    }

    pub fn conflict_names(&self) -> Vec<String> {
        conflict_names(&self.settings.quipu())
    }
}

/// Whether the file has not been written for longer than a copy takes.
fn is_old(path: &std::path::Path) -> bool {
    let age = path
        .metadata()
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age.as_secs() > 600)
}
