//! Writes a drawn picture. A picture is not memory and has no history, so it may replace only an
//! older picture.

use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use quipu_contract::{Actor, BadPath, Class, Denial, ProjectPath, RESERVED};
use quipu_store::OpenFolder;
use thiserror::Error;

use crate::project::open::Project;

/// The first bytes of every picture that Quipu draws.
const BEGINS: &[u8] = b"<svg";

#[derive(Debug, Error)]
pub enum PictureError {
    #[error("`{}` is not a valid name for a picture", .0.display())]
    NoName(PathBuf),
    #[error("`{0}` is under the contract: a picture may not be written there")]
    Ruled(ProjectPath),
    #[error("{}", .0.what)]
    Denied(Denial),
    #[error("{0}")]
    UnknownActor(String),
    #[error("`{}` exists and is not a picture", .0.display())]
    NoPicture(PathBuf),
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error("cannot write `{}`: {source}", file.display())]
    Io {
        file: PathBuf,
        source: std::io::Error,
    },
}

/// Writes a picture to `file`, which is relative to `folder`.
pub fn lay_picture(
    project: &Project,
    actor: &Actor,
    folder: &Path,
    file: &Path,
    svg: &str,
) -> Result<(), PictureError> {
    let io = |source| PictureError::Io {
        file: file.to_owned(),
        source,
    };
    let target = folder.join(file);
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(PictureError::NoName(file.to_owned()));
    };
    let target = std::fs::canonicalize(parent).map_err(io)?.join(name);
    let root = std::fs::canonicalize(project.store.root()).map_err(io)?;
    let grant = project
        .contract
        .grant(actor)
        .map_err(PictureError::UnknownActor)?;
    match target.strip_prefix(&root) {
        Ok(inside) => {
            let path = ProjectPath::parse(&inside.to_string_lossy())?;
            if project.contract.class(&path) != Class::Free {
                return Err(PictureError::Ruled(path));
            }
            grant
                .may_write(&path, &project.contract.actor_binding(actor))
                .map_err(PictureError::Denied)?;
        }
        // The contract does not apply to files outside, unless they belong to another project.
        Err(_) => {
            if let Some(reserved) = RESERVED
                .into_iter()
                .find(|folder| target.components().any(|part| part.as_os_str() == *folder))
            {
                ProjectPath::parse(reserved)?;
            }
        }
    }
    if target
        .extension()
        .is_none_or(|extension| extension != "svg")
    {
        return Err(PictureError::NoName(file.to_owned()));
    }
    match std::fs::symlink_metadata(&target) {
        Ok(_) => replace_picture(&target, svg)
            .map_err(io)?
            .ok_or_else(|| PictureError::NoPicture(file.to_owned())),
        Err(_) => std::fs::File::create_new(&target)
            .and_then(|mut new| new.write_all(svg.as_bytes()))
            .map_err(io),
    }
}

/// Overwrites an older picture. None if something else is there: another file, a link, or a file
/// with a second hard link, which may be memory.
fn replace_picture(target: &Path, svg: &str) -> std::io::Result<Option<()>> {
    let (Some(folder), Some(name)) = (
        target.parent(),
        target.file_name().and_then(|name| name.to_str()),
    ) else {
        return Ok(None);
    };
    let Some(folder) = OpenFolder::open(folder)? else {
        return Ok(None);
    };
    let mut there = match folder.open_single(name) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => return Ok(None),
        other => other?,
    };
    let mut begins = vec![0; BEGINS.len()];
    if there.read_exact(&mut begins).is_err() || begins != BEGINS {
        return Ok(None);
    }
    there.rewind()?;
    there.set_len(0)?;
    there.write_all(svg.as_bytes()).map(Some)
}
