//! The project that a process keeps open between two calls.
//!
//! Opening a project reads and resolves the contract and opens the file index, which costs more than
//! most calls. A server therefore keeps the project and checks before each call that it is still the
//! one on disk. The check reads the files that decide what a call may do; nothing is trusted for a
//! period of time.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_store::Options;

use crate::project::open::{Project, ProjectError, RulesOnDisk};

/// Shared by all callers of one process.
#[derive(Default)]
pub struct KeptProject {
    options: Options,
    slot: Mutex<Option<Kept>>,
}

#[derive(Clone)]
struct Kept {
    project: Arc<Project>,
    door: Option<&'static str>,
}

impl KeptProject {
    /// Returns the project in a folder with its journal applied, like `Project::open_to_read`.
    /// `door` is the interface that the journal names.
    pub fn open_to_read(
        &self,
        root: &Path,
        door: Option<&'static str>,
    ) -> Result<Arc<Project>, ProjectError> {
        let kept = self.slot().clone();
        if let Some(Kept { project, .. }) = kept.filter(|kept| kept.door == door)
            && is_current(&project, root)?
            && project.settle().is_none()
        {
            return Ok(project);
        }
        // Closed before the new one opens, which may have to rebuild the file index.
        *self.slot() = None;
        let options = Options {
            door,
            ..self.options.clone()
        };
        let project = Arc::new(Project::open_to_read(root, options)?);
        if may_be_kept(&project) {
            let project = Arc::clone(&project);
            *self.slot() = Some(Kept { project, door });
        }
        Ok(project)
    }

    fn slot(&self) -> MutexGuard<'_, Option<Kept>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an open project is the one on disk, with the rules on disk. `settle` and every operation
/// of the store follow the commits of other processes.
fn is_current(project: &Project, root: &Path) -> Result<bool, ProjectError> {
    Ok(project.store.root() == root
        && project.compare_rules() == RulesOnDisk::Same
        && project.store.is_current()?)
}

/// A project without a writable disk is opened again by each call, which may find it writable. So is
/// a new beginning, which is reported once. So is a working copy: a person may withdraw consent to
/// its server at any time, and the connection is kept elsewhere.
fn may_be_kept(project: &Project) -> bool {
    let Project { store, .. } = project;
    !store.is_read_only() && !project.began_anew && store.commit_log().is_none()
}

impl std::fmt::Debug for KeptProject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeptProject")
    }
}

#[cfg(test)]
mod tests;
