//! File access below a folder that an agent may write to.
//!
//! Invariant: no path leads out of the folder, and no link is followed, neither at the end of a
//! path nor on the way. On Linux the kernel resolves the path in one step, so an agent that swaps a
//! folder for a link cannot redirect it.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Parses a path that must stay below a folder: relative, not empty, without `..`. `.` components
/// are dropped.
pub fn parse_relative(path: &Path) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!parts.as_os_str().is_empty()).then_some(parts)
}

/// Opens a file below a folder. `mode` is used if the flags create it.
pub fn open(root: &Path, relative: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let folder = open_root(root)?;
    if relative.as_os_str().is_empty() {
        return Ok(folder);
    }
    // Without NONBLOCK, opening a fifo would block its reader forever.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let mode = if flags.contains(OFlags::CREATE) {
        mode
    } else {
        Mode::empty()
    };
    resolve(&folder, relative, flags, mode)
}

fn open_root(root: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(
        root,
        OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

#[cfg(target_os = "linux")]
fn resolve(folder: &OwnedFd, relative: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(folder, relative, flags, mode, how)
}

/// Other systems open the components one by one, none of them through a link.
#[cfg(not(target_os = "linux"))]
fn resolve(folder: &OwnedFd, relative: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut at = folder.try_clone().map_err(|_| Errno::MFILE)?;
    let parts: Vec<_> = relative.components().collect();
    for (index, part) in parts.iter().enumerate() {
        let last = index + 1 == parts.len();
        let how = if last {
            flags
        } else {
            OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
        };
        at = rustix::fs::openat(&at, part.as_os_str(), how, mode)?;
    }
    Ok(at)
}

/// Creates the folders that a file needs, and returns the last of them.
pub fn make_parents(root: &Path, relative: &Path, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut holder = open_root(root)?;
    for part in relative.parent().unwrap_or(Path::new("")).components() {
        match rustix::fs::mkdirat(&holder, part.as_os_str(), mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(why) => return Err(why),
        }
        // A single component below an open folder leaves no intermediate folder to swap.
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let name = Path::new(part.as_os_str());
        holder = resolve(&holder, name, flags, Mode::empty())
            .map_err(|why| link_or(&holder, name, why))?;
    }
    Ok(holder)
}

/// The kernel answers `ENOTDIR` for a link in place of a folder; this reports the link instead.
fn link_or(holder: &OwnedFd, name: &Path, why: Errno) -> Errno {
    let is_link = || {
        let stat = rustix::fs::statat(holder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    };
    if why == Errno::NOTDIR && is_link() == Some(true) {
        Errno::LOOP
    } else {
        why
    }
}

/// Creates a file that must not exist yet, and its parent folders with mode `0700`.
pub fn create_new(root: &Path, relative: &Path, mode: Mode) -> Result<File, Errno> {
    let folder = make_parents(root, relative, Mode::RWXU)?;
    let name = relative.file_name().ok_or(Errno::INVAL)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(&folder, name, flags, mode).map(File::from)
}

/// Creates a regular file or replaces it by a new one. Other hard links to the old file keep their
/// bytes.
pub fn replace(root: &Path, relative: &Path, bytes: &[u8], mode: Mode) -> io::Result<()> {
    let folder = make_parents(root, relative, Mode::RWXU)?;
    let name = relative.file_name().ok_or(Errno::INVAL)?;
    match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => rustix::fs::unlinkat(&folder, name, AtFlags::empty())?,
            FileType::Symlink => return Err(Errno::LOOP.into()),
            _ => return Err(Errno::EXIST.into()),
        },
        Err(Errno::NOENT) => {}
        Err(why) => return Err(why.into()),
    }
    let mut file = create_new(root, relative, mode)?;
    file.write_all(bytes)
}

/// The reason why an open file was not read.
pub enum Unread {
    NotAFile,
    TooLong,
    Io(io::Error),
}

/// Reads at most `bound` bytes, from a regular file only.
pub fn read(file: OwnedFd, bound: u64) -> Result<Vec<u8>, Unread> {
    let file = File::from(file);
    if !file.metadata().map_err(Unread::Io)?.is_file() {
        return Err(Unread::NotAFile);
    }
    let mut bytes = Vec::new();
    file.take(bound.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(Unread::Io)?;
    if bytes.len() as u64 > bound {
        Err(Unread::TooLong)
    } else {
        Ok(bytes)
    }
}

/// Maximum number of entries that a directory walk visits, because an agent may have filled the
/// folder.
pub const MOST_WALKED: usize = 200_000;

/// The extent of a directory walk.
pub enum Walked {
    Whole,
    /// The folder has more entries than a walk visits.
    TooMany,
    /// This folder could not be listed; the others were.
    Unreadable(PathBuf),
}

/// Visits everything below a folder, up to `MOST_WALKED` entries. Folders that cannot be listed are
/// skipped.
pub fn walk(root: &Path, visit: &mut dyn FnMut(&Path, FileType)) -> Walked {
    let mut seen = 0;
    let mut walked = Walked::Whole;
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let opened = match open(
            root,
            &folder,
            OFlags::DIRECTORY | OFlags::RDONLY,
            Mode::empty(),
        ) {
            Ok(opened) => opened,
            Err(Errno::ACCESS | Errno::PERM) => {
                walked = Walked::Unreadable(folder);
                continue;
            }
            // Deleted or replaced meanwhile.
            Err(_) => continue,
        };
        let Ok(entries) = Dir::read_from(&opened) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            seen += 1;
            if seen > MOST_WALKED {
                return Walked::TooMany;
            }
            let name = OsStr::from_bytes(name);
            let relative = folder.join(name);
            let kind = match entry.file_type() {
                FileType::Unknown => rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| {
                        FileType::from_raw_mode(stat.st_mode)
                    }),
                known => known,
            };
            if kind == FileType::Directory {
                folders.push(relative.clone());
            }
            visit(&relative, kind);
        }
    }
    walked
}

/// Explains an error to a person: names a link as the cause, which the kernel's message does not.
pub fn explain(why: io::Error) -> io::Error {
    match Errno::from_io_error(&why) {
        Some(Errno::LOOP | Errno::XDEV) => {
            io::Error::other("it is reached through a link, and links are not followed")
        }
        _ => why,
    }
}
