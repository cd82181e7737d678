//! The bytes of the journal: all records, in order, over as many segments as it takes.
//!
//! It knows only bytes and positions. `durable.rs` has the locks and decides what is synced.

use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use smol_str::{SmolStr, format_smolstr};

use crate::error::{Result, StoreError};
use crate::files::disk::Disk;
use crate::journal::record::{OtherFormat, Record, Unread};
use crate::journal::record_cache::{LoadedRecord, RecordCache};
use crate::journal::segment::{Segment, trim_fill};
use crate::journal::{archive, segment};
use crate::lock::locked;

/// A place in the journal: a record begins or ends there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Position {
    pub segment: u32,
    pub offset: u64,
}

impl Position {
    pub const START: Position = Position::start_of(1);

    pub const fn start_of(segment: u32) -> Position {
        Position { segment, offset: 0 }
    }

    /// Another place in the same segment.
    pub const fn at(self, offset: u64) -> Position {
        Position { offset, ..self }
    }

    /// Where a range that begins here begins in a segment.
    fn start_in(self, segment: u32) -> u64 {
        if segment == self.segment {
            self.offset
        } else {
            0
        }
    }

    pub fn parse(text: &str) -> Option<Position> {
        let (segment, offset) = text.split_once(':')?;
        Some(Position {
            segment: segment.parse().ok()?,
            offset: offset.parse().ok()?,
        })
    }

    /// As records tell it.
    pub fn text(self) -> SmolStr {
        format_smolstr!("{}:{}", self.segment, self.offset)
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

/// The position of a line, and its content.
pub(crate) struct Seen {
    pub at: Position,
    pub end: Position,
    /// Counted from one, within its segment.
    pub number: usize,
    pub line: Line,
}

impl Line {
    fn parse(line: &[u8], at: Position) -> Line {
        match Record::decode(line) {
            Ok(record) => Line::Record(Box::new(record)),
            Err(Unread::Damaged(what)) => Line::Damaged(Damage {
                at,
                what,
                bytes: line.to_vec(),
            }),
            Err(Unread::OtherFormat(other)) => Line::OtherFormat(other),
        }
    }
}

impl Seen {
    /// Bytes that could not be read at all.
    fn flaw(at: Position, number: usize, what: String) -> Seen {
        let bytes = Vec::new();
        Seen {
            at,
            end: at,
            number,
            line: Line::Damaged(Damage { at, what, bytes }),
        }
    }
}

/// The segment that grows, the last older one that was read, and large records.
#[derive(Default)]
struct Cache {
    growing: Option<Segment>,
    older: Option<(u32, Vec<u8>)>,
    recent: RecordCache,
}

pub(crate) struct Segments {
    folder: PathBuf,
    disk: Disk,
    segment_bytes: u64,
    cache: Mutex<Cache>,
}

impl Segments {
    pub fn new(folder: PathBuf, disk: Disk, segment_bytes: u64) -> Segments {
        Segments {
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
        let mut cache = locked(&self.cache);
        let run = |segment: &mut Segment| {
            work(segment).map_err(StoreError::io(format!("journal segment {number}")))
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
            at = Position::start_of(at.segment + 1);
        }
        if at.offset == 0 && !Segment::path(&self.folder, at.segment).exists() {
            let made = Segment::create(&self.disk, &self.folder, at.segment)
                .map_err(StoreError::io("cannot create a journal segment"))?;
            locked(&self.cache).growing = Some(made);
        }
        self.with_growing(at.segment, |s| s.write(&self.disk, at.offset, line))?;
        Ok((at, at.at(at.offset + line.len() as u64)))
    }

    /// Hands a segment to the disk. The handle stays open: the disk reports an error once to
    /// every handle that was open then, and to none that is opened later.
    pub fn sync(&self, segment: u32) -> Result<()> {
        let handle = self.with_growing(segment, |s| Ok(s.handle()))?;
        segment::sync(&self.disk, &handle).map_err(|error| {
            locked(&self.cache).growing = None;
            StoreError::io("cannot sync the journal")(error)
        })
    }

    /// Writes everything between two places once more. After a failed sync the kernel counts what
    /// it could not write as written; only what is written again is tried again.
    pub fn rewrite(&self, from: Position, to: Position) -> Result<()> {
        for number in from.segment..=to.segment {
            let start = from.start_in(number);
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
                    let what = format!(
                        "a sync failed, and the data it should have written is \
                        lost: {what}"
                    );
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

    /// Whether no record follows a position that is taken for the end.
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
                    let what = format!("it has {length} bytes, but {} were written", end.offset);
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

    /// Whether a line ends at a position, readable or not. A journal that was restored from an older
    /// copy has only fill there.
    pub fn line_ends_at(&self, end: Position) -> bool {
        end.offset < 2
            || self
                .read_between(end.at(end.offset - 2), end)
                .is_ok_and(|last| last[0] != b'\n' && last[1] == b'\n')
    }

    /// The line that ends at a place, without its newline.
    pub fn line_before(&self, end: Position) -> Result<Vec<u8>> {
        let last = end.offset.saturating_sub(1);
        let mut window = 4096;
        loop {
            let from = last.saturating_sub(window);
            let bytes = self.read_between(end.at(from), end.at(last))?;
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
                let what = "it is closed, but the journal seems to end before it".to_owned();
                return Err(StoreError::Damaged {
                    segment: number,
                    line: 0,
                    what,
                });
            }
            self.disk
                .step(crate::files::disk::Step::JournalErase)
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
        let mut cache = locked(&self.cache);
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
            let start = from.start_in(number);
            if number == to.segment {
                if start < to.offset {
                    bytes.extend(self.with_growing(number, |s| s.read_range(start, to.offset))?);
                }
            } else {
                match segment::read_whole(&self.folder, number) {
                    Ok(text) => {
                        let start = usize::try_from(start).unwrap_or(usize::MAX);
                        bytes.extend(trim_fill(text.bytes.get(start..).unwrap_or_default()));
                    }
                    // Its records are lost: `verify` says so.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(in_segment(number, error)),
                }
            }
        }
        Ok(bytes)
    }

    pub fn read_record(&self, at: Position) -> Result<Arc<LoadedRecord>> {
        if let Some(loaded) = locked(&self.cache).recent.get(at) {
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
        let loaded = Arc::new(LoadedRecord::new(record));
        locked(&self.cache).recent.put(at, line.len(), &loaded);
        Ok(loaded)
    }

    /// Forgets what was read of older segments, because one was rewritten.
    pub fn forget_read(&self) {
        let mut cache = locked(&self.cache);
        cache.older = None;
        cache.recent.clear();
    }

    fn line_number(&self, at: Position) -> Option<usize> {
        let bytes = self.read_segment(at.segment).ok()?;
        let before = bytes.get(..usize::try_from(at.offset).ok()?)?;
        Some(memchr::memchr_iter(b'\n', before).count() + 1)
    }

    fn read_line(&self, at: Position) -> Result<Vec<u8>> {
        let mut cache = locked(&self.cache);
        if let Some((number, bytes)) = &cache.older
            && *number == at.segment
        {
            return Ok(line_at(bytes, at));
        }
        if let Ok(segment) = Segment::open(&self.folder, at.segment) {
            return segment
                .read_line(at.offset)
                .map_err(StoreError::io("journal"));
        }
        // A compressed segment is decompressed once for all of its records.
        let bytes = self.read_segment(at.segment)?;
        let line = line_at(&bytes, at);
        cache.older = Some((at.segment, bytes));
        Ok(line)
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
            let text = if segments.binary_search(&number).is_ok() {
                segment::read_whole(&self.folder, number)
                    .map_err(|error| format!("the segment cannot be read: {error}"))
            } else {
                Err("the segment is missing: its history is lost".to_owned())
            };
            match text {
                Ok(mut text) => {
                    if number == last.segment {
                        let end = usize::try_from(last.offset).unwrap_or(usize::MAX);
                        text.bytes.truncate(end);
                    }
                    let start = Position::start_of(number).at(from.start_in(number));
                    scan_segment(start, text, visit);
                }
                Err(what) => visit(Seen::flaw(Position::start_of(number), 0, what)),
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

/// Turns a failure to open or read a segment into the store's error.
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

/// The line at a position of a segment.
fn line_at(segment: &[u8], at: Position) -> Vec<u8> {
    let start = usize::try_from(at.offset).unwrap_or(usize::MAX);
    let rest = segment.get(start..).unwrap_or_default();
    rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())].to_vec()
}

/// Visits the lines of one segment from a place on, and its flaws at their places.
fn scan_segment(
    start: Position,
    archive::Text { bytes, flaws }: archive::Text,
    visit: &mut dyn FnMut(Seen),
) {
    let bytes = trim_fill(&bytes);
    let mut offset = usize::try_from(start.offset)
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    let mut number = memchr::memchr_iter(b'\n', &bytes[..offset]).count();
    let mut flaws = flaws.into_iter().peekable();
    let at = |offset: usize| start.at(offset as u64);
    loop {
        while let Some((flawed, what)) = flaws.next_if(|(flawed, _)| *flawed <= offset as u64) {
            visit(Seen::flaw(start.at(flawed), number + 1, what));
        }
        if offset >= bytes.len() {
            break;
        }
        let begin = offset;
        let length = memchr::memchr(b'\n', &bytes[begin..]).unwrap_or(bytes.len() - begin);
        let line = &bytes[begin..begin + length];
        number += 1;
        offset += length + 1;
        if !line.is_empty() {
            visit(Seen {
                at: at(begin),
                end: at(offset),
                number,
                line: Line::parse(line, at(begin)),
            });
        }
    }
}
