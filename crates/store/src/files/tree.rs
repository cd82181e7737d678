//! The project's files, opened from its root without following links.
//!
//! Every path is opened below the root and symbolic links are refused, so neither a link nor a
//! renamed folder leads outside the project or from one rule's file to another's. Replacing a file
//! is atomic, and the replaced file is inspected afterwards.

use std::fs::File;
use std::hash::Hash;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use quipu_contract::ProjectPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::files::disk::{Disk, Step};

/// How long, and how often, to wait for an editor that has a file open and may still write to it.
const SETTLING: std::time::Duration = std::time::Duration::from_millis(10);
const SETTLING_TRIES: usize = 20;

/// New memory belongs to its user, whatever the umask. A file that is replaced keeps its mode.
pub(crate) const NEW_FILE: Mode = Mode::from_raw_mode(0o600);
const NEW_FOLDER: Mode = Mode::from_raw_mode(0o700);

/// The file stat that shows whether a file is still the one that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct FileStat {
    pub inode: u64,
    pub size: u64,
    pub mtime_ns: i64,
}

/// Opens a folder.
pub(crate) const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY);

pub(crate) struct Tree {
    root: OwnedFd,
    path: PathBuf,
    disk: Disk,
}

/// The result of replacing a file.
pub(crate) struct Replaced {
    pub file_stat: FileStat,
    /// The replaced file, if it was not the expected one.
    pub unexpected: Option<Unexpected>,
}

/// The result of an append.
pub(crate) enum Appended {
    /// Done. The file stat is unknown if another program wrote to the file at the same time.
    Done(Option<FileStat>),
    /// Nothing was written: the file is missing or not as expected.
    Other,
    /// Nothing was written: the file has a second hard link, which may be outside the project.
    Linked,
}

/// A file that was taken out of the tree. It keeps a temporary name until it is discarded.
pub(crate) struct Unexpected {
    /// Its bytes; for a symbolic link, a sentence with its target.
    pub bytes: Vec<u8>,
    folder: OwnedFd,
    name: String,
}

impl Unexpected {
    pub fn discard(self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            &self.folder,
            &self.name,
            AtFlags::empty(),
        )?)
    }
}

impl Tree {
    pub fn open(path: &Path, disk: Disk) -> io::Result<Tree> {
        let path = path.canonicalize()?;
        let root = rustix::fs::open(
            &path,
            OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Tree { root, path, disk })
    }

    /// The real path of the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still leads to the open folder. An inode number is not given away while the
    /// folder is open.
    pub fn is_at_its_path(&self) -> bool {
        let (open, found) = (rustix::fs::fstat(&self.root), rustix::fs::stat(&self.path));
        match (open, found) {
            (Ok(open), Ok(found)) => (open.st_dev, open.st_ino) == (found.st_dev, found.st_ino),
            _ => false,
        }
    }

    pub fn open_at(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        open_below(self.root.as_fd(), Path::new(path), flags)
    }

    /// Opens a file; none if it does not exist.
    fn open_existing(&self, path: &ProjectPath, flags: OFlags) -> io::Result<Option<File>> {
        match self.open_at(path.as_str(), flags) {
            Ok(fd) => Ok(Some(File::from(fd))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The folder of a path, and the name in it.
    fn folder<'p>(&self, path: &'p ProjectPath, make: bool) -> io::Result<(OwnedFd, &'p str)> {
        let (name, file) = path
            .as_str()
            .rsplit_once('/')
            .unwrap_or((".", path.as_str()));
        let fd = match self.open_at(name, FOLDER) {
            Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                self.make_folders(name)?;
                self.open_at(name, FOLDER)?
            }
            other => other?,
        };
        Ok((fd, file))
    }

    pub fn make_folders(&self, folder: &str) -> io::Result<()> {
        let mut so_far = String::new();
        for part in folder.split('/').filter(|p| !p.is_empty() && *p != ".") {
            let parent = if so_far.is_empty() {
                ".".to_owned()
            } else {
                so_far.clone()
            };
            if !so_far.is_empty() {
                so_far.push('/');
            }
            so_far.push_str(part);
            let parent = self.open_at(&parent, FOLDER)?;
            if let Err(Errno::NOENT) = rustix::fs::statat(&parent, part, AtFlags::SYMLINK_NOFOLLOW)
            {
                self.disk.step(Step::MakeFolder)?;
                match rustix::fs::mkdirat(&parent, part, NEW_FOLDER) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// A description of anything but a file at a path, or of anything but a folder above it.
    pub fn obstacle(&self, path: &ProjectPath) -> Option<String> {
        match self.file_stat(path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Some(error.to_string()),
            _ => None,
        }
    }

    /// The stat of a regular file; none if it does not exist.
    pub fn file_stat(&self, path: &ProjectPath) -> io::Result<Option<FileStat>> {
        let (folder, name) = match self.folder(path, false) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("`{path}` is below something that is not a folder"),
                ));
            }
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => regular(path, &stat).map(|()| Some(file_stat_of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The time of the last change of a file, including its name. Programs cannot set this time.
    pub fn changed_ns(&self, path: &ProjectPath) -> io::Result<i64> {
        let (folder, name) = self.folder(path, false)?;
        let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(stat.st_ctime * 1_000_000_000 + i64::try_from(stat.st_ctime_nsec).unwrap_or(0))
    }

    pub fn read(&self, path: &ProjectPath) -> io::Result<Option<(Vec<u8>, FileStat)>> {
        let Some(file) = self.open_existing(path, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let mut before = rustix::fs::fstat(&file)?;
        regular(path, &before)?;
        // A program may be writing: read until the stat before and after agree, and wait in
        // between.
        for tried in 0..SETTLING_TRIES {
            if tried > 3 {
                std::thread::sleep(SETTLING);
            }
            let bytes = read_whole(&file, file_stat_of(&before).size)?;
            let after = rustix::fs::fstat(&file)?;
            if file_stat_of(&before) == file_stat_of(&after)
                && bytes.len() as u64 == file_stat_of(&after).size
            {
                return Ok(Some((bytes, file_stat_of(&after))));
            }
            before = after;
        }
        Err(io::Error::other(format!(
            "`{path}` keeps changing while Quipu reads it"
        )))
    }

    /// At most `most` bytes before the offset `end`; none if the file is shorter.
    pub fn read_before(
        &self,
        path: &ProjectPath,
        end: u64,
        most: u64,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.open_existing(path, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let mut bytes = vec![0; usize::try_from(most.min(end)).unwrap_or(0)];
        match file.read_exact_at(&mut bytes, end - most.min(end)) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a file, or creates it. The exchange is atomic and the old file is inspected
    /// afterwards, so that an edit in the last microsecond is not lost.
    pub fn replace(
        &self,
        path: &ProjectPath,
        bytes: &[u8],
        expected: Option<FileStat>,
    ) -> io::Result<Replaced> {
        let (folder, name) = self.folder(path, true)?;
        let temp = self.write_temp(path, &folder, name, bytes)?;
        match self.exchange(path, &folder, name, &temp) {
            Ok((file_stat, Taken::Nothing)) => Ok(Replaced {
                file_stat,
                unexpected: None,
            }),
            // From here on the temporary name may hold the only copy of an edit.
            Ok((file_stat, Taken::Old)) => Ok(Replaced {
                file_stat,
                unexpected: self.taken(temp.folder, temp.name, expected)?,
            }),
            Err(error) => {
                let _ = rustix::fs::unlinkat(&temp.folder, &temp.name, AtFlags::empty());
                Err(error)
            }
        }
    }

    fn exchange(
        &self,
        path: &ProjectPath,
        folder: &OwnedFd,
        name: &str,
        temp: &Temp,
    ) -> io::Result<(FileStat, Taken)> {
        let stat = rustix::fs::fstat(&temp.file)?;
        let file_stat = file_stat_of(&stat);
        loop {
            match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(old) => {
                    if FileType::from_raw_mode(old.st_mode) == FileType::Directory {
                        return Err(io::Error::new(
                            io::ErrorKind::IsADirectory,
                            format!("`{path}` is a folder"),
                        ));
                    }
                    let mode = old.st_mode & 0o777;
                    if FileType::from_raw_mode(old.st_mode) == FileType::RegularFile
                        && mode != stat.st_mode & 0o777
                    {
                        rustix::fs::fchmod(&temp.file, Mode::from_raw_mode(mode))?;
                    }
                    self.disk.step(Step::Exchange)?;
                    match temp.rename(folder, name, RenameFlags::EXCHANGE) {
                        Err(Errno::NOENT) => continue, // it was deleted meanwhile
                        other => other?,
                    }
                    return Ok((file_stat, Taken::Old));
                }
                Err(Errno::NOENT) => {
                    self.disk.step(Step::Place)?;
                    match temp.rename(folder, name, RenameFlags::NOREPLACE) {
                        Err(Errno::EXIST) => continue, // it was created meanwhile
                        other => other?,
                    }
                    return Ok((file_stat, Taken::Nothing));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Inspects a file that was taken out of the tree. Deletes it if it is the expected one.
    fn taken(
        &self,
        folder: OwnedFd,
        name: String,
        expected: Option<FileStat>,
    ) -> io::Result<Option<Unexpected>> {
        self.disk.step(Step::TakenOut)?;
        let stat = rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if expected == Some(file_stat_of(&stat)) {
            rustix::fs::unlinkat(&folder, &name, AtFlags::empty())?;
            return Ok(None);
        }
        let bytes = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
                let fd = rustix::fs::openat(&folder, &name, flags, Mode::empty())?;
                read_settled(File::from(fd))?
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&folder, &name, Vec::new())?;
                [b"a symbolic link to ", target.as_bytes(), b"\n"].concat()
            }
            _ => Vec::new(),
        };
        Ok(Some(Unexpected {
            bytes,
            folder,
            name,
        }))
    }

    /// Writes a new file under a temporary name, on the file system of its target folder.
    fn write_temp(
        &self,
        path: &ProjectPath,
        folder: &OwnedFd,
        name: &str,
        bytes: &[u8],
    ) -> io::Result<Temp> {
        let (parent, prefix) = self.temp_folder(folder, name)?;
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = unique_name(&prefix, path);
            let file = match rustix::fs::openat(&parent, &name, flags, NEW_FILE) {
                Err(Errno::EXIST) => continue, // left by a process that had this id before
                other => File::from(other?),
            };
            let temp = Temp {
                folder: parent,
                name,
                file,
            };
            if let Err(error) = self.disk.write_end(Step::TempWrite, &temp.file, bytes) {
                let _ = rustix::fs::unlinkat(&temp.folder, &temp.name, AtFlags::empty());
                return Err(error);
            }
            return Ok(temp);
        }
    }

    /// The folder for temporary files, and the prefix of their names. It is on the file system of
    /// the target folder, because a rename cannot cross file systems.
    fn temp_folder(&self, folder: &OwnedFd, name: &str) -> io::Result<(OwnedFd, String)> {
        let temp = self.open_at(".quipu/tmp", FOLDER)?;
        if rustix::fs::fstat(&temp)?.st_dev == rustix::fs::fstat(folder)?.st_dev {
            Ok((temp, String::new()))
        } else {
            Ok((rustix::io::dup(folder)?, format!(".{name}.quipu-")))
        }
    }

    /// Appends bytes to a file that is as expected.
    pub fn append(
        &self,
        path: &ProjectPath,
        bytes: &[u8],
        expected: Option<FileStat>,
        length: u64,
    ) -> io::Result<Appended> {
        let Some(file) = self.open_existing(path, OFlags::WRONLY | OFlags::APPEND)? else {
            return Ok(Appended::Other);
        };
        let stat = rustix::fs::fstat(&file)?;
        regular(path, &stat)?;
        let now = file_stat_of(&stat);
        if stat.st_nlink != 1 {
            return Ok(Appended::Linked);
        }
        if now.size != length || expected.is_some_and(|e| e != now) {
            return Ok(Appended::Other);
        }
        self.disk.write_end(Step::Append, &file, bytes)?;
        let file_stat = file_stat_of(&rustix::fs::fstat(&file)?);
        // Text that another program appended between the check and the write is now in the middle.
        Ok(Appended::Done(
            (file_stat.size == length + bytes.len() as u64).then_some(file_stat),
        ))
    }

    /// Overwrites bytes within a file without changing its length. Returns false and does nothing
    /// if they are not `were`, or if the file has a second hard link.
    pub fn rewrite(
        &self,
        path: &ProjectPath,
        at: u64,
        were: &[u8],
        bytes: &[u8],
    ) -> io::Result<bool> {
        debug_assert_eq!(were.len(), bytes.len());
        let Some(file) = self.open_existing(path, OFlags::RDWR)? else {
            return Ok(false);
        };
        let stat = rustix::fs::fstat(&file)?;
        regular(path, &stat)?;
        let mut found = vec![0; were.len()];
        if stat.st_nlink != 1
            || file_stat_of(&stat).size < at + were.len() as u64
            || file.read_exact_at(&mut found, at).is_err()
            || found != were
        {
            return Ok(false);
        }
        self.disk.write_at(Step::Reorder, &file, bytes, at)?;
        Ok(true)
    }

    /// Removes a file from the tree. Returns it, under a temporary name, if it is not the expected
    /// one; otherwise deletes it.
    pub fn remove(
        &self,
        path: &ProjectPath,
        expected: Option<FileStat>,
    ) -> io::Result<Option<Unexpected>> {
        let (folder, name) = match self.folder(path, false) {
            Err(error) if is_absent(&error) => return Ok(None),
            other => other?,
        };
        let stat = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            other => other?,
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                format!("`{path}` is a folder"),
            ));
        }
        // Move it before inspecting it, so that no program can write to it by name in between.
        let (parent, prefix) = self.temp_folder(&folder, name)?;
        self.disk.step(Step::Remove)?;
        loop {
            let away = unique_name(&prefix, path);
            match rustix::fs::renameat_with(&folder, name, &parent, &away, RenameFlags::NOREPLACE) {
                Ok(()) => {
                    return self.taken(parent, away, expected);
                }
                Err(Errno::EXIST) => continue,
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Syncs the file system: after this, a power cut cannot undo earlier writes.
    pub fn sync_everything(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(self.root.as_fd())?)
    }
}

/// Opens a path below a folder without following links.
pub(crate) fn open_below(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> io::Result<OwnedFd> {
    open_resolved(
        folder,
        path,
        flags,
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
}

pub(crate) fn open_resolved(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> io::Result<OwnedFd> {
    let mode = if flags.contains(OFlags::CREATE) {
        NEW_FILE
    } else {
        Mode::empty()
    };
    loop {
        match rustix::fs::openat2(
            folder,
            path,
            flags | OFlags::CLOEXEC | OFlags::NONBLOCK,
            mode,
            resolve,
        ) {
            // A concurrent rename made the lookup ambiguous; the kernel asks for a retry.
            Err(Errno::AGAIN) => continue,
            Err(Errno::LOOP) => {
                let what = format!("`{}` goes through a symbolic link", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            other => return Ok(other?),
        }
    }
}

struct Temp {
    folder: OwnedFd,
    name: String,
    file: File,
}

impl Temp {
    fn rename(&self, folder: &OwnedFd, name: &str, how: RenameFlags) -> Result<(), Errno> {
        rustix::fs::renameat_with(&self.folder, &self.name, folder, name, how)
    }
}

/// The content of the temporary name after an exchange.
enum Taken {
    Nothing,
    /// The file that the new one replaced.
    Old,
}

/// In a temporary name, the path of the original file follows this character.
const BELONGS_TO: char = '~';
/// The longest file name.
const NAME_MAX: usize = 255;

fn unique_name(prefix: &str, path: &ProjectPath) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static PROCESS: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let process = PROCESS.get_or_init(std::process::id);
    let mut name = format!("{prefix}{process}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    // After a crash, the name shows which file this belongs to.
    if prefix.is_empty() && name.len() + 1 + 3 * path.as_str().len() <= NAME_MAX {
        name.push(BELONGS_TO);
        for letter in path.as_str().chars() {
            match letter {
                '/' => name.push_str("%2F"),
                '%' => name.push_str("%25"),
                other => name.push(other),
            }
        }
    }
    name
}

/// The original path of a file with a temporary name, if the name contains it.
pub(crate) fn path_in_name(name: &str) -> Option<ProjectPath> {
    let (_, path) = name.split_once(BELONGS_TO)?;
    ProjectPath::parse(&path.replace("%2F", "/").replace("%25", "%")).ok()
}

pub(crate) fn file_stat_of(stat: &rustix::fs::Stat) -> FileStat {
    FileStat {
        inode: stat.st_ino,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime_ns: stat.st_mtime * 1_000_000_000 + i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
    }
}

fn regular(path: &ProjectPath, stat: &rustix::fs::Stat) -> io::Result<()> {
    let is = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a folder",
        _ => "not a regular file",
    };
    let what = format!("`{path}` is {is}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// Reads a file that was taken out of the tree and is not as expected. An editor may have opened it
/// before and may still write to it. Nobody can open it any more, so it is read until it stops
/// changing.
fn read_settled(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for _ in 0..SETTLING_TRIES {
        let before = file_stat_of(&rustix::fs::fstat(&file)?);
        std::thread::sleep(SETTLING);
        bytes.clear();
        io::Seek::rewind(&mut file)?;
        file.read_to_end(&mut bytes)?;
        if before == file_stat_of(&rustix::fs::fstat(&file)?) {
            break;
        }
    }
    Ok(bytes)
}

/// Reads a whole file with an expected size, in one call if the size is right.
fn read_whole(file: &File, size: u64) -> io::Result<Vec<u8>> {
    // One byte more than expected: if a read leaves it free, the end was reached.
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)? + 1];
    let mut filled = 0;
    loop {
        match file.read_at(&mut bytes[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
        if filled < bytes.len() {
            break;
        }
        bytes.resize(bytes.len() * 2, 0);
    }
    bytes.truncate(filled);
    Ok(bytes)
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
