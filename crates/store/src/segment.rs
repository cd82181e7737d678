//! One segment of the journal: a file of JSON lines.
//!
//! A growing segment is filled ahead with empty lines, which readers of JSON lines skip: a commit
//! then overwrites bytes that exist, and its sync need not wait for the file system to record a new
//! length. Closed segments have no fill; old ones are compressed with gzip.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Step};

/// Fill at least and at most this much ahead; small projects stay small.
const FILL_LEAST: u64 = 64 << 10;
const FILL_MOST: u64 = 1 << 20;

pub(crate) struct Segment {
    pub number: u32,
    file: File,
    /// The length of the file, fill included.
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
        let file = File::options().read(true).write(true).open(Self::path(folder, number))?;
        let filled = file.metadata()?.len();
        Ok(Segment { number, file, filled })
    }

    /// Makes an empty segment whose name survives a crash.
    pub fn create(disk: &Disk, folder: &Path, number: u32) -> io::Result<Segment> {
        disk.step(Step::SegmentCreate)?;
        File::options().create(true).truncate(false).write(true).open(Self::path(folder, number))?;
        File::open(folder)?.sync_all()?;
        Self::open(folder, number)
    }

    /// Writes a record at an offset where only fill stands.
    pub fn write(&mut self, disk: &Disk, offset: u64, line: &[u8]) -> io::Result<()> {
        let end = offset + line.len() as u64;
        if end > self.filled {
            // Another process may have filled it meanwhile.
            self.filled = self.file.metadata()?.len();
        }
        if end > self.filled {
            let ahead = self.filled.clamp(FILL_LEAST, FILL_MOST);
            let target = end + ahead;
            let fill = vec![b'\n'; usize::try_from(target - self.filled).map_err(io::Error::other)?];
            disk.write_at(Step::SegmentFill, &self.file, &fill, self.filled)?;
            self.filled = target;
        }
        disk.write_at(Step::JournalWrite, &self.file, line, offset)
    }

    pub fn sync(&self, disk: &Disk) -> io::Result<()> {
        disk.step(Step::JournalSync)?;
        self.file.sync_data()
    }

    /// Turns everything from an offset on into fill again: a record whose writer died.
    pub fn erase_from(&mut self, disk: &Disk, offset: u64) -> io::Result<Vec<u8>> {
        let rest = self.read_from(offset)?;
        let used = rest.iter().rposition(|b| *b != b'\n').map_or(0, |last| last + 1);
        if used > 0 {
            disk.write_at(Step::JournalErase, &self.file, &vec![b'\n'; used], offset)?;
        }
        Ok(rest[..used].to_vec())
    }

    /// Cuts the fill off: nothing will be written here any more.
    pub fn close(&self, offset: u64) -> io::Result<()> {
        self.file.set_len(offset)?;
        self.file.sync_all()
    }

    /// Whether nothing but fill stands at an offset.
    pub fn is_free_at(&self, offset: u64) -> io::Result<bool> {
        let mut byte = [0u8; 1];
        Ok(self.file.read_at(&mut byte, offset)? == 0 || byte[0] == b'\n')
    }

    pub fn read_range(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    }

    pub fn read_from(&self, offset: u64) -> io::Result<Vec<u8>> {
        self.read_range(offset, self.file.metadata()?.len().max(offset))
    }
}

/// All bytes of a segment, compressed or not.
pub(crate) fn read_whole(folder: &Path, number: u32) -> io::Result<Vec<u8>> {
    match std::fs::read(Segment::path(folder, number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = Vec::new();
            let file = File::open(Segment::compressed_path(folder, number))?;
            flate2::read::GzDecoder::new(file).read_to_end(&mut bytes)?;
            Ok(bytes)
        }
        other => other,
    }
}

/// Compresses a closed segment. The original goes only when the copy is whole and synced.
pub(crate) fn compress(disk: &Disk, folder: &Path, number: u32) -> io::Result<()> {
    let bytes = std::fs::read(Segment::path(folder, number))?;
    disk.step(Step::SegmentCompress)?;
    let temp = folder.join(format!("{number:08}.gz.part"));
    let mut encoder = flate2::write::GzEncoder::new(File::create(&temp)?, flate2::Compression::default());
    io::Write::write_all(&mut encoder, &bytes)?;
    encoder.finish()?.sync_all()?;
    disk.step(Step::SegmentCompress)?;
    std::fs::rename(&temp, Segment::compressed_path(folder, number))?;
    File::open(folder)?.sync_all()?;
    disk.step(Step::SegmentCompress)?;
    std::fs::remove_file(Segment::path(folder, number))
}

/// The numbers of the segments there are, oldest first.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".jsonl.gz"));
        numbers.extend(stem.and_then(|s| s.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}
