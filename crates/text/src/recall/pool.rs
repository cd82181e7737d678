//! The sections that are looked at closely: the best by words or by meaning, and their neighbours.
//!
//! A neighbour often holds the answer to what its neighbour asks, so everything near a good section
//! is a candidate, and what is near a candidate is at hand as its context.

use std::cmp::Ordering;

use super::scope::{Posting, Scope, Slot};

/// Neighbours on each side that count as context.
pub const REACH: usize = 2;
/// Where neighbours stand, and how much of their words counts for a section.
pub const NEIGHBOURS: [(i32, f32); 2 * REACH] = [(-2, 0.25), (-1, 0.5), (1, 0.5), (2, 0.25)];
const AWAY: [i32; 2 * REACH] = [NEIGHBOURS[0].0, NEIGHBOURS[1].0, NEIGHBOURS[2].0, NEIGHBOURS[3].0];

/// Orders slots by score, best first; equals by path and ordinal, never by slot.
pub fn best_first(scope: &Scope, a: (f32, Slot), b: (f32, Slot)) -> Ordering {
    b.0.total_cmp(&a.0).then_with(|| scope.position(a.1).cmp(&scope.position(b.1)))
}

/// The first `count` of `slots` by score, in order.
pub fn top(scope: &Scope, mut slots: Vec<(f32, Slot)>, count: usize) -> Vec<(f32, Slot)> {
    if slots.len() > 4 * count && count > 0 {
        // Scores alone rule out nearly all, and are compared much faster than places.
        let mut scores: Vec<f32> = slots.iter().map(|(score, _)| *score).collect();
        let (_, least, _) = scores.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a));
        slots.retain(|(score, _)| score.total_cmp(least).is_ge());
    }
    if slots.len() > count && count > 0 {
        slots.select_nth_unstable_by(count - 1, |a, b| best_first(scope, *a, *b));
        slots.truncate(count);
    }
    slots.sort_by(|a, b| best_first(scope, *a, *b));
    slots
}

/// Marks slots and their neighbours.
fn spread(scope: &Scope, slots: &[Slot], marked: &mut [u64]) {
    for slot in slots {
        marked[*slot as usize / 64] |= 1 << (slot % 64);
        for there in scope.neighbours(*slot, AWAY).into_iter().flatten() {
            marked[there as usize / 64] |= 1 << (there % 64);
        }
    }
}

/// The marked slots, ascending.
fn slots_of(marked: &[u64]) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (first, bits) in (0..).step_by(64).zip(marked) {
        let mut rest = *bits;
        while rest != 0 {
            slots.push(first + rest.trailing_zeros());
            rest &= rest - 1;
        }
    }
    slots
}

/// Candidates and their surroundings, with the words of the question in each.
#[derive(Debug)]
pub struct Pool {
    /// Slots, ascending.
    pub slots: Vec<Slot>,
    /// For each: where its neighbours are in the pool (as in `NEIGHBOURS`).
    pub near: Vec<[Option<u32>; 2 * REACH]>,
    /// Which of them are candidates.
    pub candidates: Vec<usize>,
    /// A bit for each slot, and how many are set before each word of bits.
    member: Vec<u64>,
    before: Vec<u32>,
}

impl Pool {
    /// The pool around some seeds.
    pub fn new(scope: &Scope, seeds: &[Slot]) -> Self {
        let words = scope.slots().div_ceil(64);
        let mut member = vec![0u64; words];
        spread(scope, seeds, &mut member);
        let inner = slots_of(&member);
        spread(scope, &inner, &mut member);
        let slots = slots_of(&member);
        let mut so_far = 0;
        let count = |bits: &u64| {
            so_far += bits.count_ones();
            so_far - bits.count_ones()
        };
        let before = member.iter().map(count).collect();
        let mut pool = Self { slots, near: Vec::new(), candidates: Vec::new(), member, before };
        pool.candidates = inner.iter().filter_map(|slot| pool.index(*slot)).collect();
        let mut near = Vec::with_capacity(pool.slots.len());
        for slot in &pool.slots {
            let mut places = [None; 2 * REACH];
            for (place, there) in places.iter_mut().zip(scope.neighbours(*slot, AWAY)) {
                *place = there.and_then(|there| pool.index(there)).map(|index| index as u32);
            }
            near.push(places);
        }
        pool.near = near;
        pool
    }

    /// Where a slot is in the pool.
    pub fn index(&self, slot: Slot) -> Option<usize> {
        let word = slot as usize / 64;
        let (bits, bit) = (self.member[word], 1u64 << (slot % 64));
        (bits & bit != 0).then(|| (self.before[word] + (bits & (bit - 1)).count_ones()) as usize)
    }

    /// The members that hold a term, ascending: how often in their text, and whether in their heading.
    pub fn occurrences(&self, postings: &[Posting]) -> Vec<(usize, f32, bool)> {
        let found = |posting: &Posting| Some((self.index(posting.slot)?, f32::from(posting.times), posting.in_heading));
        postings.iter().filter_map(found).collect()
    }

    /// The neighbours of a member, with their share.
    pub fn neighbours(&self, index: usize) -> impl Iterator<Item = (usize, f32)> {
        let near = self.near[index].iter().zip(NEIGHBOURS);
        near.filter_map(|(there, (_, share))| there.map(|there| (there as usize, share)))
    }

    /// A member and its neighbours, in the order of the file.
    #[inline(always)]
    pub fn around(&self, index: usize) -> [Option<usize>; 2 * REACH + 1] {
        let [second_before, before, after, second_after] = self.near[index].map(|there| there.map(|there| there as usize));
        [second_before, before, Some(index), after, second_after]
    }

    /// The members one to four places after a member, as far as the pool leads to them.
    #[inline(always)]
    pub fn after(&self, index: usize) -> [Option<usize>; 2 * REACH] {
        let [_, _, _, one, two] = self.around(index);
        let [_, _, _, three, four] = two.map_or([None; 2 * REACH + 1], |two| self.around(two));
        [one, two, three, four]
    }

    /// The member just before, if any.
    pub fn before(&self, index: usize) -> Option<usize> {
        self.near[index][REACH - 1].map(|there| there as usize)
    }

    /// The member two places before, if any.
    pub fn second_before(&self, index: usize) -> Option<usize> {
        self.near[index][0].map(|there| there as usize)
    }
}
