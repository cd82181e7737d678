//! Lists the files of a project.
//!
//! It reads names only: it adopts and flags nothing. The status scan (`status_scan.rs`) compares
//! contents.

use quipu_contract::ProjectPath;
use rustix::fs::Dir;

use crate::error::{Result, StoreError};
use crate::files::tree::{FOLDER, is_absent};
use crate::store::Store;

impl Store {
    /// Every file with a name that the contract allows, in order. Reads only names: nothing is
    /// adopted or flagged.
    pub fn list(&self) -> Result<Vec<ProjectPath>> {
        self.settle()?;
        Ok(self
            .worktree
            .walk_files()?
            .files
            .iter()
            .filter_map(|(text, _)| ProjectPath::parse(text).ok())
            .collect())
    }

    /// Visits the names in one folder, in no order; none if it does not exist. Names are not
    /// collected, so that a large folder needs no memory.
    pub fn each_name(&self, folder: &str, tell: &mut dyn FnMut(&str)) -> Result<()> {
        let folder = if folder.is_empty() { "." } else { folder };
        let what = || format!("cannot read the folder `{folder}`");
        let opened = match self.tree.open_at(folder, FOLDER) {
            Err(error) if is_absent(&error) => return Ok(()),
            other => other.map_err(StoreError::io(what()))?,
        };
        let entries = Dir::read_from(opened)
            .map_err(std::io::Error::from)
            .map_err(StoreError::io(what()))?;
        for entry in entries {
            let entry = entry
                .map_err(std::io::Error::from)
                .map_err(StoreError::io(what()))?;
            if let Ok(name) = entry.file_name().to_str()
                && name != "."
                && name != ".."
            {
                tell(name);
            }
        }
        Ok(())
    }
}
