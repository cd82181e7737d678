//! Scores how much a line of evidence bears on a claim.
//!
//! Three signs count: shared words, weighted by rarity; similar meaning, by the sentence encoder;
//! and a common subject. Without an encoder, words and subjects decide. Only the lines that share
//! words or a subject with a scene are encoded, so a long novel costs no more than a short one.

use std::collections::{BTreeMap, HashMap};

use crate::pool::{Pool, Unit};
use crate::roster::Roster;
use crate::words::{is_han, stem, words};

/// The terms of a text with their weights.
#[derive(Debug, Clone, Default)]
pub struct Bag {
    pub terms: BTreeMap<String, f32>,
    /// The sum of the weights.
    pub size: f32,
}

/// The weights of a Han character and of a pair, so that a word of two is worth one.
const HAN: f32 = 0.2;
const HAN_PAIR: f32 = 0.6;

/// Characters that say little alone.
const LIGHT_HAN: &str =
    "的了是在和与把被他她我你它们这那个有不也就都而又着过到说一上下来去从对为很还没以之其";

/// Words that say nothing about the subject of a text.
const LIGHT: &[&str] = &[
    "the", "a", "an", "of", "and", "or", "to", "in", "on", "at", "for", "with", "is", "was",
    "were", "are", "be", "been", "who", "what", "that", "this", "it", "its", "his", "her", "he",
    "she", "they", "had", "has", "have", "which", "by", "from", "as", "did", "do", "does", "why",
    "how", "when", "where", "else", "can", "him", "them", "their", "i", "you", "my", "me", "we",
    "but", "so", "then", "there", "out", "up", "down", "into", "over", "said", "not", "no", "if",
    "than", "would", "could", "one", "all", "s", "t", "like", "about", "very", "just", "some",
];

/// Returns the terms of a text: stems of words, Han characters and their pairs. A name is one term,
/// whatever form it has.
pub fn bag(text: &str, roster: &Roster) -> Bag {
    let (text, named) = roster.without_names(text);
    let text = text.as_str();
    let mut terms: BTreeMap<String, f32> = named
        .into_iter()
        .map(|entity| (format!("@{entity}"), 1.0))
        .collect();
    for word in words(text)
        .iter()
        .filter(|word| !LIGHT.contains(&word.lower.as_str()))
    {
        terms.insert(stem(&word.lower).to_owned(), 1.0);
    }
    let chars: Vec<char> = text.chars().collect();
    for (nth, c) in chars.iter().enumerate().filter(|(_, c)| is_han(**c)) {
        let is_light = LIGHT_HAN.contains(*c);
        if !is_light {
            terms.insert(c.to_string(), HAN);
        }
        if let Some(next) = chars.get(nth + 1).filter(|next| is_han(**next))
            && !(is_light && LIGHT_HAN.contains(*next))
        {
            terms.insert([*c, *next].iter().collect(), HAN_PAIR);
        }
    }
    let size = terms.values().sum();
    Bag { terms, size }
}

/// One claim as a query.
pub struct Query {
    terms: BTreeMap<String, f32>,
    vector: Vec<f32>,
    subjects: BTreeMap<usize, f32>,
}

/// The weights of the signs.
const WORDS: f32 = 1.0;
const MEANING: f32 = 0.9;
const SUBJECT: f32 = 0.1;
/// Similarity below this says nothing.
const UNLIKE: f32 = 0.1;
/// The share of the neighbouring sentences in a claim's words.
const CONTEXT: f32 = 0.25;
/// The shared rarity that is half of the most.
const STEADY: f32 = 8.0;
/// Shorter lines count as this long: a name and a verb are not worth more for being brief.
const SHORT: f32 = 8.0;
/// The weight of a typical line's terms.
const TYPICAL: f32 = 12.0;
/// The most lines of a scene that are encoded.
const MOST_ENCODED: usize = 500;

/// The scores of the candidate lines for each claim of a scene.
pub struct Scores {
    /// Indices of lines in the pool.
    pub candidates: Vec<usize>,
    /// For each claim, a score for each candidate.
    pub of_claim: Vec<Vec<f32>>,
}

/// Scores the lines of a pool for consecutive claims.
pub fn score(
    pool: &Pool,
    texts: &[&str],
    subjects: &[BTreeMap<usize, f32>],
    vectors: &mut Vectors,
) -> Scores {
    let queries = queries(pool, texts, subjects, vectors);
    let words: Vec<HashMap<usize, f32>> = queries
        .iter()
        .map(|query| word_scores(pool, query))
        .collect();
    let candidates = candidates(pool, &queries, &words);
    vectors.learn(pool, &candidates);
    let of_claim = queries
        .iter()
        .zip(&words)
        .map(|(query, words)| {
            let one = |nth: &usize| {
                let unit = &pool.units[*nth];
                let shared = words.get(nth).copied().unwrap_or(0.0);
                let alike = vectors.alike(&query.vector, *nth) - UNLIKE;
                let subject = common_subject(unit, query);
                WORDS * shared + MEANING * alike.max(0.0) + SUBJECT * subject
            };
            candidates.iter().map(one).collect()
        })
        .collect();
    Scores {
        candidates,
        of_claim,
    }
}

/// Returns how surely a line and a claim are about the same person, place or thing.
fn common_subject(unit: &Unit, query: &Query) -> f32 {
    let common = unit
        .subjects
        .iter()
        .filter_map(|subject| query.subjects.get(subject));
    common.copied().fold(0.0, f32::max)
}

fn queries(
    pool: &Pool,
    texts: &[&str],
    subjects: &[BTreeMap<usize, f32>],
    vectors: &Vectors,
) -> Vec<Query> {
    let bags: Vec<Bag> = texts.iter().map(|text| bag(text, &pool.roster)).collect();
    let encoded = vectors.encode(texts);
    let mut queries = Vec::new();
    for nth in 0..texts.len() {
        let mut terms = bags[nth].terms.clone();
        let near = [nth.checked_sub(1), Some(nth + 1)];
        for other in near.into_iter().flatten().filter_map(|near| bags.get(near)) {
            for (term, weight) in &other.terms {
                terms.entry(term.clone()).or_insert(weight * CONTEXT);
            }
        }
        terms.retain(|term, _| !pool.with_term(term).is_empty());
        queries.push(Query {
            terms,
            vector: encoded.get(nth).cloned().unwrap_or_default(),
            subjects: subjects[nth].clone(),
        });
    }
    queries
}

/// Returns how much each line shares with a claim, rare words counting more. Two rare words are
/// nearly as good as four, however long the claim is.
fn word_scores(pool: &Pool, query: &Query) -> HashMap<usize, f32> {
    let mut scores: HashMap<usize, f32> = HashMap::new();
    for (term, weight) in &query.terms {
        let worth = weight * pool.rarity(term);
        for nth in pool.with_term(term) {
            *scores.entry(*nth as usize).or_default() += worth;
        }
    }
    for (nth, score) in &mut scores {
        let length = pool.units[*nth].bag.size.max(SHORT);
        let shared = *score / (0.7 + 0.3 * length / TYPICAL);
        *score = shared / (shared + STEADY);
    }
    scores
}

/// Returns the lines worth a closer look: the best by words, and those of the scene's subjects.
fn candidates(pool: &Pool, queries: &[Query], words: &[HashMap<usize, f32>]) -> Vec<usize> {
    if pool.units.len() <= MOST_ENCODED {
        return (0..pool.units.len()).collect();
    }
    let mut best: BTreeMap<usize, f32> = BTreeMap::new();
    for (query, words) in queries.iter().zip(words) {
        for (nth, score) in words {
            let score = score + 0.1 * common_subject(&pool.units[*nth], query);
            let known = best.entry(*nth).or_default();
            *known = known.max(score);
        }
    }
    let is_meant = |unit: &Unit| {
        let mut of_unit = queries.iter().map(|query| common_subject(unit, query));
        unit.is_state && of_unit.any(|common| common > 0.0)
    };
    for (nth, unit) in pool.units.iter().enumerate() {
        if unit.is_rule || is_meant(unit) {
            *best.entry(nth).or_default() += 1.0;
        }
    }
    let mut ranked: Vec<(usize, f32)> = best.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.truncate(MOST_ENCODED);
    let mut found: Vec<usize> = ranked.into_iter().map(|(nth, _)| nth).collect();
    // A fact that has ended is shown beside the one that holds now.
    let followers = found.iter().flat_map(|nth| pool.followers(*nth));
    found.extend(followers.copied().collect::<Vec<_>>());
    found.sort_unstable();
    found.dedup();
    found
}

/// Vectors of the pool's lines, encoded when first needed.
#[derive(Default)]
pub struct Vectors {
    known: HashMap<usize, Vec<f32>>,
}

impl Vectors {
    fn encode(&self, texts: &[&str]) -> Vec<Vec<f32>> {
        quipu_recall::encode_texts(texts)
    }

    fn learn(&mut self, pool: &Pool, wanted: &[usize]) {
        let missing: Vec<usize> = wanted
            .iter()
            .copied()
            .filter(|nth| !self.known.contains_key(nth))
            .collect();
        let texts: Vec<String> = missing
            .iter()
            .map(|nth| {
                let unit = &pool.units[*nth];
                match unit.about.is_empty() {
                    true => unit.text.clone(),
                    false => format!("{}: {}", unit.about, unit.text),
                }
            })
            .collect();
        let encoded = self.encode(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        self.known.extend(missing.into_iter().zip(encoded));
    }

    fn alike(&self, query: &[f32], nth: usize) -> f32 {
        let Some(vector) = self.known.get(&nth) else {
            return 0.0;
        };
        query.iter().zip(vector).map(|(a, b)| a * b).sum()
    }
}
