//! The vectors of each section, stored in a file beside its segment.
//!
//! ```text
//! header │ how many vectors each section has │ signs of all vectors, in batches │ a block for each section
//! ```
//!
//! A section has one vector for each of its parts, preceded by their mean if there are several. A
//! vector consists of a scale and a byte for each dimension. The sign bits of all vectors are
//! stored separately, so that a huge project can be scanned batch by batch in little memory. The
//! file names its model and segment; a file of another model counts as absent. It may cover only
//! some sections, because encoding may be spread over several updates.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use super::Damage;
use super::bytes::{SEAL, Source, open_sealed, seal};
use super::encoder::{DIMENSIONS, Encoder, Met, identity};
use super::parts::parts;
use super::segment::{Row, Segment};
use super::wide::{Width, Work, add_share, most, normalise, wide};

const MAGIC: &[u8; 8] = b"QUIPUVE4";
const HEADER: usize = 8 + 16 + 8 + 4 + 4 + SEAL;
/// The size of a vector: a scale and a byte for each dimension.
pub const VECTOR: usize = 4 + DIMENSIONS;
pub type Vector = [u8; VECTOR];
/// The size of a vector's sign bits.
pub const SIGNS: usize = DIMENSIONS / 8;
/// The number of sections per call of the encoder.
const TOGETHER: usize = 64;

/// The stored vectors of one section.
pub type Block = Vec<u8>;

/// The start of the vectors is stored for every `STRIDE` sections, and counted in between.
const STRIDE: usize = 32;
/// The number of sections per batch of sign bits. A batch fits the L2 cache.
const BATCH: usize = if cfg!(test) { 2 * STRIDE } else { 2048 };
const _: () = assert!(BATCH.is_multiple_of(STRIDE));

/// Returns the scale and the codes of a stored vector.
#[inline(always)]
pub fn split(vector: &Vector) -> (f32, &[u8]) {
    let (scale, codes) = vector.split_at(4);
    (
        f32::from_le_bytes([scale[0], scale[1], scale[2], scale[3]]),
        codes,
    )
}

/// Adds `share` times a stored vector to a sum.
#[inline(always)]
pub fn add_stored(sum: &mut [f32], vector: &Vector, share: f32) {
    let (scale, codes) = split(vector);
    let share = scale * share;
    sum.iter_mut()
        .zip(codes)
        .for_each(|(sum, code)| *sum += f32::from(*code as i8) * share);
}

/// Quantises the vectors of a section's parts, preceded by their mean if there are several.
struct Store<'v>(&'v [f32]);

impl Work for Store<'_> {
    type Out = Block;

    #[inline(always)]
    fn work<W: Width>(self, _: W) -> Block {
        let parts = self.0.chunks_exact(DIMENSIONS);
        let mut block = Vec::with_capacity((parts.len() + 1) * VECTOR);
        if parts.len() > 1 {
            let mut mean = vec![0.0; DIMENSIONS];
            parts
                .clone()
                .for_each(|vector| add_share(&mut mean, vector, 1.0));
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
    out.extend(
        vector
            .iter()
            .map(|value| (value / most * 127.0).round() as i8 as u8),
    );
}

/// Encodes the parts of each text. Returns a block for each text.
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

/// Returns the bytes of a vector file. The block of a section that is not encoded yet is empty.
pub fn render(stamp: u64, blocks: &[Block]) -> Vec<u8> {
    let vectors = blocks
        .iter()
        .map(|block| block.len() / VECTOR)
        .sum::<usize>();
    let mut out = Vec::with_capacity(HEADER + blocks.len() * 8 + vectors * (VECTOR + SIGNS) + 16);
    out.extend(MAGIC);
    out.extend(identity());
    out.extend(stamp.to_le_bytes());
    out.extend((blocks.len() as u32).to_le_bytes());
    out.extend((vectors as u32).to_le_bytes());
    seal(&mut out, 0);
    let from = out.len();
    out.extend(blocks.iter().map(|block| (block.len() / VECTOR) as u8));
    seal(&mut out, from);
    for batch in blocks.chunks(BATCH) {
        let from = out.len();
        for vector in batch.iter().flat_map(|block| block.as_chunks().0) {
            out.extend(signs(split(vector).1.iter().map(|code| *code as i8 > 0)));
        }
        seal(&mut out, from);
    }
    for block in blocks {
        let from = out.len();
        out.extend(block);
        seal(&mut out, from);
    }
    out
}

/// Packs one sign bit for each dimension.
pub fn signs(positive: impl Iterator<Item = bool>) -> [u8; SIGNS] {
    let mut bits = [0; SIGNS];
    for (at, positive) in positive.enumerate() {
        bits[at / 8] |= u8::from(positive) << (at % 8);
    }
    bits
}

/// Returns the offset of a section's block. `start` is the index of its first vector.
#[inline(always)]
pub fn place(start: usize, number: u32) -> usize {
    start * VECTOR + number as usize * SEAL
}

#[derive(Debug)]
pub struct Vectors {
    source: Source,
    /// The number of vectors of each section.
    counts: Vec<u8>,
    /// The first vector of every `STRIDE`th section.
    starts: Vec<u32>,
    vectors: usize,
    /// True if every section is encoded.
    full: bool,
    /// The offsets of the sign bits and of the blocks.
    signs: u64,
    body: u64,
    /// All blocks, cached once a question has compared everything.
    whole: OnceLock<Vec<u8>>,
    /// All sign bits, cached by a long-running process.
    kept_signs: OnceLock<Vec<u8>>,
}

impl Vectors {
    /// Opens the vectors of a segment. Returns `None` if they belong to another model or segment.
    pub fn open(source: Source, stamp: u64) -> Option<Self> {
        let header = source.read_sealed(0, HEADER).ok()?;
        let four = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four"));
        let fits = &header[..8] == MAGIC
            && header[8..24] == identity()
            && header[24..32] == stamp.to_le_bytes();
        if !fits {
            return None;
        }
        let (sections, vectors) = (four(32) as usize, four(36) as usize);
        drop(header);
        let size = sections + SEAL;
        let counts = source.read_sealed(HEADER as u64, size).ok()?.into_owned();
        let signs = (HEADER + size) as u64;
        let body = signs + (vectors * SIGNS + sections.div_ceil(BATCH) * SEAL) as u64;
        let end = body + (vectors * VECTOR + sections * SEAL) as u64;
        let (mut start, mut starts, mut full) =
            (0u32, Vec::with_capacity(sections / STRIDE + 1), true);
        for some in counts.chunks(STRIDE) {
            starts.push(start);
            start += some.iter().map(|count| u32::from(*count)).sum::<u32>();
            full &= some.iter().fold(1, |least: u8, count| least.min(*count)) > 0;
        }
        let sound = start as usize == vectors && end == source.len();
        let (whole, kept_signs) = (OnceLock::new(), OnceLock::new());
        sound.then_some(Self {
            source,
            counts,
            starts,
            vectors,
            full,
            signs,
            body,
            whole,
            kept_signs,
        })
    }

    /// Returns true if a section is encoded.
    #[inline(always)]
    pub fn has(&self, number: u32) -> bool {
        self.counts[number as usize] > 0
    }

    /// Returns the number of encoded sections in a range.
    pub fn encoded(&self, first: u32, count: u32) -> usize {
        if self.full {
            count as usize
        } else {
            (first..first + count)
                .filter(|number| self.has(*number))
                .count()
        }
    }

    /// Returns the number of vectors of each section in a range.
    #[inline(always)]
    pub fn counts(&self, first: u32, count: u32) -> &[u8] {
        &self.counts[first as usize..(first + count) as usize]
    }

    pub fn sections(&self) -> u32 {
        self.counts.len() as u32
    }

    /// Returns the index of a section's first vector, or the end if `number` is past the last
    /// section.
    #[inline(always)]
    pub fn start(&self, number: u32) -> usize {
        let at = number as usize;
        let Some(start) = self.starts.get(at / STRIDE) else {
            return self.vectors;
        };
        let between = &self.counts[at / STRIDE * STRIDE..at];
        *start as usize
            + between
                .iter()
                .map(|count| usize::from(*count))
                .sum::<usize>()
    }

    /// Returns true if every section is encoded.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Calls `each(first section, count, signs)` for each batch of sign bits, after checking it.
    /// Caches them if `keep` is set.
    pub fn each_signs(
        &self,
        keep: bool,
        mut each: impl FnMut(u32, u32, &[u8]),
    ) -> Result<(), Damage> {
        if keep && self.kept_signs.get().is_none() {
            let size = (self.body - self.signs) as usize;
            let read = self.source.read(self.signs, size)?.into_owned();
            self.each_batch(|_, _, start, len| open_sealed(&read[start..start + len]).map(drop))?;
            // Another thread may have set it first. The bytes are the same.
            let _ = self.kept_signs.set(read);
        }
        let mut buffer = Vec::new();
        self.each_batch(|first, count, start, len| {
            let signs = match self.kept_signs.get() {
                Some(kept) => &kept[start..start + len - SEAL],
                None => {
                    self.source
                        .read_sealed_into(self.signs + start as u64, len, &mut buffer)?
                }
            };
            each(first, count, signs);
            Ok(())
        })
    }

    /// Calls `each(first section, count, offset, length)` for every batch of sign bits. The length
    /// includes the seal.
    fn each_batch(
        &self,
        mut each: impl FnMut(u32, u32, usize, usize) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        for (batch, counts) in self.counts.chunks(BATCH).enumerate() {
            let first = (batch * BATCH) as u32;
            let (start, end) = (self.start(first), self.start(first + counts.len() as u32));
            each(
                first,
                counts.len() as u32,
                start * SIGNS + batch * SEAL,
                (end - start) * SIGNS + SEAL,
            )?;
        }
        Ok(())
    }

    /// Returns the offset of a section's block, and its length including the seal.
    #[inline(always)]
    fn range(&self, number: u32) -> (usize, usize) {
        (
            place(self.start(number), number),
            usize::from(self.counts[number as usize]) * VECTOR + SEAL,
        )
    }

    pub fn block(&self, number: u32) -> Result<Block, Damage> {
        let (start, len) = self.range(number);
        if let Some(whole) = self.whole.get() {
            return Ok(open_sealed(&whole[start..start + len])?.to_vec());
        }
        Ok(self
            .source
            .read_sealed(self.body + start as u64, len)?
            .into_owned())
    }

    /// Returns the stored blocks of consecutive sections, after checking them.
    pub fn blocks(&self, first: u32, count: u32) -> Result<Cow<'_, [u8]>, Damage> {
        let (from, behind) = (self.start(first), self.start(first + count));
        let (start, end) = (place(from, first), place(behind, first + count));
        if let Some(whole) = self.whole.get() {
            return Ok(Cow::Borrowed(&whole[start..end]));
        }
        let bytes = self.source.read(self.body + start as u64, end - start)?;
        self.check(&bytes, first, count)?;
        Ok(bytes)
    }

    /// Checks the blocks of consecutive sections.
    fn check(&self, mut bytes: &[u8], first: u32, count: u32) -> Result<(), Damage> {
        for vectors in self.counts(first, count) {
            let (block, rest) = bytes
                .split_at_checked(usize::from(*vectors) * VECTOR + SEAL)
                .ok_or(Damage::Short)?;
            open_sealed(block)?;
            bytes = rest;
        }
        Ok(())
    }

    /// Reads and checks all blocks once.
    pub fn whole(&self) -> Result<&[u8], Damage> {
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let len = usize::try_from(self.source.len() - self.body).map_err(|_| Damage::Short)?;
        let whole = self.source.read(self.body, len)?.into_owned();
        self.check(&whole, 0, self.sections())?;
        // Another thread may have set it first. The bytes are the same.
        Ok(self.whole.get_or_init(|| whole))
    }
}

/// Returns the blocks of a segment: existing ones, ones known by their text, and up to `limit` new
/// ones. Also returns the number of live sections that are still not encoded.
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
        known.extend(encode_rows(encoder, segment, &rows, &firsts)?);
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

/// The most threads that encode at a time.
const MOST_THREADS: usize = 8;

/// Encodes the texts of some rows, in as many threads as there are processors. A text's vectors do
/// not depend on the texts that are encoded with it.
fn encode_rows(
    encoder: &Encoder,
    segment: &Segment,
    rows: &[Row],
    numbers: &[usize],
) -> Result<Vec<(u64, Block)>, Damage> {
    let encode_group = |group: &[usize], met: &mut Met| {
        let text = |number: &usize| segment.record(&rows[*number]).map(|(_, text)| text);
        let texts = group.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let keys = group.iter().map(|number| rows[*number].text);
        Ok(keys.zip(encode(encoder, &texts, met)).collect::<Vec<_>>())
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors
        .min(MOST_THREADS)
        .min(numbers.len().div_ceil(TOGETHER))
        .max(1);
    // Each thread takes every n-th group, with a cache of its own.
    let encode_share = |first: usize| {
        let mut met = Met::default();
        let groups = numbers.chunks(TOGETHER).skip(first).step_by(threads);
        let blocks = groups.map(|group| encode_group(group, &mut met));
        Ok(blocks.collect::<Result<Vec<_>, Damage>>()?.concat())
    };
    if threads == 1 {
        return encode_share(0);
    }
    std::thread::scope(|scope| {
        let share = |first: usize| scope.spawn(move || encode_share(first));
        let running: Vec<_> = (0..threads).map(share).collect();
        let mut all = Vec::new();
        for thread in running {
            let blocks = thread.join();
            all.extend(blocks.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}
