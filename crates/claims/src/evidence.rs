//! Selects the evidence for a scene within a budget of tokens.
//!
//! Hard rules come first, then the state of everyone in the scene, then entries of memory, then
//! sentences of the manuscripts. In each part lines are taken by their relevance to the claims. A claim that has lines already yields to
//! others, so that the evidence is spread over subjects. The result is in file order, numbered from 1.

use std::collections::{BTreeMap, BTreeSet};

use quipu_recall::Tier;
use quipu_text::{Counter, Level};
use serde::Serialize;

use crate::claim::Claim;
use crate::judges::level_name;
use crate::page::Place;
use crate::pool::{Pool, Unit};
use crate::prompt::render_evidence;
use crate::query::tier_name;
use crate::relevance::{Scores, Vectors, score};
use crate::scene::Scene;

/// A line that a claim can be judged by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    pub at: Place,
    #[serde(serialize_with = "tier_name")]
    pub tier: Tier,
    #[serde(serialize_with = "level_name")]
    pub level: Option<Level>,
    /// The person, place or object that the line is about, or its section.
    pub about: String,
    pub text: String,
    /// The part of the story in which it holds, if that is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// `fact`, `rule` or `passage`.
    pub kind: &'static str,
}

/// A scene with its evidence.
#[derive(Debug, Clone, Serialize)]
pub struct SceneEvidence {
    pub scene: Scene,
    /// Numbered from 1 in this order.
    pub evidence: Vec<Evidence>,
    /// The tokens of the evidence, with places.
    pub tokens: u64,
}

/// The share of a scene's budget that hard rules may take.
const RULES_SHARE: f32 = 0.35;
/// The share that the state of everyone in the scene may take.
const STATE_SHARE: f32 = 0.2;
/// The share that hard rules and entries of memory may take before sentences get the rest.
const MEMORY_SHARE: f32 = 0.5;
/// What a sentence inherits from the one before and the one after it: prose names its subject once.
const FROM_BEFORE: f32 = 0.7;
const FROM_AFTER: f32 = 0.5;
/// What each line for a claim leaves of the claim's pull on further lines.
const YIELD: f32 = 0.93;
/// What an entry of memory gains over a sentence: it is shorter and states a fact.
const ENTRY: f32 = 0.1;
/// What a sentence gains that states facts.
const FACTUAL: f32 = 2.0;
/// What the latest manuscript gains over the first.
const RECENT: f32 = 0.05;
/// Longer lines must be more relevant, by this power of their length.
const COST: f32 = 0.1;
/// The most tokens of a line's number, its owner and its share of headings.
const OVERHEAD: u64 = 9;
/// A rest of the budget that is too small for another line.
const LEFT: u64 = 12;

/// The evidence for the claims of one scene.
pub struct Selection<'p> {
    pool: &'p Pool,
    scores: Scores,
    /// The entities that the scene names or means.
    present: BTreeSet<usize>,
}

impl<'p> Selection<'p> {
    pub fn of(pool: &'p Pool, claims: &[Claim], vectors: &mut Vectors) -> Selection<'p> {
        let texts: Vec<&str> = claims.iter().map(|claim| claim.text.as_str()).collect();
        let subjects = pool.roster.subjects(&texts);
        let mut scores = score(pool, &texts, &subjects, vectors);
        spread(pool, &mut scores);
        let present = subjects.iter().flat_map(BTreeMap::keys).copied().collect();
        Selection {
            pool,
            scores,
            present,
        }
    }

    /// Returns the best lines for one claim, best first.
    pub fn for_claim(&self, nth: usize, k: usize) -> Vec<(f32, Evidence)> {
        let scores = &self.scores.of_claim[nth];
        let mut ranked: Vec<(f32, usize)> = self
            .scores
            .candidates
            .iter()
            .zip(scores)
            .map(|(unit, score)| (self.value(*unit, *score), *unit))
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.truncate(k);
        ranked
            .into_iter()
            .map(|(score, unit)| (score, render(&self.pool.units[unit])))
            .collect()
    }

    /// Returns the lines for the whole scene within a budget.
    pub fn for_scene(&self, budget: u64) -> (Vec<Evidence>, u64) {
        let costs: Vec<u64> = self
            .scores
            .candidates
            .iter()
            .map(|nth| self.cost(*nth))
            .collect();
        let mut taken = vec![false; costs.len()];
        let mut spent = self.take_rules(&costs, &mut taken, budget);
        spent = self.take_state(&costs, &mut taken, spent, budget);
        let most = (budget as f32 * MEMORY_SHARE) as u64;
        spent = self.fill(Some(Tier::L1), &costs, &mut taken, spent, most);
        loop {
            self.fill(None, &costs, &mut taken, spent, budget);
            let chosen = (0..taken.len()).filter(|at| taken[*at]);
            let nth = chosen.map(|at| self.scores.candidates[at]);
            let evidence: Vec<Evidence> = nth.map(|nth| render(&self.pool.units[nth])).collect();
            let shown = Counter::O200k.count(&render_evidence(&evidence)).0;
            let has_grown = std::mem::replace(&mut spent, shown) != shown;
            if !has_grown || budget.saturating_sub(shown) < LEFT {
                return (evidence, shown);
            }
        }
    }

    /// Takes the lines with the highest gain until the budget is spent.
    fn fill(
        &self,
        tier: Option<Tier>,
        costs: &[u64],
        taken: &mut [bool],
        mut spent: u64,
        budget: u64,
    ) -> u64 {
        let of = |at: usize| &self.pool.units[self.scores.candidates[at]];
        let mut pull = vec![1.0f32; self.scores.of_claim.len()];
        loop {
            let best = (0..taken.len())
                .filter(|at| !taken[*at] && spent + costs[*at] <= budget)
                .filter(|at| tier.is_none_or(|tier| of(*at).tier == tier))
                .filter_map(|at| Some((self.gain(at, &pull, costs[at])?, at)))
                .max_by(|a, b| a.0.1.total_cmp(&b.0.1).then(b.1.cmp(&a.1)));
            let Some(((claim, _), at)) = best else {
                return spent;
            };
            taken[at] = true;
            spent += costs[at];
            pull[claim] *= YIELD;
        }
    }

    /// Takes the hard rules, the most relevant first.
    fn take_rules(&self, costs: &[u64], taken: &mut [bool], budget: u64) -> u64 {
        let most = (budget as f32 * RULES_SHARE) as u64;
        self.take_best(&|unit| unit.is_rule, costs, taken, 0, most)
    }

    /// Takes the state of everyone and everything in the scene.
    fn take_state(&self, costs: &[u64], taken: &mut [bool], spent: u64, budget: u64) -> u64 {
        let most = spent + (budget as f32 * STATE_SHARE) as u64;
        let is_wanted = |unit: &Unit| {
            let mut subjects = unit.subjects.iter();
            unit.is_state && subjects.any(|subject| self.present.contains(subject))
        };
        self.take_best(&is_wanted, costs, taken, spent, most)
    }

    fn take_best(
        &self,
        is_wanted: &dyn Fn(&Unit) -> bool,
        costs: &[u64],
        taken: &mut [bool],
        mut spent: u64,
        most: u64,
    ) -> u64 {
        let mut wanted: Vec<(f32, usize)> = (0..taken.len())
            .filter(|at| !taken[*at] && is_wanted(&self.pool.units[self.scores.candidates[*at]]))
            .map(|at| (self.best_for(at), at))
            .collect();
        wanted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, at) in wanted {
            if spent + costs[at] <= most {
                taken[at] = true;
                spent += costs[at];
            }
        }
        spent
    }

    fn best_for(&self, at: usize) -> f32 {
        self.scores
            .of_claim
            .iter()
            .map(|scores| scores[at])
            .fold(0.0, f32::max)
    }

    /// Returns the claim that wants a line most, and how much.
    fn gain(&self, at: usize, pull: &[f32], cost: u64) -> Option<(usize, f32)> {
        let wanted = self
            .scores
            .of_claim
            .iter()
            .zip(pull)
            .map(|(scores, pull)| scores[at] * pull);
        let (claim, best) = wanted.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let value = self.value(self.scores.candidates[at], best);
        Some((claim, value / (cost as f32).powf(COST)))
    }

    /// Returns the worth of a line with a score: a statement of a fact is worth more than a movement.
    fn value(&self, nth: usize, score: f32) -> f32 {
        let unit = &self.pool.units[nth];
        match unit.tier {
            Tier::L2 => score * (1.0 + FACTUAL * unit.factual) + RECENT * unit.recency,
            _ => score * (1.0 + FACTUAL) + ENTRY,
        }
    }

    fn cost(&self, nth: usize) -> u64 {
        Counter::O200k.count(&self.pool.units[nth].text).0 + OVERHEAD
    }
}

/// Lets sentences inherit a share of their neighbours' scores.
fn spread(pool: &Pool, scores: &mut Scores) {
    let candidates = &scores.candidates;
    let is_beside = |a: usize, b: usize| {
        let (one, other) = (&pool.units[candidates[a]], &pool.units[candidates[b]]);
        candidates[a] + 1 == candidates[b] && one.tier == Tier::L2 && one.at.path == other.at.path
    };
    for of_units in &mut scores.of_claim {
        let own = of_units.clone();
        for at in 1..own.len() {
            if is_beside(at - 1, at) {
                of_units[at] = of_units[at].max(own[at - 1] * FROM_BEFORE);
                of_units[at - 1] = of_units[at - 1].max(own[at] * FROM_AFTER);
            }
        }
    }
}

fn render(unit: &Unit) -> Evidence {
    Evidence {
        at: unit.at.clone(),
        tier: unit.tier,
        level: unit.level,
        about: unit.about.clone(),
        text: unit.text.clone(),
        holds: unit.holds.clone(),
        kind: match (unit.is_rule, unit.tier) {
            (true, _) => "rule",
            (_, Tier::L2) => "passage",
            _ => "fact",
        },
    }
}
