//! Takes what an agent wrote out of its folder: the declared outputs, and the names of everything
//! else.
//!
//! The folder was in an agent's hands. Links are not followed, nothing but regular files is read,
//! and no more of them than the bounds allow.

use crate::assignment::Assignment;
use crate::beneath::walk;
use crate::workspace::{WorkspaceError, open_beneath, read_bytes};
use rustix::fs::{FileType, OFlags};
use std::path::Path;

/// What was found in an out folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Declared outputs with their bytes, in the order declared.
    pub files: Vec<(String, Vec<u8>)>,
    /// Declared outputs that are not there.
    pub missing: Vec<String>,
    /// Declared outputs that cannot be taken, and why.
    pub unfit: Vec<Unfit>,
    /// Everything else that was written. It is dropped.
    pub strays: Vec<String>,
}

/// A declared output that cannot be taken.
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
    // Strays beyond what a walk visits are dropped as well, without being named.
    let _ = walk(&assignment.out, &mut |relative, kind| {
        let name = relative.to_string_lossy().into_owned();
        if kind != FileType::Directory && !assignment.outputs.contains(&name) {
            collected.strays.push(name);
        }
    });
    collected.strays.sort();
    collected
}
