//! The watermarks of the journal: tail, synced and applied, shared by the running processes.
//!
//! They are five short text lines in `.quipu/live` and hold for one boot only: after a crash of the
//! machine, the journal itself is read. A line that is damaged or from another boot counts as
//! absent.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::disk::{Disk, Step};
use crate::error::{Result, StoreError};
use crate::journal::Position;
use crate::record::{Sum, parse_sum};
use crate::store::remove_cache;

/// The end of the journal. Changed only under the append lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    pub at: Position,
    pub seq: u64,
    pub wall_us: i64,
    pub sum: Sum,
}

/// The content of the file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    pub tail: Option<Tail>,
    pub synced: Option<Position>,
    /// A sync has failed: the kernel may have dropped pages that it could not write, and the next
    /// sync would succeed without them. Everything after the synced watermark has to be written
    /// again.
    pub doubt: bool,
    /// How far the files are written. The file index may lag behind this after a crash.
    pub applied: Option<Position>,
    /// A process has begun to apply other processes' records up to here, and may have died.
    pub begun: Option<Position>,
}

const LINE: usize = 256;
const LINES: usize = 5;
/// The line of each value.
const TAIL: usize = 0;
const SYNCED: usize = 1;
const DOUBT: usize = 2;
const APPLIED: usize = 3;
const BEGUN: usize = 4;
/// Hexadecimal digits of a line's checksum.
const CHECK: usize = 8;

pub(crate) struct Live {
    file: File,
    boot: String,
    /// The lines that were last read or written: a line with the same bytes is not parsed again.
    seen: Mutex<Seen>,
}

struct Seen {
    bytes: [u8; LINE * LINES],
    known: Known,
}

impl Live {
    fn of(file: File, boot: String) -> Live {
        Live {
            file,
            boot,
            seen: Mutex::new(Seen {
                bytes: [0; LINE * LINES],
                known: Known::default(),
            }),
        }
    }

    pub fn open(path: &Path, boot: String) -> Result<Live> {
        let open = || {
            File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(path)
        };
        // If something else has this name, replace it: the journal itself is read then.
        let file = open().or_else(|error| match error.kind() {
            std::io::ErrorKind::IsADirectory | std::io::ErrorKind::PermissionDenied => {
                remove_cache(path).and_then(|()| open())
            }
            _ => Err(error),
        });
        Ok(Live::of(
            file.map_err(StoreError::io("cannot open `.quipu/live`"))?,
            boot,
        ))
    }

    /// For a project that cannot be written. None if the file does not exist.
    pub fn open_to_read(path: &Path, boot: &str) -> Option<Live> {
        Some(Live::of(
            crate::regular::open_regular(path).ok()?,
            boot.to_owned(),
        ))
    }

    /// Whether the file was deleted: other processes then use a new one.
    pub fn is_deleted(&self) -> bool {
        crate::disk::is_deleted(&self.file)
    }

    pub fn known(&self) -> Known {
        let mut buffer = [0u8; LINE * LINES];
        if self.file.read_at(&mut buffer, 0).is_err() {
            return Known::default();
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, line) in buffer.chunks_exact(LINE).enumerate() {
            self.take_in(&mut seen, index, line);
        }
        seen.known
    }

    /// Parses a line, unless its bytes are unchanged.
    fn take_in(&self, seen: &mut Seen, index: usize, line: &[u8]) {
        let known = &mut seen.bytes[index * LINE..(index + 1) * LINE];
        if known == line {
            return;
        }
        known.copy_from_slice(line);
        let line = self.parse(line);
        match index {
            TAIL => seen.known.tail = line.and_then(parse_tail),
            SYNCED => seen.known.synced = line.and_then(parse_position),
            DOUBT => seen.known.doubt = line == Some("doubt"),
            APPLIED => seen.known.applied = line.and_then(parse_position),
            _ => seen.known.begun = line.and_then(parse_position),
        }
    }

    /// Whether a sync without doubt has reached a position. Synced data stays synced, so this needs
    /// no lock.
    pub fn is_synced_to(&self, end: Position) -> bool {
        let mut buffer = [0u8; LINE * 2];
        if !self
            .file
            .read_at(&mut buffer, (SYNCED * LINE) as u64)
            .is_ok_and(|length| length == buffer.len())
        {
            return false;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (synced, doubt) = buffer.split_at(LINE);
        self.take_in(&mut seen, SYNCED, synced);
        self.take_in(&mut seen, DOUBT, doubt);
        !seen.known.doubt && seen.known.synced.is_some_and(|synced| synced >= end)
    }

    pub fn tail(&self) -> Option<Tail> {
        self.known().tail
    }

    /// Requires the append lock.
    pub fn set_tail(&self, disk: &Disk, tail: &Tail) -> Result<()> {
        let Tail {
            at,
            seq,
            wall_us,
            sum,
        } = tail;
        self.write(
            disk,
            TAIL,
            format_args!("{} {} {seq} {wall_us} {sum}", at.segment, at.offset),
            |known| known.tail = Some(*tail),
        )
    }

    /// Requires the sync lock.
    pub fn set_synced(&self, disk: &Disk, at: Position) -> Result<()> {
        self.write(
            disk,
            SYNCED,
            format_args!("{} {}", at.segment, at.offset),
            |known| known.synced = Some(at),
        )
    }

    /// Requires the apply lock.
    pub fn set_applied(&self, disk: &Disk, at: Position) -> Result<()> {
        self.write(
            disk,
            APPLIED,
            format_args!("{} {}", at.segment, at.offset),
            |known| known.applied = Some(at),
        )
    }

    /// Requires the apply lock.
    pub fn set_begun(&self, disk: &Disk, at: Position) -> Result<()> {
        self.write(
            disk,
            BEGUN,
            format_args!("{} {}", at.segment, at.offset),
            |known| known.begun = Some(at),
        )
    }

    pub fn set_doubt(&self, disk: &Disk, doubt: bool) -> Result<()> {
        self.write(
            disk,
            DOUBT,
            format_args!("{}", if doubt { "doubt" } else { "sure" }),
            |known| known.doubt = doubt,
        )
    }

    /// Clears all lines, so that the next snapshot finds the end in the journal itself.
    pub fn forget(&self, disk: &Disk) -> Result<()> {
        let blank = [b' '; LINE * LINES];
        disk.write_at(Step::LiveWrite, &self.file, &blank, 0)
            .map_err(StoreError::io("cannot write `.quipu/live`"))
    }

    fn parse<'l>(&self, line: &'l [u8]) -> Option<&'l str> {
        let used = line.iter().rposition(|b| !b.is_ascii_whitespace())? + 1;
        let line = std::str::from_utf8(&line[..used]).ok()?;
        let (body, check) = line.rsplit_once(' ')?;
        let body = (check.as_bytes() == checksum(body.as_bytes())).then_some(body)?;
        body.strip_prefix(self.boot.as_str())?.strip_prefix(' ')
    }

    /// Runs twice per commit, so the line is built in place.
    fn write(
        &self,
        disk: &Disk,
        index: usize,
        body: std::fmt::Arguments<'_>,
        note: impl FnOnce(&mut Known),
    ) -> Result<()> {
        let mut line = [b' '; LINE];
        let mut rest = &mut line[..LINE - CHECK - 2];
        write!(rest, "{} {body}", self.boot)
            .map_err(StoreError::io("cannot write `.quipu/live`"))?;
        let used = LINE - CHECK - 2 - rest.len();
        let check = checksum(&line[..used]);
        line[used + 1..used + 1 + CHECK].copy_from_slice(&check);
        line[LINE - 1] = b'\n';
        let offset = (index * LINE) as u64;
        disk.write_at(Step::LiveWrite, &self.file, &line, offset)
            .map_err(StoreError::io("cannot write `.quipu/live`"))?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.bytes[index * LINE..(index + 1) * LINE].copy_from_slice(&line);
        note(&mut seen.known);
        Ok(())
    }
}

fn parse_tail(line: &str) -> Option<Tail> {
    let mut fields = line.split(' ');
    let at = Position {
        segment: fields.next()?.parse().ok()?,
        offset: fields.next()?.parse().ok()?,
    };
    Some(Tail {
        at,
        seq: fields.next()?.parse().ok()?,
        wall_us: fields.next()?.parse().ok()?,
        sum: parse_sum(fields.next()?),
    })
}

fn parse_position(text: &str) -> Option<Position> {
    let (segment, offset) = text.split_once(' ')?;
    Some(Position {
        segment: segment.parse().ok()?,
        offset: offset.parse().ok()?,
    })
}

fn checksum(body: &[u8]) -> [u8; CHECK] {
    crate::version::digits(blake3::hash(body).as_bytes())
}
