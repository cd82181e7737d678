//! Chooses the hits that an answer shows.
//!
//! As many as fit a token budget, since an agent that can pick from many short hits finds more than
//! one that gets a few long ones. Sections that say the same are folded into the best of them. Weak
//! hits are left out where there is a good one. If no hit is good, at most three are shown, and none
//! with a score below zero. The order of the hits stays.

use std::collections::HashSet;

use quipu_recall::{Answer, Hit};

/// The default budget for the text of an answer, in tokens.
pub const ANSWER_TOKENS: usize = 600;
/// The number of hits to ask for when a budget limits the answer.
pub const CANDIDATES: usize = 30;
/// The most hits of an answer without a good one.
const MOST_WEAK: usize = 3;
/// Two texts say the same if they share this much of their pieces, and all figures.
const SAME: f32 = 0.8;
/// The number of characters in a piece.
const PIECE: usize = 4;

/// A hit, and the places of the hits that say the same.
#[derive(Debug)]
pub struct Shown {
    pub hit: Hit,
    pub also: Vec<(String, u32)>,
}

/// Chooses hits: at most `most`, and only as many as fit `tokens`, but at least one. Unless
/// `with_weak`, good hits are shown alone.
#[must_use]
pub fn shown_hits(
    answer: &Answer,
    most: usize,
    tokens: Option<usize>,
    with_weak: bool,
) -> Vec<Shown> {
    let with_weak = with_weak || answer.is_weak();
    let most = if answer.is_weak() {
        most.min(MOST_WEAK)
    } else {
        most
    };
    let mut shown: Vec<Shown> = Vec::new();
    let mut contents: Vec<Content> = Vec::new();
    let mut left = tokens.unwrap_or(usize::MAX);
    // A weak hit below zero shares less with the question than a section without its words.
    for hit in answer
        .hits
        .iter()
        .filter(|hit| !hit.weak || with_weak && hit.score > 0.0)
    {
        let content = Content::of(&hit.snippet);
        if let Some(same) = contents.iter().position(|other| other.is_same(&content)) {
            shown[same].also.push((hit.path.clone(), hit.line));
            continue;
        }
        let cost = tokens_of(hit);
        if shown.len() == most || cost > left && !shown.is_empty() {
            break;
        }
        left = left.saturating_sub(cost);
        contents.push(content);
        shown.push(Shown {
            hit: hit.clone(),
            also: Vec::new(),
        });
    }
    shown
}

/// Estimates the tokens of a hit: four ASCII characters each, or one other character.
fn tokens_of(hit: &Hit) -> usize {
    let heading: usize = hit.heading_path.iter().map(|title| quarters(title)).sum();
    // Line, tier and score take about eight.
    (quarters(&hit.path) + heading + quarters(&hit.snippet)).div_ceil(4) + 8
}

fn quarters(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 4 }).sum()
}

/// What a snippet says, without case and punctuation.
struct Content {
    pieces: HashSet<Vec<char>>,
    figures: Vec<char>,
}

impl Content {
    fn of(text: &str) -> Self {
        let letters: Vec<char> = text
            .chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect();
        let pieces = match letters.len() {
            0..PIECE => HashSet::from([letters.clone()]),
            _ => letters.windows(PIECE).map(<[char]>::to_vec).collect(),
        };
        let figures = letters.into_iter().filter(|c| c.is_numeric()).collect();
        Self { pieces, figures }
    }

    fn is_same(&self, other: &Self) -> bool {
        let shared = self.pieces.intersection(&other.pieces).count();
        let all = self.pieces.len() + other.pieces.len() - shared;
        self.figures == other.figures && shared as f32 >= SAME * all as f32
    }
}

#[cfg(test)]
mod tests {
    use quipu_recall::Tier;

    use super::*;

    fn answer(snippets: &[&str], weak: bool) -> Answer {
        let hit = |(line, snippet): (u32, &&str)| Hit {
            path: "notes.md".to_owned(),
            line,
            heading_path: Vec::new(),
            tier: Tier::L1,
            score: 1.0,
            weak,
            snippet: (*snippet).to_owned(),
            version: String::new(),
            ordinal: line,
        };
        Answer {
            hits: (1..).zip(snippets).map(hit).collect(),
            files: 1,
            sections: snippets.len(),
            encoded: 0,
        }
    }

    fn lines(shown: &[Shown]) -> Vec<u32> {
        shown.iter().map(|shown| shown.hit.line).collect()
    }

    #[test]
    fn as_many_hits_as_fit_the_budget() {
        let answer = answer(&["the red boat", "a cold night in March", "茶凉了"], false);
        assert_eq!(lines(&shown_hits(&answer, 20, Some(600), false)), [1, 2, 3]);
        assert_eq!(lines(&shown_hits(&answer, 20, Some(30), false)), [1, 2]);
        assert_eq!(lines(&shown_hits(&answer, 20, Some(1), false)), [1]);
        assert_eq!(lines(&shown_hits(&answer, 2, None, false)), [1, 2]);
    }

    #[test]
    fn at_most_three_weak_hits() {
        let answer = answer(&["one boat", "two cats", "three dogs", "four owls"], true);
        assert_eq!(lines(&shown_hits(&answer, 20, None, false)), [1, 2, 3]);
    }

    #[test]
    fn weak_hits_do_not_follow_good_ones_unless_asked_for() {
        let mut answer = answer(&["one boat", "two cats", "three dogs"], false);
        answer.hits[1].weak = true;
        assert_eq!(lines(&shown_hits(&answer, 20, None, false)), [1, 3]);
        assert_eq!(lines(&shown_hits(&answer, 20, None, true)), [1, 2, 3]);
    }

    #[test]
    fn the_same_text_is_folded_but_not_other_figures() {
        let texts = [
            "The boat is red and the harbour is closed.",
            "The boat is red, and the harbour is closed",
            "The boat is red and the harbour is closed at 9.",
            "广茂铁路全长364公里，从广州到茂名。",
            "广茂铁路全长364公里，从广州到茂名",
            "广茂铁路全长365公里，从广州到茂名。",
        ];
        let shown = shown_hits(&answer(&texts, false), 20, None, false);
        assert_eq!(lines(&shown), [1, 3, 4, 6]);
        assert_eq!(shown[0].also, [("notes.md".to_owned(), 2)]);
        assert_eq!(shown[2].also, [("notes.md".to_owned(), 5)]);
    }
}
