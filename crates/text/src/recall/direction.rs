//! A question's direction, and how near the sections of a scope lie to it.
//!
//! Up to some size all sections are compared with it. In a huge project a scan over the signs of the
//! vectors finds some hundreds worth comparing. Which of the two is decided by the scope alone, and
//! neither depends on how the index came about.

use std::borrow::Cow;

use super::Damage;
use super::bytes::SEAL;
use super::encoder::{DIMENSIONS, Encoder};
use super::meaning::Lengths;
use super::nearest::{Best, Seek};
use super::pool::top;
use super::scope::{Scope, Slot};
use super::vectors::{SIGNS, VECTOR, Vectors, dot_stored, signs, split};
use super::wide::{Width, Work, wide};

/// Sections that are all compared; in a larger scope their signs are scanned first.
/// In a test of this crate both ways must be gone with few sections.
const COMPARED: u32 = if cfg!(test) { 120 } else { 60_000 };
/// Sections that a scan over signs leaves to be compared.
const SCANNED: usize = if cfg!(test) { 40 } else { 1_000 };
/// Sections taken up for their meaning alone.
const SEEDS: usize = 60;
const COARSE: f32 = 4096.0;
/// Vectors that are compared at a time.
const AT_A_TIME: usize = 4;
/// Stands for the nearness of a section's nearest part until it is known how near the whole lies, which is its only part.
const ONE_PART: f32 = f32::NEG_INFINITY;

/// A question's direction, ready to be compared with the vectors of a scope's segments.
pub struct Direction<'i> {
    exact: Vec<f32>,
    coarse: Vec<i16>,
    vectors: Vec<Option<&'i Vectors>>,
    /// More questions are to come: what all of them read is kept.
    keep: bool,
    /// Kept with the sections, if the question is asked of all.
    pub lengths: Option<&'i Lengths>,
}

/// What the encoder makes of some sections.
pub struct Meanings {
    /// The nearest part of each to the question; none if it is not encoded.
    pub nearest: Vec<Option<f32>>,
    /// How near each lies as a whole.
    pub near_as_whole: Vec<f32>,
    /// Each section as a whole, as it is stored, one after the other; zeros where it is not encoded. Zeros fill up the last four.
    wholes: Vec<u8>,
}

impl Meanings {
    /// A section as a whole, as it is stored.
    #[inline(always)]
    pub fn whole(&self, index: usize) -> &[u8] {
        whole(&self.wholes, index)
    }

    /// The inner product of each section as a whole with something.
    #[inline(always)]
    pub fn dot_wholes<W: Width>(&self, lanes: W, values: &[f32]) -> Vec<f32> {
        let mut products = vec![0.0f32; self.wholes.len() / VECTOR];
        for (at, products) in products.as_chunks_mut::<AT_A_TIME>().0.iter_mut().enumerate() {
            *products = dot_stored(lanes, values, four(&self.wholes, at * AT_A_TIME));
        }
        products
    }
}

#[inline(always)]
fn whole(wholes: &[u8], index: usize) -> &[u8] {
    &wholes[index * VECTOR..(index + 1) * VECTOR]
}

/// Four wholes that lie side by side.
#[inline(always)]
fn four(wholes: &[u8], first: usize) -> [&[u8]; AT_A_TIME] {
    [whole(wholes, first), whole(wholes, first + 1), whole(wholes, first + 2), whole(wholes, first + 3)]
}

impl<'i> Direction<'i> {
    /// The direction of a question.
    pub fn new(encoder: &Encoder, question: &str, vectors: Vec<Option<&'i Vectors>>, keep: bool, lengths: Option<&'i Lengths>) -> Self {
        Self { keep, lengths, ..Self::of(encoder.encode(question), vectors) }
    }

    /// A direction that is known.
    pub fn of(exact: Vec<f32>, vectors: Vec<Option<&'i Vectors>>) -> Self {
        let coarse = exact.iter().map(|value| (value * COARSE).round() as i16).collect();
        Self { exact, coarse, vectors, keep: false, lengths: None }
    }

    /// How many sections of the scope are encoded.
    pub fn covers(&self, scope: &Scope) -> usize {
        if self.vectors.iter().all(|vectors| vectors.is_some_and(Vectors::is_full)) {
            return scope.sections() as usize;
        }
        let encoded = |(at, first, count, _): (usize, u32, u32, Slot)| self.vectors[at].map_or(0, |vectors| vectors.encoded(first, count));
        scope.stretches().into_iter().map(encoded).sum()
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

    /// The best of all sections, and some that are not.
    fn nearest_of_all(&self, scope: &Scope) -> Result<Vec<(f32, Slot)>, Damage> {
        let mut best = Best::new(SEEDS);
        for (at, first, count, slot) in scope.stretches() {
            if let Some(vectors) = self.vectors[at] {
                wide(Seek { direction: self, vectors, whole: vectors.whole()?, first, count, slot, best: &mut best });
            }
        }
        Ok(best.found)
    }

    /// The sections whose signs agree best with the question's, in the order of slots.
    fn scan(&self, scope: &Scope) -> Result<Vec<Slot>, Damage> {
        let own = words(&signs(self.exact.iter().map(|value| *value > 0.0)));
        let mut close = Close::default();
        let whole = scope.is_whole();
        for (at, vectors) in self.vectors.iter().enumerate() {
            let Some(vectors) = vectors else { continue };
            let base = scope.base(at);
            vectors.each_signs(self.keep, |first, count, signs| {
                let living = |number: u32| whole || scope.is_alive(base + number);
                wide(Scan { own, signs, first, counts: vectors.counts(first, count), slot: base + first, living, close: &mut close });
            })?;
        }
        let close = close.found.into_iter().filter(|(apart, _)| *apart <= close.limit);
        let close = close.map(|(apart, slot)| (-(apart as f32), slot)).collect();
        let mut slots: Vec<Slot> = top(scope, close, SCANNED).into_iter().map(|(_, slot)| slot).collect();
        slots.sort_unstable();
        Ok(slots)
    }

    /// What the encoder makes of some sections, given in the order of slots.
    pub fn meanings(&self, scope: &Scope, slots: &[Slot]) -> Result<Meanings, Damage> {
        let room = slots.len().next_multiple_of(AT_A_TIME);
        let wholes = Vec::with_capacity(room * VECTOR);
        let mut meanings = Meanings { nearest: vec![None; slots.len()], near_as_whole: vec![0.0; room], wholes };
        // Where all of them are, before any is read.
        let mut runs = Vec::new();
        for run in scope.side_by_side(slots) {
            let ((at, _, first), count) = (scope.place(run[0]), run.len() as u32);
            runs.push(match self.vectors[at] {
                Some(vectors) => (vectors.blocks(first, count)?, Cow::Borrowed(vectors.counts(first, count))),
                None => (Cow::default(), Cow::Owned(vec![0; run.len()])),
            });
        }
        wide(Read { direction: self, runs: &runs, nearest: &mut meanings.nearest, wholes: &mut meanings.wholes });
        meanings.wholes.resize(room * VECTOR, 0);
        wide(CompareWholes { direction: self, wholes: &meanings.wholes, near: &mut meanings.near_as_whole });
        for (nearest, near) in meanings.nearest.iter_mut().zip(&meanings.near_as_whole) {
            if *nearest == Some(ONE_PART) {
                *nearest = Some(near.max(-1.0));
            }
        }
        Ok(meanings)
    }

    /// How near a stored vector lies.
    #[inline(always)]
    pub fn nearness_of<W: Width>(&self, lanes: W, vector: &[u8]) -> f32 {
        let (scale, codes) = split(vector);
        self.scaled(lanes.product(codes, &self.coarse), scale)
    }

    /// The direction itself.
    #[inline(always)]
    pub fn exact(&self) -> &[f32] {
        &self.exact
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

/// Sections that lie side by side: their blocks, and how many vectors each has.
type SideBySide<'r> = (Cow<'r, [u8]>, Cow<'r, [u8]>);

/// Reads the vectors of sections, run by run.
struct Read<'r> {
    direction: &'r Direction<'r>,
    runs: &'r [SideBySide<'r>],
    nearest: &'r mut [Option<f32>],
    wholes: &'r mut Vec<u8>,
}

impl Work for Read<'_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, lanes: W) {
        let mut done = 0;
        for (at, (blocks, counts)) in self.runs.iter().enumerate() {
            if let Some((next, _)) = self.runs.get(at + 1) {
                lanes.fetch(next);
            }
            let mut rest = &blocks[..];
            for (count, nearest) in counts.iter().zip(&mut self.nearest[done..]) {
                let (block, others) = rest.split_at(usize::from(*count) * VECTOR);
                rest = others.get(SEAL..).unwrap_or_default();
                if *count > 0 {
                    *nearest = Some(if *count == 1 { ONE_PART } else { self.direction.nearest(lanes, block) });
                    self.wholes.extend_from_slice(&block[..VECTOR]);
                } else {
                    self.wholes.resize(self.wholes.len() + VECTOR, 0);
                }
            }
            done += counts.len();
        }
    }
}

/// Compares wholes with the question, four at a time.
struct CompareWholes<'w> {
    direction: &'w Direction<'w>,
    wholes: &'w [u8],
    near: &'w mut [f32],
}

impl Work for CompareWholes<'_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, lanes: W) {
        for (at, near) in self.near.as_chunks_mut::<AT_A_TIME>().0.iter_mut().enumerate() {
            let [a, b, c, d] = four(self.wholes, at * AT_A_TIME);
            let four = [split(a), split(b), split(c), split(d)];
            let [products] = lanes.few_products([self.direction.coarse()], [four[0].1, four[1].1, four[2].1, four[3].1], &[]);
            for at in 0..AT_A_TIME {
                near[at] = self.direction.scaled(products[at], four[at].0);
            }
        }
    }
}

type SignWords = [u64; SIGNS / 8];

#[inline(always)]
fn words(signs: &[u8; SIGNS]) -> SignWords {
    let mut words = [0; SIGNS / 8];
    for (word, eight) in words.iter_mut().zip(signs.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*eight);
    }
    words
}

/// In how many signs two vectors differ. Written out, so that it is counted in three steps and no loop.
#[inline(always)]
fn apart([a, b, c]: SignWords, [d, e, f]: SignWords) -> u32 {
    (a ^ d).count_ones() + (b ^ e).count_ones() + (c ^ f).count_ones()
}

/// The sections whose signs differ least, as far as they are known.
struct Close {
    /// More signs than these differ in none that is wanted.
    limit: u32,
    /// How many sections differ in so many signs, and in no more than the limit.
    counts: [usize; DIMENSIONS + 1],
    within: usize,
    /// All that were within the limit when they came.
    found: Vec<(u32, Slot)>,
}

impl Default for Close {
    fn default() -> Self {
        Self { limit: DIMENSIONS as u32, counts: [0; DIMENSIONS + 1], within: 0, found: Vec::with_capacity(4 * SCANNED) }
    }
}

impl Close {
    #[inline(never)]
    fn add(&mut self, apart: u32, slot: Slot) {
        self.found.push((apart, slot));
        self.counts[apart as usize] += 1;
        self.within += 1;
        while self.within - self.counts[self.limit as usize] >= SCANNED {
            self.within -= self.counts[self.limit as usize];
            self.limit -= 1;
        }
        if self.found.len() >= 4 * self.within.max(SCANNED) {
            self.found.retain(|(apart, _)| *apart <= self.limit);
        }
    }
}

/// Counts, for every living section of a batch, the signs that differ.
struct Scan<'s, L> {
    own: SignWords,
    signs: &'s [u8],
    first: u32,
    counts: &'s [u8],
    slot: Slot,
    living: L,
    close: &'s mut Close,
}

impl<L: Fn(u32) -> bool> Work for Scan<'_, L> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, _: W) {
        let all = self.signs.as_chunks::<SIGNS>().0;
        // Nearly all sections have one vector, and then there is nothing to count.
        let single = all.len() == self.counts.len() && self.counts.iter().fold(1, |least, count| least.min(*count)) == 1;
        if single {
            for (away, signs) in (0..).zip(all) {
                let differ = apart(words(signs), self.own);
                if differ <= self.close.limit && (self.living)(self.first + away) {
                    self.close.add(differ, self.slot + away);
                }
            }
            return;
        }
        let mut rest = all;
        for (away, count) in (0..).zip(self.counts) {
            let (own, others) = rest.split_at(usize::from(*count));
            rest = others;
            let least = own.iter().map(|signs| apart(words(signs), self.own)).min();
            if let Some(least) = least.filter(|least| *least <= self.close.limit)
                && (self.living)(self.first + away)
            {
                self.close.add(least, self.slot + away);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Of whatever came, in whatever order: those within the limit are the wanted number and their equals.
        #[test]
        fn the_closest_are_kept(apart in prop::collection::vec(0u32..=DIMENSIONS as u32, 0..600), few in 1u32..=DIMENSIONS as u32) {
            let apart: Vec<u32> = apart.into_iter().map(|apart| apart % few).collect();
            let mut close = Close::default();
            for (slot, apart) in (0..).zip(&apart) {
                if *apart <= close.limit {
                    close.add(*apart, slot);
                }
            }
            close.found.retain(|(apart, _)| *apart <= close.limit);
            let mut sorted = apart.clone();
            sorted.sort_unstable();
            let limit = sorted.get(SCANNED - 1).copied().unwrap_or(u32::MAX);
            let wanted: Vec<(u32, Slot)> = apart.into_iter().zip(0..).filter(|(apart, _)| *apart <= limit).collect();
            prop_assert_eq!(close.found, wanted);
        }
    }
}
