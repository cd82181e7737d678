//! The journal: all records, in order, over as many segments as it takes.
//!
//! Who may append and when is decided by the append lock; this file only knows bytes and positions.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use smol_str::{SmolStr, SmolStrBuilder};

use crate::archive;
use crate::disk::Disk;
use crate::error::{Result, StoreError};
use crate::loaded::{Loaded, Recent};
use crate::record::{OtherFormat, Record, Unread};
use crate::segment::{self, Segment, trim_fill};

/// A place in the journal: a record begins or ends there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub segment: u32,
    pub offset: u64,
}

impl Position {
    pub const START: Position = Position {
        segment: 1,
        offset: 0,
    };

    pub fn parse(text: &str) -> Option<Position> {
        let (segment, offset) = text.split_once(':')?;
        Some(Position {
            segment: segment.parse().ok()?,
            offset: offset.parse().ok()?,
        })
    }

    /// As records tell it.
    pub fn text(self) -> SmolStr {
        let mut text = SmolStrBuilder::new();
        text.push_str(itoa::Buffer::new().format(self.segment));
        text.push(':');
        text.push_str(itoa::Buffer::new().format(self.offset));
        text.finish()
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// A line that is not a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub at: Position,
    pub what: String,
    pub bytes: Vec<u8>,
}

/// A line of the journal as a scan sees it.
pub(crate) enum Line {
    Record(Box<Record>),
    Damaged(Damage),
    /// Whole, but of another format.
    OtherFormat(OtherFormat),
}

/// Where a line stands, and what it is.
pub(crate) struct Seen {
    pub at: Position,
    pub end: Position,
    /// Counted from one, within its segment.
    pub number: usize,
    pub line: Line,
}

/// The segment that grows, the last older one that was read, and large records.
#[derive(Default)]
struct Cache {
    growing: Option<Segment>,
    older: Option<(u32, Arc<Vec<u8>>)>,
    recent: Recent,
}

pub(crate) struct Journal {
    folder: PathBuf,
    disk: Disk,
    segment_bytes: u64,
    cache: Mutex<Cache>,
}

impl Journal {
    pub fn new(folder: PathBuf, disk: Disk, segment_bytes: u64) -> Journal {
        Journal {
            folder,
            disk,
            segment_bytes,
            cache: Mutex::new(Cache::default()),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn has(&self, segment: u32) -> bool {
        Segment::path(&self.folder, segment).exists()
            || Segment::compressed_path(&self.folder, segment).exists()
    }

    fn has_text(&self, segment: u32) -> bool {
        std::fs::metadata(Segment::path(&self.folder, segment)).is_ok_and(|m| m.len() > 0)
            || Segment::compressed_path(&self.folder, segment).exists()
    }

    /// The numbers of all segments, oldest first.
    pub fn segments(&self) -> Result<Vec<u32>> {
        match segment::list(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map_err(StoreError::io("cannot list the journal")),
        }
    }

    /// All bytes of one segment.
    pub fn read_segment(&self, segment: u32) -> Result<Vec<u8>> {
        let text = segment::read_whole(&self.folder, segment)
            .map_err(|error| in_segment(segment, error))?;
        Ok(text.bytes)
    }

    /// Whether a segment is compressed: nothing is written to it any more.
    pub fn is_closed(&self, segment: u32) -> bool {
        !Segment::path(&self.folder, segment).exists()
            && Segment::compressed_path(&self.folder, segment).exists()
    }

    fn with_growing<T>(
        &self,
        number: u32,
        work: impl FnOnce(&mut Segment) -> io::Result<T>,
    ) -> Result<T> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let run = |segment: &mut Segment| {
            work(segment).map_err(StoreError::io_at(|| format!("journal segment {number}")))
        };
        match &mut cache.growing {
            Some(segment) if segment.number == number => run(segment),
            slot => run(slot.insert(
                Segment::open(&self.folder, number).map_err(|error| in_segment(number, error))?,
            )),
        }
    }

    /// Writes a line at the end, in a new segment if this one is full or `in_new_segment` asks for
    /// it. Returns where it begins and ends. A segment that is left is synced first, so that the
    /// journal is never durable with a gap.
    pub fn append(
        &self,
        end: Position,
        line: &[u8],
        in_new_segment: bool,
    ) -> Result<(Position, Position)> {
        let mut at = end;
        let is_full = at.offset + line.len() as u64 > self.segment_bytes;
        if at.offset > 0 && (in_new_segment || is_full) {
            self.with_growing(at.segment, |s| {
                s.sync(&self.disk)?;
                s.close(at.offset)
            })?;
            at = Position {
                segment: at.segment + 1,
                offset: 0,
            };
        }
        if at.offset == 0 && !Segment::path(&self.folder, at.segment).exists() {
            let made = Segment::create(&self.disk, &self.folder, at.segment)
                .map_err(StoreError::io("cannot make a journal segment"))?;
            self.cache
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .growing = Some(made);
        }
        self.with_growing(at.segment, |s| s.write(&self.disk, at.offset, line))?;
        Ok((
            at,
            Position {
                segment: at.segment,
                offset: at.offset + line.len() as u64,
            },
        ))
    }

    /// Lets the disk begin with a record before its sync is asked for.
    pub fn begin_writing(&self, from: Position, to: Position) {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(segment) = cache
            .growing
            .as_ref()
            .filter(|segment| segment.number == from.segment && from.segment == to.segment)
        {
            segment.begin_writing(from.offset, to.offset);
        }
    }

    /// Hands a segment to the disk. The handle stays open: an error of the disk is told once to
    /// every handle that was open then, and to none that is opened later.
    pub fn sync(&self, segment: u32) -> Result<()> {
        let handle = self.with_growing(segment, |s| Ok(s.handle()))?;
        segment::sync(&self.disk, &handle).map_err(|error| {
            self.cache
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .growing = None;
            StoreError::io("cannot sync the journal")(error)
        })
    }

    /// Writes everything between two places once more. After a failed sync the kernel counts what
    /// it could not write as written; only what is written again is tried again.
    pub fn rewrite(&self, from: Position, to: Position) -> Result<()> {
        for number in from.segment..=to.segment {
            let start = if number == from.segment {
                from.offset
            } else {
                0
            };
            let opened = Segment::open(&self.folder, number)
                .map_err(StoreError::io(format!("journal segment {number}")))?;
            let end = if number == to.segment {
                to.offset
            } else {
                opened.len().map_err(StoreError::io("journal"))?
            };
            let bytes = opened
                .read_range(start, end.max(start))
                .map_err(StoreError::io(format!("journal segment {number}")))?;
            for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
                if let Err(Unread::Damaged(what)) = Record::decode(line) {
                    let what = format!("a sync failed, and what it was to write is lost: {what}");
                    return Err(StoreError::Damaged {
                        segment: number,
                        line: 0,
                        what,
                    });
                }
            }
            opened
                .rewrite(&self.disk, start, &bytes)
                .map_err(StoreError::io(format!("journal segment {number}")))?;
            opened
                .sync(&self.disk)
                .map_err(StoreError::io("cannot sync the journal"))?;
        }
        Ok(())
    }

    /// Whether nothing stands behind a place that is said to be the end.
    pub fn is_end(&self, end: Position) -> Result<bool> {
        if end.offset == 0 && !self.has(end.segment) {
            return Ok(!self.has_text(end.segment + 1));
        }
        let byte = match self.with_growing(end.segment, |s| s.byte_at(end.offset)) {
            Err(StoreError::Damaged { .. }) if self.is_closed(end.segment) => None,
            other => other?,
        };
        match byte {
            Some(byte) => Ok(byte == b'\n'),
            None => {
                let length = match self.with_growing(end.segment, |s| s.len()) {
                    Err(StoreError::Damaged { .. }) => self.read_segment(end.segment)?.len() as u64,
                    other => other?,
                };
                if length < end.offset {
                    let what = format!("it has {length} bytes, and {} were written", end.offset);
                    return Err(StoreError::Damaged {
                        segment: end.segment,
                        line: 0,
                        what,
                    });
                }
                Ok(!self.has_text(end.segment + 1))
            }
        }
    }

    /// Whether a line ends at a place, readable or not: fill stands in a journal that is older than
    /// whoever knew that place.
    pub fn line_ends_at(&self, end: Position) -> bool {
        end.offset < 2
            || self
                .read_between(
                    Position {
                        offset: end.offset - 2,
                        ..end
                    },
                    end,
                )
                .is_ok_and(|last| last[0] != b'\n' && last[1] == b'\n')
    }

    /// The line that ends at a place, without its newline.
    pub fn line_before(&self, end: Position) -> Result<Vec<u8>> {
        let last = end.offset.saturating_sub(1);
        let mut window = 4096;
        loop {
            let from = last.saturating_sub(window);
            let bytes = self.read_between(
                Position {
                    offset: from,
                    ..end
                },
                Position {
                    offset: last,
                    ..end
                },
            )?;
            match memchr::memrchr(b'\n', &bytes) {
                Some(newline) => return Ok(bytes[newline + 1..].to_vec()),
                None if from == 0 => return Ok(bytes),
                None => window *= 8,
            }
        }
    }

    /// Removes everything behind the end and returns it.
    pub fn cut(&self, end: Position) -> Result<Vec<u8>> {
        let mut left = Vec::new();
        for number in self.segments()?.into_iter().filter(|n| *n > end.segment) {
            left.extend(self.read_segment(number)?);
            let path = Segment::path(&self.folder, number);
            if self.is_closed(number) {
                let what = "it is closed, and the journal seems to end before it".to_owned();
                return Err(StoreError::Damaged {
                    segment: number,
                    line: 0,
                    what,
                });
            }
            self.disk
                .step(crate::disk::Step::JournalErase)
                .map_err(StoreError::io("journal"))?;
            // Emptied and not removed: another process may have it open.
            let emptied = std::fs::File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_len(0));
            emptied.map_err(StoreError::io(format!("journal segment {number}")))?;
        }
        if Segment::path(&self.folder, end.segment).exists() {
            let first = self.with_growing(end.segment, |s| s.erase_from(&self.disk, end.offset))?;
            left.splice(0..0, first);
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.growing = None;
        cache.recent.clear();
        drop(cache);
        Ok(left)
    }

    /// The raw lines between two places.
    pub fn read_between(&self, from: Position, to: Position) -> Result<Vec<u8>> {
        if from.segment == to.segment && from.offset < to.offset {
            return self.with_growing(to.segment, |s| s.read_range(from.offset, to.offset));
        }
        let mut bytes = Vec::new();
        for number in from.segment..=to.segment {
            let start = if number == from.segment {
                from.offset
            } else {
                0
            };
            if number == to.segment {
                if start < to.offset {
                    bytes.extend(self.with_growing(number, |s| s.read_range(start, to.offset))?);
                }
            } else {
                match segment::read_rest(&self.folder, number, start) {
                    Ok(rest) => bytes.extend(trim_fill(&rest)),
                    // What it held is lost: `verify` says so.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(in_segment(number, error)),
                }
            }
        }
        Ok(bytes)
    }

    pub fn read_record(&self, at: Position) -> Result<Arc<Loaded>> {
        if let Some(loaded) = self
            .cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recent
            .get(at)
        {
            return Ok(loaded);
        }
        let line = self.read_line(at)?;
        let record = Record::decode(&line).map_err(|unread| {
            let line = self.line_number(at).unwrap_or(0);
            StoreError::Damaged {
                segment: at.segment,
                line,
                what: unread.to_string(),
            }
        })?;
        let loaded = Arc::new(Loaded::new(record));
        self.cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recent
            .put(at, line.len(), &loaded);
        Ok(loaded)
    }

    /// Forgets what was read of older segments, because one was rewritten.
    pub fn forget_read(&self) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.older = None;
        cache.recent.clear();
    }

    fn line_number(&self, at: Position) -> Option<usize> {
        let bytes = self.read_segment(at.segment).ok()?;
        let before = bytes.get(..usize::try_from(at.offset).ok()?)?;
        Some(memchr::memchr_iter(b'\n', before).count() + 1)
    }

    fn read_line(&self, at: Position) -> Result<Vec<u8>> {
        let whole = self.whole(at)?;
        match whole {
            Whole::Growing(line) => Ok(line),
            Whole::Older(bytes) => {
                let start = usize::try_from(at.offset).unwrap_or(usize::MAX);
                let rest = bytes.get(start..).unwrap_or_default();
                Ok(rest
                    .split(|b| *b == b'\n')
                    .next()
                    .unwrap_or_default()
                    .to_vec())
            }
        }
    }

    fn whole(&self, at: Position) -> Result<Whole> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((number, bytes)) = &cache.older
            && *number == at.segment
        {
            return Ok(Whole::Older(Arc::clone(bytes)));
        }
        if let Ok(segment) = Segment::open(&self.folder, at.segment) {
            // One record is read, not the segment: most are small.
            let mut size = 4 << 10;
            loop {
                let end = at.offset + size;
                let bytes = match segment.read_range(at.offset, end) {
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => segment
                        .read_from(at.offset)
                        .map_err(StoreError::io("journal"))?,
                    Err(error) => return Err(StoreError::io("journal")(error)),
                };
                if let Some(length) = memchr::memchr(b'\n', &bytes) {
                    return Ok(Whole::Growing(bytes[..length].to_vec()));
                }
                if (bytes.len() as u64) < size {
                    return Ok(Whole::Growing(bytes));
                }
                size *= 16;
            }
        }
        let bytes = Arc::new(self.read_segment(at.segment)?);
        cache.older = Some((at.segment, Arc::clone(&bytes)));
        Ok(Whole::Older(bytes))
    }

    /// Visits every line from a place on, up to another if one is named.
    pub fn scan(
        &self,
        from: Position,
        until: Option<Position>,
        visit: &mut dyn FnMut(Seen),
    ) -> Result<()> {
        let last = until.unwrap_or(Position {
            segment: u32::MAX,
            offset: u64::MAX,
        });
        let segments = self.segments()?;
        let newest = segments.last().copied().unwrap_or(0);
        // Up to a named end everything must be there; else up to the newest segment that is.
        let newest = until
            .filter(|until| until.offset > 0 && newest > 0)
            .map_or(newest, |until| until.segment.max(newest));
        for number in from.segment..=newest.min(last.segment) {
            if segments.binary_search(&number).is_err() {
                let at = Position {
                    segment: number,
                    offset: 0,
                };
                let what = "the segment is missing: the history in it is gone".to_owned();
                visit(Seen {
                    at,
                    end: at,
                    number: 0,
                    line: Line::Damaged(Damage {
                        at,
                        what,
                        bytes: Vec::new(),
                    }),
                });
                continue;
            }
            let text = match segment::read_whole(&self.folder, number) {
                Ok(text) => text,
                Err(error) => {
                    let at = Position {
                        segment: number,
                        offset: 0,
                    };
                    let what = format!("the segment cannot be read: {error}");
                    visit(Seen {
                        at,
                        end: at,
                        number: 0,
                        line: Line::Damaged(Damage {
                            at,
                            what,
                            bytes: Vec::new(),
                        }),
                    });
                    continue;
                }
            };
            let mut bytes = text.bytes;
            if number == last.segment {
                bytes.truncate(usize::try_from(last.offset).unwrap_or(usize::MAX));
            }
            bytes.truncate(trim_fill(&bytes).len());
            let start = if number == from.segment {
                usize::try_from(from.offset)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len())
            } else {
                0
            };
            let mut line_number = memchr::memchr_iter(b'\n', &bytes[..start]).count();
            let mut flaws = text.flaws.into_iter().peekable();
            let mut offset = start;
            loop {
                while let Some((flawed, what)) =
                    flaws.next_if(|(flawed, _)| *flawed <= offset as u64)
                {
                    let at = Position {
                        segment: number,
                        offset: flawed,
                    };
                    visit(Seen {
                        at,
                        end: at,
                        number: line_number + 1,
                        line: Line::Damaged(Damage {
                            at,
                            what,
                            bytes: Vec::new(),
                        }),
                    });
                }
                if offset >= bytes.len() {
                    break;
                }
                let length =
                    memchr::memchr(b'\n', &bytes[offset..]).unwrap_or(bytes.len() - offset);
                let line = &bytes[offset..offset + length];
                let at = Position {
                    segment: number,
                    offset: offset as u64,
                };
                line_number += 1;
                offset += length + 1;
                if line.is_empty() {
                    continue;
                }
                let end = Position {
                    segment: number,
                    offset: offset as u64,
                };
                let line = match Record::decode(line) {
                    Ok(record) => Line::Record(Box::new(record)),
                    Err(Unread::Damaged(what)) => Line::Damaged(Damage {
                        at,
                        what,
                        bytes: line.to_vec(),
                    }),
                    Err(Unread::OtherFormat(other)) => Line::OtherFormat(other),
                };
                visit(Seen {
                    at,
                    end,
                    number: line_number,
                    line,
                });
            }
        }
        Ok(())
    }

    /// Compresses every segment that no longer grows.
    pub fn compress_older(&self, growing: u32) -> Result<usize> {
        let mut count = 0;
        for number in
            segment::list(&self.folder).map_err(StoreError::io("cannot list the journal"))?
        {
            if number < growing && Segment::path(&self.folder, number).exists() {
                match archive::compress(&self.disk, &self.folder, number) {
                    Ok(()) => count += 1,
                    // Another process has just done it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        return Err(StoreError::io(format!("cannot compress segment {number}"))(
                            error,
                        ));
                    }
                }
            }
        }
        Ok(count)
    }
}

/// What a failure to open or read a segment means.
fn in_segment(segment: u32, error: io::Error) -> StoreError {
    if error.kind() == io::ErrorKind::NotFound {
        return StoreError::Damaged {
            segment,
            line: 0,
            what: "the segment is missing".into(),
        };
    }
    StoreError::io(format!("journal segment {segment}"))(error)
}

enum Whole {
    Growing(Vec<u8>),
    Older(Arc<Vec<u8>>),
}
