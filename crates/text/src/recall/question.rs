//! A question, read: its terms, how much each may say, and where each occurs.
//!
//! A term weighs by how rare it is in the scope and in general language. Weights are summed in the
//! order of the question, so equal input gives equal bits.

use super::Damage;
use super::background::share;
use super::scope::{Posting, Scope, Slot};
use super::signs::{self, Day};
use super::terms::{Reader, Term};

/// How fast repetition stops to count, and how much long sections are held back (BM25).
const SATURATION: f32 = 0.9;
const LENGTH: f32 = 0.3;

/// One term of the question that occurs in the scope.
#[derive(Debug)]
pub struct Sought {
    /// Its weight: rarity in the scope times rarity in the language.
    pub weight: f32,
    /// Its rarity in the scope alone.
    pub rarity: f32,
    /// Where it occurs.
    pub postings: Vec<Posting>,
}

/// A question against one scope.
#[derive(Debug)]
pub struct Question {
    /// Terms that occur somewhere, in the order of the question.
    pub terms: Vec<Sought>,
    /// The terms of the question, to be left out when it is widened.
    pub said: Vec<Term>,
    /// The weights of all terms that occur, together.
    pub mass: f32,
    /// Whether it asks for a time.
    pub asks_when: bool,
    /// Dates it names.
    pub dates: Vec<Day>,
}

impl Question {
    /// Reads a question and finds its terms.
    pub fn read(text: &str, scope: &Scope, reader: &mut Reader) -> Result<Self, Damage> {
        let mut said: Vec<Term> = Vec::new();
        let mut shares = Vec::new();
        reader.read(text, |term, kind| {
            if !said.contains(&term) {
                said.push(term);
                shares.push(share(kind));
            }
        });
        let mut terms = Vec::new();
        let mut mass = 0.0;
        for (term, share) in said.iter().zip(&shares) {
            let postings = scope.find(*term)?;
            if !postings.is_empty() {
                let rarity = rarity(&postings, scope.sections());
                let weight = rarity * share;
                mass += weight;
                terms.push(Sought { weight, rarity, postings });
            }
        }
        Ok(Self { terms, said, mass: mass.max(1e-6), asks_when: signs::asks_when(text), dates: signs::dates(text) })
    }

    /// Adds a first score for every section that shares a term with the question, by text and heading; says which those are.
    pub fn first_scores(&self, scope: &Scope, scores: &mut [f32]) -> Vec<Slot> {
        let mean = scope.mean_length();
        let mut touched = Vec::with_capacity(self.terms.iter().map(|term| term.postings.len()).sum());
        for term in &self.terms {
            for posting in &term.postings {
                let score = &mut scores[posting.slot as usize];
                if *score == 0.0 {
                    touched.push(posting.slot);
                }
                let held = saturate(f32::from(posting.times), f32::from(posting.length), mean);
                let heading = if posting.in_heading { 0.5 } else { 0.0 };
                // Tiny but never zero: zero means untouched.
                *score += (term.weight * (held + heading)).max(f32::MIN_POSITIVE);
            }
        }
        touched
    }
}

/// How rare a term is: sections in all against sections that hold it in text or heading.
pub fn rarity(postings: &[Posting], sections: u32) -> f32 {
    let texts = postings.iter().filter(|posting| posting.times > 0).count();
    let headings = postings.iter().filter(|posting| posting.in_heading).count();
    let holders = texts.max(headings) as f32;
    (1.0 + (sections as f32 - holders + 0.5) / (holders + 0.5)).ln()
}

/// What so many occurrences count in a section of such a length.
pub fn saturate(times: f32, length: f32, mean: f32) -> f32 {
    let norm = SATURATION * (1.0 - LENGTH + LENGTH * length / mean);
    times * (SATURATION + 1.0) / (times + norm)
}
