//! What the encoder says of the candidates: nearest part, surroundings, likeness to the best, whole section.
//!
//! The surroundings of a section are the sum of it and a share of each neighbour. The sum itself is made for the few best only. Its
//! product with a direction is the sum of the products of its members, and its length follows from their products with
//! each other; a member takes part in several sums and is multiplied once.

use super::direction::{Direction, Meanings};
use super::encoder::DIMENSIONS;
use super::pool::{NEIGHBOURS, Pool, REACH, best_first};
use super::rank::Ranked;
use super::scope::{Scope, Slot};
use super::vectors::{add_stored, dot_stored, split};
use super::wide::{Width, Work, add_share};

/// Sections that others are compared with.
const ALIKE_TO: usize = 5;
/// A section and its neighbours.
const AROUND: usize = 2 * REACH + 1;
/// How much of each counts, in the order of the file.
const SHARES: [f32; AROUND] = [1.2 * NEIGHBOURS[0].1, 1.2 * NEIGHBOURS[1].1, 1.0, 1.2 * NEIGHBOURS[2].1, 1.2 * NEIGHBOURS[3].1];

/// Adds the encoder's features to those of all candidates.
pub struct AddMeaning<'a, 'i> {
    pub scope: &'a Scope<'i>,
    pub pool: &'a Pool,
    pub direction: &'a Direction<'a>,
    pub meanings: &'a Meanings,
    pub ranked: &'a mut Ranked,
}

impl Work for AddMeaning<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn work<W: Width>(self, lanes: W) {
        let Self { scope, pool, direction, meanings, ranked } = self;
        let size = pool.slots.len();
        // Of each member: its product with the question, with itself, and with those up to four places after it.
        let mut near = vec![0.0f32; size];
        let mut products = vec![[0.0f32; AROUND]; size];
        let mut own_codes = [0i16; DIMENSIONS];
        for index in (0..size).filter(|index| meanings.nearest[*index].is_some()) {
            let own = meanings.whole(index);
            near[index] = dot_stored(lanes, direction.exact(), own);
            let (scale, codes) = split(own);
            own_codes.iter_mut().zip(codes).for_each(|(wide, code)| *wide = i16::from(*code as i8));
            let after = pool.after(index).map(|there| split(meanings.whole(there.unwrap_or(index))));
            let [four] = lanes.few_products([&own_codes[..]], after.map(|(_, codes)| codes));
            products[index][0] = lanes.product(codes, &own_codes) as f32 * scale * scale;
            for (product, (other, (its_scale, _))) in products[index][1..].iter_mut().zip(four.into_iter().zip(after)) {
                *product = other as f32 * scale * its_scale;
            }
        }
        // One over the length of the surroundings of each candidate.
        let mut scales = vec![0.0f32; pool.candidates.len()];
        for ((index, (_, _, features)), scale) in pool.candidates.iter().zip(&mut ranked.candidates).zip(&mut scales) {
            let Some(nearest) = meanings.nearest[*index] else { continue };
            let around = pool.around(*index);
            let mut square = 0.0;
            for (at, there) in members(&around) {
                square += SHARES[at] * SHARES[at] * products[there][0];
                for (later, _) in members(&around).filter(|(later, _)| *later > at) {
                    square += 2.0 * SHARES[at] * SHARES[later] * products[there][later - at];
                }
            }
            *scale = 1.0 / square.sqrt().max(1e-9);
            features[12] = nearest;
            features[13] = sum_around(&around, &near) * *scale;
            features[15] = direction.nearness_of(lanes, meanings.whole(*index));
        }
        let leaders = leaders(scope, pool, meanings, ranked, &scales);
        let mut sum_of_all = vec![0.0f32; DIMENSIONS];
        leaders.iter().for_each(|leader| add_share(&mut sum_of_all, &leader.context, 1.0));
        let weight_of_all: f32 = leaders.iter().map(|leader| leader.weight).sum();
        // Likeness to all leaders is likeness to their weighted sum.
        for index in (0..size).filter(|index| meanings.nearest[*index].is_some()) {
            near[index] = dot_stored(lanes, &sum_of_all, meanings.whole(index));
        }
        for (at, (slot, _, features)) in ranked.candidates.iter_mut().enumerate() {
            let index = pool.candidates[at];
            if meanings.nearest[index].is_none() {
                continue;
            }
            let around = pool.around(index);
            let position = scope.position(*slot);
            let (mut sum, mut total) = (0.0, weight_of_all);
            if leaders.iter().any(|leader| leader.is_too_near(position)) {
                let others = leaders.iter().filter(|leader| !leader.is_too_near(position));
                let mut sum_of_others = vec![0.0f32; DIMENSIONS];
                others.clone().for_each(|leader| add_share(&mut sum_of_others, &leader.context, 1.0));
                total = others.map(|leader| leader.weight).sum();
                for (place, there) in members(&around) {
                    sum += SHARES[place] * dot_stored(lanes, &sum_of_others, meanings.whole(there));
                }
            } else {
                sum = sum_around(&around, &near);
            }
            features[14] = if total > 0.0 { sum / total * scales[at] } else { 0.0 };
        }
    }
}

/// The members around a section that there are, with their places.
#[inline(always)]
fn members(around: &[Option<usize>; AROUND]) -> impl Iterator<Item = (usize, usize)> {
    around.iter().enumerate().filter_map(|(place, there)| Some((place, (*there)?)))
}

/// The sum of some value over a section and the shares of its neighbours.
#[inline(always)]
fn sum_around(around: &[Option<usize>; AROUND], values: &[f32]) -> f32 {
    members(around).map(|(place, there)| SHARES[place] * values[there]).sum()
}

/// One of the best candidates so far.
struct Leader {
    weight: f32,
    position: (usize, u32),
    /// Its surroundings, scaled to its weight.
    context: Vec<f32>,
}

impl Leader {
    /// Sections so near that they share surroundings are alike for no good reason.
    #[inline(always)]
    fn is_too_near(&self, (file, ordinal): (usize, u32)) -> bool {
        self.position.0 == file && self.position.1.abs_diff(ordinal) <= 2 * REACH as u32
    }
}

/// The candidates that words and meaning together put first.
#[inline(always)]
fn leaders(scope: &Scope, pool: &Pool, meanings: &Meanings, ranked: &Ranked, scales: &[f32]) -> Vec<Leader> {
    let mut order: Vec<(f32, Slot, usize)> = Vec::with_capacity(ranked.candidates.len());
    for (at, (slot, _, features)) in ranked.candidates.iter().enumerate() {
        order.push((features[1] + 2.0 * features[12] + features[13], *slot, at));
    }
    if order.len() > ALIKE_TO {
        order.select_nth_unstable_by(ALIKE_TO - 1, |a, b| best_first(scope, (a.0, a.1), (b.0, b.1)));
        order.truncate(ALIKE_TO);
    }
    order.sort_by(|a, b| best_first(scope, (a.0, a.1), (b.0, b.1)));
    let lead = order.first().map_or(0.0, |(score, ..)| *score);
    let mut leaders = Vec::with_capacity(order.len());
    for (score, slot, at) in order {
        let index = pool.candidates[at];
        if meanings.nearest[index].is_some() {
            let weight = (2.0 * (score - lead)).exp();
            let mut context = vec![0.0; DIMENSIONS];
            for (place, there) in members(&pool.around(index)) {
                add_stored(&mut context, meanings.whole(there), SHARES[place] * weight * scales[at]);
            }
            leaders.push(Leader { weight, position: scope.position(slot), context });
        }
    }
    leaders
}
