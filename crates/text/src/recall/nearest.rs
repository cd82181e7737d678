//! The sections nearest to a question among all of a segment, without comparing most of them to the end.
//!
//! The axes of vectors are sorted by how much they tell, so the first two thirds of a vector nearly decide. What the rest can add
//! at most is the product of two lengths; where that does not reach the worst of the best so far, the rest is not read. The bound
//! is taken in whole numbers and rounded up, so the answer is the one of comparing everything, to the last bit.

use super::Damage;
use super::direction::Direction;
use super::encoder::DIMENSIONS;
use super::scope::Slot;
use super::vectors::{VECTOR, Vectors, place, split};
use super::wide::{Width, Work};

/// Numbers of a vector that are looked at first.
const LEAD: usize = 128;
/// Vectors that are looked at together.
const TOGETHER: usize = 64;
/// Of them, so many meet the question at a time.
const AT_A_TIME: usize = 4;

/// The leading numbers of all vectors of a segment side by side, and the length of what follows: for a process that is asked
/// again and again. Where a section has several parts, their mean is left out: it is not compared.
#[derive(Debug, Default)]
pub struct Leads {
    codes: Vec<u8>,
    scales: Vec<f32>,
    /// The length of what follows, rounded up.
    lengths: Vec<i32>,
    /// Whose vector it is, and which of all it is.
    sections: Vec<u32>,
    vectors: Vec<u32>,
}

impl Leads {
    /// Takes them from the vectors of a segment.
    pub fn of(vectors: &Vectors) -> Result<Self, Damage> {
        let whole = vectors.whole()?;
        let mut leads = Self::default();
        let mut end = 0;
        for (number, count) in (0..).zip(vectors.counts(0, vectors.sections())) {
            let start = end;
            end += usize::from(*count);
            for at in start + usize::from(*count > 1)..end {
                let (scale, codes) = split(&whole[place(at, number)..][..VECTOR]);
                let (lead, rest) = codes.split_at(LEAD);
                leads.codes.extend(lead);
                leads.scales.push(scale);
                leads.lengths.push(length(rest.iter().map(|code| f64::from(*code as i8))));
                leads.sections.push(number);
                leads.vectors.push(at as u32);
            }
        }
        // The last few are taken as many at a time as all.
        leads.codes.resize(leads.codes.len() + AT_A_TIME * LEAD, 0);
        Ok(leads)
    }

    /// The vectors of a run of sections.
    fn range(&self, first: u32, count: u32) -> std::ops::Range<usize> {
        let before = |number: u32| self.sections.partition_point(|section| *section < number);
        before(first)..before(first + count)
    }
}

/// A length, rounded up.
fn length(values: impl Iterator<Item = f64>) -> i32 {
    let exact = values.map(|value| value * value).sum::<f64>().sqrt();
    (exact * (1.0 + 1e-6)).ceil() as i32
}

/// How far what follows the leading numbers of a direction can reach.
pub fn reach(coarse: &[i16]) -> i32 {
    length(coarse[LEAD..].iter().map(|value| f64::from(*value)))
}

/// The best so far: all of them, and some that were among the best when they came.
#[derive(Debug)]
pub struct Best {
    count: usize,
    /// What is below cannot be among the best any more.
    least: f32,
    pub found: Vec<(f32, Slot)>,
}

impl Best {
    /// None yet, of so many.
    pub fn new(count: usize) -> Self {
        Self { count, least: f32::NEG_INFINITY, found: Vec::with_capacity(4 * count) }
    }

    /// What a section must reach at least to be among them.
    #[inline(always)]
    pub fn least(&self) -> f32 {
        self.least
    }

    /// Takes up a section, if it may be among them. Of several parts that come one after the other, the best counts.
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

    /// Forgets what is worse than the last of the best. Equals stay: which of them is taken is for others to say.
    #[cold]
    fn tighten(&mut self) {
        let mut scores: Vec<f32> = self.found.iter().map(|(near, _)| *near).collect();
        let (_, least, _) = scores.select_nth_unstable_by(self.count - 1, |a, b| b.total_cmp(a));
        self.least = *least;
        self.found.retain(|(near, _)| *near >= *least);
        // Many equals: room for as many more, so that this does not happen for each of them.
        self.count = self.count.max(self.found.len().div_ceil(2));
    }
}

/// Compares a run of sections, as far as each needs it.
pub struct Seek<'c> {
    pub direction: &'c Direction<'c>,
    pub leads: &'c Leads,
    pub whole: &'c [u8],
    /// See [`reach`].
    pub reach: i32,
    pub first: u32,
    pub count: u32,
    pub slot: Slot,
    pub best: &'c mut Best,
}

impl Work for Seek<'_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, lanes: W) {
        let Self { direction, leads, whole, reach, best, .. } = self;
        let (lead, rest) = direction.coarse().split_at(LEAD);
        let range = leads.range(self.first, self.count);
        let mut led = [0i32; TOGETHER];
        let mut most = [0.0f32; TOGETHER];
        for start in range.clone().step_by(TOGETHER) {
            let count = TOGETHER.min(range.end - start);
            for at in (0..count).step_by(AT_A_TIME) {
                let codes = leads.codes[(start + at) * LEAD..].as_chunks::<LEAD>().0;
                let [four] = lanes.few_products([lead], [&codes[0], &codes[1], &codes[2], &codes[3]]);
                led[at..at + AT_A_TIME].copy_from_slice(&four);
            }
            let (scales, lengths) = (&leads.scales[start..start + count], &leads.lengths[start..start + count]);
            let mut highest = f32::NEG_INFINITY;
            for at in 0..count {
                // What is below -1 counts as -1.
                let bound = direction.scaled(led[at] + reach * lengths[at], scales[at]);
                most[at] = if bound > -1.0 { bound } else { -1.0 };
                highest = if most[at] > highest { most[at] } else { highest };
            }
            // Nearly always none of them comes near, which is told for all at once.
            if highest < best.least {
                continue;
            }
            for at in 0..count {
                if most[at] >= best.least {
                    let section = leads.sections[start + at];
                    let (_, codes) = split(&whole[place(leads.vectors[start + at] as usize, section)..][..VECTOR]);
                    let near = direction.scaled(led[at] + lanes.product(&codes[LEAD..], rest), scales[at]);
                    best.add(near.max(-1.0), self.slot + (section - self.first));
                }
            }
        }
    }
}

const _: () = assert!(LEAD.is_multiple_of(16) && LEAD < DIMENSIONS);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::bytes::Source;
    use super::super::vectors::render;
    use super::super::wide::wide;
    use super::*;

    /// A vector as it is stored: numbers from -127 to 127 and their scale.
    fn stored(scale: f32, codes: impl Iterator<Item = i8>) -> Vec<u8> {
        let mut vector = scale.to_le_bytes().to_vec();
        vector.extend(codes.map(|code| code as u8));
        vector
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Of whatever vectors, in whatever order: the best by seeking are the best by comparing all, equals included.
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
                // Most of a vector lies in its leading numbers, as in the encoder's; some are mirrored or alike.
                let kind = if many_equal { number % 3 } else { roll() as usize };
                let mut own = kind as u64 ^ 0x9e37;
                let mut next = || { own = own.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1); (own >> 40) as i64 };
                let codes: Vec<i8> = (0..DIMENSIONS).map(|at| (next() % 255 - 127) as i8 / if at < LEAD { 1 } else { 3 }).collect();
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
                let leads = vectors.leads().unwrap();
                let reach = reach(direction.coarse());
                wide(Seek { direction: &direction, leads, whole, reach, first, count: run, slot: first, best: &mut best });
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
