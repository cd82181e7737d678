//! A question's direction, and how near the sections of a scope lie to it.
//!
//! Up to some size all sections are compared with it. In a huge project a scan over the signs of the
//! vectors finds some hundreds worth comparing. Which of the two is decided by the scope alone, and
//! neither depends on how the index came about.

use super::Damage;
use super::encoder::{DIMENSIONS, Encoder};
use super::nearest::{Best, Seek, reach};
use super::pool::top;
use super::scope::{Scope, Slot};
use super::vectors::{SIGNS, Start, VECTOR, Vectors, place, signs, split};
use super::wide::{Width, Work, dot, wide};

/// Sections that are all compared; in a larger scope their signs are scanned first.
/// In a test of this crate both ways must be gone with few sections.
const COMPARED: u32 = if cfg!(test) { 120 } else { 60_000 };
/// Sections that a scan over signs leaves to be compared.
const SCANNED: usize = if cfg!(test) { 40 } else { 1_000 };
/// Sections taken up for their meaning alone.
const SEEDS: usize = 60;
const COARSE: f32 = 4096.0;

/// A question's direction, ready to be compared with the vectors of a scope's segments.
pub struct Direction<'i> {
    exact: Vec<f32>,
    coarse: Vec<i16>,
    vectors: Vec<Option<&'i Vectors>>,
    /// More questions are to come: what all of them read is kept.
    keep: bool,
}

/// What the encoder makes of some sections.
pub struct Meanings {
    /// The nearest part of each to the question; none if it is not encoded.
    pub nearest: Vec<Option<f32>>,
    /// Each section as a whole, as it is stored, one after the other; zeros where it is not encoded.
    wholes: Vec<u8>,
}

impl Meanings {
    /// A section as a whole, as it is stored.
    #[inline(always)]
    pub fn whole(&self, index: usize) -> &[u8] {
        &self.wholes[index * VECTOR..(index + 1) * VECTOR]
    }
}

impl<'i> Direction<'i> {
    /// The direction of a question.
    pub fn new(encoder: &Encoder, question: &str, vectors: Vec<Option<&'i Vectors>>, keep: bool) -> Self {
        Self { keep, ..Self::of(encoder.encode(question), vectors) }
    }

    /// A direction that is known.
    pub fn of(exact: Vec<f32>, vectors: Vec<Option<&'i Vectors>>) -> Self {
        let coarse = exact.iter().map(|value| (value * COARSE).round() as i16).collect();
        Self { exact, coarse, vectors, keep: false }
    }

    /// How many sections of the scope are encoded.
    pub fn covers(&self, scope: &Scope) -> usize {
        if self.vectors.iter().all(|vectors| vectors.is_some_and(Vectors::is_full)) {
            return scope.sections() as usize;
        }
        let encoded = |(at, first, count, _): (usize, u32, u32, Slot)| self.vectors[at].map_or(0, |vectors| vectors.encoded(first, count));
        scope.runs().map(encoded).sum()
    }

    /// The best sections by meaning alone.
    pub fn seeds(&self, scope: &Scope) -> Result<Vec<Slot>, Damage> {
        let near = if scope.sections() <= COMPARED {
            self.nearest_of_all(scope)?
        } else {
            let slots = self.scan(scope)?;
            let nearest = self.meanings(scope, &slots)?.nearest;
            slots.into_iter().zip(nearest).filter_map(|(slot, near)| Some((near?, slot))).collect()
        };
        Ok(top(scope, near, SEEDS).into_iter().map(|(_, slot)| slot).collect())
    }

    /// All sections, compared; or the best of them, where a process is asked again and again.
    fn nearest_of_all(&self, scope: &Scope) -> Result<Vec<(f32, Slot)>, Damage> {
        let mut best = Best::new(SEEDS);
        let reach = reach(&self.coarse);
        for (at, first, count, slot) in scope.runs() {
            let Some(vectors) = self.vectors[at] else { continue };
            let (direction, whole) = (self, vectors.whole()?);
            if self.keep {
                let leads = vectors.leads()?;
                wide(Seek { direction, vectors, leads, whole, reach, first, count, slot, best: &mut best });
            } else {
                wide(Compare { direction, vectors, whole, first, count, slot, near: &mut best.found });
            }
        }
        Ok(best.found)
    }

    /// The sections whose signs agree best with the question's, in the order of slots.
    fn scan(&self, scope: &Scope) -> Result<Vec<Slot>, Damage> {
        let own = words(&signs(self.exact.iter().map(|value| *value > 0.0)));
        let mut apart = vec![u8::MAX; scope.slots()];
        let mut counts = [0usize; DIMENSIONS + 1];
        let mut buffer = Vec::new();
        for (at, vectors) in self.vectors.iter().enumerate() {
            if let Some(vectors) = vectors {
                let apart = &mut apart[scope.slots_of(at)];
                let living = (!scope.is_whole()).then(|| &scope.owners()[scope.slots_of(at)]);
                let signs = vectors.signs(self.keep, &mut buffer)?;
                wide(Scan { own, signs, starts: vectors.starts(), living, apart, counts: &mut counts });
            }
        }
        let mut limit = 0;
        let mut within = counts[0];
        while within < SCANNED && limit < DIMENSIONS {
            limit += 1;
            within += counts[limit];
        }
        let mut close = Vec::with_capacity(within);
        for (first, some) in (0..).step_by(64).zip(apart.chunks(64)) {
            // Nearly always none of them is close, which is told for all at once.
            if usize::from(some.iter().fold(u8::MAX, |least, apart| least.min(*apart))) <= limit {
                let found = (first..).zip(some).filter(|(_, apart)| usize::from(**apart) <= limit);
                close.extend(found.map(|(slot, apart)| (-f32::from(*apart), slot)));
            }
        }
        let mut slots: Vec<Slot> = top(scope, close, SCANNED).into_iter().map(|(_, slot)| slot).collect();
        slots.sort_unstable();
        Ok(slots)
    }

    /// What the encoder makes of some sections, given in the order of slots.
    pub fn meanings(&self, scope: &Scope, slots: &[Slot]) -> Result<Meanings, Damage> {
        let mut meanings = Meanings { nearest: vec![None; slots.len()], wholes: Vec::with_capacity(slots.len() * VECTOR) };
        let mut done = 0;
        for run in slots.chunk_by(|a, b| a + 1 == *b && scope.side_by_side(*a, *b)) {
            let (at, _, first) = scope.place(run[0]);
            if let Some(vectors) = self.vectors[at] {
                let (blocks, start) = vectors.blocks(first, run.len() as u32)?;
                let nearest = &mut meanings.nearest[done..done + run.len()];
                wide(Read { direction: self, vectors, blocks: &blocks, start, first, nearest, wholes: &mut meanings.wholes });
            }
            done += run.len();
            meanings.wholes.resize(done * VECTOR, 0);
        }
        Ok(meanings)
    }

    /// How near a vector lies, of whatever length it is.
    #[inline(always)]
    pub fn nearness(&self, vector: &[f32]) -> f32 {
        dot(&self.exact, vector)
    }

    /// How near a stored vector lies.
    #[inline(always)]
    pub fn nearness_of<W: Width>(&self, lanes: W, vector: &[u8]) -> f32 {
        let (scale, codes) = split(vector);
        self.scaled(lanes.product(codes, &self.coarse), scale)
    }

    /// The direction in whole numbers.
    #[inline(always)]
    pub fn coarse(&self) -> &[i16] {
        &self.coarse
    }

    /// The nearness that a product of whole numbers stands for.
    #[inline(always)]
    pub fn scaled(&self, product: i32, scale: f32) -> f32 {
        product as f32 * scale / COARSE
    }

    #[inline(always)]
    fn nearest<W: Width>(&self, lanes: W, block: &[u8]) -> f32 {
        let several = block.len() > VECTOR;
        let mut best = -1.0f32;
        for vector in block.chunks_exact(VECTOR).skip(usize::from(several)) {
            best = best.max(self.nearness_of(lanes, vector));
        }
        best
    }
}

#[cfg(test)]
impl Direction<'_> {
    /// How near the nearest part of a block lies.
    pub fn nearest_in(&self, block: &[u8]) -> f32 {
        struct One<'o>(&'o Direction<'o>, &'o [u8]);
        impl Work for One<'_> {
            type Out = f32;
            #[inline(always)]
            fn work<W: Width>(self, lanes: W) -> f32 {
                self.0.nearest(lanes, self.1)
            }
        }
        wide(One(self, block))
    }
}

/// Compares a run of sections.
struct Compare<'c> {
    direction: &'c Direction<'c>,
    vectors: &'c Vectors,
    whole: &'c [u8],
    first: u32,
    count: u32,
    slot: Slot,
    near: &'c mut Vec<(f32, Slot)>,
}

impl Work for Compare<'_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, lanes: W) {
        for away in 0..self.count {
            let number = self.first + away;
            if self.vectors.has(number) {
                let block = self.vectors.within(self.whole, 0, number);
                self.near.push((self.direction.nearest(lanes, block), self.slot + away));
            }
        }
    }
}

/// Reads the vectors of a run of sections that lie side by side.
struct Read<'r> {
    direction: &'r Direction<'r>,
    vectors: &'r Vectors,
    blocks: &'r [u8],
    start: usize,
    first: u32,
    nearest: &'r mut [Option<f32>],
    wholes: &'r mut Vec<u8>,
}

impl Work for Read<'_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, lanes: W) {
        for (number, nearest) in (self.first..).zip(self.nearest) {
            if self.vectors.has(number) {
                let block = self.vectors.within(self.blocks, self.start, number);
                *nearest = Some(self.direction.nearest(lanes, block));
                self.wholes.extend_from_slice(&block[..VECTOR]);
            } else {
                self.wholes.resize(self.wholes.len() + VECTOR, 0);
            }
        }
    }
}

type SignWords = [u64; SIGNS / 8];

#[inline(always)]
fn words(signs: &[u8]) -> SignWords {
    std::array::from_fn(|at| u64::from_le_bytes(signs[8 * at..8 * at + 8].try_into().expect("eight")))
}

/// Counts, for every living section of a segment, the signs that differ.
struct Scan<'s> {
    own: SignWords,
    signs: &'s [u8],
    starts: &'s [Start],
    /// The owners of the sections, where some are dead or hidden.
    living: Option<&'s [u32]>,
    apart: &'s mut [u8],
    counts: &'s mut [usize; DIMENSIONS + 1],
}

impl Work for Scan<'_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, _: W) {
        for ((number, ends), apart) in self.starts.windows(2).enumerate().zip(self.apart) {
            let all = &self.signs[place(ends[0]) * SIGNS..place(ends[1]) * SIGNS];
            if all.is_empty() || self.living.is_some_and(|owners| owners[number] == super::scope::NOBODY) {
                continue;
            }
            let mut least = u32::MAX;
            for signs in all.chunks_exact(SIGNS) {
                let differ = words(signs).iter().zip(&self.own).map(|(a, b)| (a ^ b).count_ones()).sum();
                least = least.min(differ);
            }
            *apart = least as u8;
            self.counts[least as usize] += 1;
        }
    }
}
