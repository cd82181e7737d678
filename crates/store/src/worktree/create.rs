//! Creates files and folders without a commit, such as templates for a person to edit. It follows
//! no links.

use std::io::{self, Write};
use std::path::Path;

use quipu_contract::ProjectPath;
use rustix::fs::OFlags;

use crate::error::{Result, StoreError};
use crate::files::disk::Disk;
use crate::files::tree::Tree;
use crate::store::Store;

/// Creates new files below a project's root, with the folders that they need. An existing file is
/// an error.
pub fn create_files(root: &Path, files: &[(ProjectPath, String)]) -> io::Result<()> {
    let tree = Tree::open(root, Disk::new(None))?;
    for (path, text) in files {
        path.parent()
            .map_or(Ok(()), |folder| tree.make_folders(folder))?;
        let fd = tree.open_at(
            path.as_str(),
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
        )?;
        std::fs::File::from(fd).write_all(text.as_bytes())?;
    }
    Ok(())
}

impl Store {
    /// Checks that a folder exists or can be created: no link or file is in the way.
    pub fn check_folder(&self, folder: &ProjectPath) -> Result<()> {
        let inside = ProjectPath::parse(&format!("{folder}/x"))
            .map_err(|bad| StoreError::refused(bad.to_string(), "use a shorter name"))?;
        match self.tree.obstacle(&inside) {
            Some(_) => Err(StoreError::refused(
                format!(
                    "`{folder}` goes through a symbolic link or through something that is not \
                    a folder"
                ),
                "replace it with a plain folder",
            )),
            None => Ok(()),
        }
    }

    /// Checks that a path is a file or can become one: nothing else is there or in the way.
    pub fn check_file(&self, path: &ProjectPath) -> Result<()> {
        match self.tree.obstacle(path) {
            Some(what) => Err(StoreError::refused(
                what,
                format!("move it away: `{path}` must be a regular file"),
            )),
            None => Ok(()),
        }
    }

    /// Creates a folder and its parents.
    pub fn make_folder(&self, folder: &ProjectPath) -> Result<()> {
        let io = StoreError::io(format!("cannot create `{folder}`"));
        self.tree
            .make_folders(folder.as_str())
            .and_then(|()| {
                self.tree
                    .open_at(folder.as_str(), OFlags::DIRECTORY | OFlags::RDONLY)
            })
            .map(drop)
            .map_err(io)
    }
}
