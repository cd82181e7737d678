//! The watermarks of the journal: tail, synced and applied, shared by the running processes.
//!
//! They are five short text lines in `.quipu/watermarks` and hold for one boot only: after a crash of the
//! machine, the journal itself is read. A line that is damaged or from another boot counts as
//! absent.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::files::disk::{Disk, Step};
use crate::files::regular_file::remove_cache;
use crate::journal::record::{ChainHash, parse_hash};
use crate::journal::segments::Position;
use crate::lock::locked;

/// The end of the journal. Changed only under the append lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tail {
    pub at: Position,
    pub seq: u64,
    pub wall_us: i64,
    pub hash: ChainHash,
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

pub(crate) struct Watermarks {
    file: File,
    boot: String,
    disk: Disk,
    /// The tail that this process last read or wrote.
    last_tail: Mutex<Option<Tail>>,
}

impl Watermarks {
    fn of(file: File, boot: String, disk: Disk) -> Watermarks {
        Watermarks {
            file,
            boot,
            disk,
            last_tail: Mutex::new(None),
        }
    }

    pub fn open(path: &Path, boot: String, disk: Disk) -> Result<Watermarks> {
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
        Ok(Watermarks::of(
            file.map_err(StoreError::io("cannot open `.quipu/watermarks`"))?,
            boot,
            disk,
        ))
    }

    /// For a project that cannot be written. None if the file does not exist.
    pub fn open_to_read(path: &Path, boot: &str) -> Option<Watermarks> {
        Some(Watermarks::of(
            crate::files::regular_file::open_regular(path).ok()?,
            boot.to_owned(),
            Disk::default(),
        ))
    }

    /// Whether the file was deleted: other processes then use a new one.
    pub fn is_deleted(&self) -> bool {
        crate::files::disk::is_deleted(&self.file)
    }

    pub fn known(&self) -> Known {
        let mut buffer = [0u8; LINE * LINES];
        if self.file.read_at(&mut buffer, 0).is_err() {
            return Known::default();
        }
        let line = |index: usize| self.parse(&buffer[index * LINE..(index + 1) * LINE]);
        let known = Known {
            tail: line(TAIL).and_then(parse_tail),
            synced: line(SYNCED).and_then(Position::parse),
            doubt: line(DOUBT) == Some("doubt"),
            applied: line(APPLIED).and_then(Position::parse),
            begun: line(BEGUN).and_then(Position::parse),
        };
        self.note_tail(known.tail);
        known
    }

    fn note_tail(&self, tail: Option<Tail>) {
        *locked(&self.last_tail) = tail;
    }

    /// Whether a sync without doubt has reached a position. Synced data stays synced, so this needs
    /// no lock.
    pub fn is_synced_to(&self, end: Position) -> bool {
        let known = self.known();
        !known.doubt && known.synced.is_some_and(|synced| synced >= end)
    }

    pub fn tail(&self) -> Option<Tail> {
        self.known().tail
    }

    /// The tail that this process last read or wrote.
    pub fn last_tail(&self) -> Option<Tail> {
        *locked(&self.last_tail)
    }

    /// Requires the append lock.
    pub fn set_tail(&self, tail: &Tail) -> Result<()> {
        let Tail {
            at,
            seq,
            wall_us,
            hash,
        } = tail;
        let body = format!("{at} {seq} {wall_us} {hash}");
        self.write(TAIL, &body)?;
        self.note_tail(Some(*tail));
        Ok(())
    }

    /// Requires the sync lock.
    pub fn set_synced(&self, at: Position) -> Result<()> {
        self.write_position(SYNCED, at)
    }

    /// Requires the apply lock.
    pub fn set_applied(&self, at: Position) -> Result<()> {
        self.write_position(APPLIED, at)
    }

    /// Requires the apply lock.
    pub fn set_begun(&self, at: Position) -> Result<()> {
        self.write_position(BEGUN, at)
    }

    pub fn set_doubt(&self, doubt: bool) -> Result<()> {
        self.write(DOUBT, if doubt { "doubt" } else { "sure" })
    }

    fn write_position(&self, index: usize, at: Position) -> Result<()> {
        self.write(index, &at.text())
    }

    /// Clears all lines, so that the next snapshot finds the end in the journal itself.
    pub fn forget(&self) -> Result<()> {
        let blank = [b' '; LINE * LINES];
        self.disk
            .write_at(Step::LiveWrite, &self.file, &blank, 0)
            .map_err(StoreError::io("cannot write `.quipu/watermarks`"))
    }

    fn parse<'l>(&self, line: &'l [u8]) -> Option<&'l str> {
        let used = line.iter().rposition(|b| !b.is_ascii_whitespace())? + 1;
        let line = std::str::from_utf8(&line[..used]).ok()?;
        let (body, check) = line.rsplit_once(' ')?;
        let body = (check == checksum(body.as_bytes())).then_some(body)?;
        body.strip_prefix(self.boot.as_str())?.strip_prefix(' ')
    }

    fn write(&self, index: usize, body: &str) -> Result<()> {
        let body = format!("{} {body}", self.boot);
        let text = format!("{body} {}", checksum(body.as_bytes()));
        let mut line = [b' '; LINE];
        line[LINE - 1] = b'\n';
        line[..text.len()].copy_from_slice(text.as_bytes());
        self.disk
            .write_at(Step::LiveWrite, &self.file, &line, (index * LINE) as u64)
            .map_err(StoreError::io("cannot write `.quipu/watermarks`"))
    }
}

fn parse_tail(line: &str) -> Option<Tail> {
    let mut fields = line.split(' ');
    Some(Tail {
        at: Position::parse(fields.next()?)?,
        seq: fields.next()?.parse().ok()?,
        wall_us: fields.next()?.parse().ok()?,
        hash: parse_hash(fields.next()?),
    })
}

fn checksum(body: &[u8]) -> String {
    blake3::hash(body).to_hex()[..CHECK].to_owned()
}
