//! Finds the end of the journal if the watermarks are missing or wrong.
//!
//! A record counts if it is complete and follows the record before it. Anything else is either an
//! unsynced tail, which was never acknowledged, or damage to synced records. The records
//! distinguish the two: each one says how far the journal was synced when it was written. Damage
//! before such a position is skipped and `verify` reports it; otherwise the journal ends there.

use std::collections::BTreeMap;

use crate::clock::parse_time;
use crate::error::{Result, StoreError};
use crate::journal::durable::Journal;
use crate::journal::record::{ChainHash, ROOT_HASH, Record, parse_hash};
use crate::journal::segments::{Line, Position, Seen};
use crate::journal::watermarks::Tail;

/// Which of the bytes that do not count are kept for a person to inspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Torn {
    /// After a power cut: they may be all that is left of a record.
    Keep,
    /// A process was killed while it wrote them. Only complete records among them are kept.
    KeepRecords,
}

impl Tail {
    pub(crate) fn start() -> Tail {
        Tail {
            at: Position::START,
            seq: 0,
            wall_us: 0,
            hash: parse_hash(ROOT_HASH),
        }
    }

    pub(crate) fn after(record: &Record, end: Position, before_us: i64) -> Tail {
        Tail {
            at: end,
            seq: record.seq,
            wall_us: parse_time(&record.at).unwrap_or(before_us),
            hash: record.hash,
        }
    }
}

/// The complete records among the lines of a text.
fn records_in(bytes: &[u8]) -> impl Iterator<Item = Record> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .filter_map(|line| Record::decode(line).ok())
}

/// The last record that counts among lines with damage: damage before a position that a later record
/// proves to be synced is skipped.
fn past_damage(mut tail: Tail, seen: &[Seen]) -> Tail {
    let proofs = seen.iter().filter_map(|line| match &line.line {
        Line::Record(record) if record.seq > tail.seq => {
            record.synced.as_deref().and_then(Position::parse)
        }
        _ => None,
    });
    let synced = proofs.max().unwrap_or(Position::START);
    let mut broken = false;
    for line in seen {
        let proven = line.end <= synced;
        match &line.line {
            Line::Record(record)
                if proven && record.seq > tail.seq
                    || follows(record, &tail, broken && line.at <= synced) =>
            {
                tail = Tail::after(record, line.end, tail.wall_us);
                broken = false;
            }
            _ if proven => {
                tail.at = tail.at.max(line.end);
                broken = true;
            }
            _ => break,
        }
    }
    tail
}

/// The last record that the hash chain reaches from a known one, at any position. A duplicated or
/// moved line lies between records that follow each other, and proves nothing about them.
fn along_chain(mut tail: Tail, seen: &[Seen]) -> Tail {
    let next: BTreeMap<ChainHash, (&Record, Position)> = seen
        .iter()
        .filter_map(|line| match &line.line {
            Line::Record(record) => Some((record.prev, (&**record, line.end))),
            _ => None,
        })
        .collect();
    while let Some((record, end)) = next
        .get(&tail.hash)
        .filter(|(record, _)| record.seq == tail.seq + 1)
    {
        tail = Tail::after(record, tail.at.max(*end), tail.wall_us);
    }
    tail
}

/// Right after skipped damage, the previous hash cannot be compared.
fn follows(record: &Record, tail: &Tail, behind_damage: bool) -> bool {
    if behind_damage {
        record.seq > tail.seq
    } else {
        record.prev == tail.hash && record.seq == tail.seq + 1
    }
}

impl Journal {
    /// Whether lines were inserted before a known tail of the journal. Either no line ends there,
    /// or that line is another record, or it is damaged and the last record comes after it.
    pub(crate) fn is_displaced(&self, tail: &Tail) -> bool {
        if !self.line_ends_at(tail.at) {
            return true;
        }
        match self.line_before(tail.at) {
            Ok(line) => match Record::decode(&line) {
                Ok(last) => last.hash != tail.hash,
                Err(_) => self
                    .bytes_behind(tail.at)
                    .is_ok_and(|bytes| records_in(&bytes).any(|record| record.hash == tail.hash)),
            },
            Err(_) => false,
        }
    }

    /// The last record that counts, starting at a known position. Without one, the search begins
    /// one segment before the last: older segments were synced when they were closed.
    pub(crate) fn follow(&self, from: Option<Tail>) -> Result<Tail> {
        let segments = self.segments()?;
        let early = segments.iter().rev().nth(1).copied().filter(|n| *n > 1);
        let (mut tail, mut loose) = match (from, early) {
            (Some(tail), _) => (tail, false),
            (None, Some(segment)) => (
                Tail {
                    at: Position::start_of(segment),
                    ..Tail::start()
                },
                true,
            ),
            (None, None) => (Tail::start(), false),
        };
        let mut seen: Vec<Seen> = Vec::new();
        let mut later = None;
        self.scan(tail.at, None, &mut |line| match &line.line {
            Line::Record(record)
                if seen.is_empty()
                    && (loose || record.prev == tail.hash && record.seq == tail.seq + 1) =>
            {
                tail = Tail::after(record, line.end, tail.wall_us);
                loose = false;
            }
            Line::OtherFormat(other) => later = Some(other.refusal()),
            _ => seen.push(line),
        })?;
        if let Some(refusal) = later {
            return Err(refusal);
        }
        let linked = along_chain(tail, &seen);
        let further = along_chain(past_damage(tail, &seen), &seen);
        tail = Tail {
            at: linked.at.max(further.at),
            ..if linked.seq > further.seq {
                linked
            } else {
                further
            }
        };
        // A compressed segment cannot grow, so the next record begins a new segment.
        if tail.at.offset > 0 && self.is_closed(tail.at.segment) {
            tail.at = Position::start_of(tail.at.segment + 1);
        }
        Ok(tail)
    }

    /// The end of the journal for a reader.
    pub(crate) fn bound(&self) -> Result<Position> {
        let known = if self.settings().read_only {
            crate::journal::watermarks::Watermarks::open_to_read(
                &self.settings().quipu().join("watermarks"),
                &self.settings().boot,
            )
            .and_then(|watermarks| watermarks.tail())
        } else {
            self.watermarks()?.tail()
        };
        match known {
            Some(tail) => Ok(tail.at),
            None => Ok(self.follow(None)?.at),
        }
    }

    /// All bytes of the journal from a position on.
    fn bytes_behind(&self, at: Position) -> Result<Vec<u8>> {
        let mut behind = Vec::new();
        for segment in self.segments()?.into_iter().filter(|n| *n >= at.segment) {
            let bytes = self.read_segment(segment)?;
            let start = if segment == at.segment {
                usize::try_from(at.offset).unwrap_or(usize::MAX)
            } else {
                0
            };
            behind.extend_from_slice(bytes.get(start..).unwrap_or_default());
        }
        Ok(behind)
    }

    pub fn keep_torn(&self, at: Position, torn: Torn) -> Result<()> {
        let keep_all = torn == Torn::Keep;
        let mut torn = self.bytes_behind(at)?;
        if !keep_all && records_in(&torn).next().is_none() {
            return Ok(());
        }
        while torn.last().is_some_and(|b| *b == b'\n' || *b == 0) {
            torn.pop();
        }
        if torn.is_empty() {
            return Ok(());
        }
        torn.push(b'\n');
        let name = format!(
            "torn-{}-{}-{}.txt",
            at.segment,
            at.offset,
            &crate::ident::short_id()
        );
        let keep = || -> std::io::Result<()> {
            let file = std::fs::File::create_new(self.settings().quipu().join(&name))?;
            std::io::Write::write_all(&mut &file, &torn)?;
            file.sync_all()
        };
        keep().map_err(StoreError::io(format!("cannot keep `.quipu/{name}`")))
    }
}
