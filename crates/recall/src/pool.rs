//! The candidate pool: the best sections by words or by meaning, and their neighbours.
//!
//! The section next to a match often contains the answer, so the neighbours of a good section are
//! candidates too, and the neighbours of a candidate are available as its context.

use std::cmp::Ordering;

use super::scope::{Posting, Run, Scope, Slot};

/// The number of neighbours on each side that count as context.
pub const REACH: usize = 2;
/// The distance of each neighbour, and the share of its words that counts for a section.
pub const NEIGHBOURS: [(i32, f32); 2 * REACH] = [(-2, 0.25), (-1, 0.5), (1, 0.5), (2, 0.25)];
const AWAY: [i32; 2 * REACH] = [
    NEIGHBOURS[0].0,
    NEIGHBOURS[1].0,
    NEIGHBOURS[2].0,
    NEIGHBOURS[3].0,
];

/// The number of a file, and of a section in it.
pub type Place = (u32, u32);

/// Orders slots by score, best first. Breaks ties by path and ordinal, never by slot.
pub fn best_first(scope: &Scope, a: (f32, Slot), b: (f32, Slot)) -> Ordering {
    b.0.total_cmp(&a.0)
        .then_with(|| scope.position(a.1).cmp(&scope.position(b.1)))
}

/// Returns the best `count` of `slots`, in order.
pub fn top(scope: &Scope, mut slots: Vec<(f32, Slot)>, count: usize) -> Vec<(f32, Slot)> {
    if slots.len() / 4 > count && count > 0 {
        // Scores alone rule out nearly all, and comparing them is much faster than comparing
        // positions.
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

/// Calls `each` with every slot and its run. Slots are ascending, so each run is looked up once.
fn with_runs<'s>(scope: &'s Scope, slots: &[Slot], mut each: impl FnMut(Slot, &'s Run)) {
    let mut own: Option<&Run> = None;
    for slot in slots {
        if own.is_none_or(|run| *slot >= run.end()) {
            own = scope.run(*slot);
        }
        if let Some(run) = own {
            each(*slot, run);
        }
    }
}

/// Marks the given slots, which are ascending, and their neighbours.
fn spread(scope: &Scope, slots: &[Slot], marked: &mut [u64]) {
    with_runs(scope, slots, |slot, run| {
        // Sections of one run are adjacent. This covers nearly all cases.
        let (from, to) = (
            slot.saturating_sub(REACH as Slot).max(run.start),
            (slot + 1 + REACH as Slot).min(run.end()),
        );
        let bits = u128::from((1u64 << (to - from)) - 1) << (from % 64);
        marked[from as usize / 64] |= bits as u64;
        if bits >> 64 != 0 {
            marked[from as usize / 64 + 1] |= (bits >> 64) as u64;
        }
        if leads_beyond(scope, slot, run) {
            for there in scope.neighbours(slot, AWAY).into_iter().flatten() {
                marked[there as usize / 64] |= 1 << (there % 64);
            }
        }
    });
}

/// Returns true if neighbours of a slot may be in another run of its file.
fn leads_beyond(scope: &Scope, slot: Slot, run: &Run) -> bool {
    let inside = slot >= run.start + REACH as Slot && slot + (REACH as Slot) < run.end();
    !inside && !scope.is_whole_file(run)
}

/// Returns the marked slots, ascending.
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

/// Candidates and their context.
#[derive(Debug)]
pub struct Pool {
    /// Slots, ascending.
    pub slots: Vec<Slot>,
    /// For each member, the pool indices of its neighbours (as in `NEIGHBOURS`).
    pub near: Vec<[Option<u32>; 2 * REACH]>,
    /// For each member, its file and its position in the file.
    pub places: Vec<Place>,
    /// The indices of the candidates.
    pub candidates: Vec<usize>,
    /// A bitmap of slots, and the number of bits set before each word.
    member: Vec<u64>,
    before: Vec<u32>,
}

impl Pool {
    /// Builds the pool around some seeds.
    pub fn new(scope: &Scope, seeds: &[Slot]) -> Self {
        let words = scope.slots().div_ceil(64);
        let mut member = vec![0u64; words];
        for seed in seeds {
            member[*seed as usize / 64] |= 1 << (seed % 64);
        }
        spread(scope, &slots_of(&member), &mut member);
        let inner = slots_of(&member);
        spread(scope, &inner, &mut member);
        let slots = slots_of(&member);
        let mut so_far = 0;
        let count = |bits: &u64| {
            so_far += bits.count_ones();
            so_far - bits.count_ones()
        };
        let before = member.iter().map(count).collect();
        let mut pool = Self {
            slots,
            near: Vec::new(),
            places: Vec::new(),
            candidates: Vec::with_capacity(inner.len()),
            member,
            before,
        };
        let (mut near, mut places) = (
            Vec::with_capacity(pool.slots.len()),
            Vec::with_capacity(pool.slots.len()),
        );
        with_runs(scope, &pool.slots, |slot, run| {
            near.push(if leads_beyond(scope, slot, run) {
                let index = |there| pool.index(there).map(|index| index as u32);
                scope
                    .neighbours(slot, AWAY)
                    .map(|there| there.and_then(index))
            } else {
                pool.near_in_run(near.len(), run)
            });
            places.push(run.place(slot));
        });
        (pool.near, pool.places) = (near, places);
        let mut rest = &inner[..];
        for (index, slot) in pool.slots.iter().enumerate() {
            if let Some((_, others)) = rest.split_first().filter(|(first, _)| *first == slot) {
                pool.candidates.push(index);
                rest = others;
            }
        }
        pool
    }

    /// Returns the neighbours of a member in its run. Slots are ascending, so a neighbour is at
    /// most as many members away as sections.
    fn near_in_run(&self, index: usize, run: &Run) -> [Option<u32>; 2 * REACH] {
        let slot = self.slots[index];
        let at = |there: Option<usize>, wanted: Slot| {
            there
                .filter(|there| self.slots.get(*there) == Some(&wanted))
                .map(|there| there as u32)
        };
        let before = |away: Slot| {
            let wanted = slot
                .checked_sub(away)
                .filter(|wanted| *wanted >= run.start)?;
            at(index.checked_sub(1), wanted).or_else(|| at(index.checked_sub(2), wanted))
        };
        let after = |away: Slot| {
            let wanted = Some(slot + away).filter(|wanted| *wanted < run.end())?;
            at(Some(index + 1), wanted).or_else(|| at(Some(index + 2), wanted))
        };
        [before(2), before(1), after(1), after(2)]
    }

    /// Returns the pool index of a slot.
    pub fn index(&self, slot: Slot) -> Option<usize> {
        let word = slot as usize / 64;
        let (bits, bit) = (self.member[word], 1u64 << (slot % 64));
        (bits & bit != 0).then(|| (self.before[word] + (bits & (bit - 1)).count_ones()) as usize)
    }

    /// Returns the members that contain a term, ascending, with its count in the text and whether
    /// it is in the heading.
    pub fn occurrences(&self, postings: &[Posting]) -> Vec<(usize, f32, bool)> {
        let found = |posting: &Posting| {
            Some((
                self.index(posting.slot)?,
                f32::from(posting.times),
                posting.in_heading,
            ))
        };
        postings.iter().filter_map(found).collect()
    }

    /// Forgets the neighbours of the members that fail a test. They stay members.
    pub fn keep_near(&mut self, test: impl Fn(usize) -> bool) {
        for (index, near) in self.near.iter_mut().enumerate() {
            if !test(index) {
                *near = [None; 2 * REACH];
            }
        }
    }

    /// Returns the neighbours of a member with their shares.
    pub fn neighbours(&self, index: usize) -> impl Iterator<Item = (usize, f32)> {
        let near = self.near[index].iter().zip(NEIGHBOURS);
        near.filter_map(|(there, (_, share))| there.map(|there| (there as usize, share)))
    }

    /// Returns a member and its neighbours, in file order.
    #[inline(always)]
    pub fn around(&self, index: usize) -> [Option<usize>; 2 * REACH + 1] {
        let [second_before, before, after, second_after] =
            self.near[index].map(|there| there.map(|there| there as usize));
        [second_before, before, Some(index), after, second_after]
    }

    /// Returns the members one to four positions after a member, if they are in the pool.
    #[inline(always)]
    pub fn after(&self, index: usize) -> [Option<usize>; 2 * REACH] {
        let [_, _, _, one, two] = self.around(index);
        let [_, _, _, three, four] = two.map_or([None; 2 * REACH + 1], |two| self.around(two));
        [one, two, three, four]
    }

    /// Returns the member directly before, if any.
    pub fn before(&self, index: usize) -> Option<usize> {
        self.near[index][REACH - 1].map(|there| there as usize)
    }

    /// Returns the member two positions before, if any.
    pub fn second_before(&self, index: usize) -> Option<usize> {
        self.near[index][0].map(|there| there as usize)
    }
}
