//! Access to a folder that is not memory, such as the target folder of a view.
//!
//! Every path is resolved from the open folder and follows no link. Nothing outside the folder can
//! be read, written or deleted through it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::files::tree::{is_absent, open_below, open_resolved};

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY);

pub struct OpenFolder(OwnedFd);

/// The type of a folder entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    File,
    Folder,
    /// A link or a special file.
    Other,
}

impl OpenFolder {
    /// The real path of a folder, even if the folder does not exist yet.
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

    /// Opens a folder by its real path; none if it does not exist.
    pub fn open(real: &Path) -> io::Result<Option<OpenFolder>> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match open_resolved(CWD, real, FOLDER, resolve) {
            Ok(folder) => Ok(Some(OpenFolder(folder))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The bytes of a file below a folder, given by any path; none if either does not exist.
    pub fn read_in(folder: &Path, path: &str) -> io::Result<Option<Vec<u8>>> {
        match Self::open(&Self::locate(folder)?)? {
            Some(folder) => folder.read(path),
            None => Ok(None),
        }
    }

    /// Opens a folder by its real path. Creates it and its parents if they do not exist.
    pub fn make(real: &Path) -> io::Result<OpenFolder> {
        let (mut there, mut missing) = (real, Vec::new());
        let mut folder = loop {
            match (OpenFolder::open(there)?, there.parent(), there.file_name()) {
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
        Ok(OpenFolder(folder))
    }

    /// The direct entries of a folder below this one, by name; `.` is this one. A name that is not
    /// UTF-8 is converted with replacement characters.
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

    /// The bytes of a file; none if it does not exist. Anything but a file is an error.
    pub fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match open_below(self.0.as_fd(), Path::new(path), OFlags::RDONLY) {
            Ok(fd) => File::from(fd),
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{path}` is not a file"),
            ));
        }
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Opens a file for reading and writing that is not a link and has no second hard link.
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

    /// Creates a new file and the folders above it.
    pub fn create(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.folder_for(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        File::from(open_below(folder.as_fd(), Path::new(name), flags)?).write_all(bytes)
    }

    /// Replaces the content of a file, or creates it and the folders above it. The new file has the
    /// permissions of the old one. Anything but a file is an error. Another hard link of the old
    /// file keeps the old bytes.
    pub fn replace(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.folder_for(path)?;
        let mode = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Some(Mode::from_raw_mode(stat.st_mode))
            }
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("`{path}` is not a file"),
                ));
            }
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        let new = format!(".{}.quipu-new", std::process::id());
        // Pages and settings of other programs are not memory: the umask decides who reads them.
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let usual = Mode::from_raw_mode(0o666);
        let mut file = File::from(rustix::fs::openat(&folder, new.as_str(), flags, usual)?);
        let written = (|| {
            mode.map_or(Ok(()), |mode| rustix::fs::fchmod(&file, mode))?;
            file.write_all(bytes)?;
            Ok(rustix::fs::renameat(&folder, &new, &folder, name)?)
        })();
        written.inspect_err(|_: &io::Error| {
            let _ = rustix::fs::unlinkat(&folder, &new, AtFlags::empty());
        })
    }

    /// The folder for a file, created if it does not exist, and the name of the file in it.
    fn folder_for<'p>(&self, path: &'p str) -> io::Result<(OwnedFd, &'p str)> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut folder = rustix::io::dup(&self.0)?;
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            folder = make_folder(&folder, OsStr::new(part))?;
        }
        Ok((folder, name))
    }

    /// Lets everyone who may read a file run it.
    pub fn make_executable(&self, path: &str) -> io::Result<()> {
        let file = File::from(open_below(self.0.as_fd(), Path::new(path), OFlags::RDONLY)?);
        let mode = rustix::fs::fstat(&file)?.st_mode & 0o777;
        let mode = mode | (mode & 0o444) >> 2;
        Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?)
    }

    /// Deletes a file, if it exists.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        self.unlink(path, AtFlags::empty())
    }

    /// Deletes a folder, if it exists and is empty.
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

/// Opens a direct subfolder, and creates it if it does not exist.
fn make_folder(above: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => open_below(above.as_fd(), Path::new(name), FOLDER),
        Err(error) => Err(error.into()),
    }
}
