//! What the encoder made of each section, kept beside its segment.
//!
//! ```text
//! header │ where each section starts │ signs of all vectors │ a block for each section
//! ```
//! A section has one vector for each of its parts and, if there are several, their mean first. A
//! vector is a scale and a byte for each dimension; its signs, a bit for each, are kept apart so that
//! a huge project can be scanned. The file names the model and the segment it belongs to; a file of
//! another model counts as absent. It may cover only some sections: encoding may be spread.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use super::Damage;
use super::bytes::{SEAL, Source, open_sealed, seal};
use super::encoder::{DIMENSIONS, Encoder, Met, identity};
use super::nearest::Leads;
use super::parts::parts;
use super::segment::{Row, Segment};
use super::wide::{Width, Work, add_share, most, normalise, wide};

const MAGIC: &[u8; 8] = b"QUIPUVE3";
const HEADER: usize = 8 + 16 + 8 + 4 + 4 + SEAL;
/// One vector: a scale and a byte for each dimension.
pub const VECTOR: usize = 4 + DIMENSIONS;
/// The signs of a vector.
pub const SIGNS: usize = DIMENSIONS / 8;
/// Sections that go through the encoder in one call.
const TOGETHER: usize = 64;

/// The vectors of one section as they are stored.
pub type Block = Vec<u8>;

/// Where vectors start, as it is stored: millions of them are read by every fresh process.
pub type Start = [u8; 4];

/// The number that a start stands for.
#[inline(always)]
pub fn place(start: Start) -> usize {
    u32::from_le_bytes(start) as usize
}

/// The scale of a stored vector and its codes.
#[inline(always)]
pub fn split(vector: &[u8]) -> (f32, &[u8]) {
    let (scale, codes) = vector.split_at(4);
    (f32::from_le_bytes([scale[0], scale[1], scale[2], scale[3]]), codes)
}

/// Reads a stored vector.
#[inline(always)]
pub fn read_stored(out: &mut [f32], vector: &[u8]) {
    let (scale, codes) = split(vector);
    out.iter_mut().zip(codes).for_each(|(out, code)| *out = f32::from(*code as i8) * scale);
}

/// Adds a share of a stored vector to a sum.
#[inline(always)]
pub fn add_stored(sum: &mut [f32], vector: &[u8], share: f32) {
    let (scale, codes) = split(vector);
    let share = scale * share;
    sum.iter_mut().zip(codes).for_each(|(sum, code)| *sum += f32::from(*code as i8) * share);
}

/// Stores the vectors of a section's parts, their mean first if there are several.
struct Store<'v>(&'v [f32]);

impl Work for Store<'_> {
    type Out = Block;

    #[inline(always)]
    fn work<W: Width>(self, _: W) -> Block {
        let parts = self.0.chunks_exact(DIMENSIONS);
        let mut block = Vec::with_capacity((parts.len() + 1) * VECTOR);
        if parts.len() > 1 {
            let mut mean = vec![0.0; DIMENSIONS];
            parts.clone().for_each(|vector| add_share(&mut mean, vector, 1.0));
            normalise(&mut mean);
            put(&mean, &mut block);
        }
        parts.for_each(|vector| put(vector, &mut block));
        block
    }
}

#[inline(always)]
fn put(vector: &[f32], out: &mut Vec<u8>) {
    let most = most(vector, 1e-9);
    out.extend((most / 127.0).to_le_bytes());
    out.extend(vector.iter().map(|value| (value / most * 127.0).round() as i8 as u8));
}

/// Encodes texts, part by part: a block for each.
fn encode(encoder: &Encoder, texts: &[String], met: &mut Met) -> Vec<Block> {
    let cut: Vec<Vec<&str>> = texts.iter().map(|text| parts(text)).collect();
    let all: Vec<&str> = cut.iter().flatten().copied().collect();
    let vectors = encoder.encode_all(&all, met);
    let mut rest = &vectors[..];
    let mut blocks = Vec::with_capacity(texts.len());
    for parts in &cut {
        let (own, others) = rest.split_at(parts.len() * DIMENSIONS);
        rest = others;
        blocks.push(wide(Store(own)));
    }
    blocks
}

/// The bytes of a vector file: a block for each section, empty where it is not encoded yet.
pub fn render(stamp: u64, blocks: &[Block]) -> Vec<u8> {
    let vectors = blocks.iter().map(|block| block.len() / VECTOR).sum::<usize>();
    let mut out = Vec::with_capacity(HEADER + blocks.len() * 8 + vectors * (VECTOR + SIGNS) + 16);
    out.extend(MAGIC);
    out.extend(identity());
    out.extend(stamp.to_le_bytes());
    out.extend((blocks.len() as u32).to_le_bytes());
    out.extend((vectors as u32).to_le_bytes());
    seal(&mut out, 0);
    let from = out.len();
    let mut start = 0u32;
    for block in blocks {
        out.extend(start.to_le_bytes());
        start += (block.len() / VECTOR) as u32;
    }
    out.extend(start.to_le_bytes());
    seal(&mut out, from);
    let from = out.len();
    for vector in blocks.iter().flat_map(|block| block.chunks_exact(VECTOR)) {
        out.extend(signs(split(vector).1.iter().map(|code| *code as i8 > 0)));
    }
    seal(&mut out, from);
    for block in blocks {
        let from = out.len();
        out.extend(block);
        seal(&mut out, from);
    }
    out
}

/// One bit for each dimension.
pub fn signs(positive: impl Iterator<Item = bool>) -> [u8; SIGNS] {
    let mut bits = [0; SIGNS];
    for (at, positive) in positive.enumerate() {
        bits[at / 8] |= u8::from(positive) << (at % 8);
    }
    bits
}

/// An opened vector file.
#[derive(Debug)]
pub struct Vectors {
    source: Source,
    /// The first vector of each section, and the end.
    starts: Vec<u8>,
    /// Whether every section is encoded.
    full: bool,
    /// Where the signs are, and where the blocks.
    signs: u64,
    body: u64,
    /// Everything, once a question has compared everything.
    whole: OnceLock<Vec<u8>>,
    /// All signs, or the leading numbers of all vectors, once a running process has scanned them.
    kept_signs: OnceLock<Vec<u8>>,
    leads: OnceLock<Leads>,
}

impl Vectors {
    /// Opens the vectors of a segment; `None` if they are of another model or segment.
    pub fn open(source: Source, stamp: u64) -> Option<Self> {
        let header = source.read_sealed(0, HEADER).ok()?;
        let four = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four"));
        let fits = &header[..8] == MAGIC && header[8..24] == identity() && header[24..32] == stamp.to_le_bytes();
        if !fits {
            return None;
        }
        let (sections, vectors) = (four(32) as usize, four(36) as usize);
        drop(header);
        let size = 4 * (sections + 1) + SEAL;
        let starts = source.read_sealed(HEADER as u64, size).ok()?.into_owned();
        let signs = (HEADER + size) as u64;
        let body = signs + (vectors * SIGNS + SEAL) as u64;
        let end = body + (vectors * VECTOR + sections * SEAL) as u64;
        // One look tells whether they rise, and whether each is above the one before.
        let (mut last, mut rising, mut full) = (0, true, true);
        for (at, start) in starts.as_chunks().0.iter().map(|start| place(*start)).enumerate() {
            rising &= last <= start;
            full &= at == 0 || last < start;
            last = start;
        }
        let sound = rising && last == vectors && end == source.len();
        sound.then(|| Self {
            source,
            starts,
            full,
            signs,
            body,
            whole: OnceLock::new(),
            kept_signs: OnceLock::new(),
            leads: OnceLock::new(),
        })
    }

    /// Whether a section is encoded.
    #[inline(always)]
    pub fn has(&self, number: u32) -> bool {
        let (start, end) = self.span(number);
        start < end
    }

    /// How many sections of a run are encoded.
    pub fn encoded(&self, first: u32, count: u32) -> usize {
        if self.full { count as usize } else { (first..first + count).filter(|number| self.has(*number)).count() }
    }

    /// Where each section's vectors start, and the end.
    pub fn starts(&self) -> &[Start] {
        self.starts.as_chunks().0
    }

    /// How many sections there are.
    pub fn sections(&self) -> u32 {
        self.starts().len() as u32 - 1
    }

    /// The first vector of a section, and the first behind.
    #[inline(always)]
    fn span(&self, number: u32) -> (usize, usize) {
        let starts = &self.starts()[number as usize..number as usize + 2];
        (place(starts[0]), place(starts[1]))
    }

    /// Whether every section is encoded.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The signs of all vectors, read and checked: into a buffer, or once for all if more questions are to come.
    pub fn signs<'v>(&'v self, keep: bool, buffer: &'v mut Vec<u8>) -> Result<&'v [u8], Damage> {
        if let Some(kept) = self.kept_signs.get() {
            return Ok(kept);
        }
        let size = (self.body - self.signs) as usize;
        if keep {
            let read = self.source.read_sealed(self.signs, size)?.into_owned();
            return Ok(self.kept_signs.get_or_init(|| read));
        }
        self.source.read_sealed_into(self.signs, size, buffer)
    }

    /// The leading numbers of all vectors, to find the nearest by.
    pub fn leads(&self) -> Result<&Leads, Damage> {
        if let Some(leads) = self.leads.get() {
            return Ok(leads);
        }
        let made = Leads::of(self)?;
        Ok(self.leads.get_or_init(|| made))
    }

    /// Where the block of a section lies, and its length with its seal.
    #[inline(always)]
    fn range(&self, number: u32) -> (usize, usize) {
        let at = number as usize;
        let (start, end) = self.span(number);
        (start * VECTOR + at * SEAL, (end - start) * VECTOR + SEAL)
    }

    /// The block of a section within bytes that begin at `start`.
    #[inline(always)]
    pub fn within<'b>(&self, bytes: &'b [u8], start: usize, number: u32) -> &'b [u8] {
        let (from, len) = self.range(number);
        &bytes[from - start..from - start + len - SEAL]
    }

    /// The block of one section.
    pub fn block(&self, number: u32) -> Result<Block, Damage> {
        let (start, len) = self.range(number);
        if let Some(whole) = self.whole.get() {
            return Ok(open_sealed(&whole[start..start + len])?.to_vec());
        }
        Ok(self.source.read_sealed(self.body + start as u64, len)?.into_owned())
    }

    /// The blocks of a run of sections as they lie, checked, and where they begin.
    pub fn blocks(&self, first: u32, count: u32) -> Result<(Cow<'_, [u8]>, usize), Damage> {
        let (start, (last, len)) = (self.range(first).0, self.range(first + count - 1));
        let end = last + len;
        if let Some(whole) = self.whole.get() {
            return Ok((Cow::Borrowed(&whole[start..end]), start));
        }
        let bytes = self.source.read(self.body + start as u64, end - start)?;
        for number in first..first + count {
            let (from, len) = self.range(number);
            open_sealed(&bytes[from - start..from - start + len])?;
        }
        Ok((bytes, start))
    }

    /// Reads and checks everything once, and gives it.
    pub fn whole(&self) -> Result<&[u8], Damage> {
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let len = usize::try_from(self.source.len() - self.body).map_err(|_| Damage::Short)?;
        let whole = self.source.read(self.body, len)?.into_owned();
        for number in 0..self.sections() {
            let (start, len) = self.range(number);
            open_sealed(&whole[start..start + len])?;
        }
        // Another thread may be first; its bytes are the same.
        Ok(self.whole.get_or_init(|| whole))
    }
}

/// The blocks of a segment: those it has, those known by their text, and up to `limit` new ones.
/// Says how many living sections are still without.
pub fn complete(
    segment: &Segment,
    has: Option<&Vectors>,
    known: &mut HashMap<u64, Block>,
    alive: &dyn Fn(u32) -> bool,
    limit: &mut usize,
) -> Result<(Vec<Block>, usize), Damage> {
    let rows = segment.rows(0, segment.sections())?;
    let mut blocks = vec![Block::new(); rows.len()];
    let mut wanted: Vec<usize> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        match has.filter(|vectors| vectors.has(number as u32)) {
            Some(vectors) => blocks[number] = vectors.block(number as u32)?,
            None if !alive(number as u32) => {}
            None => match known.get(&row.text) {
                Some(block) => blocks[number].clone_from(block),
                None => wanted.push(number),
            },
        }
    }
    // Equal texts are encoded once.
    let mut firsts: Vec<usize> = wanted.clone();
    let mut met_texts = std::collections::HashSet::new();
    firsts.retain(|number| met_texts.insert(rows[*number].text));
    if let Some(encoder) = Encoder::built_in() {
        firsts.truncate(*limit);
        *limit -= firsts.len();
        let mut met = Met::default();
        for group in firsts.chunks(TOGETHER) {
            let text = |number: &usize| segment.record(&rows[*number]).map(|(_, text)| text);
            let texts = group.iter().map(text).collect::<Result<Vec<_>, _>>()?;
            for (number, block) in group.iter().zip(encode(encoder, &texts, &mut met)) {
                known.insert(rows[*number].text, block);
            }
        }
    }
    let mut without = 0;
    for number in wanted {
        let row: &Row = &rows[number];
        match known.get(&row.text) {
            Some(block) => blocks[number].clone_from(block),
            None => without += 1,
        }
    }
    Ok((blocks, without))
}
