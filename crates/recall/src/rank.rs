//! Computes the features of each candidate and their weighted sum.
//!
//! Each feature is one reason why a section may answer: its own words, its context, its heading,
//! its date, a question just before it, terms shared by the best sections, and the encoder's
//! similarity. Neighbours are context only in a file that reads like a dialogue. Every feature is
//! divided by its greatest value for the question, so that scores of different questions compare.
//! The weights are in `weights`. The result does not depend on the time or order of indexing.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::Damage;
use super::background::share;
use super::direction::Direction;
use super::meaning::AddMeaning;
use super::pool::{Pool, top};
use super::question::{FirstScores, Question, rarity, saturate};
use super::scope::{Scope, Slot};
use super::segment::{Row, TermMap};
use super::signs::Signs;
use super::terms::Reader;
use super::weights::{self, Said, Weights};
use super::when::Days;
use super::wide::wide;

/// The names of the features, in the order of the weights.
///
/// The last three similarities count as far as the question's words occur nowhere: the less is
/// known of the words, the more the meaning matters.
pub const FEATURES: [&str; 20] = [
    "words",
    "window",
    "coverage",
    "heading",
    "before",
    "file",
    "asked",
    "asks",
    "when",
    "date",
    "length",
    "widened",
    "meaning",
    "context",
    "alike",
    "whole",
    "meaning alone",
    "context alone",
    "whole alone",
    "count",
];
/// One number for each of `FEATURES`.
pub type Features = [f32; FEATURES.len()];

const WINDOW_SATURATION: f32 = 1.2;
/// Query expansion: the number of sections to expand from, of terms to try and of terms to use.
const WIDEN_FROM: usize = 6;
const WIDEN_TRIED: usize = 30;
const WIDEN_BY: usize = 15;
/// The maximum number of postings that query expansion reads. In a huge project it would cost more
/// than the question itself.
const WIDEN_READ: usize = 50_000;
/// The largest project with query expansion. In larger ones, enough sections share the question's
/// own words.
const WIDEN_UNDER: u32 = 200_000;

/// The candidates of one question.
#[derive(Debug)]
pub struct Ranked {
    /// Slots with their features, in slot order.
    pub candidates: Vec<(Slot, Features)>,
    /// True for each candidate that is a turn of a dialogue.
    pub turns: Vec<bool>,
}

impl Ranked {
    /// Returns the best `count` candidates under the given weights.
    pub fn best(&self, scope: &Scope, weights: &Weights, count: usize) -> Vec<(f32, Slot)> {
        let scored = self
            .candidates
            .iter()
            .zip(&self.turns)
            .map(|((slot, features), is_turn)| (weights.score(features, *is_turn), *slot));
        top(scope, scored.collect(), count)
    }
}

/// The score that a section loses for each better one in its file, if a question asks for several
/// things: they are mostly in several places.
const CROWDED: f32 = 0.2;
/// The number of the best that may change places.
pub const SPREAD: usize = 100;

/// Reorders the best sections of a question that asks for several things, so that one file does not
/// take all places. Their scores stay.
pub fn spread(scope: &Scope, best: Vec<(f32, Slot)>) -> Vec<(f32, Slot)> {
    let mut files: HashMap<usize, f32> = HashMap::new();
    let mut rest = best;
    let others = rest.split_off(rest.len().min(SPREAD));
    let mut out = Vec::with_capacity(rest.len() + others.len());
    while !rest.is_empty() {
        let worth = |(score, slot): &(f32, Slot)| {
            let before = files.get(&scope.position(*slot).0);
            score - CROWDED * before.copied().unwrap_or_default()
        };
        // The first of equals: the order was by score and position.
        let mut next = 0;
        for at in 1..rest.len() {
            if worth(&rest[at]) > worth(&rest[next]) {
                next = at;
            }
        }
        let chosen = rest.remove(next);
        *files.entry(scope.position(chosen.1).0).or_default() += 1.0;
        out.push(chosen);
    }
    out.extend(others);
    out
}

impl Ranked {
    /// Returns true if a candidate is no better than the first hit for a question that nothing
    /// answers. The text is foreign if the question is in another script.
    pub fn is_weak(&self, slot: Slot, said: Said, foreign: bool) -> bool {
        let Ok(at) = self
            .candidates
            .binary_search_by_key(&slot, |(slot, _)| *slot)
        else {
            return true;
        };
        let features = &self.candidates[at].1;
        // Without a vector of its own, a section is judged by words.
        match features[12] == 0.0 {
            true => weights::SURE_BY_WORDS.is_weak(features, said),
            false if foreign && weights::is_near(features) => false,
            false => weights::SURE_BY_MEANING.is_weak(features, said),
        }
    }
}

/// Finds the candidates for a question and computes their features. `wanted` is the number of
/// requested hits.
pub fn rank(
    scope: &Scope,
    question: &Question,
    first: FirstScores,
    reader: &mut Reader,
    direction: Option<&Direction>,
    wanted: usize,
) -> Result<Ranked, Damage> {
    let FirstScores {
        seeds: mut starts,
        files,
    } = first;
    if let Some(direction) = direction {
        starts.extend(direction.seeds(scope, wanted)?);
    }
    let mut pool = Pool::new(scope, &starts);
    let mut rows: Vec<Row> = Vec::with_capacity(pool.slots.len());
    for run in scope.side_by_side(&pool.slots) {
        let (_, segment, number) = scope.place(run[0]);
        segment.add_rows(number, run.len() as u32, &mut rows)?;
    }
    pool.keep_near(|index| rows[index].signs.has(Signs::TURN));
    let words = Words::new(scope, question, &pool, &rows);
    let rarest = rarity(&[], scope.sections());
    // The encoder makes query expansion unnecessary, and expansion is the most expensive feature.
    let widened = match direction {
        None if scope.sections() <= WIDEN_UNDER => {
            widen(scope, question, &pool, &rows, &words, reader)?
        }
        _ => vec![0.0; rows.len()],
    };
    let mut candidates = Vec::with_capacity(pool.candidates.len());
    for index in &pool.candidates {
        let row = &rows[*index];
        let before = pool.before(*index);
        let asked = before.filter(|before| rows[*before].signs.has(Signs::ASKS));
        let own = |index: Option<usize>| index.map_or(0.0, |index| words.own[index]);
        let mut features = [0.0; FEATURES.len()];
        features[0] = words.plain[*index] / question.rarity;
        features[1] = words.window[*index] / question.mass;
        features[2] = words.coverage[*index] / question.mass;
        features[3] = words.heading[*index] / question.mass;
        features[4] = own(pool.second_before(*index)) / question.mass;
        features[5] = files[pool.places[*index].0 as usize] / question.mass;
        features[6] = own(asked) / question.mass;
        features[7] = f32::from(u8::from(row.signs.has(Signs::ASKS)));
        features[8] = f32::from(u8::from(question.asks_when && row.signs.has(Signs::TIME)));
        features[9] = nearness(question, row);
        features[10] = logarithm(row.length);
        features[11] = widened[*index] / rarest;
        features[19] = f32::from(u8::from(question.asks_count && row.signs.has(Signs::COUNT)));
        candidates.push((pool.slots[*index], features));
    }
    let is_turn = |index: &usize| rows[*index].signs.has(Signs::TURN);
    let mut ranked = Ranked {
        candidates,
        turns: pool.candidates.iter().map(is_turn).collect(),
    };
    if let Some(direction) = direction {
        let runs = direction.side_by_side(scope, &pool.slots)?;
        let meanings = direction.meanings(&runs);
        wide(AddMeaning {
            scope,
            pool: &pool,
            direction,
            meanings: &meanings,
            ranked: &mut ranked,
        });
        for (_, features) in &mut ranked.candidates {
            for (alone, similarity) in [(16, 12), (17, 13), (18, 15)] {
                features[alone] = (1.0 - question.how_much.known) * features[similarity];
            }
        }
    }
    Ok(ranked)
}

/// Returns how near a section is to the days that a question names: by its own date, or by the day
/// that its text names.
fn nearness(question: &Question, row: &Row) -> f32 {
    let days = [row.day, row.told];
    let by_date = question.dates.iter();
    let by_date = by_date.flat_map(|date| days.map(|day| date.nearness(day)));
    let ranges = question.days.iter();
    let ranges = ranges.flat_map(|asked| days.map(|day| (asked, Days::of(day))));
    let by_range = ranges.filter_map(|(asked, day)| Some(asked.nearness(day?)));
    by_date.chain(by_range).fold(0.0, f32::max)
}

/// Returns `ln(length + 1)`. Most lengths are short and come from a table.
fn logarithm(length: u16) -> f32 {
    static SHORT: OnceLock<[f32; 256]> = OnceLock::new();
    let short = SHORT.get_or_init(|| std::array::from_fn(|length| (length as f32).ln_1p()));
    short
        .get(usize::from(length))
        .copied()
        .unwrap_or_else(|| f32::from(length).ln_1p())
}

/// The word features of every member of the pool.
struct Words {
    own: Vec<f32>,
    plain: Vec<f32>,
    window: Vec<f32>,
    coverage: Vec<f32>,
    heading: Vec<f32>,
}

impl Words {
    fn new(scope: &Scope, question: &Question, pool: &Pool, rows: &[Row]) -> Self {
        let size = pool.slots.len();
        let mean = scope.mean_length();
        let zero = || vec![0.0f32; size];
        let mut words = Self {
            own: zero(),
            plain: zero(),
            window: zero(),
            coverage: zero(),
            heading: zero(),
        };
        let norms: Vec<f32> = (0..size)
            .map(|index| {
                let (mut length, mut shares) = (f32::from(rows[index].length), 1.0);
                for (there, share) in pool.neighbours(index) {
                    length += share * f32::from(rows[there].length);
                    shares += share;
                }
                WINDOW_SATURATION * (0.7 + 0.3 * length / shares / mean)
            })
            .collect();
        // Only members near an occurrence are visited. The values of all others stay zero.
        let mut times = zero();
        let mut headings = vec![false; size];
        let mut seen = vec![0u32; size];
        let mut near = Vec::new();
        for (round, term) in (1..).zip(&question.terms) {
            let found = pool.occurrences(&term.postings);
            near.clear();
            for (index, count, in_heading) in &found {
                (times[*index], headings[*index]) = (*count, *in_heading);
                for there in pool
                    .neighbours(*index)
                    .map(|(there, _)| there)
                    .chain([*index])
                {
                    if std::mem::replace(&mut seen[there], round) != round {
                        near.push(there);
                    }
                }
            }
            for index in near.iter().copied() {
                if times[index] > 0.0 {
                    let held = saturate(times[index], f32::from(rows[index].length), mean);
                    words.own[index] += term.weight * held;
                    words.plain[index] += term.rarity * held;
                }
                let around_it = pool
                    .neighbours(index)
                    .map(|(there, share)| share * times[there]);
                let mut around = times[index] + around_it.sum::<f32>();
                if headings[index] {
                    around += 1.0;
                    words.heading[index] += term.weight;
                }
                if around > 0.0 {
                    let held = around * (WINDOW_SATURATION + 1.0) / (around + norms[index]);
                    words.window[index] += term.weight * held;
                    words.coverage[index] += term.weight;
                }
            }
            found
                .iter()
                .for_each(|(index, ..)| (times[*index], headings[*index]) = (0.0, false));
        }
        words
    }
}

/// Query expansion: scores members by the terms that the best sections share beyond those of the
/// question.
fn widen(
    scope: &Scope,
    question: &Question,
    pool: &Pool,
    rows: &[Row],
    words: &Words,
    reader: &mut Reader,
) -> Result<Vec<f32>, Damage> {
    let scored = pool
        .candidates
        .iter()
        .map(|index| (words.window[*index], pool.slots[*index]));
    let scored = scored.filter(|(score, _)| *score > 0.0).collect();
    let mut gathered: TermMap<(f32, f32)> = TermMap::default();
    for (score, slot) in top(scope, scored, WIDEN_FROM) {
        let (_, segment, number) = scope.place(slot);
        let row = segment.row(number)?;
        let (_, text) = segment.record(&row)?;
        let mut counts: TermMap<(f32, f32)> = TermMap::default();
        reader.read(&text, |term, kind| {
            let count = counts.entry(term).or_insert((0.0, share(kind)));
            count.0 += 1.0;
        });
        for (term, (count, share)) in counts {
            let more = score * count / (count + 1.0) / (5.0 + f32::from(row.length));
            gathered.entry(term).or_insert((0.0, share)).0 += more;
        }
    }
    let mut tried: Vec<_> = gathered
        .into_iter()
        .filter(|(term, _)| !question.said.contains(term))
        .map(|(term, (gain, share))| (gain * share, term))
        .collect();
    tried.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
    tried.truncate(WIDEN_TRIED);
    let mut chosen = Vec::new();
    let mut read = 0;
    for (gain, term) in tried {
        if read > WIDEN_READ {
            break;
        }
        let postings = scope.find(term)?;
        read += postings.len();
        let rarity = rarity(&postings, scope.sections());
        chosen.push((gain * rarity, term, rarity, postings));
    }
    chosen.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
    chosen.truncate(WIDEN_BY);
    let total: f32 = chosen.iter().map(|(gain, ..)| gain).sum::<f32>().max(1e-9);
    let mean = scope.mean_length();
    let mut own = vec![0.0f32; pool.slots.len()];
    for (gain, _, rarity, postings) in &chosen {
        for (index, times, _) in pool
            .occurrences(postings)
            .into_iter()
            .filter(|(_, times, _)| *times > 0.0)
        {
            let held = saturate(times, f32::from(rows[index].length), mean);
            own[index] += gain / total * rarity * held;
        }
    }
    let around = |index: usize| {
        let near = pool.neighbours(index).filter(|(_, share)| *share >= 0.5);
        own[index] + near.map(|(there, share)| share * own[there]).sum::<f32>()
    };
    Ok((0..own.len()).map(around).collect())
}
