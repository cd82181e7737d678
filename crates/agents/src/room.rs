//! The two folders of an assignment, for tools that an adapter serves itself.
//!
//! Reading reaches the view and the out folder, writing the out folder alone. A path is resolved by the kernel below
//! its folder, without following any link: an agent that lays a symlink into its out folder gains nothing.

use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// Why a tool's path was not served.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    #[error("`{0}` is outside the folders of this task")]
    Outside(String),
    #[error("`{0}` is not an output of this task: write {1}")]
    NotAnOutput(String, String),
    #[error("there is no `{0}`")]
    Missing(String),
    #[error("`{path}` has more than {bound} bytes")]
    TooLong { path: String, bound: u64 },
    #[error("`{0}` is not UTF-8 text")]
    NotText(String),
    #[error("`{path}`: {why}")]
    Io { path: String, why: std::io::Error },
}

impl RoomError {
    /// Whether the agent reached for what it was not given.
    pub fn is_denial(&self) -> bool {
        matches!(self, RoomError::Outside(_) | RoomError::NotAnOutput(..))
    }
}

/// The folders, and what may be written.
pub struct Room<'a> {
    pub view: &'a Path,
    pub out: &'a Path,
    pub outputs: &'a [String],
    pub file_bound: u64,
}

impl Room<'_> {
    /// The text of a file: from the out folder if the agent wrote it there, else from the view.
    pub fn read(&self, path: &str) -> Result<String, RoomError> {
        let mut missing = RoomError::Missing(path.to_string());
        for (root, relative) in self.places(path, &[self.out, self.view])? {
            match open_beneath(root, &relative, OFlags::RDONLY, path) {
                Ok(file) => return read_text(file, path, self.file_bound),
                Err(RoomError::Missing(_)) => {}
                Err(other) => missing = other,
            }
        }
        Err(missing)
    }

    /// Writes one of the outputs whole.
    pub fn write(&self, path: &str, text: &str) -> Result<(), RoomError> {
        let places = self.places(path, &[self.out])?;
        let Some((root, relative)) = places.into_iter().next() else {
            return Err(RoomError::Outside(path.to_string()));
        };
        let named = relative.to_string_lossy().into_owned();
        if !self.outputs.contains(&named) {
            let allowed = match self.outputs {
                [] => "no file: the final message is the result".to_string(),
                outputs => outputs.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(" or "),
            };
            return Err(RoomError::NotAnOutput(named, allowed));
        }
        if text.len() as u64 > self.file_bound {
            return Err(RoomError::TooLong { path: named, bound: self.file_bound });
        }
        make_folders(root, &relative, path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = File::from(open_beneath(root, &relative, flags, path)?);
        file.write_all(text.as_bytes()).map_err(|why| RoomError::Io { path: path.to_string(), why })
    }

    /// The files of the view, and those already written, as sorted relative paths.
    pub fn list(&self) -> Vec<String> {
        let mut found = Vec::new();
        for root in [self.view, self.out] {
            walk(root, &mut |relative, kind| {
                if kind == FileType::RegularFile {
                    found.push(relative.to_string_lossy().into_owned());
                }
            });
        }
        found.sort();
        found.dedup();
        found
    }

    /// The folders that a path may lie in, each with the path below it. A relative path may lie in any of them.
    fn places<'r>(&self, path: &str, roots: &[&'r Path]) -> Result<Vec<(&'r Path, PathBuf)>, RoomError> {
        let given = Path::new(path);
        let found: Vec<_> = roots
            .iter()
            .filter_map(|root| {
                let relative = if given.is_absolute() { given.strip_prefix(root).ok()? } else { given };
                Some((*root, plain(relative)?))
            })
            .collect();
        if found.is_empty() { Err(RoomError::Outside(path.to_string())) } else { Ok(found) }
    }
}

/// A relative path without `.` parts; none if it climbs or is empty.
fn plain(path: &Path) -> Option<PathBuf> {
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

/// Opens a file below a folder without following links.
pub(crate) fn open_beneath(root: &Path, relative: &Path, flags: OFlags, asked: &str) -> Result<OwnedFd, RoomError> {
    let io = |errno: Errno| match errno {
        Errno::NOENT | Errno::NOTDIR => RoomError::Missing(asked.to_string()),
        Errno::LOOP | Errno::XDEV => RoomError::Outside(asked.to_string()),
        other => RoomError::Io { path: asked.to_string(), why: other.into() },
    };
    let folder = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(io)?;
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
    // Without NONBLOCK a fifo in the out folder would hold its reader up for ever.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    resolve_beneath(&folder, relative, flags, mode).map_err(io)
}

#[cfg(target_os = "linux")]
fn resolve_beneath(folder: &OwnedFd, relative: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(folder, relative, flags, mode, resolve)
}

/// Elsewhere the parts are opened one by one, none of them through a link.
#[cfg(not(target_os = "linux"))]
fn resolve_beneath(folder: &OwnedFd, relative: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut at = folder.try_clone().map_err(|_| Errno::MFILE)?;
    let parts: Vec<_> = relative.components().collect();
    for (index, part) in parts.iter().enumerate() {
        let last = index + 1 == parts.len();
        let how = if last { flags } else { OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC };
        at = rustix::fs::openat(&at, part.as_os_str(), how, mode)?;
    }
    Ok(at)
}

fn make_folders(root: &Path, relative: &Path, asked: &str) -> Result<(), RoomError> {
    let Some(parent) = relative.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    let mut below = PathBuf::new();
    for part in parent.components() {
        let holder = if below.as_os_str().is_empty() {
            rustix::fs::open(root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno| RoomError::Io { path: asked.to_string(), why: errno.into() })?
        } else {
            open_beneath(root, &below, OFlags::DIRECTORY | OFlags::RDONLY, asked)?
        };
        match rustix::fs::mkdirat(&holder, part.as_os_str(), Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => below.push(part),
            Err(errno) => return Err(RoomError::Io { path: asked.to_string(), why: errno.into() }),
        }
    }
    Ok(())
}

/// Reads at most the bound, from a regular file only.
pub(crate) fn read_bytes(file: OwnedFd, asked: &str, bound: u64) -> Result<Vec<u8>, RoomError> {
    let io = |why| RoomError::Io { path: asked.to_string(), why };
    let file = File::from(file);
    if !file.metadata().map_err(io)?.is_file() {
        return Err(RoomError::Missing(asked.to_string()));
    }
    let mut bytes = Vec::new();
    file.take(bound + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > bound {
        return Err(RoomError::TooLong { path: asked.to_string(), bound });
    }
    Ok(bytes)
}

fn read_text(file: OwnedFd, asked: &str, bound: u64) -> Result<String, RoomError> {
    String::from_utf8(read_bytes(file, asked, bound)?).map_err(|_| RoomError::NotText(asked.to_string()))
}

/// Visits everything below a folder, following no link. Bounded, because an agent may have filled the folder.
pub(crate) fn walk(root: &Path, visit: &mut dyn FnMut(&Path, FileType)) {
    const MOST: usize = 100_000;
    let mut seen = 0;
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(opened) = rustix::fs::open(root.join(&folder), flags, Mode::empty()) else { continue };
        let Ok(entries) = Dir::read_from(&opened) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            seen += 1;
            if seen > MOST {
                return;
            }
            let relative = folder.join(std::ffi::OsStr::new(&*String::from_utf8_lossy(name)));
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                let full = root.join(&relative);
                kind = std::fs::symlink_metadata(full)
                    .map(|meta| if meta.is_dir() { FileType::Directory } else { FileType::RegularFile })
                    .unwrap_or(FileType::Unknown);
            }
            if kind == FileType::Directory {
                folders.push(relative.clone());
            }
            visit(&relative, kind);
        }
    }
}
