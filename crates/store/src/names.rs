//! The names in a folder. A running process keeps them for as long as the folder stays as it was.
//!
//! A folder's time of change moves with every name that comes, goes or becomes another file's. It is believed where the file
//! system is known to keep it, and where the folder had been at rest for a while when its names were read: a change within the
//! same tick of the clock would not show.

use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, RawDir, Stat};

/// Names that are read from a folder at once, in bytes.
pub(crate) const AT_ONCE: usize = 32 << 10;
/// A folder is at rest that has not changed for so long: longer than a tick of any clock of a file system.
const AT_REST_NS: i128 = if cfg!(test) { 50_000_000 } else { 3_000_000_000 };
/// More names than these are not kept.
const KEPT: usize = 200_000;
/// File systems that note the time of every change of a folder: ext2 to ext4, XFS, Btrfs, F2FS, tmpfs.
const KEEP_TIMES: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

/// The entries of one folder.
#[derive(Default)]
pub(crate) struct Names {
    /// All names, each with the zero that the kernel wants behind it.
    text: String,
    /// Where each begins and ends, and what it is.
    entries: Vec<(usize, usize, FileType)>,
}

impl Names {
    fn read(&mut self, folder: &OwnedFd, buffer: &mut [MaybeUninit<u8>]) -> io::Result<()> {
        self.text.clear();
        self.entries.clear();
        let mut entries = RawDir::new(folder, buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name != "." && name != ".." {
                let start = self.text.len();
                self.text.push_str(name);
                self.entries.push((start, self.text.len(), entry.file_type()));
                self.text.push('\0');
            }
        }
        Ok(())
    }

    /// Each name as text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(start, end, _)| &self.text[*start..*end])
    }

    /// Each name, as the kernel wants it and as text.
    pub fn iter(&self) -> impl Iterator<Item = (&CStr, &str, FileType)> {
        self.entries.iter().filter_map(|(start, end, kind)| {
            let name = CStr::from_bytes_with_nul(&self.text.as_bytes()[*start..=*end]).ok()?;
            Some((name, &self.text[*start..*end], *kind))
        })
    }
}

/// Which folder it is, and when it changed: device, inode, modification and status time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark([i128; 4]);

impl Mark {
    fn of(stat: &Stat) -> Mark {
        let ns = |seconds: i64, ns: i128| i128::from(seconds) * 1_000_000_000 + ns;
        let modified = ns(stat.st_mtime, stat.st_mtime_nsec.into());
        let changed = ns(stat.st_ctime, stat.st_ctime_nsec.into());
        Mark([stat.st_dev.into(), stat.st_ino.into(), modified, changed])
    }

    fn is_at_rest(self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i128);
        let [_, _, modified, changed] = self.0;
        modified.max(changed) + AT_REST_NS <= now
    }
}

/// The names of folders that a running process has looked at.
#[derive(Default)]
pub(crate) struct FolderNames {
    kept: Mutex<Kept>,
    /// Somebody has looked before: it is a process that stays.
    again: AtomicBool,
}

#[derive(Default)]
struct Kept {
    folders: HashMap<String, (Mark, Arc<Names>)>,
    /// How many names there are.
    names: usize,
}

impl FolderNames {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pass is done: from the next one on, names are kept.
    pub fn looked(&self) {
        self.again.store(true, Ordering::Relaxed);
    }

    /// For one pass over folders.
    pub fn reader(&self) -> Reader<'_> {
        let keeps = self.again.load(Ordering::Relaxed);
        Reader { all: keeps.then_some(self), buffer: vec![MaybeUninit::uninit(); AT_ONCE], names: Arc::default() }
    }
}

/// Reads the names of one folder after the other.
pub(crate) struct Reader<'n> {
    /// Where names are kept, if they are.
    all: Option<&'n FolderNames>,
    buffer: Vec<MaybeUninit<u8>>,
    /// The names that were read last. If nobody keeps them, the next folder's take their place.
    names: Arc<Names>,
}

impl Reader<'_> {
    /// The names in a folder, which is open.
    pub fn names(&mut self, folder: &str, fd: &OwnedFd) -> io::Result<Arc<Names>> {
        let mark = match self.all {
            Some(_) => Some(Mark::of(&rustix::fs::fstat(fd)?)),
            None => None,
        };
        if let (Some(all), Some(mark)) = (self.all, mark)
            && let Some((known, names)) = all.kept().folders.get(folder)
            && *known == mark
        {
            return Ok(Arc::clone(names));
        }
        if Arc::get_mut(&mut self.names).is_none() {
            self.names = Arc::default();
        }
        if let Some(names) = Arc::get_mut(&mut self.names) {
            names.read(fd, &mut self.buffer)?;
        }
        if let (Some(all), Some(mark)) = (self.all, mark) {
            let stays = mark.is_at_rest() && Mark::of(&rustix::fs::fstat(fd)?) == mark && keeps_times(fd);
            all.kept().put(folder, stays.then(|| (mark, Arc::clone(&self.names))));
        }
        Ok(Arc::clone(&self.names))
    }
}

impl Kept {
    fn put(&mut self, folder: &str, new: Option<(Mark, Arc<Names>)>) {
        if let Some((_, old)) = self.folders.remove(folder) {
            self.names -= old.entries.len();
        }
        if let Some((mark, names)) = new.filter(|(_, names)| self.names + names.entries.len() <= KEPT) {
            self.names += names.entries.len();
            self.folders.insert(folder.to_owned(), (mark, names));
        }
    }
}

fn keeps_times(folder: &OwnedFd) -> bool {
    rustix::fs::fstatfs(folder).is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| KEEP_TIMES.contains(&kind)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    fn names(all: &FolderNames, folder: &Path) -> Arc<Names> {
        let fd = OwnedFd::from(std::fs::File::open(folder).unwrap());
        all.reader().names("notes", &fd).unwrap()
    }

    fn sorted(names: &Names) -> Vec<(String, FileType)> {
        let mut sorted: Vec<_> = names.iter().map(|(_, name, kind)| (name.to_owned(), kind)).collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        sorted
    }

    #[test]
    fn names_are_kept_while_a_folder_rests_and_every_change_is_seen() {
        let folder = std::env::temp_dir().join(format!("quipu-names-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let fd = OwnedFd::from(std::fs::File::open(&folder).unwrap());
        let keeps = keeps_times(&fd);
        let rest = || std::thread::sleep(Duration::from_millis(80));
        let all = FolderNames::default();
        all.looked();
        type Change = fn(&Path);
        let changes: [(Change, &[(&str, FileType)]); 4] = [
            (|folder| std::fs::write(folder.join("a.md"), "").unwrap(), &[("a.md", FileType::RegularFile)]),
            (
                |folder| std::fs::write(folder.join("b.md"), "").unwrap(),
                &[("a.md", FileType::RegularFile), ("b.md", FileType::RegularFile)],
            ),
            (|folder| std::fs::remove_file(folder.join("a.md")).unwrap(), &[("b.md", FileType::RegularFile)]),
            (
                |folder| {
                    std::fs::create_dir(folder.join("c")).unwrap();
                    std::fs::remove_file(folder.join("b.md")).unwrap();
                    std::fs::rename(folder.join("c"), folder.join("b.md")).unwrap();
                },
                &[("b.md", FileType::Directory)],
            ),
        ];
        assert!(sorted(&names(&all, &folder)).is_empty());
        for (change, expected) in changes {
            change(&folder);
            let expected: Vec<_> = expected.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
            // Just changed: one more change might not show in its time.
            let (first, second) = (names(&all, &folder), names(&all, &folder));
            assert_eq!((sorted(&first), sorted(&second)), (expected.clone(), expected.clone()));
            assert!(!Arc::ptr_eq(&first, &second));
            rest();
            let (first, second) = (names(&all, &folder), names(&all, &folder));
            assert_eq!(sorted(&first), expected);
            assert_eq!(Arc::ptr_eq(&first, &second), keeps);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
