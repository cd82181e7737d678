//! Computes the encoder's features of the candidates: closest part, context, similarity to the
//! best, and whole section.
//!
//! The context vector of a section is the sum of its own vector and a share of each neighbour's. It
//! is computed only for the few best. For the others, its dot product with the query is the sum of
//! the members' products, and its length follows from their products with each other. A section is
//! a member of several contexts, but its products are computed once. A long-running process caches
//! the lengths, which do not depend on the question.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::direction::{Direction, Meanings, Rounded};
use super::encoder::DIMENSIONS;
use super::pool::{NEIGHBOURS, Place, Pool, REACH, best_first};
use super::rank::Ranked;
use super::scope::{Scope, Slot};
use super::vectors::{add_stored, split};
use super::wide::{Width, Work, add_share};

/// The number of best sections that others are compared with.
const ALIKE_TO: usize = 5;
/// The number of sections in a context: the section and its neighbours.
const AROUND: usize = 2 * REACH + 1;
/// The share of each section in the context, in file order.
const SHARES: [f32; AROUND] = [
    1.2 * NEIGHBOURS[0].1,
    1.2 * NEIGHBOURS[1].1,
    1.0,
    1.2 * NEIGHBOURS[2].1,
    1.2 * NEIGHBOURS[3].1,
];

/// Cached reciprocal context lengths, which are the same for every question.
///
/// One 32-bit float for each slot, zero if not known yet.
#[derive(Debug, Default)]
pub struct Lengths(OnceLock<Vec<AtomicU32>>);

impl Lengths {
    fn of(&self, slots: usize) -> &[AtomicU32] {
        self.0.get_or_init(|| {
            std::iter::repeat_with(AtomicU32::default)
                .take(slots)
                .collect()
        })
    }
}

/// Adds the encoder's features to all candidates.
pub struct AddMeaning<'a, 'i> {
    pub scope: &'a Scope<'i>,
    pub pool: &'a Pool,
    pub direction: &'a Direction<'a>,
    pub meanings: &'a Meanings<'a>,
    pub ranked: &'a mut Ranked,
}

impl Work for AddMeaning<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, lanes: W) {
        let Self {
            scope,
            pool,
            direction,
            meanings,
            ranked,
        } = self;
        let kept = direction.lengths.map(|lengths| lengths.of(scope.slots()));
        let scales = scales(lanes, pool, meanings, kept);
        for ((index, (_, features)), scale) in pool
            .candidates
            .iter()
            .zip(&mut ranked.candidates)
            .zip(&scales)
        {
            let Some(nearest) = meanings.nearest[*index] else {
                continue;
            };
            features[12] = nearest;
            features[13] = sum_around(&pool.around(*index), &meanings.near_as_whole) * *scale;
            features[15] = meanings.near_as_whole[*index];
        }
        let leaders = leaders(scope, pool, meanings, ranked, &scales);
        let mut sum_of_all = [0.0f32; DIMENSIONS];
        leaders
            .iter()
            .for_each(|leader| add_share(&mut sum_of_all, &leader.context, 1.0));
        let weight_of_all: f32 = leaders.iter().map(|leader| leader.weight).sum();
        // The similarity to all leaders is the similarity to their weighted sum.
        let near = Rounded::of(&sum_of_all).dot_each(lanes, &meanings.wholes);
        for (at, (_, features)) in ranked.candidates.iter_mut().enumerate() {
            let index = pool.candidates[at];
            if meanings.nearest[index].is_none() {
                continue;
            }
            let around = pool.around(index);
            let position = pool.places[index];
            let (mut sum, mut total) = (0.0, weight_of_all);
            if leaders.iter().any(|leader| leader.is_too_near(position)) {
                let others = leaders
                    .iter()
                    .filter(|leader| !leader.is_too_near(position));
                let mut sum_of_others = [0.0f32; DIMENSIONS];
                others
                    .clone()
                    .for_each(|leader| add_share(&mut sum_of_others, &leader.context, 1.0));
                total = others.map(|leader| leader.weight).sum();
                let others = Rounded::of(&sum_of_others);
                for (place, there) in members(&around) {
                    sum += SHARES[place] * others.dot(lanes, meanings.wholes[there]);
                }
            } else {
                sum = sum_around(&around, &near);
            }
            features[14] = if total > 0.0 {
                sum / total * scales[at]
            } else {
                0.0
            };
        }
    }
}

/// Returns the reciprocal context length of each candidate.
#[inline(always)]
fn scales<W: Width>(
    lanes: W,
    pool: &Pool,
    meanings: &Meanings<'_>,
    kept: Option<&[AtomicU32]>,
) -> Vec<f32> {
    let mut scales = vec![0.0f32; pool.candidates.len()];
    if let Some(kept) = kept {
        for (index, scale) in pool.candidates.iter().zip(&mut scales) {
            *scale = f32::from_bits(kept[pool.slots[*index] as usize].load(Ordering::Relaxed));
        }
    }
    let encoded = |index: usize| meanings.nearest[index].is_some();
    let mut wanted = vec![false; pool.slots.len()];
    for (index, _) in pool
        .candidates
        .iter()
        .zip(&scales)
        .filter(|(index, scale)| **scale == 0.0 && encoded(**index))
    {
        members(&pool.around(*index)).for_each(|(_, there)| wanted[there] = true);
    }
    if !wanted.contains(&true) {
        return scales;
    }
    // For each member: its product with itself, and with the four sections after it.
    let mut products = vec![[0.0f32; AROUND]; pool.slots.len()];
    let mut own_codes = [0i16; DIMENSIONS];
    for index in (0..pool.slots.len()).filter(|index| wanted[*index] && encoded(*index)) {
        let (scale, codes) = split(meanings.wholes[index]);
        own_codes
            .iter_mut()
            .zip(codes)
            .for_each(|(wide, code)| *wide = i16::from(*code as i8));
        let after = pool
            .after(index)
            .map(|there| split(meanings.wholes[there.unwrap_or(index)]));
        let [four] = lanes.few_products([&own_codes[..]], after.map(|(_, codes)| codes), &[]);
        products[index][0] = lanes.product(codes, &own_codes) as f32 * scale * scale;
        for (product, (other, (its_scale, _))) in products[index][1..]
            .iter_mut()
            .zip(four.into_iter().zip(after))
        {
            *product = other as f32 * scale * its_scale;
        }
    }
    for (index, known) in pool
        .candidates
        .iter()
        .zip(&mut scales)
        .filter(|(index, scale)| **scale == 0.0 && encoded(**index))
    {
        let around = pool.around(*index);
        let mut square = 0.0;
        for (at, there) in members(&around) {
            square += SHARES[at] * SHARES[at] * products[there][0];
            for (later, _) in members(&around).filter(|(later, _)| *later > at) {
                square += 2.0 * SHARES[at] * SHARES[later] * products[there][later - at];
            }
        }
        *known = 1.0 / square.sqrt().max(1e-9);
        if let Some(kept) = kept {
            kept[pool.slots[*index] as usize].store(known.to_bits(), Ordering::Relaxed);
        }
    }
    scales
}

/// Returns the existing members of a context, with their positions.
#[inline(always)]
fn members(around: &[Option<usize>; AROUND]) -> impl Iterator<Item = (usize, usize)> {
    around
        .iter()
        .enumerate()
        .filter_map(|(place, there)| Some((place, (*there)?)))
}

/// Returns the weighted sum of a value over a context.
#[inline(always)]
fn sum_around(around: &[Option<usize>; AROUND], values: &[f32]) -> f32 {
    members(around)
        .map(|(place, there)| SHARES[place] * values[there])
        .sum()
}

/// One of the best candidates so far.
struct Leader {
    weight: f32,
    position: Place,
    /// Its context vector, scaled by its weight.
    context: Vec<f32>,
}

impl Leader {
    /// Returns true if a section shares part of this context, which would make the two similar for
    /// no good reason.
    #[inline(always)]
    fn is_too_near(&self, (file, ordinal): Place) -> bool {
        self.position.0 == file && self.position.1.abs_diff(ordinal) <= 2 * REACH as u32
    }
}

/// Returns the best candidates by words and meaning together.
#[inline(always)]
fn leaders(
    scope: &Scope,
    pool: &Pool,
    meanings: &Meanings<'_>,
    ranked: &Ranked,
    scales: &[f32],
) -> Vec<Leader> {
    let mut order: Vec<(f32, Slot, usize)> = Vec::with_capacity(ranked.candidates.len());
    for (at, (slot, features)) in ranked.candidates.iter().enumerate() {
        order.push((features[1] + 2.0 * features[12] + features[13], *slot, at));
    }
    if order.len() > ALIKE_TO {
        order.select_nth_unstable_by(ALIKE_TO - 1, |a, b| {
            best_first(scope, (a.0, a.1), (b.0, b.1))
        });
        order.truncate(ALIKE_TO);
    }
    order.sort_by(|a, b| best_first(scope, (a.0, a.1), (b.0, b.1)));
    let lead = order.first().map_or(0.0, |(score, ..)| *score);
    let mut leaders = Vec::with_capacity(order.len());
    for (score, _, at) in order {
        let index = pool.candidates[at];
        if meanings.nearest[index].is_some() {
            let weight = (2.0 * (score - lead)).exp();
            let mut context = vec![0.0; DIMENSIONS];
            for (place, there) in members(&pool.around(index)) {
                add_stored(
                    &mut context,
                    meanings.wholes[there],
                    SHARES[place] * weight * scales[at],
                );
            }
            leaders.push(Leader {
                weight,
                position: pool.places[index],
                context,
            });
        }
    }
    leaders
}
