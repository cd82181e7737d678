//! Turns text into terms: stems, numbers, and bigrams and single characters of Chinese, Japanese and
//! Korean.
//!
//! A term is the hash of its normalised form, so the index contains no strings. The same function
//! reads sections, headings and questions. No other module of recall looks inside a word.
//! `question` decides the weight of a term.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use unicode_normalization::UnicodeNormalization;

use super::background::is_function;
use super::bytes::fingerprint;
use super::languages::Language;
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
        0x3005..=0x3007 | 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff
        | 0xff66..=0xff9d | 0x20000..=0x323af)
}

/// Returns true if only one of two texts is mostly in a script without spaces, so that they share
/// no words.
#[must_use]
pub fn differ_in_script(one: &str, other: &str) -> bool {
    is_mostly_unspaced(one) != is_mostly_unspaced(other)
}

/// Returns true if a text is mostly in a script without spaces.
pub fn is_mostly_unspaced(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let unspaced = text.chars().filter(|c| is_unspaced(*c)).count();
    // A word of a spaced script has about four letters.
    5 * unspaced > letters.count()
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
#[derive(Default)]
pub struct Reader {
    /// Stems by the hash of the word in lower case and its language.
    known: TermMap<Option<(Term, u32)>>,
}

/// The maximum number of cached stems, so that the cache does not grow with the corpus.
const KNOWN_LIMIT: usize = 200_000;

impl Reader {
    /// Creates a reader with an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `each` for every term of `text`, in order, without function words.
    pub fn read(&mut self, text: &str, mut each: impl FnMut(Term, Kind)) {
        self.read_places(text, |_, term, kind| each(term, kind));
    }

    /// Like `read`, with the byte range of each term.
    pub fn read_places(&mut self, text: &str, each: impl FnMut(Range<usize>, Term, Kind)) {
        self.read_in(Language::of(text), text, each);
    }

    /// Like `read_places`, in a given language.
    pub fn read_in(
        &mut self,
        language: Language,
        text: &str,
        mut each: impl FnMut(Range<usize>, Term, Kind),
    ) {
        let at = |rest: &str| text.len() - rest.len();
        let mut run = String::new();
        let mut rest = text;
        while let Some(c) = first(rest) {
            let start = at(rest);
            if c.is_alphabetic() && !is_unspaced(c) {
                rest = take_word(rest, &mut run);
                // "May" is a month, "may" is not.
                if language == Language::English && c == 'M' && run == "may" {
                    run.push('_');
                }
                if let Some((term, key)) = self.stem(&run, language) {
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

    fn stem(&mut self, word: &str, language: Language) -> Option<(Term, u32)> {
        let language = language.of_word(word);
        let key = Term(fingerprint(word.as_bytes()).wrapping_add(language as u64));
        if let Some(found) = self.known.get(&key) {
            return *found;
        }
        let found = if word.is_empty() || language.is_function_word(word) {
            None
        } else {
            let stem = stem(word, language);
            Some((Term(fingerprint(stem.as_bytes())), word_key(&stem)))
        };
        if self.known.len() < KNOWN_LIMIT {
            self.known.insert(key, found);
        }
        found
    }
}

/// Returns the stem of a word in lower case, without accents.
fn stem(word: &str, language: Language) -> String {
    if language == Language::English {
        let plain = without_accents(word);
        let base = irregular()
            .get(plain.as_ref())
            .copied()
            .unwrap_or(plain.as_ref());
        return language.stemmer().stem(base).into_owned();
    }
    // These stemmers need the accents.
    let word: String = word.nfc().collect::<String>().replace('ё', "е");
    without_accents(&language.stemmer().stem(&word)).into_owned()
}

fn without_accents(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return Cow::Borrowed(word);
    }
    let plain = word.nfd().filter(|c| !('\u{300}'..='\u{36f}').contains(c));
    Cow::Owned(plain.collect())
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

/// The ends of English contractions, which carry no content.
const CONTRACTIONS: [&str; 7] = ["d", "ll", "m", "re", "s", "t", "ve"];

/// Reads a word in lower case. Drops the rest of a contraction ("n't", "'s").
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
        let is = |end_of_word: &&str| tail[..end].eq_ignore_ascii_case(end_of_word);
        if CONTRACTIONS.iter().any(is) {
            if is(&"t") {
                word.clear();
            }
            rest = &tail[end..];
        }
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

    /// Asserts that a question shares all its terms with a text.
    fn meets(question: &str, text: &str) {
        let (asked, told) = (terms(question), terms(text));
        assert!(
            !asked.is_empty() && asked.iter().all(|term| told.contains(term)),
            "{question}"
        );
    }

    #[test]
    fn forms_of_german_and_russian_words_meet() {
        meets(
            "Wann waren die Brücken gebaut?",
            "Die Brücke ist aus Stahl gebaut.",
        );
        meets("Wer ist in den Häusern?", "Das Haus ist in der Stadt.");
        meets("Где были мосты?", "Он построил мост.");
        meets("О каких книгах?", "Она читала книгу.");
        meets("¿Cuáles son las canciones?", "La canción es de un amigo.");
        meets("Quelles sont les écoles ?", "L'école est dans la ville.");
    }

    #[test]
    fn names_with_apostrophes_keep_both_parts() {
        assert_eq!(terms("O'Brien's dog"), terms("o brien dog"));
        assert_eq!(terms("don't we'll she's I'd"), terms(""));
    }

    #[test]
    fn japanese_and_korean_words_meet_inside_longer_ones() {
        let shares = |word: &str, text: &str| {
            let told = terms(text);
            let asked = terms(word);
            assert!(
                asked.iter().all(|term| told.contains(term)),
                "{word} in {text}"
            );
        };
        shares("東京タワー", "昨日、東京タワーに登りました。");
        shares("佐々木", "佐々木さんは先生です。");
        shares("さくら", "庭のさくらが咲いた。");
        shares("학교", "나는 어제 학교에서 친구를 만났다.");
        shares("서울", "서울은 한국의 수도이다.");
        assert!(!terms("나는 어제 학교에서").contains(&terms("학생")[1]));
    }
}
