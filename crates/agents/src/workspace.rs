//! The two folders of an assignment, for tools that an adapter serves itself.
//!
//! Tools read the view and the out folder, and write only the out folder. The kernel resolves a
//! path below its folder without following links, so an agent cannot escape with a symlink in its
//! out folder.

use crate::beneath::{self, Unread, parse_relative, walk};
use crate::questions::is_question;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The reason why a tool's path was refused.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("`{0}` is outside the folders of this task")]
    Outside(String),
    #[error("`{0}` is not an output of this task: write {1}")]
    NotAnOutput(String, String),
    #[error("`{0}` does not exist")]
    Missing(String),
    #[error("`{path}` has more than {bound} bytes")]
    TooLong { path: String, bound: u64 },
    #[error("`{0}` is not UTF-8 text")]
    NotText(String),
    #[error("`{path}`: {why}")]
    Io { path: String, why: std::io::Error },
}

impl WorkspaceError {
    /// Whether the agent tried to leave its workspace or to write an undeclared output.
    pub fn is_denial(&self) -> bool {
        matches!(
            self,
            WorkspaceError::Outside(_) | WorkspaceError::NotAnOutput(..)
        )
    }
}

/// The folders, and the files that may be written.
pub struct Workspace<'a> {
    pub view: &'a Path,
    pub out: &'a Path,
    pub outputs: &'a [String],
    /// The questions that the runtime answers.
    pub questions: &'a [String],
    pub file_bound: u64,
}

impl Workspace<'_> {
    /// Returns the text of a file: from the out folder if the agent wrote it there, else from the
    /// view. A brief names sections, `outline.md#ch01`: their file is returned.
    pub fn read(&self, path: &str) -> Result<String, WorkspaceError> {
        match (self.read_file(path), path.rsplit_once('#')) {
            (Err(WorkspaceError::Missing(_)), Some((file, _))) => self.read_file(file),
            (read, _) => read,
        }
    }

    fn read_file(&self, path: &str) -> Result<String, WorkspaceError> {
        let mut missing = WorkspaceError::Missing(path.to_string());
        for (root, relative) in self.places(path, &[self.out, self.view])? {
            match open_beneath(root, &relative, OFlags::RDONLY, path) {
                Ok(file) => return read_text(file, path, self.file_bound),
                Err(WorkspaceError::Missing(_)) => {}
                Err(other) => missing = other,
            }
        }
        Err(missing)
    }

    /// Writes one complete output.
    pub fn write(&self, path: &str, text: &str) -> Result<(), WorkspaceError> {
        let places = self.places(path, &[self.out])?;
        let Some((root, relative)) = places.into_iter().next() else {
            return Err(WorkspaceError::Outside(path.to_string()));
        };
        let named = relative.to_string_lossy().into_owned();
        if !self.outputs.contains(&named) {
            let allowed = match self.outputs {
                [] => "no file: the final message is the result".to_string(),
                outputs => outputs
                    .iter()
                    .map(|one| format!("`{one}`"))
                    .collect::<Vec<_>>()
                    .join(" or "),
            };
            return Err(WorkspaceError::NotAnOutput(named, allowed));
        }
        if text.len() as u64 > self.file_bound {
            return Err(WorkspaceError::TooLong {
                path: named,
                bound: self.file_bound,
            });
        }
        beneath::make_parents(root, &relative, Mode::from_raw_mode(0o755))
            .map_err(|why| refusal(why, path))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = File::from(open_beneath(root, &relative, flags, path)?);
        file.write_all(text.as_bytes())
            .map_err(|why| WorkspaceError::Io {
                path: path.to_string(),
                why,
            })
    }

    /// Returns the files of the view, and those already written, as sorted relative paths.
    pub fn list(&self) -> Vec<String> {
        let mut found = Vec::new();
        for root in [self.view, self.out] {
            // A list too long for a walk is too long for a model as well.
            let _ = walk(root, &mut |relative, kind| {
                let name = relative.to_string_lossy().into_owned();
                if kind == FileType::RegularFile && !is_question(&name) {
                    found.push(name);
                }
            });
        }
        found.sort();
        found.dedup();
        found
    }

    /// Returns the folders that may contain a path, each with the relative path. A relative path
    /// may lie in any of them.
    fn places<'r>(
        &self,
        path: &str,
        roots: &[&'r Path],
    ) -> Result<Vec<(&'r Path, PathBuf)>, WorkspaceError> {
        let given = Path::new(path);
        let found: Vec<_> = roots
            .iter()
            .filter_map(|root| {
                let relative = if given.is_absolute() {
                    given.strip_prefix(root).ok()?
                } else {
                    given
                };
                Some((*root, parse_relative(relative)?))
            })
            .collect();
        if found.is_empty() {
            Err(WorkspaceError::Outside(path.to_string()))
        } else {
            Ok(found)
        }
    }
}

/// Opens a file below a folder without following links.
pub(crate) fn open_beneath(
    root: &Path,
    relative: &Path,
    flags: OFlags,
    asked: &str,
) -> Result<OwnedFd, WorkspaceError> {
    beneath::open(root, relative, flags, Mode::from_raw_mode(0o644))
        .map_err(|why| refusal(why, asked))
}

fn refusal(why: Errno, asked: &str) -> WorkspaceError {
    match why {
        Errno::NOENT | Errno::NOTDIR => WorkspaceError::Missing(asked.to_string()),
        Errno::LOOP | Errno::XDEV => WorkspaceError::Outside(asked.to_string()),
        other => WorkspaceError::Io {
            path: asked.to_string(),
            why: other.into(),
        },
    }
}

/// Reads at most the bound, from a regular file only.
pub(crate) fn read_bytes(
    file: OwnedFd,
    asked: &str,
    bound: u64,
) -> Result<Vec<u8>, WorkspaceError> {
    beneath::read(file, bound).map_err(|why| match why {
        Unread::NotAFile => WorkspaceError::Missing(asked.to_string()),
        Unread::TooLong => WorkspaceError::TooLong {
            path: asked.to_string(),
            bound,
        },
        Unread::Io(why) => WorkspaceError::Io {
            path: asked.to_string(),
            why,
        },
    })
}

fn read_text(file: OwnedFd, asked: &str, bound: u64) -> Result<String, WorkspaceError> {
    String::from_utf8(read_bytes(file, asked, bound)?)
        .map_err(|_| WorkspaceError::NotText(asked.to_string()))
}
