//! One segment of the journal: a file of JSON lines.
//!
//! A growing segment is filled ahead with empty lines, which readers of JSON lines skip. A commit
//! then overwrites existing bytes, and its sync need not wait for the file system to record a new
//! length. Closed segments have no fill; old ones are compressed (`archive.rs`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::disk::{Disk, Step};
use crate::files::regular_file::{open_regular, open_regular_with, read_regular};
use crate::journal::archive;
use crate::journal::archive::Text;

/// The minimum and maximum fill; small projects stay small.
const FILL_LEAST: u64 = 64 << 10;
const FILL_MOST: u64 = 1 << 20;
/// Fill is written in pieces of this size. The kernel may keep a larger write as one large page,
/// and each later small write and sync in it walks all of its blocks.
const FILL_PIECE: u64 = 16 << 10;

pub(crate) struct Segment {
    pub number: u32,
    file: Arc<File>,
    /// The length of the file, including fill.
    filled: u64,
}

impl Segment {
    pub fn path(folder: &Path, number: u32) -> PathBuf {
        folder.join(format!("{number:08}.jsonl"))
    }

    pub fn compressed_path(folder: &Path, number: u32) -> PathBuf {
        folder.join(format!("{number:08}.jsonl.gz"))
    }

    pub fn open(folder: &Path, number: u32) -> io::Result<Segment> {
        let path = Self::path(folder, number);
        let file = match open_regular_with(&path, File::options().read(true).write(true)) {
            // Without write permission, open it for reading.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                open_regular(&path)?
            }
            other => other?,
        };
        let filled = file.metadata()?.len();
        Ok(Segment {
            number,
            file: Arc::new(file),
            filled,
        })
    }

    pub fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Creates an empty segment with a durable name.
    pub fn create(disk: &Disk, folder: &Path, number: u32) -> io::Result<Segment> {
        disk.step(Step::SegmentCreate)?;
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(Self::path(folder, number))?;
        File::open(folder)?.sync_all()?;
        Self::open(folder, number)
    }

    /// Writes a record at an offset that holds only fill.
    pub fn write(&mut self, disk: &Disk, offset: u64, line: &[u8]) -> io::Result<()> {
        let end = offset + line.len() as u64;
        if end > self.filled {
            // Another process may have filled it.
            self.filled = self.file.metadata()?.len();
        }
        if end > self.filled {
            let ahead = self.filled.clamp(FILL_LEAST, FILL_MOST);
            let target = end + ahead;
            while self.filled < target {
                let piece_end = (self.filled / FILL_PIECE + 1) * FILL_PIECE;
                let piece = piece_end.min(target) - self.filled;
                let fill = &[b'\n'; FILL_PIECE as usize]
                    [..usize::try_from(piece).map_err(io::Error::other)?];
                disk.write_at(Step::SegmentFill, &self.file, fill, self.filled)?;
                self.filled += piece;
            }
        }
        disk.write_at(Step::JournalWrite, &self.file, line, offset)
    }

    /// The file to sync, for a caller that must not block writers meanwhile.
    pub fn handle(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    pub fn sync(&self, disk: &Disk) -> io::Result<()> {
        sync(disk, &self.file)
    }

    /// Overwrites everything from an offset on with fill, and returns the erased bytes.
    pub fn erase_from(&mut self, disk: &Disk, offset: u64) -> io::Result<Vec<u8>> {
        let rest = self.read_from(offset)?;
        let used = trim_fill(&rest).len();
        if used > 0 {
            disk.write_at(Step::JournalErase, &self.file, &vec![b'\n'; used], offset)?;
        }
        Ok(rest[..used].to_vec())
    }

    /// Writes the same bytes again, so that a sync has to write them to the disk.
    pub fn rewrite(&self, disk: &Disk, offset: u64, bytes: &[u8]) -> io::Result<()> {
        disk.write_at(Step::JournalWrite, &self.file, bytes, offset)
    }

    /// Cuts off the fill: the segment will not grow any more.
    pub fn close(&self, offset: u64) -> io::Result<()> {
        self.file.set_len(offset)?;
        self.file.sync_all()
    }

    /// The byte at an offset; none at the end of the file.
    pub fn byte_at(&self, offset: u64) -> io::Result<Option<u8>> {
        let mut byte = [0u8; 1];
        Ok((self.file.read_at(&mut byte, offset)? == 1).then_some(byte[0]))
    }

    pub fn read_range(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let length = usize::try_from(to.saturating_sub(from)).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    }

    /// The line at an offset. One record is read, not the segment: most are small.
    pub fn read_line(&self, offset: u64) -> io::Result<Vec<u8>> {
        let mut size = 4 << 10;
        loop {
            let bytes = match self.read_range(offset, offset + size) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.read_from(offset)?
                }
                other => other?,
            };
            if let Some(length) = memchr::memchr(b'\n', &bytes) {
                return Ok(bytes[..length].to_vec());
            }
            if (bytes.len() as u64) < size {
                return Ok(bytes);
            }
            size *= 16;
        }
    }

    pub fn read_from(&self, offset: u64) -> io::Result<Vec<u8>> {
        self.read_range(offset, self.file.metadata()?.len().max(offset))
    }
}

/// Syncs a segment. Syncing a deleted file succeeds, but its data is lost, so this is an error.
pub(crate) fn sync(disk: &Disk, file: &File) -> io::Result<()> {
    disk.step(Step::JournalSync)?;
    file.sync_data()?;
    if crate::files::disk::is_deleted(file) {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the segment was deleted while it was written",
        ));
    }
    Ok(())
}

/// All bytes of a segment, compressed or not.
pub(crate) fn read_whole(folder: &Path, number: u32) -> io::Result<Text> {
    match read_regular(&Segment::path(folder, number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            archive::read(&Segment::compressed_path(folder, number))
        }
        other => other.map(|bytes| Text {
            bytes,
            flaws: Vec::new(),
        }),
    }
}

/// The numbers of all segments, oldest first.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let stem = name
            .strip_suffix(".jsonl")
            .or_else(|| name.strip_suffix(".jsonl.gz"));
        numbers.extend(stem.and_then(|s| s.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// A segment's bytes without the fill after the last line. The newline of that line stays.
pub(crate) fn trim_fill(bytes: &[u8]) -> &[u8] {
    let last = bytes.iter().rposition(|b| *b != b'\n');
    &bytes[..last.map_or(0, |last| (last + 2).min(bytes.len()))]
}
