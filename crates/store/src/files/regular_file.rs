//! Opens files that another program may have replaced. Never waits for a named pipe and never
//! follows a link.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file; an error for anything else.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_regular_with(path, OpenOptions::new().read(true))
}

pub(crate) fn open_regular_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ))
    }
}

/// The bytes of a regular file; an error for anything else.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a regular file; an error for anything else.
pub fn read_regular_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_regular(path)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Deletes a cache file, or anything else at its path. A folder that is not empty was not made by
/// Quipu; it is renamed and kept.
pub(crate) fn remove_cache(path: &Path) -> std::io::Result<()> {
    use std::io::ErrorKind::{DirectoryNotEmpty, IsADirectory, NotFound};
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == NotFound => Ok(()),
        Err(error) if error.kind() == IsADirectory || path.is_dir() => {
            match std::fs::remove_dir(path) {
                Err(error) if error.kind() == DirectoryNotEmpty => {
                    let name = path
                        .file_name()
                        .map(|name| name.to_string_lossy().into_owned())
                        .unwrap_or_default();
                    std::fs::rename(
                        path,
                        path.with_file_name(format!("{name}.moved-{}", crate::ident::short_id())),
                    )
                }
                other => other,
            }
        }
        other => other,
    }
}
