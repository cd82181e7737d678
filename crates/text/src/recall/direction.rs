//! A question's direction, and how near the sections of a scope lie to it.
//!
//! Up to some size all sections are compared with it. In a huge project a scan over the signs of
//! the vectors finds some hundreds worth comparing. Which of the two is decided by the scope alone,
//! and neither depends on how the index came about.

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

/// Sections that are all compared; in a larger scope their signs are scanned first.
/// In a test of this crate both ways must be gone with few sections.
const COMPARED: u32 = if cfg!(test) { 120 } else { 60_000 };
/// Sections that a scan over signs leaves to be compared.
const SCANNED: usize = if cfg!(test) { 40 } else { 1_000 };
/// Sections taken up for their meaning alone, at least.
const SEEDS: usize = 40;
/// Directions are rounded to whole numbers of at most this size. With codes of at most 127, no sum
/// of products overflows 32 bits.
const FINEST: f32 = 32_767.0;
/// Vectors that are compared at a time.
pub const AT_A_TIME: usize = 4;
/// Stands for the vector of a section that is not encoded.
static NOT_ENCODED: Vector = [0; VECTOR];

/// A direction in whole numbers, to be multiplied with the codes of stored vectors.
pub struct Rounded {
    numbers: [i16; DIMENSIONS],
    /// What one stands for.
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

    /// The inner product with a stored vector.
    #[inline(always)]
    pub fn dot<W: Width>(&self, lanes: W, vector: &Vector) -> f32 {
        let (scale, codes) = split(vector);
        self.scaled(lanes.product(codes, &self.numbers), scale)
    }

    /// The inner product with each of four stored vectors. Meanwhile it fetches bytes that come
    /// next.
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

    /// The inner product with each of some stored vectors. What comes next is fetched meanwhile.
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

/// A question's direction, ready to be compared with the vectors of a scope's segments.
pub struct Direction<'i> {
    exact: Vec<f32>,
    pub rounded: Rounded,
    vectors: Vec<Option<&'i Vectors>>,
    /// More questions are to come: what all of them read is kept.
    keep: bool,
    /// Kept with the sections, if the question is asked of all.
    pub lengths: Option<&'i Lengths>,
}

/// What the encoder makes of some sections.
pub struct Meanings<'r> {
    /// The nearest part of each to the question; none if it is not encoded.
    pub nearest: Vec<Option<f32>>,
    /// How near each lies as a whole.
    pub near_as_whole: Vec<f32>,
    /// Each section as a whole, as it is stored; zeros where it is not encoded.
    pub wholes: Vec<&'r Vector>,
}

impl<'i> Direction<'i> {
    /// The direction of a question.
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

    /// A direction that is known.
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

    /// How many sections of the scope are encoded.
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

    /// The best sections by meaning alone.
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

    /// The best of all sections, and some that are not.
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

    /// The vectors of some sections, given in the order of slots.
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

    /// What the encoder makes of some sections.
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
pub type SideBySide<'i> = (Cow<'i, [u8]>, Cow<'i, [u8]>);

/// Finds the vectors of sections, run by run, and compares them.
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

/// In how many signs two vectors differ. Written out, so that it is counted in three steps and no
/// loop.
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
        /// Of whatever came, in whatever order: those within the limit are the wanted number and
        /// their equals.
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
