//! The query vector, and the similarity of the sections of a scope to it.
//!
//! In a scope of up to `COMPARED` sections all vectors are compared. In a larger one, a scan over
//! the sign bits of the vectors first selects about a thousand. Only the size of the scope decides
//! between the two, and neither depends on how the index was built.

use std::borrow::Cow;

use super::Damage;
use super::bytes::SEAL;
use super::encoder::{DIMENSIONS, Encoder};
use super::meaning::Lengths;
use super::nearest::{Best, Seek};
use super::pool::top;
use super::scope::{Scope, Slot};
use super::vectors::{SIGNS, VECTOR, Vector, Vectors, signs, split};
use super::wide::{Width, Work, most, wide};

/// The largest scope in which all sections are compared. Larger scopes are prefiltered by sign
/// bits. Tests use a small value so that they cover both paths.
const COMPARED: u32 = if cfg!(test) { 120 } else { 60_000 };
/// The number of sections that the sign scan selects.
const SCANNED: usize = if cfg!(test) { 40 } else { 1_000 };
/// The minimum number of candidates selected by similarity alone.
const SEEDS: usize = 40;
/// The largest component of a quantised query vector. With codes of at most 127, no sum of products
/// overflows 32 bits.
const FINEST: f32 = 32_767.0;
/// The number of vectors that are compared at a time.
pub const AT_A_TIME: usize = 4;
/// The placeholder vector of a section that is not encoded.
static NOT_ENCODED: Vector = [0; VECTOR];

/// A quantised vector, for integer products with stored vectors.
pub struct Rounded {
    numbers: [i16; DIMENSIONS],
    /// The value of one quantisation step.
    unit: f32,
}

impl Rounded {
    #[inline(always)]
    pub fn of(exact: &[f32]) -> Self {
        let most = most(exact, 1e-9);
        let scale = FINEST / most;
        let mut numbers = [0; DIMENSIONS];
        numbers
            .iter_mut()
            .zip(exact)
            .for_each(|(number, value)| *number = (value * scale).round() as i16);
        Self {
            numbers,
            unit: most / FINEST,
        }
    }

    #[inline(always)]
    fn scaled(&self, product: i32, scale: f32) -> f32 {
        product as f32 * (scale * self.unit)
    }

    /// Returns the dot product with a stored vector.
    #[inline(always)]
    pub fn dot<W: Width>(&self, lanes: W, vector: &Vector) -> f32 {
        let (scale, codes) = split(vector);
        self.scaled(lanes.product(codes, &self.numbers), scale)
    }

    /// Returns the dot products with four stored vectors. Meanwhile prefetches the bytes in
    /// `ahead`.
    #[inline(always)]
    pub fn dot_four<W: Width>(
        &self,
        lanes: W,
        [a, b, c, d]: [&Vector; AT_A_TIME],
        ahead: &[u8],
    ) -> [f32; AT_A_TIME] {
        let four = [split(a), split(b), split(c), split(d)];
        let [sums] = lanes.few_products(
            [&self.numbers[..]],
            [four[0].1, four[1].1, four[2].1, four[3].1],
            ahead,
        );
        let mut products = [0.0; AT_A_TIME];
        for at in 0..AT_A_TIME {
            products[at] = self.scaled(sums[at], four[at].0);
        }
        products
    }

    /// Returns the dot products with some stored vectors. Prefetches the next ones meanwhile.
    #[inline(always)]
    pub fn dot_each<W: Width>(&self, lanes: W, vectors: &[&Vector]) -> Vec<f32> {
        let mut products = Vec::with_capacity(vectors.len());
        let (fours, rest) = vectors.as_chunks::<AT_A_TIME>();
        for (at, four) in fours.iter().enumerate() {
            for vector in fours.get(at + 2).into_iter().flatten() {
                lanes.fetch(*vector);
            }
            products.extend(self.dot_four(lanes, *four, &[]));
        }
        for vector in rest {
            products.push(self.dot(lanes, vector));
        }
        products
    }
}

/// A query vector and the vectors of the scope's segments.
pub struct Direction<'i> {
    exact: Vec<f32>,
    pub rounded: Rounded,
    vectors: Vec<Option<&'i Vectors>>,
    /// More queries are expected, so data that all of them read is cached.
    keep: bool,
    /// Cached context lengths, if the query covers all files.
    pub lengths: Option<&'i Lengths>,
}

/// The similarities of some sections to the query.
pub struct Meanings<'r> {
    /// The similarity of the closest part of each section. `None` if it is not encoded.
    pub nearest: Vec<Option<f32>>,
    /// The similarity of each section as a whole.
    pub near_as_whole: Vec<f32>,
    /// The stored vector of each whole section. Zeros if it is not encoded.
    pub wholes: Vec<&'r Vector>,
}

impl<'i> Direction<'i> {
    /// Encodes a question.
    pub fn new(
        encoder: &Encoder,
        question: &str,
        vectors: Vec<Option<&'i Vectors>>,
        keep: bool,
        lengths: Option<&'i Lengths>,
    ) -> Self {
        Self {
            keep,
            lengths,
            ..Self::of(encoder.encode(question), vectors)
        }
    }

    /// Uses a known vector.
    pub fn of(exact: Vec<f32>, vectors: Vec<Option<&'i Vectors>>) -> Self {
        let rounded = Rounded::of(&exact);
        Self {
            exact,
            rounded,
            vectors,
            keep: false,
            lengths: None,
        }
    }

    /// Returns the number of encoded sections in the scope.
    pub fn covers(&self, scope: &Scope) -> usize {
        if self
            .vectors
            .iter()
            .all(|vectors| vectors.is_some_and(Vectors::is_full))
        {
            return scope.sections() as usize;
        }
        let encoded = |(at, first, count, _): (usize, u32, u32, Slot)| {
            self.vectors[at].map_or(0, |vectors| vectors.encoded(first, count))
        };
        scope.stretches().into_iter().map(encoded).sum()
    }

    /// Returns the best sections by similarity alone.
    pub fn seeds(&self, scope: &Scope, wanted: usize) -> Result<Vec<Slot>, Damage> {
        let count = SEEDS.max(wanted.min(scope.sections() as usize));
        let near = if scope.sections() <= COMPARED {
            self.nearest_of_all(scope, count)?
        } else {
            let slots = self.scan(scope)?;
            let nearest = self.meanings(&self.side_by_side(scope, &slots)?).nearest;
            slots
                .into_iter()
                .zip(nearest)
                .filter_map(|(slot, near)| Some((near?, slot)))
                .collect()
        };
        Ok(top(scope, near, count)
            .into_iter()
            .map(|(_, slot)| slot)
            .collect())
    }

    /// Returns the best sections of all, and possibly some others.
    fn nearest_of_all(&self, scope: &Scope, count: usize) -> Result<Vec<(f32, Slot)>, Damage> {
        let mut best = Best::new(count);
        for (at, first, count, slot) in scope.stretches() {
            if let Some(vectors) = self.vectors[at] {
                wide(Seek {
                    direction: self,
                    vectors,
                    whole: vectors.whole()?,
                    first,
                    count,
                    slot,
                    best: &mut best,
                });
            }
        }
        Ok(best.found)
    }

    /// Returns the sections with the most sign bits in common with the query, in slot order.
    fn scan(&self, scope: &Scope) -> Result<Vec<Slot>, Damage> {
        let own = words(&signs(self.exact.iter().map(|value| *value > 0.0)));
        let mut close = Close::default();
        let whole = scope.is_whole();
        for (at, vectors) in self.vectors.iter().enumerate() {
            let Some(vectors) = vectors else { continue };
            let base = scope.base(at);
            vectors.each_signs(self.keep, |first, count, signs| {
                let living = |number: u32| whole || scope.is_alive(base + number);
                wide(Scan {
                    own,
                    signs,
                    first,
                    counts: vectors.counts(first, count),
                    slot: base + first,
                    living,
                    close: &mut close,
                });
            })?;
        }
        let close = close
            .found
            .into_iter()
            .filter(|(apart, _)| *apart <= close.limit);
        let close = close.map(|(apart, slot)| (-(apart as f32), slot)).collect();
        let mut slots: Vec<Slot> = top(scope, close, SCANNED)
            .into_iter()
            .map(|(_, slot)| slot)
            .collect();
        slots.sort_unstable();
        Ok(slots)
    }

    /// Returns the vectors of some sections, which must be in slot order.
    pub fn side_by_side(
        &self,
        scope: &Scope,
        slots: &[Slot],
    ) -> Result<Vec<SideBySide<'i>>, Damage> {
        let mut runs = Vec::new();
        for run in scope.side_by_side(slots) {
            let ((at, _, first), count) = (scope.place(run[0]), run.len() as u32);
            runs.push(match self.vectors[at] {
                Some(vectors) => (
                    vectors.blocks(first, count)?,
                    Cow::Borrowed(vectors.counts(first, count)),
                ),
                None => (Cow::default(), Cow::Owned(vec![0; run.len()])),
            });
        }
        Ok(runs)
    }

    /// Computes the similarities of some sections.
    pub fn meanings<'r>(&'r self, runs: &'r [SideBySide<'i>]) -> Meanings<'r> {
        wide(Read {
            direction: self,
            runs,
        })
    }

    #[inline(always)]
    fn nearest<W: Width>(&self, lanes: W, block: &[u8]) -> f32 {
        let several = block.len() > VECTOR;
        let mut best = -1.0f32;
        for vector in &block.as_chunks().0[usize::from(several)..] {
            best = best.max(self.rounded.dot(lanes, vector));
        }
        best
    }
}

#[cfg(test)]
impl Direction<'_> {
    /// Returns the similarity of the closest part in a block.
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

/// Adjacent sections: their blocks, and the number of vectors of each.
pub type SideBySide<'i> = (Cow<'i, [u8]>, Cow<'i, [u8]>);

/// Compares the vectors of sections, run by run.
struct Read<'r, 'i> {
    direction: &'r Direction<'i>,
    runs: &'r [SideBySide<'i>],
}

impl<'r> Work for Read<'r, '_> {
    type Out = Meanings<'r>;

    #[inline(always)]
    fn work<W: Width>(self, lanes: W) -> Meanings<'r> {
        let Self { direction, runs } = self;
        let many = runs.iter().map(|(_, counts)| counts.len()).sum();
        let mut wholes: Vec<&Vector> = Vec::with_capacity(many);
        let mut several = Vec::new();
        for (blocks, counts) in runs {
            let mut rest = &blocks[..];
            for count in &counts[..] {
                let (block, others) = rest.split_at(usize::from(*count) * VECTOR);
                rest = others.get(SEAL..).unwrap_or_default();
                if *count > 1 {
                    several.push((wholes.len(), block));
                }
                wholes.push(block.first_chunk().unwrap_or(&NOT_ENCODED));
            }
        }
        let near_as_whole = direction.rounded.dot_each(lanes, &wholes);
        let is_encoded = runs
            .iter()
            .flat_map(|(_, counts)| counts.iter())
            .map(|count| *count > 0);
        let mut nearest: Vec<Option<f32>> = near_as_whole
            .iter()
            .zip(is_encoded)
            .map(|(near, is)| is.then_some(near.max(-1.0)))
            .collect();
        for (index, block) in several {
            nearest[index] = Some(direction.nearest(lanes, block));
        }
        Meanings {
            nearest,
            near_as_whole,
            wholes,
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

/// Counts the sign bits in which two vectors differ. Unrolled, so that it takes three steps without
/// a loop.
#[inline(always)]
fn apart([a, b, c]: SignWords, [d, e, f]: SignWords) -> u32 {
    (a ^ d).count_ones() + (b ^ e).count_ones() + (c ^ f).count_ones()
}

/// Collects the sections that differ in the fewest sign bits.
struct Close {
    /// The largest difference that can still be among the results.
    limit: u32,
    /// The number of sections for each difference, and the number within the limit.
    counts: [usize; DIMENSIONS + 1],
    within: usize,
    /// All sections that were within the limit when they were added.
    found: Vec<(u32, Slot)>,
}

impl Default for Close {
    fn default() -> Self {
        Self {
            limit: DIMENSIONS as u32,
            counts: [0; DIMENSIONS + 1],
            within: 0,
            found: Vec::with_capacity(4 * SCANNED),
        }
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

/// Counts the differing sign bits for every live section of a batch.
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
        // Nearly all sections have one vector. In this case nothing needs to be counted.
        let single = all.len() == self.counts.len()
            && self.counts.iter().fold(1, |least, count| least.min(*count)) == 1;
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
        /// For any input in any order, the sections within the limit are the requested number plus
        /// ties.
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
