//! A folder that is not memory, such as one that a view is written to. Everything in it is reached
//! from the folder itself and without following any link, so that nothing outside is read, written
//! or removed through it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::tree::{is_absent, open_below, open_resolved};

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY);

/// An open folder.
pub struct Below(OwnedFd);

/// What a name in a folder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    File,
    Folder,
    /// A link, or something stranger.
    Other,
}

impl Below {
    /// Where a folder really lies, whether or not it is there yet.
    pub fn locate(folder: &Path) -> io::Result<PathBuf> {
        let mut there = std::path::absolute(folder)?;
        let mut missing = Vec::new();
        loop {
            match there.canonicalize() {
                Ok(real) => {
                    return Ok(missing
                        .iter()
                        .rev()
                        .fold(real, |path, part| path.join(part)));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let Some(name) = there.file_name().map(OsStr::to_owned) else {
                        return Err(error);
                    };
                    missing.push(name);
                    there.pop();
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens a folder where it really lies; none if it is not there.
    pub fn open(real: &Path) -> io::Result<Option<Below>> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match open_resolved(CWD, real, FOLDER, resolve) {
            Ok(folder) => Ok(Some(Below(folder))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The bytes of a file below a folder, wherever the folder lies; none if either is not there.
    pub fn read_in(folder: &Path, path: &str) -> io::Result<Option<Vec<u8>>> {
        match Self::open(&Self::locate(folder)?)? {
            Some(folder) => folder.read(path),
            None => Ok(None),
        }
    }

    /// Opens a folder where it really lies, and makes it and those above it if they are not there.
    pub fn make(real: &Path) -> io::Result<Below> {
        let (mut there, mut missing) = (real, Vec::new());
        let mut folder = loop {
            match (Below::open(there)?, there.parent(), there.file_name()) {
                (Some(folder), _, _) => break folder.0,
                (None, Some(above), Some(name)) => {
                    missing.push(name);
                    there = above;
                }
                _ => return Err(io::ErrorKind::NotFound.into()),
            }
        };
        for name in missing.into_iter().rev() {
            folder = make_folder(&folder, name)?;
        }
        Ok(Below(folder))
    }

    /// What lies directly in a folder below this one, by name; `.` is this one. A name that is not
    /// UTF-8 is shown as well as it can be.
    pub fn entries(&self, folder: &str) -> io::Result<Vec<(String, Entry)>> {
        let folder = open_below(self.0.as_fd(), Path::new(folder), FOLDER)?;
        let mut found = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            let kind = match kind {
                FileType::RegularFile => Entry::File,
                FileType::Directory => Entry::Folder,
                _ => Entry::Other,
            };
            found.push((
                OsStr::from_bytes(name.to_bytes())
                    .to_string_lossy()
                    .into_owned(),
                kind,
            ));
        }
        found.sort();
        Ok(found)
    }

    /// The bytes of a file; none if it is not there. Anything but a file is an error.
    pub fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match open_below(self.0.as_fd(), Path::new(path), OFlags::RDONLY) {
            Ok(fd) => File::from(fd),
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{path}` is no file"),
            ));
        }
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Opens a file for reading and writing that has this name and no other: not a link, and not a
    /// file with a second name elsewhere.
    pub fn open_single(&self, name: &str) -> io::Result<File> {
        let file = File::from(open_below(self.0.as_fd(), Path::new(name), OFlags::RDWR)?);
        let found = file.metadata()?;
        let invalid = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        match (found.is_file(), found.nlink()) {
            (false, _) => invalid("it is not a regular file"),
            (true, 1) => Ok(file),
            (true, _) => invalid("the file has a second name (a hard link)"),
        }
    }

    /// Writes a new file, and makes the folders above it.
    pub fn create(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut folder = rustix::io::dup(&self.0)?;
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            folder = make_folder(&folder, OsStr::new(part))?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        File::from(open_below(folder.as_fd(), Path::new(name), flags)?).write_all(bytes)
    }

    /// Puts new bytes in the place of a file, or makes it and the folders above it. The new file
    /// has the permissions of the old one. Anything but a file is an error; another name of the old
    /// file (a hard link) keeps the old bytes.
    pub fn replace(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut folder = rustix::io::dup(&self.0)?;
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            folder = make_folder(&folder, OsStr::new(part))?;
        }
        let mode = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Some(Mode::from_raw_mode(stat.st_mode))
            }
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("`{path}` is no file"),
                ));
            }
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        let new = format!(".{}.quipu-new", std::process::id());
        let mut file = File::from(open_below(
            folder.as_fd(),
            Path::new(&new),
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
        )?);
        let written = (|| {
            mode.map_or(Ok(()), |mode| rustix::fs::fchmod(&file, mode))?;
            file.write_all(bytes)?;
            Ok(rustix::fs::renameat(&folder, &new, &folder, name)?)
        })();
        written.inspect_err(|_: &io::Error| {
            let _ = rustix::fs::unlinkat(&folder, &new, AtFlags::empty());
        })
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        self.unlink(path, AtFlags::empty())
    }

    /// Removes a folder, if it is there and empty.
    pub fn remove_folder(&self, path: &str) -> io::Result<()> {
        self.unlink(path, AtFlags::REMOVEDIR)
    }

    fn unlink(&self, path: &str, flags: AtFlags) -> io::Result<()> {
        let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
        let folder = match open_below(self.0.as_fd(), Path::new(above), FOLDER) {
            Err(error) if is_absent(&error) => return Ok(()),
            other => other?,
        };
        match rustix::fs::unlinkat(&folder, name, flags) {
            Err(Errno::NOENT) => Ok(()),
            other => Ok(other?),
        }
    }
}

/// A folder directly in another one, made if it is not there.
fn make_folder(above: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => open_below(above.as_fd(), Path::new(name), FOLDER),
        Err(error) => Err(error.into()),
    }
}
