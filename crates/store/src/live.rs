//! Where the journal ends and how far it is synced, as the running processes know it.
//!
//! Four small text lines in one file. They hold for one boot only: after a crash of the machine the
//! journal itself is read. A line that is damaged or of another boot counts as absent.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::disk::{Disk, Step};
use crate::error::{Result, StoreError};
use crate::journal::Position;

/// The journal's end. Written only under the append lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tail {
    pub at: Position,
    pub seq: u64,
    pub wall_us: i64,
    pub sum: String,
}

/// All that the file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub tail: Option<Tail>,
    pub synced: Option<Position>,
    /// A sync has failed since: the kernel may have dropped what it could not write, and the next
    /// sync would succeed without it. What is not known to be synced has to be written again.
    pub doubt: bool,
    /// How far the files are written. The index of heads may be behind that.
    pub applied: Option<Position>,
}

const LINE: usize = 256;
const LINES: usize = 4;
/// Hexadecimal digits of a line's checksum.
const CHECK: usize = 8;

pub(crate) struct Live {
    file: File,
    boot: String,
}

impl Live {
    pub fn open(path: &Path, boot: String) -> Result<Live> {
        let file = File::options().create(true).truncate(false).read(true).write(true).open(path);
        Ok(Live { file: file.map_err(StoreError::io("cannot open `.quipu/live`"))?, boot })
    }

    /// For a project that cannot be written; nothing is known where there is no such file.
    pub fn open_to_read(path: &Path, boot: &str) -> Option<Live> {
        Some(Live { file: File::open(path).ok()?, boot: boot.to_owned() })
    }

    /// Whether someone has deleted the file: what others know stands in another one now.
    pub fn is_deleted(&self) -> bool {
        crate::disk::is_deleted(&self.file)
    }

    pub fn known(&self) -> Known {
        let mut buffer = [0u8; LINE * LINES];
        let Ok(length) = self.file.read_at(&mut buffer, 0) else { return Known::default() };
        let line = |index: usize| self.parse(buffer[..length].get(index * LINE..(index + 1) * LINE)?);
        let position = |index: usize| {
            let (segment, offset) = line(index)?.split_once(' ')?;
            Some(Position { segment: segment.parse().ok()?, offset: offset.parse().ok()? })
        };
        Known {
            tail: line(0).and_then(|line| {
                let mut fields = line.split(' ');
                let at = Position { segment: fields.next()?.parse().ok()?, offset: fields.next()?.parse().ok()? };
                Some(Tail { at, seq: fields.next()?.parse().ok()?, wall_us: fields.next()?.parse().ok()?, sum: fields.next()?.to_owned() })
            }),
            synced: position(1),
            doubt: line(2).is_some_and(|line| line == "doubt"),
            applied: position(3),
        }
    }

    pub fn tail(&self) -> Option<Tail> {
        self.known().tail
    }

    pub fn set_tail(&self, disk: &Disk, tail: &Tail) -> Result<()> {
        self.write(disk, 0, format_args!("{} {} {} {} {}", tail.at.segment, tail.at.offset, tail.seq, tail.wall_us, tail.sum))
    }

    /// Written only under the sync lock.
    pub fn set_synced(&self, disk: &Disk, at: Position) -> Result<()> {
        self.write(disk, LINE as u64, format_args!("{} {}", at.segment, at.offset))
    }

    /// Written only under the apply lock.
    pub fn set_applied(&self, disk: &Disk, at: Position) -> Result<()> {
        self.write(disk, 3 * LINE as u64, format_args!("{} {}", at.segment, at.offset))
    }

    pub fn set_doubt(&self, disk: &Disk, doubt: bool) -> Result<()> {
        self.write(disk, 2 * LINE as u64, format_args!("{}", if doubt { "doubt" } else { "sure" }))
    }

    /// Makes the next look find the end in the journal itself.
    pub fn forget(&self, disk: &Disk) -> Result<()> {
        let blank = [b' '; LINE * LINES];
        disk.write_at(Step::LiveWrite, &self.file, &blank, 0).map_err(StoreError::io("cannot write `.quipu/live`"))
    }

    fn parse<'l>(&self, line: &'l [u8]) -> Option<&'l str> {
        let used = line.iter().rposition(|b| !b.is_ascii_whitespace())? + 1;
        let line = std::str::from_utf8(&line[..used]).ok()?;
        let (body, check) = line.rsplit_once(' ')?;
        let body = (check.as_bytes() == checksum(body.as_bytes())).then_some(body)?;
        body.strip_prefix(self.boot.as_str())?.strip_prefix(' ')
    }

    /// Twice for each commit: the line is made in place.
    fn write(&self, disk: &Disk, offset: u64, body: std::fmt::Arguments<'_>) -> Result<()> {
        let mut line = [b' '; LINE];
        let mut rest = &mut line[..LINE - CHECK - 2];
        write!(rest, "{} {body}", self.boot).map_err(StoreError::io("cannot write `.quipu/live`"))?;
        let used = LINE - CHECK - 2 - rest.len();
        let check = checksum(&line[..used]);
        line[used + 1..used + 1 + CHECK].copy_from_slice(&check);
        line[LINE - 1] = b'\n';
        disk.write_at(Step::LiveWrite, &self.file, &line, offset).map_err(StoreError::io("cannot write `.quipu/live`"))
    }
}

fn checksum(body: &[u8]) -> [u8; CHECK] {
    let mut check = [0; CHECK];
    check.copy_from_slice(&blake3::hash(body).to_hex().as_bytes()[..CHECK]);
    check
}
