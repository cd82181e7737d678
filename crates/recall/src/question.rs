//! A parsed question: its terms, their weights and their occurrences.
//!
//! The weight of a term depends on its rarity in the scope and in general language. Weights are
//! summed in the order of the question, so equal input gives identical results.

use std::ops::Range;

use jiff::civil::Date;

use super::Damage;
use super::background::share;
use super::languages::Language;
use super::nearest::Best;
use super::pool::top;
use super::scope::{Posting, Scope, Slot};
use super::signs::{self, Day};
use super::terms::{Kind, Reader, Term, is_mostly_unspaced};
use super::weights::Said;
use super::when::{self, Days};
use super::wide::most;

/// The BM25 parameters k1 (term frequency saturation) and b (length normalisation).
const SATURATION: f32 = 0.9;
const LENGTH: f32 = 0.3;
/// The minimum number of sections selected by words alone.
const SEEDS: usize = 60;
/// The share of the weight of Chinese, Japanese and Korean terms that counts as said: a word is
/// read as characters and as pairs that overlap.
const OF_A_PAIR: f32 = 0.25;
/// The number of scores that are summed at a time. Tests use a small value.
const WINDOW: usize = if cfg!(test) { 64 } else { 4096 };

/// One term of the question that occurs in the scope.
#[derive(Debug)]
pub struct Sought {
    /// Its weight: rarity in the scope times rarity in the language.
    pub weight: f32,
    /// Its rarity in the scope alone.
    pub rarity: f32,
    pub postings: Vec<Posting>,
}

/// A question against one scope.
#[derive(Debug)]
pub struct Question {
    /// Terms that occur in the scope, in the order of the question.
    pub terms: Vec<Sought>,
    /// All terms of the question, which query expansion must skip.
    pub said: Vec<Term>,
    /// The total weight of all terms that occur.
    pub mass: f32,
    /// Their total rarity in the scope.
    pub rarity: f32,
    /// The share of the question's weight that those terms have, and this weight.
    pub how_much: Said,
    /// True if the question asks for a time.
    pub asks_when: bool,
    /// The dates that it names.
    pub dates: Vec<Day>,
    /// The days that it names in relation to the day it is asked on.
    pub days: Vec<Days>,
    /// True if the question asks for a number.
    pub asks_count: bool,
    /// True if the question asks for several things.
    pub asks_several: bool,
}

impl Question {
    /// Parses a question and finds its terms.
    pub fn read(
        text: &str,
        as_of: Option<Date>,
        scope: &Scope,
        reader: &mut Reader,
    ) -> Result<Self, Damage> {
        let language = Language::of(text);
        let mut said: Vec<Term> = Vec::new();
        let mut words: Vec<(Range<usize>, Kind)> = Vec::new();
        reader.read_in(language, text, |range, term, kind| {
            if !said.contains(&term) {
                said.push(term);
                words.push((range, kind));
            }
        });
        let mut terms = Vec::new();
        let (mut mass, mut whole, mut rare, mut said_in_all) = (0.0, 0.0, 0.0, 0.0);
        for (at, (range, kind)) in words.into_iter().enumerate() {
            let mut postings = scope.find(said[at])?;
            let share = share(kind);
            if matches!(kind, Kind::Word(_)) {
                let word = &text[range];
                find_in_others(language, word, scope, reader, &mut said, &mut postings)?;
            }
            let rarity = rarity(&postings, scope.sections());
            let weight = rarity * share;
            whole += weight;
            said_in_all += share;
            if !postings.is_empty() {
                mass += weight;
                rare += rarity;
                terms.push(Sought {
                    weight,
                    rarity,
                    postings,
                });
            }
        }
        let counts = match is_mostly_unspaced(text) {
            true => OF_A_PAIR,
            false => 1.0,
        };
        Ok(Self {
            terms,
            said,
            mass: mass.max(1e-6),
            rarity: f32::max(rare, 1e-6),
            how_much: Said {
                known: if whole > 0.0 { mass / whole } else { 0.0 },
                weight: said_in_all * counts,
            },
            asks_when: signs::asks_when(text),
            dates: signs::dates(text),
            days: as_of.map_or_else(Vec::new, |as_of| when::named(text, as_of)),
            asks_count: signs::asks_count(text),
            asks_several: signs::asks_several(text),
        })
    }

    /// Computes a first score for every section that shares a term with the question in text or
    /// heading.
    ///
    /// Scores are summed window by window, in memory that fits the L1 cache. The scores of each
    /// section are added in the order of the question, so the window size does not affect the
    /// result.
    pub fn first_scores(&self, scope: &Scope, wanted: usize) -> FirstScores {
        let seeds = SEEDS.max(wanted.min(scope.sections() as usize));
        let mean = scope.mean_length();
        let mut best = Best::new(seeds);
        let mut files = vec![0.0f32; scope.files()];
        let mut scores = vec![0.0f32; WINDOW.min(scope.slots())];
        let mut rests: Vec<(f32, &[Posting])> = self
            .terms
            .iter()
            .map(|term| (term.weight, &term.postings[..]))
            .collect();
        let mut runs = scope.runs();
        while let Some(next) = rests
            .iter()
            .filter_map(|(_, rest)| rest.first())
            .map(|posting| posting.slot)
            .min()
        {
            let window = next..next.saturating_add(scores.len() as Slot);
            for (weight, rest) in &mut rests {
                while let Some((posting, tail)) = rest
                    .split_first()
                    .filter(|(posting, _)| posting.slot < window.end)
                {
                    *rest = tail;
                    let held = saturate(f32::from(posting.times), f32::from(posting.length), mean);
                    let heading = if posting.in_heading { 0.5 } else { 0.0 };
                    // Tiny but never zero, because zero means untouched.
                    scores[(posting.slot - window.start) as usize] +=
                        (*weight * (held + heading)).max(f32::MIN_POSITIVE);
                }
            }
            runs = &runs[runs.partition_point(|run| run.end() <= window.start)..];
            for run in runs.iter().take_while(|run| run.start < window.end) {
                let start = run.start.max(window.start);
                let own = &mut scores[(start - window.start) as usize
                    ..(run.end().min(window.end) - window.start) as usize];
                let most = most(own, 0.0);
                if most > 0.0 {
                    let file = &mut files[run.owner as usize];
                    *file = file.max(most);
                    if most >= best.least() {
                        let touched = (start..).zip(own.iter()).filter(|(_, score)| **score > 0.0);
                        touched.for_each(|(slot, score)| best.add(*score, slot));
                    }
                    own.fill(0.0);
                }
            }
        }
        FirstScores {
            seeds: top(scope, best.found, seeds)
                .into_iter()
                .map(|(_, slot)| slot)
                .collect(),
            files,
        }
    }
}

/// Adds the occurrences of a word by its stems in other languages: a short text without function
/// words is read as English. An English word is sought in others only if it occurs nowhere.
fn find_in_others(
    language: Language,
    word: &str,
    scope: &Scope,
    reader: &mut Reader,
    said: &mut Vec<Term>,
    postings: &mut Vec<Posting>,
) -> Result<(), Damage> {
    for other in Language::ALL.into_iter().filter(|other| *other != language) {
        let is_wanted = match language {
            Language::English => postings.is_empty(),
            _ => other == Language::English,
        };
        let mut stems = Vec::new();
        if is_wanted {
            reader.read_in(other, word, |_, term, _| stems.push(term));
        }
        stems.retain(|stem| !said.contains(stem));
        if let [stem] = stems[..] {
            let found = scope.find(stem)?;
            if !found.is_empty() {
                said.push(stem);
                *postings = merged(std::mem::take(postings), found);
            }
        }
    }
    Ok(())
}

/// Merges the occurrences of two terms, both in slot order.
fn merged(one: Vec<Posting>, other: Vec<Posting>) -> Vec<Posting> {
    let mut all = one;
    all.extend(other);
    all.sort_by_key(|posting| posting.slot);
    all.dedup_by(|next, before| {
        let is_same = next.slot == before.slot;
        if is_same {
            before.times = before.times.saturating_add(next.times);
            before.in_heading |= next.in_heading;
        }
        is_same
    });
    all
}

/// The scores from the question's words alone.
#[derive(Debug)]
pub struct FirstScores {
    /// The sections with the highest scores, best first.
    pub seeds: Vec<Slot>,
    /// The best score of any section of each file.
    pub files: Vec<f32>,
}

/// Returns the inverse document frequency of a term, counting sections with the term in text or
/// heading.
pub fn rarity(postings: &[Posting], sections: u32) -> f32 {
    let texts = postings.iter().filter(|posting| posting.times > 0).count();
    let headings = postings.iter().filter(|posting| posting.in_heading).count();
    let holders = texts.max(headings) as f32;
    (1.0 + (sections as f32 - holders + 0.5) / (holders + 0.5)).ln()
}

/// Returns the BM25 score of a number of occurrences in a section of the given length.
pub fn saturate(times: f32, length: f32, mean: f32) -> f32 {
    let norm = SATURATION * (1.0 - LENGTH + LENGTH * length / mean);
    times * (SATURATION + 1.0) / (times + norm)
}
