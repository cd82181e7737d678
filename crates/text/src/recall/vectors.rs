//! What the encoder made of each section, kept beside its segment.
//!
//! A section has one vector for each of its parts and, if there are several, their mean first. The
//! file names the model and the segment it belongs to; a file of another model counts as absent. It
//! may cover only some sections: encoding is slow, so it may be spread over several updates.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::Damage;
use super::bytes::{SEAL, Source, open_sealed, seal};
use super::encoder::{DIMENSIONS, Encoder, identity};
use super::parts::parts;
use super::pool::top;
use super::rank::{Meaning, dot, normalise};
use super::scope::{Scope, Slot};
use super::segment::Segment;

const MAGIC: &[u8; 8] = b"QUIPUVEC";
const HEADER: usize = 8 + 16 + 8 + 4 + 4 + SEAL;
/// One vector: a scale and a byte for each dimension.
const VECTOR: usize = 4 + DIMENSIONS;
/// Up to so many vectors are all compared with a question; beyond, only those of likely sections.
const SCANNED: usize = 100_000;
/// Sections taken up for their meaning alone.
const SEEDS: usize = 60;

/// The vectors of one section as they are stored.
pub type Block = Vec<u8>;

/// Encodes a text, part by part.
pub fn encode(encoder: &Encoder, text: &str) -> Block {
    let mut found: Vec<Vec<f32>> = parts(text).iter().map(|part| encoder.encode(part)).collect();
    if found.len() > 1 {
        let mut mean = vec![0.0; DIMENSIONS];
        for vector in &found {
            mean.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
        }
        normalise(&mut mean);
        found.insert(0, mean);
    }
    let mut block = Vec::with_capacity(found.len() * VECTOR);
    for vector in &found {
        let most = vector.iter().fold(1e-9f32, |most, value| most.max(value.abs()));
        block.extend((most / 127.0).to_le_bytes());
        block.extend(vector.iter().map(|value| (value / most * 127.0).round() as i8 as u8));
    }
    block
}

/// The bytes of a vector file: a block for each section, empty where it is not encoded yet.
pub fn render(stamp: u64, blocks: &[Block]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(identity());
    out.extend(stamp.to_le_bytes());
    out.extend((blocks.len() as u32).to_le_bytes());
    out.extend((blocks.iter().map(|block| block.len() / VECTOR).sum::<usize>() as u32).to_le_bytes());
    seal(&mut out, 0);
    let from = out.len();
    let mut start = 0u32;
    for block in blocks {
        out.extend(start.to_le_bytes());
        start += (block.len() / VECTOR) as u32;
    }
    out.extend(start.to_le_bytes());
    seal(&mut out, from);
    for block in blocks {
        let from = out.len();
        out.extend(block);
        seal(&mut out, from);
    }
    out
}

/// An opened vector file.
#[derive(Debug)]
pub struct Vectors {
    source: Source,
    /// The first vector of each section, and the end.
    starts: Vec<u32>,
    body: u64,
    /// Everything, once a question has compared everything.
    whole: OnceLock<Vec<u8>>,
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
        let starts: Vec<u32> = source
            .read_sealed(HEADER as u64, size)
            .ok()?
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes(four.try_into().expect("four")))
            .collect();
        let body = (HEADER + size) as u64;
        let whole = body + (vectors * VECTOR + sections * SEAL) as u64;
        let sound = starts.is_sorted() && starts.last() == Some(&(vectors as u32));
        (sound && whole == source.len()).then(|| Self { source, starts, body, whole: OnceLock::new() })
    }

    /// How many vectors there are.
    pub fn count(&self) -> usize {
        self.starts.last().map_or(0, |end| *end as usize)
    }

    /// Whether a section is encoded.
    pub fn has(&self, number: u32) -> bool {
        let at = number as usize;
        self.starts[at] < self.starts[at + 1]
    }

    fn range(&self, number: u32) -> (usize, usize) {
        let at = number as usize;
        let (start, end) = (self.starts[at] as usize, self.starts[at + 1] as usize);
        (start * VECTOR + at * SEAL, (end - start) * VECTOR + SEAL)
    }

    /// The block of one section.
    pub fn block(&self, number: u32) -> Result<Block, Damage> {
        let (start, len) = self.range(number);
        if let Some(whole) = self.whole.get() {
            return Ok(open_sealed(&whole[start..start + len])?.to_vec());
        }
        Ok(self.source.read_sealed(self.body + start as u64, len)?.into_owned())
    }

    fn with_block<T>(&self, number: u32, read: impl FnOnce(&[u8]) -> T) -> Result<T, Damage> {
        let (start, len) = self.range(number);
        match self.whole.get() {
            Some(whole) => Ok(read(&whole[start..start + len - SEAL])),
            None => Ok(read(&self.source.read_sealed(self.body + start as u64, len)?)),
        }
    }

    /// Reads and checks everything once.
    fn load(&self) -> Result<(), Damage> {
        if self.whole.get().is_none() {
            let len = usize::try_from(self.source.len() - self.body).map_err(|_| Damage::Short)?;
            let whole = self.source.read(self.body, len)?.into_owned();
            for number in 0..self.starts.len() as u32 - 1 {
                let (start, len) = self.range(number);
                open_sealed(&whole[start..start + len])?;
            }
            // Another thread may have been first; its bytes are the same.
            let _ = self.whole.set(whole);
        }
        Ok(())
    }
}

/// A question's direction, ready to be compared.
pub struct Direction<'i> {
    exact: Vec<f32>,
    coarse: Vec<i16>,
    vectors: Vec<Option<&'i Vectors>>,
}

const COARSE: f32 = 4096.0;

impl<'i> Direction<'i> {
    /// The direction of a question, against the vectors of a scope's segments.
    pub fn new(encoder: &Encoder, question: &str, vectors: Vec<Option<&'i Vectors>>) -> Self {
        let exact = encoder.encode(question);
        let coarse = exact.iter().map(|value| (value * COARSE).round() as i16).collect();
        Self { exact, coarse, vectors }
    }

    /// How many sections of the scope have vectors.
    pub fn covers(&self, scope: &Scope) -> usize {
        let has = |slot: &Slot| {
            let (at, _, number) = scope.place(*slot);
            self.vectors[at].is_some_and(|vectors| vectors.has(number))
        };
        scope.living().filter(has).count()
    }

    fn nearest(&self, block: &[u8]) -> f32 {
        let several = block.len() > VECTOR;
        let parts = block.chunks_exact(VECTOR).skip(usize::from(several));
        parts.map(|vector| self.compare(vector)).fold(-1.0, f32::max)
    }

    fn compare(&self, vector: &[u8]) -> f32 {
        let (scale, codes) = vector.split_at(4);
        let scale = f32::from_le_bytes(scale.try_into().expect("four"));
        let sum: i32 = codes.iter().zip(&self.coarse).map(|(a, b)| i32::from(*a as i8) * i32::from(*b)).sum();
        sum as f32 * scale / COARSE
    }
}

impl Meaning for Direction<'_> {
    fn seeds(&self, scope: &Scope) -> Result<Vec<Slot>, Damage> {
        if self.vectors.iter().flatten().map(|vectors| vectors.count()).sum::<usize>() > SCANNED {
            return Ok(Vec::new());
        }
        for vectors in self.vectors.iter().flatten() {
            vectors.load()?;
        }
        let mut near = Vec::with_capacity(scope.sections() as usize);
        for slot in scope.living() {
            let (at, _, number) = scope.place(slot);
            if let Some(vectors) = self.vectors[at].filter(|vectors| vectors.has(number)) {
                near.push((vectors.with_block(number, |block| self.nearest(block))?, slot));
            }
        }
        Ok(top(scope, near, SEEDS).into_iter().map(|(_, slot)| slot).collect())
    }

    fn of(&self, scope: &Scope, slot: Slot) -> Result<Option<(f32, Vec<f32>)>, Damage> {
        let (at, _, number) = scope.place(slot);
        let Some(vectors) = self.vectors[at].filter(|vectors| vectors.has(number)) else {
            return Ok(None);
        };
        vectors
            .with_block(number, |block| {
                let (scale, codes) = block[..VECTOR].split_at(4);
                let scale = f32::from_le_bytes(scale.try_into().expect("four"));
                let whole = codes.iter().map(|code| f32::from(*code as i8) * scale).collect();
                (self.nearest(block), whole)
            })
            .map(Some)
    }

    fn nearness(&self, vector: &[f32]) -> f32 {
        dot(&self.exact, vector)
    }
}

/// The blocks of a segment: those it has, those known by their text, and up to `limit` new ones.
/// Says how many living sections are still without.
pub fn complete(
    segment: &Segment,
    has: Option<&Vectors>,
    known: &HashMap<u64, Block>,
    alive: &dyn Fn(u32) -> bool,
    limit: &mut usize,
) -> Result<(Vec<Block>, usize), Damage> {
    let mut blocks = Vec::with_capacity(segment.sections() as usize);
    let mut without = 0;
    for (number, row) in (0..).zip(segment.rows(0, segment.sections())?) {
        let block = match has.filter(|vectors| vectors.has(number)) {
            Some(vectors) => vectors.block(number)?,
            None if !alive(number) => Block::new(),
            None => match (known.get(&row.text), Encoder::built_in()) {
                (Some(block), _) => block.clone(),
                (None, Some(encoder)) if *limit > 0 => {
                    *limit -= 1;
                    encode(encoder, &segment.record(&row)?.1)
                }
                _ => {
                    without += 1;
                    Block::new()
                }
            },
        };
        blocks.push(block);
    }
    Ok((blocks, without))
}
