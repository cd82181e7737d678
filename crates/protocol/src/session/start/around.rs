//! Finds the project for a start: the current project, projects in subfolders, or none.
//!
//! The search in subfolders is bounded.

use std::path::{Path, PathBuf};

use crate::project::open::Project;

/// Limits of the search for projects in subfolders.
const MOST_FOLDERS: usize = 500;
const DEEPEST: usize = 2;

/// The surroundings of a folder without a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The nearest ancestor with memory files but no contract.
    pub joinable: Option<PathBuf>,
    /// Projects in subfolders, each with the first line of its identity.
    pub below: Vec<(PathBuf, String)>,
}

/// Returns the project's root, or the surroundings.
pub fn look_around(folder: &Path) -> Result<PathBuf, Surroundings> {
    if let Ok(root) = Project::find_root(folder) {
        return Ok(root);
    }
    let from = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let joinable = from
        .ancestors()
        .find(|f| f.join("PROJECT.md").is_file())
        .map(Path::to_owned);
    let mut below = Vec::new();
    let mut looked = 0;
    search(&from, 0, &mut looked, &mut below);
    below.sort();
    Err(Surroundings { joinable, below })
}

fn search(folder: &Path, depth: usize, looked: &mut usize, found: &mut Vec<(PathBuf, String)>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if is_hidden || !entry.file_type().is_ok_and(|t| t.is_dir()) || *looked >= MOST_FOLDERS {
            continue;
        }
        *looked += 1;
        let path = entry.path();
        if path.join("quipu.toml").is_file() || path.join("PROJECT.md").is_file() {
            let identity = std::fs::read_to_string(path.join("PROJECT.md")).unwrap_or_default();
            let first = identity
                .lines()
                .find(|l| !l.trim().is_empty())
                .unwrap_or_default();
            found.push((path, first.trim_start_matches('#').trim().to_owned()));
        } else if depth + 1 < DEEPEST {
            search(&path, depth + 1, looked, found);
        }
    }
}
