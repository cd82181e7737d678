//! Checks that `.quipu` and its folders hold only files and folders, and whether they have changed.
//!
//! Through a link, Quipu would write its own data to a file elsewhere. A reader of a named pipe
//! would wait forever.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{AtFlags, CWD};

use crate::clock::Clock;
use crate::error::{Result, StoreError};
use crate::lock::locked;

/// Folders in `.quipu` with files that are written in place or read without a further check.
const TAKEN_AS_THEY_ARE: [&str; 7] = [
    "journal",
    "recall",
    "workers",
    "calls",
    "conflict-copies",
    "conflicts",
    "tokens",
];

/// Refuses links and special files in `.quipu` and its folders.
pub(crate) fn refuse_other_than_files(quipu: &Path) -> Result<()> {
    refuse_others_in(quipu, quipu)?;
    TAKEN_AS_THEY_ARE
        .iter()
        .try_for_each(|name| refuse_others_in(quipu, &quipu.join(name)))
}

/// Refuses links and special files in one folder of `.quipu`.
fn refuse_others_in(quipu: &Path, folder: &Path) -> Result<()> {
    let shown = |place: &Path| {
        let place = quipu
            .parent()
            .and_then(|root| place.strip_prefix(root).ok())
            .unwrap_or(place);
        place.display().to_string()
    };
    let refuse_link = |place: &Path| {
        let what = format!(
            "`{}` is a symbolic link, but Quipu stores its data in the project itself",
            shown(place)
        );
        Err(StoreError::refused(
            what,
            "delete the link, or replace it with the folder it points to",
        ))
    };
    if folder
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink())
    {
        return refuse_link(folder);
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_symlink() {
            return refuse_link(&entry.path());
        }
        if !kind.is_file() && !kind.is_dir() {
            let place = shown(&entry.path());
            let what = format!(
                "`{place}` is a named pipe, a socket or a device; only files and folders are allowed here"
            );
            return Err(StoreError::refused(what, "delete it"));
        }
    }
    Ok(())
}

/// File systems round times, up to two seconds on FAT. A folder that changed this recently may
/// change again without a new time, so its stat proves nothing, and its entries are compared.
const ROUNDING_NS: i128 = 2_000_000_000;

/// SQLite makes these when the first process opens the file index, and removes them when the last
/// one closes it. A store that has the index open is not touched by either.
const COME_AND_GO: [&str; 2] = ["index.db-wal", "index.db-shm"];

/// The stat of a folder; `None` if there is none.
type FolderStat = Option<Stat>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    device: u64,
    inode: u64,
    mtime_ns: i128,
    ctime_ns: i128,
}

/// `.quipu` and its folders, each with the stat from before its last check.
pub(crate) struct Folders(Mutex<Vec<Folder>>);

struct Folder {
    path: PathBuf,
    stat: FolderStat,
    /// The stat is old enough to prove that nothing has changed.
    is_settled: bool,
    /// The inodes of the files that an open store uses, and of the folder itself; empty except for
    /// `.quipu` and the journal.
    entries: BTreeMap<OsString, u64>,
}

impl Folder {
    fn note(quipu: &Path, path: PathBuf, clock: &Clock) -> Folder {
        let now_ns = i128::from(clock.now().wall_us) * 1000;
        let stat = stat_of(&path);
        let is_settled = stat.is_none_or(|stat| stat.ctime_ns + ROUNDING_NS < now_ns);
        let is_in_use = path == quipu || path.ends_with("journal");
        let entries = if is_in_use {
            entries_of(&path)
        } else {
            BTreeMap::new()
        };
        Folder {
            entries,
            path,
            stat,
            is_settled,
        }
    }

    fn is_unchanged(&self) -> bool {
        self.is_settled && stat_of(&self.path) == self.stat
    }
}

impl Folders {
    /// Call this before the folders are checked, so that a change during the check is noticed.
    pub fn note(quipu: &Path, clock: &Clock) -> Folders {
        let below = TAKEN_AS_THEY_ARE.iter().map(|name| quipu.join(name));
        let all = std::iter::once(quipu.to_owned()).chain(below);
        Folders(Mutex::new(
            all.map(|path| Folder::note(quipu, path, clock)).collect(),
        ))
    }

    /// Whether `.quipu` and the journal are the folders that were noted.
    pub fn are_in_place(&self) -> bool {
        let place = |stat: &Stat| (stat.device, stat.inode);
        let is_in_place = |folder: &Folder| match &folder.stat {
            Some(noted) => stat_of(&folder.path).is_some_and(|now| place(&now) == place(noted)),
            // It was created since.
            None => true,
        };
        let folders = locked(&self.0);
        let mut in_use = folders.iter().filter(|folder| !folder.entries.is_empty());
        in_use.all(is_in_place)
    }

    /// `.quipu` holds the files that a store has open, and the journal its segments: a file that
    /// is new, gone or replaced in these two needs a new store. In the others, only new files need
    /// a check.
    pub fn check(&self, quipu: &Path, clock: &Clock) -> Result<Checked> {
        let mut checked = Checked::Unchanged;
        let mut folders = locked(&self.0);
        for folder in folders.iter_mut().filter(|folder| !folder.is_unchanged()) {
            let noted = Folder::note(quipu, folder.path.clone(), clock);
            refuse_others_in(quipu, &folder.path)?;
            if noted.entries != folder.entries {
                return Ok(Checked::Replaced);
            }
            if folder.path.ends_with("conflict-copies") {
                checked = Checked::NewCopies;
            }
            *folder = noted;
        }
        Ok(checked)
    }
}

/// The result of checking the folders of an open store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    Unchanged,
    /// There are new conflict copies.
    NewCopies,
    /// `.quipu` or the journal changed: the store has to be opened again.
    Replaced,
}

fn entries_of(folder: &Path) -> BTreeMap<OsString, u64> {
    let own = stat_of(folder).map(|stat| (OsString::from("."), stat.inode));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.map(|entry| (entry.file_name(), entry.ino()));
    let stay = entries.filter(|(name, _)| !COME_AND_GO.iter().any(|other| name == *other));
    own.into_iter().chain(stay).collect()
}

fn stat_of(path: &Path) -> FolderStat {
    let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let nanoseconds =
        |seconds: i64, rest: u64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Some(Stat {
        device: stat.st_dev,
        inode: stat.st_ino,
        mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
    })
}
