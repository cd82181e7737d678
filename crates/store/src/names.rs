//! The names in one folder.
//!
//! They are sorted by inode, because the kernel finds neighbouring inodes faster. `walk.rs` decides
//! which folders to read.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, RawDir};

/// The buffer size for reading names, in bytes.
pub(crate) const AT_ONCE: usize = 32 << 10;

pub(crate) struct Names {
    /// All names, each followed by the NUL that system calls require.
    text: String,
    entries: Vec<Entry>,
}

struct Entry {
    inode: u64,
    /// The start and the end of the name in `text`.
    start: usize,
    end: usize,
    kind: FileType,
}

impl Names {
    /// The entries of an open folder. Names that are not UTF-8 are skipped.
    pub fn read(folder: &OwnedFd, buffer: &mut [MaybeUninit<u8>]) -> io::Result<Names> {
        let mut names = Names {
            text: String::new(),
            entries: Vec::new(),
        };
        let mut entries = RawDir::new(folder, buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name != "." && name != ".." {
                let start = names.text.len();
                names.text.push_str(name);
                names.entries.push(Entry {
                    inode: entry.ino(),
                    start,
                    end: names.text.len(),
                    kind: entry.file_type(),
                });
                names.text.push('\0');
            }
        }
        names.entries.sort_unstable_by_key(|entry| entry.inode);
        Ok(names)
    }

    /// Each name as text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.entries
            .iter()
            .map(|entry| &self.text[entry.start..entry.end])
    }

    /// Each name, as a C string and as text.
    pub fn iter(&self) -> impl Iterator<Item = (&CStr, &str, FileType)> {
        self.entries.iter().filter_map(|entry| {
            let bytes = &self.text.as_bytes()[entry.start..=entry.end];
            let name = CStr::from_bytes_with_nul(bytes).ok()?;
            Some((name, &self.text[entry.start..entry.end], entry.kind))
        })
    }
}
