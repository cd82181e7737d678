//! Finds the sections of a segment that are most similar to a question.
//!
//! The search compares all vectors, four at a time and in memory order. Pruning would cause random
//! access, which takes as long as reading everything sequentially.

use super::bytes::SEAL;
use super::direction::{AT_A_TIME, Direction};
use super::scope::Slot;
use super::vectors::{VECTOR, Vector, Vectors, place};
use super::wide::{Width, Work};

/// The distance between vectors if each section has one.
const STRIDE: usize = VECTOR + SEAL;
/// Prefetch distance, in groups of four vectors.
const AHEAD: usize = 4;

/// Collects the best sections. `found` contains all of them, and some that have since been
/// displaced.
#[derive(Debug)]
pub struct Best {
    count: usize,
    /// Scores below this cannot be among the best any more.
    least: f32,
    pub found: Vec<(f32, Slot)>,
}

impl Best {
    /// Creates an empty collection for the best `count` sections.
    pub fn new(count: usize) -> Self {
        Self {
            count,
            least: f32::NEG_INFINITY,
            found: Vec::with_capacity(4 * count),
        }
    }

    /// Returns the minimum score to be among the best.
    #[inline(always)]
    pub fn least(&self) -> f32 {
        self.least
    }

    /// Adds a section if its score is high enough. If parts of one section are added consecutively,
    /// the best one counts.
    #[inline(always)]
    pub fn add(&mut self, near: f32, slot: Slot) {
        if near < self.least {
            return;
        }
        match self.found.last_mut() {
            Some((known, last)) if *last == slot => *known = known.max(near),
            _ => self.found.push((near, slot)),
        }
        if self.found.len() == 4 * self.count {
            self.tighten();
        }
    }

    /// Drops everything below the last of the best. Ties are kept, because the caller breaks them.
    #[cold]
    fn tighten(&mut self) {
        let mut scores: Vec<f32> = self.found.iter().map(|(near, _)| *near).collect();
        let (_, least, _) = scores.select_nth_unstable_by(self.count - 1, |a, b| b.total_cmp(a));
        self.least = *least;
        self.found.retain(|(near, _)| *near >= *least);
        // With many ties, leave room for as many again, so that this does not run for each of them.
        self.count = self.count.max(self.found.len().div_ceil(2));
    }
}

/// Compares consecutive sections with the query.
pub struct Seek<'c> {
    pub direction: &'c Direction<'c>,
    pub vectors: &'c Vectors,
    pub whole: &'c [u8],
    pub first: u32,
    pub count: u32,
    pub slot: Slot,
    pub best: &'c mut Best,
}

impl Work for Seek<'_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, lanes: W) {
        let Self {
            direction,
            vectors,
            whole,
            first,
            count,
            slot,
            best,
        } = self;
        let (rounded, counts) = (&direction.rounded, vectors.counts(first, count));
        let mut rest = &whole[place(vectors.start(first), first)..];
        let mut done = 0;
        while done < counts.len() {
            // Nearly all sections have one vector, so they are equally spaced and nothing needs to
            // be counted.
            let singles = counts[done..]
                .iter()
                .take_while(|count| **count == 1)
                .count();
            let (fours, _) = rest[..singles * STRIDE].as_chunks::<{ AT_A_TIME * STRIDE }>();
            for (at, four) in fours.iter().enumerate() {
                let ahead = fours.get(at + AHEAD).map_or(&[][..], |ahead| ahead);
                let near = rounded.dot_four(
                    lanes,
                    [
                        vector(four, 0),
                        vector(four, 1),
                        vector(four, 2),
                        vector(four, 3),
                    ],
                    ahead,
                );
                let least = best.least();
                if near.iter().any(|near| *near >= least) {
                    let slots = slot + (done + at * AT_A_TIME) as Slot..;
                    slots
                        .zip(near)
                        .for_each(|(slot, near)| best.add(near.max(-1.0), slot));
                }
            }
            let together = fours.len() * AT_A_TIME;
            rest = &rest[together * STRIDE..];
            done += together;
            // The rest of the single vectors, and the next section with several vectors or none.
            for count in counts[done..].iter().take(singles - together + 1) {
                let (block, others) = rest.split_at(usize::from(*count) * VECTOR);
                rest = others.get(SEAL..).unwrap_or_default();
                // If there are several parts, the first vector is their mean and is not compared.
                let parts = &block.as_chunks().0[usize::from(*count > 1)..];
                let (fours, few) = parts.as_chunks::<AT_A_TIME>();
                for [a, b, c, d] in fours {
                    for near in rounded.dot_four(lanes, [a, b, c, d], &[]) {
                        best.add(near.max(-1.0), slot + done as Slot);
                    }
                }
                for part in few {
                    best.add(rounded.dot(lanes, part).max(-1.0), slot + done as Slot);
                }
                done += 1;
            }
        }
    }
}

/// Returns one of the equally spaced vectors.
#[inline(always)]
fn vector(bytes: &[u8; AT_A_TIME * STRIDE], at: usize) -> &Vector {
    bytes[at * STRIDE..]
        .first_chunk()
        .expect("a vector is shorter than the distance between two")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::bytes::Source;
    use super::super::encoder::DIMENSIONS;
    use super::super::vectors::render;
    use super::super::wide::wide;
    use super::*;

    /// Returns a stored vector: numbers from -127 to 127 and their scale.
    fn stored(scale: f32, codes: impl Iterator<Item = i8>) -> Vec<u8> {
        let mut vector = scale.to_le_bytes().to_vec();
        vector.extend(codes.map(|code| code as u8));
        vector
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// For any vectors in any order, seeking finds the same best sections as comparing all,
        /// including ties.
        #[test]
        fn seeking_finds_what_comparing_finds(
            seed in any::<u64>(),
            parts in prop::collection::vec(0usize..4, 1..400),
            many_equal in any::<bool>(),
            count in 1usize..12,
        ) {
            let mut state = seed | 1;
            let mut roll = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
            };
            let mut vector = |number: usize| {
                // Like the encoder's vectors, most of the length is in the leading components. Some
                // vectors are mirrored or equal.
                let kind = if many_equal { number % 3 } else { roll() as usize };
                let mut own = kind as u64 ^ 0x9e37;
                let mut next = || { own = own.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1); (own >> 40) as i64 };
                let codes: Vec<i8> = (0..DIMENSIONS).map(|at| (next() % 255 - 127) as i8 / if at < 64 { 1 } else { 3 }).collect();
                stored(0.001 + (kind % 7) as f32 * 0.0001, codes.into_iter())
            };
            let blocks: Vec<Vec<u8>> = parts.iter().enumerate().map(|(number, count)| {
                let vectors = if *count > 1 { count + 1 } else { *count };
                (0..vectors).flat_map(|_| vector(number)).collect()
            }).collect();
            let bytes = render(7, &blocks);
            let vectors = Vectors::open(Source::Memory(bytes.into()), 7).unwrap();
            let exact: Vec<f32> = (0..DIMENSIONS).map(|at| ((at as f32 + seed as u8 as f32) * 0.7).sin() / 10.0).collect();
            let direction = Direction::of(exact, vec![Some(&vectors)]);
            let whole = vectors.whole().unwrap();
            let sections = blocks.len() as u32;
            let mut all = Vec::new();
            for number in (0..sections).filter(|number| vectors.has(*number)) {
                all.push((direction.nearest_in(&vectors.block(number).unwrap()), number));
            }
            let mut best = Best::new(count);
            for (first, run) in [(0, sections / 2), (sections / 2, sections - sections / 2)] {
                wide(Seek { direction: &direction, vectors: &vectors, whole, first, count: run, slot: first, best: &mut best });
            }
            let order = |a: &(f32, Slot), b: &(f32, Slot)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            all.sort_by(order);
            best.found.sort_by(order);
            prop_assert!(best.found.len() >= all.len().min(count));
            all.truncate(count);
            best.found.truncate(count);
            prop_assert_eq!(all, best.found);
        }
    }
}
