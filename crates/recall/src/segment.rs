//! A segment: one immutable file with sections, their terms and an inverted index.
//!
//! ```text
//! header │ records │ rows │ lengths │ postings │ dictionary
//! ```
//!
//! A record contains the data that a hit shows (heading path and text), a row contains the data
//! that ranking needs, and a posting list names the sections that contain a term. Each is sealed
//! separately, so a query reads and checks only the data it touches. The manifest decides which
//! sections are live.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

use super::bytes::{Cursor, SEAL, Source, fingerprint, put, put_bytes, seal};
use super::signs::{self, Day, Signs};
use super::terms::{Reader, Term};
use super::{Damage, Section};

/// Incremented whenever the bytes or the meaning of terms change. An older index is rebuilt, not
/// read.
pub const FORMAT: u32 = 5;

const MAGIC: &[u8; 8] = b"QUIPUSEG";
const HEADER: usize = 8 + 4 * 3 + 8 * 5 + SEAL;
const ROW: usize = 40;
const ENTRY: usize = 16;
/// Dictionary entries per sealed block: slightly more than one page.
const ENTRIES: usize = 255;
const BLOCK: usize = ENTRIES * ENTRY + SEAL;
/// The flag of a posting for a term in the heading path.
const IN_HEADING: u8 = 0x80;
/// The maximum count of a term in one section. Ranking saturates long before.
const MOST: u32 = 0x7f;

/// The data of one section that ranking needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    record: u32,
    size: u32,
    /// The line of its heading or first line, counted from 1.
    pub line: u32,
    /// The number of terms in its text.
    pub length: u16,
    /// Surface features: a question, a time, a turn of a dialogue.
    pub signs: Signs,
    /// The date in its heading path, if any.
    pub day: Day,
    /// The day that its text names, if any.
    pub told: Day,
    /// The hash of its text, which is the key of its vectors.
    pub text: u64,
    /// The hash of all data that a hit shows, including the line, and of whether it is a turn of a
    /// dialogue. Equal hashes mean that nothing changed.
    pub whole: u64,
}

impl Row {
    fn write(&self, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend(self.record.to_le_bytes());
        out.extend(self.size.to_le_bytes());
        out.extend(self.line.to_le_bytes());
        out.extend(self.length.to_le_bytes());
        out.extend([self.signs.0, 0]);
        out.extend(self.day.0.to_le_bytes());
        out.extend(self.told.0.to_le_bytes());
        out.extend(self.text.to_le_bytes());
        out.extend(self.whole.to_le_bytes());
        seal(out, from);
    }

    fn parse(bytes: &[u8]) -> Result<Self, Damage> {
        let bytes = super::bytes::open_sealed(bytes)?;
        let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let eight = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        Ok(Self {
            record: four(0),
            size: four(4),
            line: four(8),
            length: u16::from_le_bytes([bytes[12], bytes[13]]),
            signs: Signs(bytes[14]),
            day: Day(four(16)),
            told: Day(four(20)),
            text: eight(24),
            whole: eight(32),
        })
    }
}

/// Returns the hash of all data that a hit of this section shows, and of its place in a dialogue.
#[must_use]
pub fn whole_hash(section: &Section, is_turn: bool) -> u64 {
    let mut bytes = section.line.to_le_bytes().to_vec();
    bytes.push(u8::from(is_turn));
    for heading in &section.heading_path {
        put_bytes(&mut bytes, heading.as_bytes());
    }
    bytes.push(0);
    bytes.extend(section.text.as_bytes());
    fingerprint(&bytes)
}

#[derive(Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("terms hash as one number")
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// A map with keys that are already hashes.
pub(super) type TermMap<V> = HashMap<Term, V, BuildHasherDefault<AsIs>>;

pub(super) type TermSet = HashSet<Term, BuildHasherDefault<AsIs>>;

#[derive(Default)]
struct List {
    last: u32,
    bytes: Vec<u8>,
}

impl List {
    fn push(&mut self, section: u32, seen: u8) {
        // Sections are ascending. The first one is stored as is, the others as differences.
        put(&mut self.bytes, u64::from(section - self.last));
        self.bytes.push(seen);
        self.last = section;
    }
}

/// Collects sections and writes them as one segment.
#[derive(Default)]
pub struct Builder {
    records: Vec<u8>,
    rows: Vec<Row>,
    lists: TermMap<List>,
    scratch: Vec<(Term, u8)>,
}

impl Builder {
    #[must_use]
    pub fn sections(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Returns the approximate size of the output in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.records.len() * 2
    }

    /// Adds a section of the file at `path`, which may be a dialogue. Returns the number of terms in
    /// its text.
    pub fn add(
        &mut self,
        path: &str,
        section: &Section,
        is_turn: bool,
        reader: &mut Reader,
    ) -> u16 {
        let number = self.sections();
        self.scratch.clear();
        reader.read(&section.text, |term, _| self.scratch.push((term, 0)));
        let length = self.scratch.len().min(usize::from(u16::MAX)) as u16;
        for heading in &section.heading_path {
            reader.read(heading, |term, _| self.scratch.push((term, IN_HEADING)));
        }
        self.scratch.sort_unstable();
        for same in self.scratch.chunk_by(|a, b| a.0 == b.0) {
            let heading = same
                .iter()
                .filter(|(_, place)| *place == IN_HEADING)
                .count();
            let seen = (same.len() - heading).min(MOST as usize) as u8;
            let mark = if heading > 0 { IN_HEADING } else { 0 };
            self.lists
                .entry(same[0].0)
                .or_default()
                .push(number, seen | mark);
        }
        let from = self.records.len();
        put(&mut self.records, section.heading_path.len() as u64);
        for heading in &section.heading_path {
            put_bytes(&mut self.records, heading.as_bytes());
        }
        self.records.extend(section.text.as_bytes());
        seal(&mut self.records, from);
        let day = Day::of_place(&section.heading_path, path);
        self.rows.push(Row {
            record: from as u32,
            size: (self.records.len() - from) as u32,
            line: section.line,
            length,
            signs: signs::read(&section.text, is_turn),
            day,
            told: signs::told(&section.text, day),
            text: fingerprint(section.text.as_bytes()),
            whole: whole_hash(section, is_turn),
        });
        length
    }

    /// Merges the live sections of other segments. `keep` lists them in their new order.
    pub fn merge(segments: &[&Segment], keep: &[(usize, u32)]) -> Result<Self, Damage> {
        let mut joined = Self::default();
        let mut places: Vec<Vec<u32>> = segments
            .iter()
            .map(|segment| vec![u32::MAX; segment.sections() as usize])
            .collect();
        for (from, number) in keep {
            let segment = segments[*from];
            let mut row = segment.row(*number)?;
            let bytes = segment
                .source
                .read(segment.records(&row), row.size as usize)?;
            row.record = joined.records.len() as u32;
            joined.records.extend_from_slice(&bytes);
            places[*from][*number as usize] = joined.sections();
            joined.rows.push(row);
        }
        let mut entries = Vec::new();
        for (from, segment) in segments.iter().enumerate() {
            segment.each_entry(|term, start, size| entries.push((term, from, start, size)))?;
        }
        entries.sort_unstable();
        let mut found = Vec::new();
        for same in entries.chunk_by(|a, b| a.0 == b.0) {
            found.clear();
            for (_, from, start, size) in same {
                segments[*from].each_posting(*start, *size, |number, seen| {
                    let place = places[*from][number as usize];
                    if place != u32::MAX {
                        found.push((place, seen));
                    }
                })?;
            }
            if found.is_empty() {
                continue;
            }
            found.sort_unstable();
            let list = joined.lists.entry(same[0].0).or_default();
            for (place, seen) in &found {
                list.push(*place, *seen);
            }
        }
        Ok(joined)
    }

    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        let mut out = vec![0; HEADER];
        out.extend(&self.records);
        let rows = out.len();
        for row in &self.rows {
            row.write(&mut out);
        }
        let lengths = out.len();
        for row in &self.rows {
            out.extend(row.length.to_le_bytes());
        }
        seal(&mut out, lengths);
        let postings = out.len();
        let mut lists: Vec<_> = self.lists.into_iter().collect();
        lists.sort_unstable_by_key(|(term, _)| *term);
        let mut entries = Vec::with_capacity(lists.len() * ENTRY);
        for (term, list) in &lists {
            let from = out.len();
            out.extend(&list.bytes);
            seal(&mut out, from);
            entries.extend(term.0.to_le_bytes());
            entries.extend(((from - postings) as u32).to_le_bytes());
            entries.extend(((out.len() - from) as u32).to_le_bytes());
        }
        let dictionary = out.len();
        for block in entries.chunks(ENTRIES * ENTRY) {
            let from = out.len();
            out.extend(block);
            seal(&mut out, from);
        }
        let mut header = MAGIC.to_vec();
        for number in [FORMAT, self.rows.len() as u32, lists.len() as u32] {
            header.extend(number.to_le_bytes());
        }
        for place in [rows, lengths, postings, dictionary, out.len()] {
            header.extend((place as u64).to_le_bytes());
        }
        seal(&mut header, 0);
        out[..HEADER].copy_from_slice(&header);
        out
    }
}

/// An open segment. Data is checked when it is read.
#[derive(Debug)]
pub struct Segment {
    source: Source,
    sections: u32,
    terms: u32,
    rows: u64,
    postings: u64,
    dictionary: u64,
    stamp: u64,
    /// Two bytes per section, unparsed, because every fresh process reads millions of them.
    lengths: Vec<u8>,
    /// Cached blocks of the dictionary.
    blocks: OnceLock<Vec<OnceLock<Vec<u8>>>>,
    /// All rows, cached by a long-running process.
    kept: OnceLock<Vec<Row>>,
}

impl Segment {
    /// Opens a segment and reads its header and section lengths.
    pub fn open(source: Source) -> Result<Self, Damage> {
        let header = source.read_sealed(0, HEADER)?;
        if &header[..8] != MAGIC {
            return Err(Damage::Format);
        }
        let four = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four"));
        let eight = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight"));
        if four(8) != FORMAT {
            return Err(Damage::Format);
        }
        let sections = four(12);
        if eight(52) != source.len() {
            return Err(Damage::Short);
        }
        let lengths = source
            .read_sealed(eight(28), 2 * sections as usize + SEAL)?
            .into_owned();
        let (terms, rows, postings, dictionary) = (four(16), eight(20), eight(36), eight(44));
        let stamp = fingerprint(&header);
        drop(header);
        let (blocks, kept) = (OnceLock::new(), OnceLock::new());
        Ok(Self {
            source,
            sections,
            terms,
            rows,
            postings,
            dictionary,
            stamp,
            lengths,
            blocks,
            kept,
        })
    }

    /// Returns the number of sections, including dead ones.
    #[must_use]
    pub fn sections(&self) -> u32 {
        self.sections
    }

    /// Returns a fingerprint of the segment.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Returns the size on disk in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.source.len()
    }

    /// Returns the number of terms of each section's text, in two bytes each.
    #[must_use]
    pub fn lengths(&self) -> &[[u8; 2]] {
        self.lengths.as_chunks().0
    }

    fn records(&self, row: &Row) -> u64 {
        HEADER as u64 + u64::from(row.record)
    }

    pub fn row(&self, number: u32) -> Result<Row, Damage> {
        const SEALED: usize = ROW + SEAL;
        if let Some(kept) = self.kept.get() {
            return kept.get(number as usize).copied().ok_or(Damage::Short);
        }
        Row::parse(
            &self
                .source
                .read(self.rows + u64::from(number) * SEALED as u64, SEALED)?,
        )
    }

    pub fn rows(&self, first: u32, count: u32) -> Result<Vec<Row>, Damage> {
        let mut rows = Vec::with_capacity(count as usize);
        self.add_rows(first, count, &mut rows)?;
        Ok(rows)
    }

    /// Appends consecutive rows to `rows`.
    pub fn add_rows(&self, first: u32, count: u32, rows: &mut Vec<Row>) -> Result<(), Damage> {
        const SEALED: usize = ROW + SEAL;
        if let Some(kept) = self.kept.get() {
            rows.extend(
                kept.get(first as usize..(first + count) as usize)
                    .ok_or(Damage::Short)?,
            );
            return Ok(());
        }
        let start = self.rows + u64::from(first) * SEALED as u64;
        let bytes = self.source.read(start, count as usize * SEALED)?;
        for row in bytes.chunks_exact(SEALED) {
            rows.push(Row::parse(row)?);
        }
        Ok(())
    }

    /// Reads everything into memory, for a process that answers many questions.
    pub fn keep(&self) -> Result<(), Damage> {
        if self.kept.get().is_none() {
            self.source.keep()?;
            let rows = self.rows(0, self.sections)?;
            // Another thread may have set it first. The rows are the same.
            let _ = self.kept.set(rows);
        }
        Ok(())
    }

    /// Returns the heading path and text of a section.
    pub fn record(&self, row: &Row) -> Result<(Vec<String>, String), Damage> {
        let bytes = self
            .source
            .read_sealed(self.records(row), row.size as usize)?;
        let mut cursor = Cursor(&bytes);
        let count = cursor.size()?;
        let mut heading_path = Vec::new();
        for _ in 0..count {
            heading_path.push(cursor.text()?.to_owned());
        }
        let text = std::str::from_utf8(cursor.0).map_err(|_| Damage::Short)?;
        Ok((heading_path, text.to_owned()))
    }

    /// Calls `each(section, times, in_heading)` for every section that contains the term.
    pub fn find(&self, term: Term, mut each: impl FnMut(u32, u8, bool)) -> Result<(), Damage> {
        let blocks = (self.terms as usize).div_ceil(ENTRIES);
        if blocks == 0 {
            return Ok(());
        }
        // Hashes are evenly distributed, so interpolation finds the block within one or two steps.
        let mut block = ((u128::from(term.0) * blocks as u128) >> 64) as usize;
        let mut came_from = None;
        loop {
            let bytes = self.block(block)?;
            let key = |at: usize| {
                u64::from_le_bytes(bytes[at * ENTRY..at * ENTRY + 8].try_into().expect("eight"))
            };
            let count = bytes.len() / ENTRY;
            let next = if term.0 < key(0) {
                block.checked_sub(1)
            } else if term.0 > key(count - 1) {
                Some(block + 1).filter(|next| *next < blocks)
            } else {
                let mut low = 0;
                let mut high = count;
                while low < high {
                    let middle = usize::midpoint(low, high);
                    if key(middle) < term.0 {
                        low = middle + 1
                    } else {
                        high = middle
                    }
                }
                if key(low) != term.0 {
                    return Ok(());
                }
                let (start, size) = entry(&bytes[low * ENTRY..]);
                return self.each_posting(start, size, |number, seen| {
                    each(number, seen & !IN_HEADING, seen & IN_HEADING != 0);
                });
            };
            match next {
                Some(next) if Some(next) != came_from => {
                    came_from = Some(block);
                    block = next;
                }
                _ => return Ok(()),
            }
        }
    }

    fn read_block(&self, block: usize) -> Result<std::borrow::Cow<'_, [u8]>, Damage> {
        let left = self.terms as usize - block * ENTRIES;
        let start = self.dictionary + (block * BLOCK) as u64;
        self.source
            .read_sealed(start, left.min(ENTRIES) * ENTRY + SEAL)
    }

    /// Returns a block of the dictionary. Reads and checks it once.
    fn block(&self, block: usize) -> Result<&[u8], Damage> {
        let blocks = self
            .blocks
            .get_or_init(|| vec![OnceLock::new(); (self.terms as usize).div_ceil(ENTRIES)]);
        if let Some(known) = blocks[block].get() {
            return Ok(known);
        }
        let read = self.read_block(block)?.into_owned();
        Ok(blocks[block].get_or_init(|| read))
    }

    fn each_entry(&self, mut each: impl FnMut(Term, u32, u32)) -> Result<(), Damage> {
        for block in 0..(self.terms as usize).div_ceil(ENTRIES) {
            for bytes in self.read_block(block)?.chunks_exact(ENTRY) {
                let (start, size) = entry(bytes);
                let term = u64::from_le_bytes(bytes[..8].try_into().expect("eight"));
                each(Term(term), start, size);
            }
        }
        Ok(())
    }

    fn each_posting(
        &self,
        start: u32,
        size: u32,
        mut each: impl FnMut(u32, u8),
    ) -> Result<(), Damage> {
        let bytes = self
            .source
            .read_sealed(self.postings + u64::from(start), size as usize)?;
        let mut number = 0u32;
        let mut rest = &bytes[..];
        // Nearly all differences fit in one byte. Long lists spend their time in this loop.
        while let [step, tail @ ..] = rest {
            rest = tail;
            if *step < 0x80 {
                number = number.saturating_add(u32::from(*step));
            } else {
                let mut cursor = Cursor(rest);
                let more = cursor.number()? as u32;
                number = number.saturating_add(more << 7 | u32::from(step & 0x7f));
                rest = cursor.0;
            }
            let [seen, tail @ ..] = rest else {
                return Err(Damage::Short);
            };
            rest = tail;
            if number >= self.sections {
                return Err(Damage::Checksum);
            }
            each(number, *seen);
        }
        Ok(())
    }
}

fn entry(bytes: &[u8]) -> (u32, u32) {
    let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
    (four(8), four(12))
}
