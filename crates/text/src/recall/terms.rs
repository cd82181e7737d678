//! Turns text into terms: English stems, numbers, and bigrams and single characters of Chinese.
//!
//! A term is the hash of its normal form, so the index holds no strings. The same function reads
//! sections, headings and questions; nothing else in recall looks inside a word. Which terms matter
//! is not decided here but by `weigh`.

use std::collections::HashMap;
use std::sync::OnceLock;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

use super::background::is_function;
use super::bytes::fingerprint;

/// The hash of a normalised word, number or piece of Chinese text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(pub u64);

/// What kind of token a term came from; it decides how common the term is in general language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word in an alphabet, with the key of its stem in the table of word frequencies.
    Word(u32),
    /// A number.
    Number,
    /// Two neighbouring characters of a script written without spaces.
    Pair,
    /// One such character.
    Single,
    /// One or two such characters that carry grammar only.
    Function,
}

/// Words that carry grammar, not content. Sorted, for binary search.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any",
    "are", "as", "at", "be", "because", "been", "before", "being", "below", "between", "both",
    "but", "by", "can", "cannot", "could", "d", "did", "do", "does", "doing", "don", "down",
    "during", "each", "few", "for", "from", "further", "had", "has", "have", "having", "he",
    "her", "here", "hers", "herself", "him", "himself", "his", "how", "i", "if", "in", "into",
    "is", "it", "its", "itself", "just", "let", "ll", "m", "may", "me", "might", "more", "most",
    "must", "my", "myself", "no", "nor", "not", "o", "of", "off", "on", "once", "only", "or",
    "other", "ought", "our", "ours", "ourselves", "out", "over", "own", "re", "s", "same",
    "shall", "she", "should", "so", "some", "such", "t", "than", "that", "the", "their",
    "theirs", "them", "themselves", "then", "there", "these", "they", "this", "those",
    "through", "to", "too", "under", "until", "up", "ve", "very", "was", "we", "were", "what",
    "when", "where", "which", "while", "who", "whom", "why", "will", "with", "would", "you",
    "your", "yours", "yourself", "yourselves",
];

fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

fn irregular() -> &'static HashMap<&'static str, &'static str> {
    static FORMS: OnceLock<HashMap<&'static str, &'static str>> = OnceLock::new();
    FORMS.get_or_init(|| {
        let mut forms = HashMap::new();
        let lines = include_str!("irregular.txt").lines();
        for line in lines.filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            if let Some(base) = words.next() {
                forms.extend(words.map(|form| (form, base)));
            }
        }
        forms
    })
}

/// Whether a character belongs to a script that is written without spaces between words.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c as u32,
        0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff
        | 0x20000..=0x323af)
}

/// Full-width letters and digits become their ordinary forms.
fn narrow(c: char) -> char {
    match c as u32 {
        code @ 0xff01..=0xff5e => char::from_u32(code - 0xfee0).unwrap_or(c),
        0x3000 => ' ',
        0x2019 => '\'',
        _ => c,
    }
}

/// Reads terms out of text and remembers stems, which are the costly part.
pub struct Reader {
    stemmer: Stemmer,
    known: HashMap<String, Option<(Term, u32)>>,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

/// Stems remembered at most; beyond that the memory would grow with the corpus.
const KNOWN_LIMIT: usize = 200_000;

impl Reader {
    /// A reader with nothing remembered.
    #[must_use]
    pub fn new() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            known: HashMap::new(),
        }
    }

    /// Calls `each` for every term of `text`, in order, stop words left out.
    pub fn read(&mut self, text: &str, mut each: impl FnMut(Term, Kind)) {
        let mut run = String::new();
        let mut chars = text.chars().map(narrow).peekable();
        while let Some(c) = chars.next() {
            run.clear();
            if is_unspaced(c) {
                let mut before = c;
                each(unspaced(&[c]), single(c));
                while let Some(next) = chars.next_if(|next| is_unspaced(*next)) {
                    let function = is_function(before) && is_function(next);
                    let kind = if function { Kind::Function } else { Kind::Pair };
                    each(unspaced(&[before, next]), kind);
                    each(unspaced(&[next]), single(next));
                    before = next;
                }
            } else if c.is_ascii_digit() {
                run.push(c);
                loop {
                    while let Some(next) = chars.next_if(char::is_ascii_digit) {
                        run.push(next);
                    }
                    let mut ahead = chars.clone();
                    match (ahead.next(), ahead.next()) {
                        (Some(mark @ ('.' | ',' | ':')), Some(next)) if next.is_ascii_digit() => {
                            chars.next();
                            if mark != ',' {
                                run.push(mark);
                            }
                        }
                        _ => break,
                    }
                }
                let plain = run.trim_start_matches('0');
                let number = if plain.is_empty() { "0" } else { plain };
                each(Term(fingerprint(number.as_bytes())), Kind::Number);
            } else if c.is_alphabetic() {
                run.extend(c.to_lowercase());
                while let Some(next) =
                    chars.next_if(|next| next.is_alphabetic() && !is_unspaced(*next))
                {
                    run.extend(next.to_lowercase());
                }
                // The rest of a contraction ("n't", "'s") carries no content.
                let mut ahead = chars.clone();
                if ahead.next() == Some('\'') && ahead.next().is_some_and(char::is_alphabetic) {
                    chars.next();
                    let mut tail = String::new();
                    while let Some(next) = chars.next_if(|next| next.is_alphabetic()) {
                        tail.extend(next.to_lowercase());
                    }
                    if tail == "t" {
                        run.clear();
                    }
                }
                // "May" is a month, "may" is not.
                let month = c == 'M' && run == "may";
                if let Some((term, key)) = self.stem(if month { "may_" } else { &run }) {
                    each(term, Kind::Word(key));
                }
            }
        }
    }

    fn stem(&mut self, word: &str) -> Option<(Term, u32)> {
        if word.is_empty() || is_stop_word(word) {
            return None;
        }
        if let Some(found) = self.known.get(word) {
            return *found;
        }
        let plain;
        let mut base = word;
        if !word.is_ascii() {
            plain = word
                .nfd()
                .filter(|c| !('\u{300}'..='\u{36f}').contains(c))
                .collect::<String>();
            base = &plain;
        }
        let base = irregular().get(base).copied().unwrap_or(base);
        let stem = self.stemmer.stem(base);
        let found = Some((Term(fingerprint(stem.as_bytes())), word_key(&stem)));
        if self.known.len() < KNOWN_LIMIT {
            self.known.insert(word.to_owned(), found);
        }
        found
    }
}

fn single(c: char) -> Kind {
    if is_function(c) {
        Kind::Function
    } else {
        Kind::Single
    }
}

fn unspaced(chars: &[char]) -> Term {
    let mut bytes = [0; 8];
    for (slot, c) in bytes.chunks_mut(4).zip(chars) {
        slot.copy_from_slice(&(*c as u32).to_le_bytes());
    }
    Term(fingerprint(&bytes[..4 * chars.len()]))
}

/// The key of a stem in the frequency table: FNV-1a, which the model script also computes.
fn word_key(stem: &str) -> u32 {
    stem.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<Term> {
        let mut out = Vec::new();
        Reader::new().read(text, |term, _| out.push(term));
        out
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn forms_of_one_word_meet() {
        assert_eq!(terms("She bought paintings"), terms("buy PAINTING"));
        assert_eq!(terms("the children's cafés"), terms("child cafe"));
        assert_eq!(terms("I don't, you won't"), terms(""));
    }

    #[test]
    fn numbers_keep_their_value() {
        assert_eq!(terms("1,000"), terms("1000"));
        assert_eq!(terms("ch05"), terms("ch 5"));
        assert_eq!(terms("３月"), terms("3月"));
        assert_ne!(terms("3.5"), terms("35"));
    }

    #[test]
    fn chinese_gives_pairs_and_singles() {
        assert_eq!(terms("铁路").len(), 3);
        assert_eq!(terms("Quipu铁路v2").len(), 6);
        assert!(terms("广茂铁路").contains(&terms("铁路")[1]));
    }
}
