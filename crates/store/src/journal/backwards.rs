//! Reads the journal backwards: the newest lines and records first.
//!
//! The segment that grows is read in pieces from its end, so that the newest records cost the same in
//! a journal of any age.

use crate::error::{Result, StoreError};
use crate::journal::durable::Journal;
use crate::journal::record::Record;
use crate::journal::segment::trim_fill;
use crate::journal::segments::Position;

/// How much of the journal a scan of recent records reads.
pub(crate) const RECENT_BYTES: u64 = 512 << 10;
/// The first piece. The next ones are larger.
const PIECE: u64 = 32 << 10;
const GROWTH: u64 = 8;

/// Whether `visit` wants more lines, and where the lines before these end.
enum Visited {
    All { end: u64 },
    Enough,
}

impl Journal {
    /// Visits the newest records of the journal, newest first.
    pub fn each_newest_first(
        &self,
        most: usize,
        visit: &mut dyn FnMut(Position, &Record),
    ) -> Result<()> {
        let mut left = most;
        if left == 0 {
            return Ok(());
        }
        self.each_line_newest_first(u64::MAX, &mut |at, line| {
            if let Ok(record) = Record::decode(line) {
                visit(at, &record);
                left -= 1;
            }
            left > 0
        })
    }

    /// Visits the lines among the last `most` bytes of the journal, newest first, until `visit`
    /// returns false.
    pub fn each_line_newest_first(
        &self,
        most: u64,
        visit: &mut dyn FnMut(Position, &[u8]) -> bool,
    ) -> Result<()> {
        let bound = self.bound()?;
        let Visited::All { .. } = self.visit_growing(bound, most, visit)? else {
            return Ok(());
        };
        let mut left = most.saturating_sub(bound.offset);
        let older = self.segments()?.into_iter().rev();
        for segment in older.filter(|number| *number < bound.segment) {
            if left == 0 {
                break;
            }
            let bytes = self.read_segment(segment)?;
            let bytes = trim_fill(&bytes);
            let from = (bytes.len() as u64).saturating_sub(left);
            if let Visited::Enough = visit_lines(segment, bytes, from, visit) {
                break;
            }
            left = left.saturating_sub(bytes.len() as u64);
        }
        Ok(())
    }

    /// Visits the lines of the segment in which the journal ends.
    fn visit_growing(
        &self,
        bound: Position,
        most: u64,
        visit: &mut dyn FnMut(Position, &[u8]) -> bool,
    ) -> Result<Visited> {
        let (mut end, mut piece) = (bound.offset, PIECE);
        let least = bound.offset.saturating_sub(most);
        while end > least {
            let from = end.saturating_sub(piece).max(least);
            let start = bound.at(from);
            let bytes = match self.read_between(start, bound.at(end)) {
                Ok(bytes) => bytes,
                // It is shorter than recorded, or compressed: visit what there is.
                Err(StoreError::Io { .. } | StoreError::Damaged { .. }) => {
                    let mut bytes = self.read_segment(bound.segment)?;
                    bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
                    return Ok(visit_lines(bound.segment, &bytes, 0, visit));
                }
                Err(error) => return Err(error),
            };
            match visit_from(start, &bytes, visit) {
                Visited::Enough => return Ok(Visited::Enough),
                Visited::All { end: rest } => end = rest,
            }
            if from == least {
                break;
            }
            piece = (end - from) + piece.saturating_mul(GROWTH);
        }
        Ok(Visited::All { end })
    }
}

fn visit_lines(
    segment: u32,
    bytes: &[u8],
    from: u64,
    visit: &mut dyn FnMut(Position, &[u8]) -> bool,
) -> Visited {
    let start = Position::start_of(segment).at(from);
    let bytes = &bytes[usize::try_from(from).unwrap_or(0).min(bytes.len())..];
    visit_from(start, bytes, visit)
}

/// Visits the lines of some bytes, newest first. A line that begins before them is left out.
fn visit_from(
    start: Position,
    bytes: &[u8],
    visit: &mut dyn FnMut(Position, &[u8]) -> bool,
) -> Visited {
    let mut end = bytes.len();
    while end > 0 {
        if bytes[end - 1] == b'\n' {
            end -= 1;
            continue;
        }
        let begin = match memchr::memrchr(b'\n', &bytes[..end]) {
            Some(newline) => newline + 1,
            None if start.offset == 0 => 0,
            None => break,
        };
        let at = start.at(start.offset + begin as u64);
        if !visit(at, &bytes[begin..end]) {
            return Visited::Enough;
        }
        end = begin;
    }
    Visited::All {
        end: start.offset + end as u64,
    }
}
