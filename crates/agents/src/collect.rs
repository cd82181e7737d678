//! Collects an agent's output: the declared files, and the names of all other files.
//!
//! The agent controlled the folder. Links are therefore not followed, only regular files are read,
//! and reading stops at the bounds.

use crate::assignment::Assignment;
use crate::beneath::walk;
use crate::workspace::{WorkspaceError, open_beneath, read_bytes};
use rustix::fs::{FileType, OFlags};
use std::path::Path;

/// The contents of an out folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Declared outputs with their bytes, in the order declared.
    pub files: Vec<(String, Vec<u8>)>,
    /// Declared outputs that do not exist.
    pub missing: Vec<String>,
    /// Declared outputs that cannot be accepted, with the reason.
    pub unfit: Vec<Unfit>,
    /// All other files. They are dropped.
    pub strays: Vec<String>,
}

/// A declared output that cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    pub path: String,
    pub why: String,
}

/// Collects the outputs of an assignment.
pub fn collect(assignment: &Assignment) -> Collected {
    let mut collected = Collected::default();
    for output in &assignment.outputs {
        let taken = open_beneath(&assignment.out, Path::new(output), OFlags::RDONLY, output)
            .and_then(|file| read_bytes(file, output, assignment.bounds.file));
        match taken {
            Ok(bytes) => collected.files.push((output.clone(), bytes)),
            Err(WorkspaceError::Missing(_)) => collected.missing.push(output.clone()),
            Err(WorkspaceError::Outside(_)) => collected.unfit.push(Unfit {
                path: output.clone(),
                why: "is reached through a link".to_string(),
            }),
            Err(other) => collected.unfit.push(Unfit {
                path: output.clone(),
                why: other.to_string(),
            }),
        }
    }
    // Files beyond the walk limit are dropped too, but not listed.
    let _ = walk(&assignment.out, &mut |relative, kind| {
        let name = relative.to_string_lossy().into_owned();
        if kind != FileType::Directory && !assignment.outputs.contains(&name) {
            collected.strays.push(name);
        }
    });
    collected.strays.sort();
    collected
}
