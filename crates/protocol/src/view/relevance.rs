//! Scores the relevance of text to a unit: the interface between views and recall, and a simple
//! scorer.
//!
//! The simple scorer gives the same scores for the same input.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::ProjectPath;

/// The topic of a unit in words: its title, its section of the outline, the headings of its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topic(pub String);

/// Scores how relevant each piece of a text is to a topic; 0 means irrelevant.
pub trait Relevance {
    fn scores(&self, topic: &Topic, path: &ProjectPath, pieces: &[&str]) -> Vec<u32>;
}

/// Counts shared words. Words that are rare among the pieces weigh more; long pieces get no
/// advantage.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lexical;

/// Common English words without meaning for a topic.
const COMMON: &[&str] = &[
    "about", "after", "all", "also", "and", "any", "are", "been", "before", "between", "both",
    "but", "can", "chapter", "does", "each", "every", "first", "for", "from", "had", "has", "have",
    "how", "into", "its", "like", "made", "make", "may", "more", "most", "must", "new", "not",
    "now", "one", "only", "other", "our", "out", "over", "part", "reader", "readers", "same",
    "should", "show", "shows", "some", "such", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "those", "through", "two", "use", "used", "was", "were",
    "what", "when", "where", "which", "while", "who", "why", "will", "with", "without", "would",
    "you", "your",
];

impl Relevance for Lexical {
    fn scores(&self, topic: &Topic, path: &ProjectPath, pieces: &[&str]) -> Vec<u32> {
        let wanted = words(&topic.0);
        let named = if names_path(&topic.0, path) { NAMED } else { 0 };
        let held: Vec<BTreeSet<String>> = pieces.iter().map(|text| words(text)).collect();
        let mut spread: BTreeMap<&str, u32> = BTreeMap::new();
        for word in held.iter().flatten().filter(|w| wanted.contains(*w)) {
            *spread.entry(word).or_default() += 1;
        }
        let all = f64::from(u32::try_from(pieces.len()).unwrap_or(u32::MAX));
        held.iter()
            .map(|words| {
                let shared = words.iter().filter_map(|w| spread.get(w.as_str()));
                let sum: f64 = shared
                    .map(|in_pieces| (1.0 + all / f64::from(*in_pieces)).ln())
                    .sum();
                let length = f64::from(u32::try_from(words.len()).unwrap_or(u32::MAX));
                let score = 100.0 * sum / (1.0 + 0.25 * length.ln_1p());
                // Round, so that the last bits of a logarithm decide nothing. Any shared word
                // counts.
                named
                    + if sum > 0.0 {
                        (score.round() as u32).max(1)
                    } else {
                        0
                    }
            })
            .collect()
    }
}

/// The score of a file that the topic names: higher than shared words can give.
const NAMED: u32 = 100_000;

/// Whether a text names a path, completely or by its last parts, or a folder above it:
/// `src/lease.rs`, `lease.rs:12`, `src/store/`.
fn names_path(text: &str, path: &ProjectPath) -> bool {
    let rooted = format!("/{path}");
    let apart = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '|' | '`'
                    | '"'
                    | '\''
                    | '('
                    | ')'
                    | '['
                    | ']'
                    | '<'
                    | '>'
                    | ','
                    | ';'
                    | '，'
                    | '、'
                    | '；'
            )
    };
    text.split(apart)
        .filter(|word| word.contains(['/', '.']))
        .any(|word| {
            let word = word
                .split(':')
                .next()
                .unwrap_or_default()
                .trim_start_matches("./")
                .trim_end_matches('.');
            match word.strip_suffix('/') {
                Some(folder) => !folder.is_empty() && rooted.contains(&format!("/{folder}/")),
                None => !word.is_empty() && rooted.ends_with(&format!("/{word}")),
            }
        })
}

/// The words of a text: English words without endings, Chinese words as pairs of characters.
pub(crate) fn words(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    for c in text.chars().chain([' ']) {
        if is_han(c) {
            if let Some(before) = before {
                found.insert([before, c].iter().collect());
            }
            before = Some(c);
        } else {
            before = None;
        }
        if c.is_alphanumeric() && !is_han(c) {
            word.extend(c.to_lowercase());
        } else if !word.is_empty() {
            if let Some(word) = kept(&word) {
                found.insert(word);
            }
            word.clear();
        }
    }
    found
}

fn kept(word: &str) -> Option<String> {
    if word.chars().count() < 3 || COMMON.contains(&word) {
        return None;
    }
    let stem = ["ing", "ies", "es", "ed", "s"]
        .iter()
        .find_map(|end| word.strip_suffix(end).filter(|stem| stem.len() > 3));
    let stem = stem.unwrap_or(word);
    // `leases` loses `es`, so `lease` must lose its `e`.
    Some(
        stem.strip_suffix('e')
            .filter(|short| short.len() > 2)
            .unwrap_or(stem)
            .to_owned(),
    )
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(topic: &str, pieces: &[&str]) -> Vec<u32> {
        Lexical.scores(
            &Topic(topic.into()),
            &ProjectPath::parse("a.md").unwrap(),
            pieces,
        )
    }

    #[test]
    fn shared_words_score_and_rare_ones_more() {
        let found = scores(
            "How leases expire",
            &[
                "| lease | ends by itself |",
                "| journal | a log |",
                "| lease expiry | expired |",
            ],
        );
        assert!(found[2] > found[0] && found[0] > 0, "{found:?}");
        assert_eq!(found[1], 0);
    }

    #[test]
    fn a_file_that_the_topic_names_matters_most() {
        let path = ProjectPath::parse("source/src/lease.rs").unwrap();
        for (topic, yes) in [
            ("| src/lease.rs | leases |", true),
            ("see `lease.rs:12`.", true),
            ("all of source/src/", true),
            ("src/release.rs and please.rs", false),
            ("A sentence. Another.", false),
        ] {
            assert_eq!(
                Lexical.scores(&Topic(topic.into()), &path, &["xyz"])[0] > 0,
                yes,
                "{topic}"
            );
        }
    }

    #[test]
    fn chinese_is_compared_by_pairs() {
        let found = scores(
            "租约的过期",
            &["租约：写入的权利", "日志：记录一切", "过期的租约"],
        );
        assert!(found[2] > found[0] && found[0] > 0, "{found:?}");
        assert_eq!(found[1], 0);
    }
}
