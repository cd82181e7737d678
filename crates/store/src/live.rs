//! Where the journal ends and how far it is synced, as the running processes know it.
//!
//! Two small text lines in one file. They hold for one boot only: after a crash of the machine the
//! journal itself is read. A line that is damaged or of another boot counts as absent.

use std::fs::File;
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

const LINE: usize = 256;

pub(crate) struct Live {
    file: File,
    boot: String,
}

impl Live {
    pub fn open(path: &Path, boot: String) -> Result<Live> {
        let file = File::options().create(true).truncate(false).read(true).write(true).open(path);
        Ok(Live { file: file.map_err(StoreError::io("cannot open `.quipu/live`"))?, boot })
    }

    pub fn tail(&self) -> Option<Tail> {
        let line = self.read(0)?;
        let mut fields = line.split(' ');
        let at = Position { segment: fields.next()?.parse().ok()?, offset: fields.next()?.parse().ok()? };
        Some(Tail { at, seq: fields.next()?.parse().ok()?, wall_us: fields.next()?.parse().ok()?, sum: fields.next()?.to_owned() })
    }

    pub fn set_tail(&self, disk: &Disk, tail: &Tail) -> Result<()> {
        self.write(disk, 0, &format!("{} {} {} {} {}", tail.at.segment, tail.at.offset, tail.seq, tail.wall_us, tail.sum))
    }

    /// Written only under the sync lock.
    pub fn synced(&self) -> Option<Position> {
        let line = self.read(LINE as u64)?;
        let mut fields = line.split(' ');
        Some(Position { segment: fields.next()?.parse().ok()?, offset: fields.next()?.parse().ok()? })
    }

    pub fn set_synced(&self, disk: &Disk, at: Position) -> Result<()> {
        self.write(disk, LINE as u64, &format!("{} {}", at.segment, at.offset))
    }

    /// Makes the next look find the end in the journal itself.
    pub fn forget(&self, disk: &Disk) -> Result<()> {
        let blank = [b' '; LINE * 2];
        disk.write_at(Step::LiveWrite, &self.file, &blank, 0).map_err(StoreError::io("cannot write `.quipu/live`"))
    }

    fn read(&self, offset: u64) -> Option<String> {
        let mut buffer = [0u8; LINE];
        self.file.read_exact_at(&mut buffer, offset).ok()?;
        let line = std::str::from_utf8(&buffer).ok()?.trim_end();
        let (body, check) = line.rsplit_once(' ')?;
        let body = (check == checksum(body)).then_some(body)?;
        body.strip_prefix(self.boot.as_str())?.strip_prefix(' ').map(str::to_owned)
    }

    fn write(&self, disk: &Disk, offset: u64, body: &str) -> Result<()> {
        let body = format!("{} {body}", self.boot);
        let mut line = format!("{body} {}", checksum(&body));
        line.extend(std::iter::repeat_n(' ', LINE.saturating_sub(line.len() + 1)));
        line.push('\n');
        disk.write_at(Step::LiveWrite, &self.file, line.as_bytes(), offset).map_err(StoreError::io("cannot write `.quipu/live`"))
    }
}

fn checksum(body: &str) -> String {
    blake3::hash(body.as_bytes()).to_hex()[..8].to_owned()
}
