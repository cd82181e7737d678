//! Files and folders that are laid out without a commit: what a person is given to change. No link
//! on the way is followed.

use std::io::{self, Write};
use std::path::Path;

use quipu_contract::ProjectPath;
use rustix::fs::OFlags;

use crate::disk::Disk;
use crate::error::{Result, StoreError};
use crate::store::Store;
use crate::tree::Tree;

/// Writes new files below a project's root, with the folders they need. One that is there is an
/// error.
pub fn lay_files(root: &Path, files: &[(ProjectPath, String)]) -> io::Result<()> {
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
    /// Whether a folder is one or can be made: no link and no file stands on the way.
    pub fn check_folder(&self, folder: &ProjectPath) -> Result<()> {
        let inside = ProjectPath::parse(&format!("{folder}/x"))
            .map_err(|bad| StoreError::refused(bad.to_string(), "a shorter name"))?;
        match self.tree.obstacle(&inside) {
            Some(_) => Err(StoreError::refused(
                format!("`{folder}` goes through a symbolic link or something that is no folder"),
                "a plain folder in its place",
            )),
            None => Ok(()),
        }
    }

    /// Whether a path holds a file or can hold one: nothing else stands there or on the way.
    pub fn check_file(&self, path: &ProjectPath) -> Result<()> {
        match self.tree.obstacle(path) {
            Some(what) => Err(StoreError::refused(
                what,
                format!("move it away: `{path}` is to be a plain file"),
            )),
            None => Ok(()),
        }
    }

    /// Makes a folder and those it lies in.
    pub fn make_folder(&self, folder: &ProjectPath) -> Result<()> {
        let io = StoreError::io_at(|| format!("cannot make `{folder}`"));
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
