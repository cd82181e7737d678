//! Turns text into terms: English stems, numbers, and bigrams and single characters of Chinese.
//!
//! A term is the hash of its normalised form, so the index contains no strings. The same function
//! reads sections, headings and questions. No other module of recall looks inside a word.
//! `question` decides the weight of a term.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

use super::background::is_function;
use super::bytes::fingerprint;
use super::segment::TermMap;

/// The hash of a normalised word, number or piece of Chinese text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(pub u64);

/// The kind of token. It determines the term's frequency in general language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word in an alphabet, with the key of its stem in the table of word frequencies.
    Word(u32),
    Number,
    /// Two adjacent characters of a script without spaces.
    Pair,
    /// One such character.
    Single,
    /// One or two such characters with only a grammatical function.
    Function,
}

/// Words with only a grammatical function. Sorted for binary search.
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

/// Returns true for characters of scripts without spaces between words.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c as u32,
        0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff
        | 0x20000..=0x323af)
}

/// Returns true if only one of two texts is mostly in a script without spaces, so that they share
/// no words.
#[must_use]
pub fn differ_in_script(one: &str, other: &str) -> bool {
    let is_mostly_unspaced = |text: &str| {
        let letters = text.chars().filter(|c| c.is_alphabetic());
        let unspaced = text.chars().filter(|c| is_unspaced(*c)).count();
        // A word of a spaced script has about four letters.
        5 * unspaced > letters.count()
    };
    is_mostly_unspaced(one) != is_mostly_unspaced(other)
}

/// Converts full-width letters and digits to their ordinary forms.
fn narrow(c: char) -> char {
    match c as u32 {
        code @ 0xff01..=0xff5e => char::from_u32(code - 0xfee0).unwrap_or(c),
        0x3000 => ' ',
        0x2019 => '\'',
        _ => c,
    }
}

/// Reads terms from text and caches stems, which are expensive to compute.
pub struct Reader {
    stemmer: Stemmer,
    /// Stems by the hash of the word in lower case.
    known: TermMap<Option<(Term, u32)>>,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

/// The maximum number of cached stems, so that the cache does not grow with the corpus.
const KNOWN_LIMIT: usize = 200_000;

impl Reader {
    /// Creates a reader with an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            known: TermMap::default(),
        }
    }

    /// Calls `each` for every term of `text`, in order, without stop words.
    pub fn read(&mut self, text: &str, mut each: impl FnMut(Term, Kind)) {
        self.read_places(text, |_, term, kind| each(term, kind));
    }

    /// Like `read`, with the byte range of each term.
    pub fn read_places(&mut self, text: &str, mut each: impl FnMut(Range<usize>, Term, Kind)) {
        let at = |rest: &str| text.len() - rest.len();
        let mut run = String::new();
        let mut rest = text;
        while let Some(c) = first(rest) {
            let start = at(rest);
            if c.is_alphabetic() && !is_unspaced(c) {
                rest = take_word(rest, &mut run);
                // "May" is a month, "may" is not.
                if c == 'M' && run == "may" {
                    run.push('_');
                }
                if let Some((term, key)) = self.stem(&run) {
                    each(start..at(rest), term, Kind::Word(key));
                }
            } else if is_unspaced(c) {
                rest = skip(rest);
                each(start..at(rest), unspaced(&[c]), single(c));
                let (mut before, mut first_of_pair) = (c, start);
                while let Some(next) = first(rest).filter(|next| is_unspaced(*next)) {
                    let function = is_function(before) && is_function(next);
                    let kind = if function { Kind::Function } else { Kind::Pair };
                    let own = at(rest);
                    rest = skip(rest);
                    each(first_of_pair..at(rest), unspaced(&[before, next]), kind);
                    each(own..at(rest), unspaced(&[next]), single(next));
                    (before, first_of_pair) = (next, own);
                }
            } else if c.is_ascii_digit() {
                rest = take_number(rest, &mut run);
                let plain = run.trim_start_matches('0');
                let number = if plain.is_empty() { "0" } else { plain };
                each(
                    start..at(rest),
                    Term(fingerprint(number.as_bytes())),
                    Kind::Number,
                );
            } else {
                rest = skip(rest);
            }
        }
    }

    fn stem(&mut self, word: &str) -> Option<(Term, u32)> {
        let key = fingerprint(word.as_bytes());
        if let Some(found) = self.known.get(&Term(key)) {
            return *found;
        }
        if word.is_empty() || is_stop_word(word) {
            self.known.insert(Term(key), None);
            return None;
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
            self.known.insert(Term(key), found);
        }
        found
    }
}

/// Returns the first character, with full-width forms converted.
fn first(text: &str) -> Option<char> {
    text.chars().next().map(narrow)
}

/// Returns the text after its first character.
fn skip(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}

/// Reads a word in lower case. Drops the rest of a contraction ("n't", "'s"), which carries no
/// content.
fn take_word<'t>(text: &'t str, word: &mut String) -> &'t str {
    word.clear();
    let plain = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    word.push_str(&text[..plain]);
    word.make_ascii_lowercase();
    let mut rest = &text[plain..];
    while let Some(c) = first(rest).filter(|c| c.is_alphabetic() && !is_unspaced(*c)) {
        word.extend(c.to_lowercase());
        rest = skip(rest);
    }
    if first(rest) == Some('\'') && first(skip(rest)).is_some_and(|c| c.is_ascii_alphabetic()) {
        let tail = skip(rest);
        let end = tail
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(tail.len());
        if tail[..end].eq_ignore_ascii_case("t") {
            word.clear();
        }
        rest = &tail[end..];
    }
    rest
}

/// Reads digits with inner punctuation ("1,000" as 1000, "3.5", "10:30").
fn take_number<'t>(text: &'t str, number: &mut String) -> &'t str {
    number.clear();
    let mut rest = text;
    while let Some(c) = first(rest) {
        let inner = matches!(c, '.' | ',' | ':')
            && first(skip(rest)).is_some_and(|next| next.is_ascii_digit());
        if !c.is_ascii_digit() && !inner {
            break;
        }
        if c != ',' {
            number.push(c);
        }
        rest = skip(rest);
    }
    rest
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

/// Returns the key of a stem in the frequency table: FNV-1a, as in the model script.
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
