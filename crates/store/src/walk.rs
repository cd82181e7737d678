//! The directory walk: every file with its stat, or a fingerprint of all of them.
//!
//! Links are never followed. Folders that tools fill, and paths that the contract ignores, are
//! skipped, unless a rule may name or the journal knows something there: then only those files are
//! visited. A file with a history therefore never counts as deleted because it was skipped. Recall
//! runs a walk before each answer, so a file costs one system call and no memory.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use quipu_contract::{CACHE_MARKS, ProjectPath, RESERVED};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::error::{Result, StoreError};
use crate::live::Tail;
use crate::names::{AT_ONCE, Names};
use crate::store::Store;
use crate::tree::{Stamp, is_absent, stamp_of};

/// The tree fingerprint: a hash of all file stats and the journal position. While it is unchanged,
/// a status scan would find the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight(pub u64);

impl Sight {
    pub(crate) fn of(files: Sum, applied: &Tail) -> Sight {
        let mut hash = mix(files.0, u64::from(applied.at.segment));
        hash = mix(hash, applied.at.offset);
        hash = mix(hash, applied.seq);
        Sight(mix_text(hash, applied.sum.as_bytes()))
    }
}

/// All files with their stats, and everything that is neither file nor folder, both sorted by path.
#[derive(Default)]
pub(crate) struct Found {
    pub files: Vec<(String, Stamp)>,
    pub odd: Vec<String>,
    pub sum: Sum,
    folder: String,
}

/// The sum of the hashes of all entries. It does not depend on their order.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum(u64);

/// A sum that is being computed.
#[derive(Default)]
struct Summing {
    sum: Sum,
    folder: u64,
}

/// Receives the results of a walk.
trait Visit {
    fn enter(&mut self, folder: &str);
    fn file(&mut self, name: &str, stamp: Stamp);
    fn odd(&mut self, name: &str);
}

impl Visit for Summing {
    fn enter(&mut self, folder: &str) {
        self.folder = mix_text(SEED, folder.as_bytes());
    }

    fn file(&mut self, name: &str, stamp: Stamp) {
        let mut hash = mix_text(self.folder, name.as_bytes());
        hash = mix(hash, stamp.inode);
        hash = mix(hash, stamp.size);
        hash = mix(hash, stamp.mtime_ns.cast_unsigned());
        self.sum.0 = self.sum.0.wrapping_add(mix(hash, 1));
    }

    fn odd(&mut self, name: &str) {
        self.sum.0 = self
            .sum
            .0
            .wrapping_add(mix(mix_text(self.folder, name.as_bytes()), 2));
    }
}

/// Collects names and stats, and computes their sum.
#[derive(Default)]
struct Gathering {
    found: Found,
    summing: Summing,
}

impl Gathering {
    fn path(&self, name: &str) -> String {
        join(&self.found.folder, name)
    }
}

impl Visit for Gathering {
    fn enter(&mut self, folder: &str) {
        self.summing.enter(folder);
        self.found.folder.clear();
        self.found.folder.push_str(folder);
    }

    fn file(&mut self, name: &str, stamp: Stamp) {
        self.summing.file(name, stamp);
        let path = self.path(name);
        self.found.files.push((path, stamp));
    }

    fn odd(&mut self, name: &str) {
        self.summing.odd(name);
        let path = self.path(name);
        self.found.odd.push(path);
    }
}

/// The folders that remain to be visited, by one thread or two.
#[derive(Default)]
struct Folders {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// With each folder: whether only known files in it are visited.
    folders: Vec<(String, bool)>,
    /// How many folders are being visited: these may add more.
    held: usize,
    /// How many threads wait for more folders. Usually there is one thread and nobody to wake.
    asleep: usize,
}

impl Folders {
    fn from_the_root() -> Self {
        let folders = Self::default();
        folders.add(String::new(), false);
        folders
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, folder: String, only_known: bool) {
        let mut waiting = self.waiting();
        waiting.folders.push((folder, only_known));
        if waiting.asleep > 0 {
            self.changed.notify_one();
        }
    }

    /// While this is held, more folders may be added.
    fn hold(&self) -> Held<'_> {
        self.waiting().held += 1;
        Held(self)
    }

    /// The next folder; none if all have been visited.
    fn take(&self) -> Option<(String, bool, Held<'_>)> {
        let mut waiting = self.waiting();
        loop {
            if let Some((folder, only_known)) = waiting.folders.pop() {
                waiting.held += 1;
                return Some((folder, only_known, Held(self)));
            }
            if waiting.held == 0 {
                return None;
            }
            waiting.asleep += 1;
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
            waiting.asleep -= 1;
        }
    }
}

/// Keeps other threads waiting, because more folders may be added.
struct Held<'f>(&'f Folders);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.held -= 1;
        if waiting.asleep > 0 {
            self.0.changed.notify_all();
        }
    }
}

impl Store {
    /// The current tree fingerprint. Adopts and flags nothing.
    pub fn sight(&self) -> Result<Sight> {
        self.with_sound_heads(|| {
            self.settle()?;
            let sum = self.sum_of(&Folders::from_the_root())?;
            self.sight_of(sum)
        })
    }

    /// Computes the fingerprint while `work` runs: a second thread walks the files, and this thread
    /// helps after `work`.
    pub fn sight_while<T>(&self, work: impl FnOnce() -> T) -> (Result<Sight>, T) {
        let folders = Folders::default();
        let begin = folders.hold();
        let (looked, helped, done) = std::thread::scope(|threads| {
            let looking = threads.spawn(|| {
                // The walk starts after the journal is settled. Dropping `begin`, also on an error,
                // ends the waiting.
                let begin = begin;
                self.settle()?;
                folders.add(String::new(), false);
                drop(begin);
                self.sum_of(&folders)
            });
            let done = work();
            let helped = self.sum_of(&folders);
            (looking.join(), helped, done)
        });
        match (looked, helped) {
            (Ok(Ok(Sum(looked))), Ok(Sum(helped))) => {
                (self.sight_of(Sum(looked.wrapping_add(helped))), done)
            }
            // If the index is damaged, this rebuilds it.
            _ => (self.sight(), done),
        }
    }

    fn sum_of(&self, folders: &Folders) -> Result<Sum> {
        let mut summing = Summing::default();
        self.pass(folders, &mut summing)?;
        Ok(summing.sum)
    }

    fn sight_of(&self, sum: Sum) -> Result<Sight> {
        self.forget_deleted_heads();
        let applied = self.heads()?.applied()?;
        Ok(Sight::of(sum, &applied))
    }

    /// Every regular file below the root with its stat, except in reserved folders and skipped
    /// paths.
    pub(crate) fn look_through(&self) -> Result<Found> {
        let mut gathering = Gathering::default();
        self.pass(&Folders::from_the_root(), &mut gathering)?;
        let Gathering { mut found, summing } = gathering;
        found.sum = summing.sum;
        found.odd.sort_unstable();
        found.files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Visits folders until there are none left, here or in another thread that shares the queue.
    fn pass(&self, folders: &Folders, visit: &mut impl Visit) -> Result<()> {
        let mut buffer = vec![MaybeUninit::uninit(); AT_ONCE];
        let names_files = !self.contract.ignore.is_empty();
        while let Some((folder, mut only_known, _held)) = folders.take() {
            let opened = if folder.is_empty() { "." } else { &folder };
            let fd = match self
                .tree
                .open_at(opened, OFlags::DIRECTORY | OFlags::RDONLY)
            {
                Err(error)
                    if is_absent(&error) || error.kind() == io::ErrorKind::PermissionDenied =>
                {
                    continue;
                }
                other => other.map_err(StoreError::io("cannot walk the project"))?,
            };
            let names =
                Names::read(&fd, &mut buffer).map_err(StoreError::io("cannot walk the project"))?;
            if !only_known && !folder.is_empty() && names.texts().any(|name| marks_cache(&fd, name))
            {
                if !self.knows_below(&folder)? {
                    continue;
                }
                only_known = true;
            }
            // Checked once per folder of a tool, which may hold thousands of files.
            let may_have_history = !only_known || self.heads()?.any_below(&folder)?;
            visit.enter(&folder);
            for (raw, name, mut kind) in names.iter() {
                if kind == FileType::Unknown
                    && let Ok(stat) = rustix::fs::statat(&fd, raw, AtFlags::SYMLINK_NOFOLLOW)
                {
                    kind = FileType::from_raw_mode(stat.st_mode); // not every file system reports it
                }
                if kind == FileType::Directory {
                    let path = join(&folder, name);
                    let known_only = only_known || self.contract.ignores_folder(&path);
                    if !RESERVED.contains(&name) && (!known_only || self.knows_below(&path)?) {
                        folders.add(path, known_only);
                    }
                    continue;
                }
                if (only_known || names_files)
                    && self.leaves_out(&join(&folder, name), only_known, may_have_history)?
                {
                    continue;
                }
                if kind != FileType::RegularFile {
                    visit.odd(name);
                } else if let Ok(stat) = rustix::fs::statat(&fd, raw, AtFlags::SYMLINK_NOFOLLOW) {
                    visit.file(name, stamp_of(&stat));
                }
            }
        }
        Ok(())
    }

    /// Whether a file is skipped: it is ignored, and neither a rule nor the journal knows it.
    fn leaves_out(&self, path: &str, only_known: bool, may_have_history: bool) -> Result<bool> {
        if !only_known && !self.contract.ignores_file(path) {
            return Ok(false);
        }
        let Ok(parsed) = ProjectPath::parse(path) else {
            return Ok(true);
        };
        Ok(self.contract.rule(&parsed).is_none()
            && !(may_have_history && self.heads()?.head(path)?.is_some()))
    }

    /// Whether a rule may name, or the journal knows, anything below a folder.
    fn knows_below(&self, folder: &str) -> Result<bool> {
        Ok(self.contract.may_name_below(folder) || self.heads()?.any_below(folder)?)
    }
}

/// Whether a file marks its folder as a cache that a tool can rebuild.
fn marks_cache(folder: &OwnedFd, name: &str) -> bool {
    let Some((_, signature)) = CACHE_MARKS.iter().find(|(mark, _)| *mark == name) else {
        return false;
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(fd) = rustix::fs::openat(folder, name, flags, Mode::empty()) else {
        return false;
    };
    let mut start = Vec::new();
    let read = std::fs::File::from(fd)
        .take(signature.len() as u64)
        .read_to_end(&mut start);
    read.is_ok() && start == *signature
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a number into a hash: both halves of a long product.
fn mix(hash: u64, value: u64) -> u64 {
    let long =
        u128::from(hash ^ value ^ 0xd6e8_feb8_6659_fd93) * u128::from(SEED ^ value.rotate_left(32));
    (long as u64) ^ ((long >> 64) as u64) ^ hash.rotate_left(23)
}

fn mix_text(mut hash: u64, text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(mix(hash, u64::from_le_bytes(last)), text.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(entries: &[(&str, &str, (u64, u64, i64))]) -> Sum {
        let mut summing = Summing::default();
        for (folder, name, (inode, size, mtime_ns)) in entries {
            summing.enter(folder);
            summing.file(
                name,
                Stamp {
                    inode: *inode,
                    size: *size,
                    mtime_ns: *mtime_ns,
                },
            );
        }
        summing.sum
    }

    #[test]
    fn order_does_not_show_and_every_difference_does() {
        let (a, b) = (("notes", "a.md", (1, 2, 3)), ("notes", "b.md", (4, 5, 6)));
        let whole = sum(&[a, b]);
        assert_eq!(whole, sum(&[b, a]));
        for other in [
            sum(&[a]),
            sum(&[b]),
            sum(&[]),
            sum(&[a, b, b]),
            sum(&[("note", "sa.md", (1, 2, 3)), b]),
            sum(&[("notes", "a.md", (1, 2, 4)), b]),
            sum(&[("notes", "a.md", (1, 3, 3)), b]),
            sum(&[("notes", "a.md", (2, 1, 3)), b]),
            sum(&[("notes", "a.md", (4, 5, 6)), ("notes", "b.md", (1, 2, 3))]),
        ] {
            assert_ne!(whole, other);
        }
    }

    #[test]
    fn many_small_differences_give_as_many_numbers() {
        let mut seen = std::collections::HashSet::new();
        for inode in 0..40 {
            for size in 0..40 {
                for mtime in 0..40 {
                    assert!(
                        seen.insert(sum(&[("", "a", (inode, size, mtime))]).0),
                        "{inode} {size} {mtime}"
                    );
                }
            }
        }
    }
}
