//! The names in a folder. They are kept for as long as the folder stays as it was: by a running
//! process, and of a large project in `.quipu/names` for those that follow.
//!
//! A folder's time of change moves with every name that comes, goes or becomes another file's. It
//! is believed where the file system is known to keep it, and where the folder had been at rest for
//! a while before its names were read: a change within the same tick of the clock would not show. A
//! note holds for one boot: after a power cut not every file system has times and names of the same
//! moment.

use std::collections::HashMap;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, OFlags, RawDir, RawMode, Stat, StatxAttributes, StatxFlags};

use crate::clock::UNKNOWN_BOOT;

/// Names that are read from a folder at once, in bytes.
pub(crate) const AT_ONCE: usize = 32 << 10;
/// A folder is at rest that has not changed for so long: longer than a tick of any clock of a file
/// system.
const AT_REST_NS: i128 = if cfg!(test) {
    250_000_000
} else {
    3_000_000_000
};
/// More names than these are not kept.
const KEPT: usize = 200_000;
/// A longer note is none: so many names are not kept.
const LARGEST: u64 = 64 << 20;
/// Fewer names than these are read as quickly as a note of them.
const NOTED: usize = if cfg!(test) { 3 } else { 1_000 };
/// A note is written anew when one in so many names was read from its folder.
const ANEW: usize = 8;
/// How a note begins, before the boot it holds for and its checksum. Raised when the form changes.
const NOTE: &str = "quipu names 1 ";
/// File systems that note the time of every change of a folder: ext2 to ext4, XFS, Btrfs, F2FS,
/// tmpfs.
const KEEP_TIMES: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

/// The entries of one folder, in the order of inodes: the kernel finds what lies side by side
/// sooner.
#[derive(Default)]
pub(crate) struct Names {
    /// All names, each with the zero that the kernel wants behind it.
    text: String,
    entries: Vec<Entry>,
}

/// Where a name begins and ends, and what it is.
#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    end: u32,
    kind: FileType,
}

impl Names {
    fn read(
        &mut self,
        folder: &OwnedFd,
        buffer: &mut [MaybeUninit<u8>],
        found: &mut Vec<(u64, Entry)>,
    ) -> io::Result<()> {
        self.text.clear();
        found.clear();
        let mut entries = RawDir::new(folder, buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name != "." && name != ".." {
                let start = place(&self.text)?;
                self.text.push_str(name);
                found.push((
                    entry.ino(),
                    Entry {
                        start,
                        end: place(&self.text)?,
                        kind: entry.file_type(),
                    },
                ));
                self.text.push('\0');
            }
        }
        found.sort_unstable_by_key(|(inode, _)| *inode);
        self.entries.clear();
        self.entries.extend(found.iter().map(|(_, entry)| *entry));
        Ok(())
    }

    /// Names as they are noted: a letter for what it is, the name, and a zero. None if that is not
    /// what it is.
    fn of_note(noted: &str) -> Option<Names> {
        let mut names = Names {
            text: noted.to_owned(),
            entries: Vec::new(),
        };
        let mut at = 0;
        for part in noted.split_terminator('\0') {
            let (kind, name) = part.split_at_checked(1)?;
            let kind =
                FileType::from_raw_mode(RawMode::from(kind.as_bytes()[0].checked_sub(b'A')?) << 12);
            if name.is_empty() || name.contains('/') || name == "." || name == ".." {
                return None;
            }
            let end = at + part.len();
            names.entries.push(Entry {
                start: at as u32 + 1,
                end: end as u32,
                kind,
            });
            at = end + 1;
        }
        (at == noted.len()).then_some(names)
    }

    fn note(&self, out: &mut String) {
        for Entry { start, end, kind } in &self.entries {
            out.push(char::from(b'A' + (kind.as_raw_mode() >> 12) as u8));
            out.push_str(&self.text[*start as usize..*end as usize]);
            out.push('\0');
        }
    }

    /// Each name as text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.entries
            .iter()
            .map(|entry| &self.text[entry.start as usize..entry.end as usize])
    }

    /// Each name, as the kernel wants it and as text.
    pub fn iter(&self) -> impl Iterator<Item = (&CStr, &str, FileType)> {
        self.entries
            .iter()
            .filter_map(|Entry { start, end, kind }| {
                let (start, end) = (*start as usize, *end as usize);
                let name = CStr::from_bytes_with_nul(&self.text.as_bytes()[start..=end]).ok()?;
                Some((name, &self.text[start..end], *kind))
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

    fn was_at_rest(self, now: SystemTime) -> bool {
        let now = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_nanos() as i128);
        let [_, _, modified, changed] = self.0;
        modified.max(changed) + AT_REST_NS <= now
    }
}

/// The names of folders that were looked at.
pub(crate) struct FolderNames {
    kept: Mutex<Kept>,
    /// Where they are noted for other processes, and whether this one can write there.
    note: PathBuf,
    writes: bool,
    /// Which boot it is. A note of another is not believed.
    boot: String,
}

#[derive(Default)]
struct Kept {
    folders: HashMap<String, Folder>,
    /// How many folders and names there are.
    names: usize,
    /// How many of them the note does not hold.
    anew: usize,
    /// The note was read, or is not to be.
    is_read: bool,
}

struct Folder {
    mark: Mark,
    names: Arc<Names>,
    /// Somebody has asked for it since the note was read or written.
    is_asked: bool,
}

impl FolderNames {
    pub fn new(note: PathBuf, can_write: bool, boot: String) -> Self {
        let tells_boots = !boot.starts_with(UNKNOWN_BOOT);
        let kept = Kept {
            is_read: !tells_boots,
            ..Kept::default()
        };
        Self {
            kept: Mutex::new(kept),
            note,
            writes: can_write && tells_boots,
            boot,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on every folder is read, once.
    pub fn forget(&self) {
        let mut kept = self.kept();
        if self.writes {
            let _ = std::fs::remove_file(&self.note);
        }
        *kept = Kept {
            is_read: true,
            ..Kept::default()
        };
    }

    /// All folders were looked at: what is worth it is noted for the processes that follow.
    pub fn looked(&self) {
        let mut kept = self.kept();
        if self.writes && kept.anew >= NOTED && kept.anew >= kept.names / ANEW {
            kept.anew = 0;
            let note = kept.render(&self.boot);
            drop(kept);
            // Half a note, or one that two processes wrote at once, has another checksum and is not
            // believed.
            let opened = self.open(OpenOptions::new().create(true).truncate(true).write(true));
            let _ = opened.and_then(|mut file| file.write_all(note.as_bytes()));
        }
    }

    /// The note itself, and nothing that a link or a pipe in its place would lead to.
    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        options
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(&self.note)
    }

    fn read(&self) -> io::Result<String> {
        let file = self.open(OpenOptions::new().read(true))?;
        let mut text = String::new();
        if file.metadata()?.is_file() {
            file.take(LARGEST).read_to_string(&mut text)?;
        }
        Ok(text)
    }

    /// For one pass over folders.
    pub fn reader(&self) -> Reader<'_> {
        let mut kept = self.kept();
        if !std::mem::replace(&mut kept.is_read, true) {
            kept.take_up(&self.read().unwrap_or_default(), &self.boot);
        }
        Reader {
            all: self,
            buffer: vec![MaybeUninit::uninit(); AT_ONCE],
            found: Vec::new(),
            names: Arc::default(),
        }
    }
}

/// Reads the names of one folder after the other.
pub(crate) struct Reader<'n> {
    /// Where names are kept.
    all: &'n FolderNames,
    buffer: Vec<MaybeUninit<u8>>,
    found: Vec<(u64, Entry)>,
    /// The names that were read last. If nobody keeps them, the next folder's take their place.
    names: Arc<Names>,
}

impl Reader<'_> {
    /// The names in a folder, which is open.
    pub fn names(&mut self, folder: &str, fd: &OwnedFd) -> io::Result<Arc<Names>> {
        // The time is taken first: however long the rest takes, nothing counts as rest that came
        // behind.
        let now = SystemTime::now();
        let mark = Mark::of(&rustix::fs::fstat(fd)?);
        if let Some(known) = self.all.kept().folders.get_mut(folder)
            && known.mark == mark
        {
            known.is_asked = true;
            return Ok(Arc::clone(&known.names));
        }
        if Arc::get_mut(&mut self.names).is_none() {
            self.names = Arc::default();
        }
        if let Some(names) = Arc::get_mut(&mut self.names) {
            names.read(fd, &mut self.buffer, &mut self.found)?;
        }
        let stays =
            mark.was_at_rest(now) && Mark::of(&rustix::fs::fstat(fd)?) == mark && keeps_times(fd);
        self.all.kept().put(
            folder,
            stays.then(|| Folder {
                mark,
                names: Arc::clone(&self.names),
                is_asked: true,
            }),
        );
        Ok(Arc::clone(&self.names))
    }
}

impl Folder {
    /// Itself and its names.
    fn counts(&self) -> usize {
        1 + self.names.entries.len()
    }
}

impl Kept {
    fn put(&mut self, folder: &str, new: Option<Folder>) {
        if let Some(old) = self.folders.remove(folder) {
            self.names -= old.counts();
        }
        if let Some(new) = new.filter(|new| self.names + new.counts() <= KEPT) {
            self.names += new.counts();
            self.anew += new.counts();
            self.folders.insert(folder.to_owned(), new);
        }
    }

    /// Everything that is kept, as text: of each folder its path, its mark and the length of its
    /// names, and the names. Folders that nobody asks for any more are left out.
    fn render(&mut self, boot: &str) -> String {
        self.folders
            .retain(|_, folder| std::mem::take(&mut folder.is_asked));
        self.names = self.folders.values().map(Folder::counts).sum();
        let (mut body, mut names) = (String::new(), String::new());
        for (path, folder) in &self.folders {
            names.clear();
            folder.names.note(&mut names);
            let [device, inode, modified, changed] = folder.mark.0;
            let _ = write!(
                body,
                "{path}\0{device} {inode} {modified} {changed} {}\0{names}",
                names.len()
            );
        }
        format!("{NOTE}{boot} {}\n{body}", checksum(&body))
    }

    /// Takes up what another process noted. Nothing, if it is damaged, of another form, or of
    /// another boot.
    fn take_up(&mut self, note: &str, boot: &str) {
        for (path, mark, names) in parse(note, boot).unwrap_or_default() {
            self.put(
                path,
                Some(Folder {
                    mark,
                    names: Arc::new(names),
                    is_asked: false,
                }),
            );
        }
        self.anew = 0;
    }
}

fn parse<'n>(note: &'n str, boot: &str) -> Option<Vec<(&'n str, Mark, Names)>> {
    let (sum, mut rest) = note
        .strip_prefix(NOTE)?
        .strip_prefix(boot)?
        .strip_prefix(' ')?
        .split_once('\n')?;
    if sum != checksum(rest) {
        return None;
    }
    let mut folders = Vec::new();
    while !rest.is_empty() {
        let (path, behind) = rest.split_once('\0')?;
        let (numbers, behind) = behind.split_once('\0')?;
        let mut numbers = numbers.split(' ');
        let mut mark = [0; 4];
        for number in &mut mark {
            *number = numbers.next()?.parse().ok()?;
        }
        let (names, behind) = behind.split_at_checked(numbers.next()?.parse().ok()?)?;
        folders.push((path, Mark(mark), Names::of_note(names)?));
        rest = behind;
    }
    Some(folders)
}

fn checksum(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// Whether the time of change tells all that may become of a folder's names. In an encrypted one
/// they are others when its key comes.
fn keeps_times(folder: &OwnedFd) -> bool {
    let keeps = rustix::fs::fstatfs(folder).is_ok_and(|found| {
        u64::try_from(found.f_type).is_ok_and(|kind| KEEP_TIMES.contains(&kind))
    });
    let is_encrypted = || {
        let found = rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
        found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::ENCRYPTED))
    };
    keeps && !is_encrypted()
}

fn place(text: &str) -> io::Result<u32> {
    u32::try_from(text.len()).map_err(io::Error::other)
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

    /// An empty folder, and where its names may be noted.
    fn folder_and_note(name: &str) -> (std::path::PathBuf, std::path::PathBuf) {
        let place = std::env::temp_dir().join(format!("quipu-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(place.join("notes")).unwrap();
        (place.join("notes"), place.join("note"))
    }

    fn rest() {
        std::thread::sleep(Duration::from_millis(300));
    }

    fn sorted(names: &Names) -> Vec<(String, FileType)> {
        let mut sorted: Vec<_> = names
            .iter()
            .map(|(_, name, kind)| (name.to_owned(), kind))
            .collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        sorted
    }

    #[test]
    fn names_are_kept_while_a_folder_rests_and_every_change_is_seen() {
        let (folder, note) = folder_and_note("names");
        let keeps = keeps_times(&OwnedFd::from(std::fs::File::open(&folder).unwrap()));
        let all = FolderNames::new(note, true, "boot".into());
        type Change = fn(&Path);
        let changes: [(Change, &[(&str, FileType)]); 4] = [
            (
                |folder| std::fs::write(folder.join("a.md"), "").unwrap(),
                &[("a.md", FileType::RegularFile)],
            ),
            (
                |folder| std::fs::write(folder.join("b.md"), "").unwrap(),
                &[
                    ("a.md", FileType::RegularFile),
                    ("b.md", FileType::RegularFile),
                ],
            ),
            (
                |folder| std::fs::remove_file(folder.join("a.md")).unwrap(),
                &[("b.md", FileType::RegularFile)],
            ),
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
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, kind)| ((*name).to_owned(), *kind))
                .collect();
            // Just changed: one more change might not show in its time.
            let (first, second) = (names(&all, &folder), names(&all, &folder));
            assert_eq!(
                (sorted(&first), sorted(&second)),
                (expected.clone(), expected.clone())
            );
            assert!(!Arc::ptr_eq(&first, &second));
            rest();
            let (first, second) = (names(&all, &folder), names(&all, &folder));
            assert_eq!(sorted(&first), expected);
            assert_eq!(Arc::ptr_eq(&first, &second), keeps);
        }
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_note_serves_the_next_process_until_the_folder_changes() {
        let (folder, note) = folder_and_note("noted");
        for name in ["a.md", "一.md", "line\nbreak.md"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        std::fs::create_dir(folder.join("sub")).unwrap();
        std::os::unix::fs::symlink("a.md", folder.join("link")).unwrap();
        let fresh = || FolderNames::new(note.clone(), true, "boot".into());
        let known = |all: &FolderNames| all.reader().all.kept().folders.contains_key("notes");
        // Just changed: nothing is noted.
        let all = fresh();
        let just_made = sorted(&names(&all, &folder));
        all.looked();
        assert!(!note.exists());
        rest();
        let all = fresh();
        assert_eq!(sorted(&names(&all, &folder)), just_made);
        all.looked();
        if !keeps_times(&OwnedFd::from(std::fs::File::open(&folder).unwrap())) {
            return;
        }
        let next = fresh();
        assert!(known(&next));
        let found = names(&next, &folder);
        assert_eq!(sorted(&found), just_made);
        assert!(
            Arc::ptr_eq(&found, &next.kept().folders["notes"].names) && next.kept().anew == 0,
            "read from the folder"
        );
        // After a reboot the note is not believed, nor where something else lies in its place.
        assert!(!known(&FolderNames::new(
            note.clone(),
            true,
            "another".into()
        )));
        assert!(!known(&FolderNames::new(
            note.clone(),
            true,
            UNKNOWN_BOOT.into()
        )));
        let linked = note.with_extension("link");
        std::os::unix::fs::symlink(&note, &linked).unwrap();
        assert!(!known(&FolderNames::new(linked, true, "boot".into())));
        // A process that believes nothing reads the folder.
        let note_before = std::fs::read(&note).unwrap();
        let next = fresh();
        next.forget();
        assert!(!known(&next) && !note.exists());
        std::fs::write(&note, note_before).unwrap();
        // A name has come and another is gone since: the note is there, and not believed.
        std::fs::remove_file(folder.join("a.md")).unwrap();
        std::fs::write(folder.join("c.md"), "").unwrap();
        let next = fresh();
        assert!(known(&next));
        let changed = sorted(&names(&next, &folder));
        assert!(
            changed.iter().any(|(name, _)| name == "c.md")
                && !changed.iter().any(|(name, _)| name == "a.md")
        );
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_damaged_note_is_no_note() {
        let mut kept = Kept::default();
        for (path, names) in [
            ("", "Ia.md\0Enotes\0"),
            ("notes", "I一.md\0"),
            ("empty", ""),
        ] {
            let names = Arc::new(Names::of_note(names).unwrap());
            kept.put(
                path,
                Some(Folder {
                    mark: Mark([66, 7, 1_700_000_000_123_456_789, -1]),
                    names,
                    is_asked: true,
                }),
            );
        }
        let note = kept.render("boot");
        fn parse(note: &str) -> Option<usize> {
            super::parse(note, "boot").map(|found| found.len())
        }
        let mut found = super::parse(&note, "boot").unwrap();
        found.sort_by_key(|(path, ..)| *path);
        let found: Vec<_> = found
            .iter()
            .map(|(path, mark, names)| (*path, mark.0[3], sorted(names).len()))
            .collect();
        assert_eq!(found, [("", -1, 2), ("empty", -1, 0), ("notes", -1, 1)]);
        for at in 0..note.len() {
            let mut bytes = note.clone().into_bytes();
            bytes[at] ^= 1;
            if let Ok(text) = String::from_utf8(bytes) {
                assert!(parse(&text).is_none(), "byte {at}");
            }
            assert!(
                note.get(..at).is_none_or(|half| parse(half).is_none()),
                "the first {at} bytes"
            );
        }
        // A sum can be made for anything: what is no name leads nowhere.
        for names in ["I../a.md\0", "I..\0", "I\0", "Ia.md", "一a.md\0", "!a.md\0"] {
            assert!(Names::of_note(names).is_none(), "{names:?}");
        }
    }

    #[test]
    fn folders_that_are_gone_leave_the_note() {
        let mut kept = Kept::default();
        let folder = |is_asked| Folder {
            mark: Mark([0; 4]),
            names: Arc::new(Names::of_note("Ia.md\0").unwrap()),
            is_asked,
        };
        kept.put("here", Some(folder(true)));
        kept.put("gone", Some(folder(false)));
        let note = kept.render("boot");
        assert_eq!(
            parse(&note, "boot")
                .unwrap()
                .iter()
                .map(|(path, ..)| *path)
                .collect::<Vec<_>>(),
            ["here"]
        );
        assert_eq!(kept.names, 2);
    }
}
