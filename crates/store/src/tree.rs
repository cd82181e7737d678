//! The project's files, opened from its root without following links.
//!
//! Every path is opened below the root and symbolic links are refused, so neither a link nor a
//! renamed folder leads outside the project or from one rule's file to another's. Replacing a file
//! is atomic, and the replaced file is inspected afterwards.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use quipu_contract::ProjectPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use crate::disk::{Disk, Step};

/// How long, and how often, to wait for an editor that has a file open and may still write to it.
const SETTLING: std::time::Duration = std::time::Duration::from_millis(10);
const SETTLING_TRIES: usize = 20;

/// The file stat that shows whether a file is still the one that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub inode: u64,
    pub size: u64,
    pub mtime_ns: i64,
}

pub(crate) struct Tree {
    root: OwnedFd,
    pub path: PathBuf,
    disk: Disk,
    /// `.quipu/tmp` and its device.
    temp: Mutex<Option<(Arc<OwnedFd>, u64)>>,
    /// The folder that was last used by the thread of `stay_near`.
    near: Mutex<Option<Near>>,
}

/// A thread that keeps a folder open, and that folder. Other threads open their own.
struct Near {
    who: ThreadId,
    folder: Option<(String, Folder)>,
}

#[derive(Clone)]
struct Folder {
    fd: Arc<OwnedFd>,
    /// The folder for temporary files, and the prefix of their names. Known after the first file,
    /// if it is `.quipu/tmp`.
    temp: Option<(Arc<OwnedFd>, String)>,
}

/// While it exists, a folder is opened once for all consecutive files in it. Has no effect if
/// another thread already has one.
pub(crate) struct StayNear<'t>(Option<&'t Tree>);

impl Drop for StayNear<'_> {
    fn drop(&mut self) {
        if let Some(tree) = self.0 {
            *tree.near() = None;
        }
    }
}

/// The result of replacing a file.
pub(crate) struct Replaced {
    pub stamp: Stamp,
    /// The replaced file, if it was not the expected one.
    pub unexpected: Option<Unexpected>,
}

/// The result of an append.
pub(crate) enum Appended {
    /// Done. The file stat is unknown if another program wrote to the file at the same time.
    Done(Option<Stamp>),
    /// Nothing was written: the file is missing or not as expected.
    Other,
    /// Nothing was written: the file has a second hard link, which may be outside the project.
    Linked,
}

/// A file that was taken out of the tree. It keeps a temporary name until it is discarded.
pub(crate) struct Unexpected {
    /// Its bytes; for a symbolic link, a sentence with its target.
    pub bytes: Vec<u8>,
    folder: Arc<OwnedFd>,
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
        Ok(Tree {
            root,
            path,
            disk,
            temp: Mutex::new(None),
            near: Mutex::new(None),
        })
    }

    pub fn open_at(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        open_below(self.root.as_fd(), Path::new(path), flags)
    }

    /// For a caller that stats or writes several files in a row. If a folder is moved meanwhile, it
    /// is written at its new path, as if it had been moved right after.
    pub fn stay_near(&self) -> StayNear<'_> {
        let mut near = self.near();
        let is_free = near.is_none();
        near.get_or_insert_with(|| Near {
            who: std::thread::current().id(),
            folder: None,
        });
        StayNear(is_free.then_some(self))
    }

    fn near(&self) -> MutexGuard<'_, Option<Near>> {
        self.near.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open folder of this thread, if it called `stay_near`.
    fn my_near(near: &mut Option<Near>) -> Option<&mut Near> {
        near.as_mut()
            .filter(|near| near.who == std::thread::current().id())
    }

    /// The folder of a path, and the name in it.
    fn folder<'p>(&self, path: &'p ProjectPath, make: bool) -> io::Result<(Folder, &'p str)> {
        let (name, file) = path
            .as_str()
            .rsplit_once('/')
            .unwrap_or((".", path.as_str()));
        if let Some(Near {
            folder: Some((known, folder)),
            ..
        }) = Self::my_near(&mut self.near())
            && known == name
        {
            return Ok((folder.clone(), file));
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY;
        let fd = match self.open_at(name, flags) {
            Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                self.make_folders(name)?;
                self.open_at(name, flags)?
            }
            other => other?,
        };
        let folder = Folder {
            fd: Arc::new(fd),
            temp: None,
        };
        self.keep_near(name, &folder);
        Ok((folder, file))
    }

    fn keep_near(&self, name: &str, folder: &Folder) {
        if let Some(near) = Self::my_near(&mut self.near()) {
            near.folder = Some((name.to_owned(), folder.clone()));
        }
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
            let parent = self.open_at(&parent, OFlags::DIRECTORY | OFlags::RDONLY)?;
            if let Err(Errno::NOENT) = rustix::fs::statat(&parent, part, AtFlags::SYMLINK_NOFOLLOW)
            {
                self.disk.step(Step::MakeFolder)?;
                match rustix::fs::mkdirat(&parent, part, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// A description of anything but a file at a path, or of anything but a folder above it.
    pub fn obstacle(&self, path: &ProjectPath) -> Option<String> {
        if let Some(near) = Self::my_near(&mut self.near()) {
            near.folder = None;
        }
        match self.stamp(path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Some(error.to_string()),
            _ => None,
        }
    }

    /// The stat of a regular file; none if it does not exist.
    pub fn stamp(&self, path: &ProjectPath) -> io::Result<Option<Stamp>> {
        let (folder, name) = match self.folder(path, false) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("`{path}` lies below something that is no folder"),
                ));
            }
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        match rustix::fs::statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => regular(path, &stat).map(|()| Some(stamp_of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The time of the last change of a file, including its name. Programs cannot set this time.
    pub fn changed_ns(&self, path: &ProjectPath) -> io::Result<i64> {
        let (folder, name) = self.folder(path, false)?;
        let stat = rustix::fs::statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(stat.st_ctime * 1_000_000_000 + i64::try_from(stat.st_ctime_nsec).unwrap_or(0))
    }

    pub fn read(&self, path: &ProjectPath) -> io::Result<Option<(Vec<u8>, Stamp)>> {
        let fd = match self.open_at(path.as_str(), OFlags::RDONLY) {
            Ok(fd) => fd,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut before = rustix::fs::fstat(&fd)?;
        regular(path, &before)?;
        let file = File::from(fd);
        // A program may be writing: read until the stat before and after agree, and wait in
        // between.
        for tried in 0..SETTLING_TRIES {
            if tried > 3 {
                std::thread::sleep(SETTLING);
            }
            let bytes = read_whole(&file, stamp_of(&before).size)?;
            let after = rustix::fs::fstat(&file)?;
            if stamp_of(&before) == stamp_of(&after) && bytes.len() as u64 == stamp_of(&after).size
            {
                return Ok(Some((bytes, stamp_of(&after))));
            }
            before = after;
        }
        Err(io::Error::other(format!(
            "`{path}` keeps changing while it is read"
        )))
    }

    /// At most `most` bytes before the offset `end`; none if the file is shorter.
    pub fn read_before(
        &self,
        path: &ProjectPath,
        end: u64,
        most: u64,
    ) -> io::Result<Option<Vec<u8>>> {
        let fd = match self.open_at(path.as_str(), OFlags::RDONLY) {
            Ok(fd) => fd,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; usize::try_from(most.min(end)).unwrap_or(0)];
        let from = end - bytes.len() as u64;
        match std::os::unix::fs::FileExt::read_exact_at(&File::from(fd), &mut bytes, from) {
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
        expected: Option<Stamp>,
    ) -> io::Result<Replaced> {
        let (folder, name) = self.folder(path, true)?;
        let temp = self.write_temp(path, &folder, name, bytes)?;
        match self.exchange(path, &folder.fd, name, &temp) {
            Ok((stamp, Taken::Nothing)) => Ok(Replaced {
                stamp,
                unexpected: None,
            }),
            // From here on the temporary name may hold the only copy of an edit.
            Ok((stamp, Taken::Old)) => Ok(Replaced {
                stamp,
                unexpected: self.taken(&temp, expected)?,
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
    ) -> io::Result<(Stamp, Taken)> {
        let stat = rustix::fs::fstat(&temp.file)?;
        let stamp = stamp_of(&stat);
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
                    match rustix::fs::renameat_with(
                        &temp.folder,
                        &temp.name,
                        folder,
                        name,
                        RenameFlags::EXCHANGE,
                    ) {
                        Err(Errno::NOENT) => continue, // it was deleted meanwhile
                        other => other?,
                    }
                    return Ok((stamp, Taken::Old));
                }
                Err(Errno::NOENT) => {
                    self.disk.step(Step::Place)?;
                    match rustix::fs::renameat_with(
                        &temp.folder,
                        &temp.name,
                        folder,
                        name,
                        RenameFlags::NOREPLACE,
                    ) {
                        Err(Errno::EXIST) => continue, // it was created meanwhile
                        other => other?,
                    }
                    return Ok((stamp, Taken::Nothing));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Inspects a file that was taken out of the tree. Deletes it if it is the expected one.
    fn taken(&self, temp: &Temp, expected: Option<Stamp>) -> io::Result<Option<Unexpected>> {
        self.disk.step(Step::TakenOut)?;
        let stat = rustix::fs::statat(&temp.folder, &temp.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if expected == Some(stamp_of(&stat)) {
            rustix::fs::unlinkat(&temp.folder, &temp.name, AtFlags::empty())?;
            return Ok(None);
        }
        let mut bytes = Vec::new();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
                bytes = read_settled(File::from(rustix::fs::openat(
                    &temp.folder,
                    &temp.name,
                    flags,
                    Mode::empty(),
                )?))?;
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&temp.folder, &temp.name, Vec::new())?;
                bytes = [b"a symbolic link to ", target.as_bytes(), b"\n"].concat();
            }
            _ => {}
        }
        Ok(Some(Unexpected {
            bytes,
            folder: Arc::clone(&temp.folder),
            name: temp.name.clone(),
        }))
    }

    /// Writes a new file under a temporary name, on the file system of its target folder.
    fn write_temp(
        &self,
        path: &ProjectPath,
        folder: &Folder,
        name: &str,
        bytes: &[u8],
    ) -> io::Result<Temp> {
        let (parent, prefix) = match &folder.temp {
            Some(known) => known.clone(),
            None => {
                let found = self.temp_folder(&folder.fd, name)?;
                // On another device the temporary name begins with the file's own name, so it is
                // not reused.
                if found.1.is_empty() {
                    let folder = Folder {
                        temp: Some(found.clone()),
                        ..folder.clone()
                    };
                    self.keep_near(path.parent().unwrap_or("."), &folder);
                }
                found
            }
        };
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = unique_name(&prefix, path);
            let file = match rustix::fs::openat(&parent, &name, flags, Mode::from_raw_mode(0o666)) {
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

    fn temp_folder(&self, folder: &OwnedFd, name: &str) -> io::Result<(Arc<OwnedFd>, String)> {
        let device = rustix::fs::fstat(folder)?.st_dev;
        // Kept open after the first use; reopened if it was deleted.
        let mut slot = self.temp.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match &*slot {
            Some((quipu, device))
                if rustix::fs::fstat(&**quipu).is_ok_and(|stat| stat.st_nlink > 0) =>
            {
                Some((Arc::clone(quipu), *device))
            }
            _ => None,
        };
        let (quipu, own) = match known {
            Some(known) => known,
            None => {
                let opened =
                    Arc::new(self.open_at(".quipu/tmp", OFlags::DIRECTORY | OFlags::RDONLY)?);
                let device = rustix::fs::fstat(&*opened)?.st_dev;
                *slot = Some((Arc::clone(&opened), device));
                (opened, device)
            }
        };
        let same = own == device;
        Ok(if same {
            (quipu, String::new())
        } else {
            (
                Arc::new(rustix::io::dup(folder)?),
                format!(".{name}.quipu-"),
            )
        })
    }

    /// Appends bytes to a file that is as expected.
    pub fn append(
        &self,
        path: &ProjectPath,
        bytes: &[u8],
        expected: Option<Stamp>,
        length: u64,
    ) -> io::Result<Appended> {
        let fd = match self.open_at(path.as_str(), OFlags::WRONLY | OFlags::APPEND) {
            Ok(fd) => fd,
            Err(error) if is_absent(&error) => return Ok(Appended::Other),
            Err(error) => return Err(error),
        };
        let stat = rustix::fs::fstat(&fd)?;
        regular(path, &stat)?;
        let now = stamp_of(&stat);
        if stat.st_nlink != 1 {
            return Ok(Appended::Linked);
        }
        if now.size != length || expected.is_some_and(|e| e != now) {
            return Ok(Appended::Other);
        }
        let file = File::from(fd);
        self.disk.write_end(Step::Append, &file, bytes)?;
        let stamp = stamp_of(&rustix::fs::fstat(&file)?);
        // Text that another program appended between the check and the write is now in the middle.
        Ok(Appended::Done(
            (stamp.size == length + bytes.len() as u64).then_some(stamp),
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
        let file = match self.open_at(path.as_str(), OFlags::RDWR) {
            Ok(fd) => File::from(fd),
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        let stat = rustix::fs::fstat(&file)?;
        regular(path, &stat)?;
        let mut found = vec![0; were.len()];
        if stat.st_nlink != 1
            || stamp_of(&stat).size < at + were.len() as u64
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
        expected: Option<Stamp>,
    ) -> io::Result<Option<Unexpected>> {
        let (folder, name) = match self.folder(path, false) {
            Err(error) if is_absent(&error) => return Ok(None),
            other => other?,
        };
        let stat = match rustix::fs::statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
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
        let (parent, prefix) = self.temp_folder(&folder.fd, name)?;
        self.disk.step(Step::Remove)?;
        loop {
            let away = unique_name(&prefix, path);
            match rustix::fs::renameat_with(
                &folder.fd,
                name,
                &parent,
                &away,
                RenameFlags::NOREPLACE,
            ) {
                Ok(()) => {
                    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let file =
                        File::from(rustix::fs::openat(&parent, &away, flags, Mode::empty())?);
                    return self.taken(
                        &Temp {
                            folder: parent,
                            name: away,
                            file,
                        },
                        expected,
                    );
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
        Mode::from_raw_mode(0o666)
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
    folder: Arc<OwnedFd>,
    name: String,
    file: File,
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

pub(crate) fn stamp_of(stat: &rustix::fs::Stat) -> Stamp {
    Stamp {
        inode: stat.st_ino,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime_ns: stat.st_mtime * 1_000_000_000 + i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
    }
}

fn regular(path: &ProjectPath, stat: &rustix::fs::Stat) -> io::Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{path}` is a symbolic link"),
        )),
        FileType::Directory => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{path}` is a folder"),
        )),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{path}` is not a regular file"),
        )),
    }
}

/// Reads a file that was taken out of the tree and is not as expected. An editor may have opened it
/// before and may still write to it. Nobody can open it any more, so it is read until it stops
/// changing.
fn read_settled(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for _ in 0..SETTLING_TRIES {
        let before = stamp_of(&rustix::fs::fstat(&file)?);
        std::thread::sleep(SETTLING);
        bytes.clear();
        io::Seek::rewind(&mut file)?;
        file.read_to_end(&mut bytes)?;
        if before == stamp_of(&rustix::fs::fstat(&file)?) {
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
