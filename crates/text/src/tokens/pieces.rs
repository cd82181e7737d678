//! Splits text into the pieces that o200k_base merges separately.
//!
//! The vocabulary defines its pieces by a regular expression with a look-ahead. This module
//! implements that expression by hand, including its backtracking, because a regular expression
//! engine would dominate the cost of a count. A test compares it with the expression itself.

use super::table::class_byte;

/// The character classes that the expression distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    Other = 0,
    /// `\p{Lu}\p{Lt}`
    Upper = 1,
    /// `\p{Ll}`
    Lower = 2,
    /// `\p{Lm}\p{Lo}`: counts as upper and as lower
    Letter = 3,
    /// `\p{M}`: joins letters, but is not a letter
    Mark = 4,
    /// `\p{N}`
    Number = 5,
    /// `\s` without line ends
    Space = 6,
    /// `\r` and `\n`
    Newline = 7,
}

impl Class {
    #[inline]
    pub(crate) fn of(c: char) -> Self {
        Self::from_bits(class_byte(c))
    }

    #[inline]
    fn from_bits(bits: u8) -> Self {
        match bits & 7 {
            1 => Self::Upper,
            2 => Self::Lower,
            3 => Self::Letter,
            4 => Self::Mark,
            5 => Self::Number,
            6 => Self::Space,
            7 => Self::Newline,
            _ => Self::Other,
        }
    }

    fn is_both(self) -> bool {
        matches!(self, Self::Letter | Self::Mark)
    }

    fn is_upperish(self) -> bool {
        self == Self::Upper || self.is_both()
    }

    fn is_lowerish(self) -> bool {
        self == Self::Lower || self.is_both()
    }

    fn is_space(self) -> bool {
        matches!(self, Self::Space | Self::Newline)
    }

    /// `[^\s\p{L}\p{N}]`
    fn is_sign(self) -> bool {
        matches!(self, Self::Other | Self::Mark)
    }
}

/// Returns the class and length of the character at a byte offset.
#[inline]
fn at(text: &str, offset: usize) -> Option<(Class, usize)> {
    let byte = *text.as_bytes().get(offset)?;
    if byte < 0x80 {
        return Some((Class::of(char::from(byte)), 1));
    }
    let c = text[offset..].chars().next()?;
    Some((Class::of(c), c.len_utf8()))
}

/// Extends `end` while characters satisfy `keep`.
#[inline]
fn run(text: &str, mut end: usize, keep: impl Fn(Class) -> bool) -> usize {
    while let Some((class, length)) = at(text, end) {
        if !keep(class) {
            break;
        }
        end += length;
    }
    end
}

/// Calls `take` with each piece of `text`, in order.
pub(crate) fn each_piece<'t>(text: &'t str, mut take: impl FnMut(&'t str)) {
    let mut start = 0;
    while start < text.len() {
        let end = piece_end(text, start);
        take(&text[start..end]);
        start = end;
    }
}

fn piece_end(text: &str, start: usize) -> usize {
    let Some((class, length)) = at(text, start) else {
        return text.len();
    };
    // Alternatives 1 and 2: letters with one optional other character before them.
    let prefixed = matches!(class, Class::Space | Class::Other | Class::Mark);
    let letters = if prefixed { start + length } else { start };
    if let Some(end) = words_end(text, letters) {
        return contraction_end(text, end);
    }
    if class == Class::Mark {
        return contraction_end(text, start + length);
    }
    if let Some(end) = capitals_end(text, letters) {
        return contraction_end(text, end);
    }
    match class {
        Class::Number => numbers_end(text, start),
        Class::Other => signs_end(text, start),
        Class::Space
            if text.as_bytes()[start] == b' '
                && at(text, start + 1).is_some_and(|(c, _)| c.is_sign()) =>
        {
            signs_end(text, start + 1)
        }
        _ => spaces_end(text, start, length),
    }
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
fn words_end(text: &str, start: usize) -> Option<usize> {
    let mut end = start;
    // Backtracking ends after the last character that is both upper and lower.
    let mut last_both = None;
    while let Some((class, length)) = at(text, end) {
        if class == Class::Lower {
            return Some(run(text, end, Class::is_lowerish));
        }
        if !class.is_upperish() {
            break;
        }
        end += length;
        if class.is_both() {
            last_both = Some(end);
        }
    }
    last_both
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+` if `words_end` found nothing: capitals only.
fn capitals_end(text: &str, start: usize) -> Option<usize> {
    let end = run(text, start, Class::is_upperish);
    (end > start).then_some(end)
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
fn contraction_end(text: &str, end: usize) -> usize {
    let Some(rest) = text[end..].strip_prefix('\'') else {
        return end;
    };
    let mut letters = rest.chars();
    let (first, second) = (letters.next(), letters.next());
    match first.map(|c| c.to_ascii_lowercase()) {
        Some('s' | 't' | 'm' | 'd') => end + 2,
        Some('ſ') => end + 3, // the long s is an `s` when case is ignored
        Some('r' | 'v') if matches!(second, Some('e' | 'E')) => end + 3,
        Some('l') if matches!(second, Some('l' | 'L')) => end + 3,
        _ => end,
    }
}

/// `\p{N}{1,3}`
fn numbers_end(text: &str, start: usize) -> usize {
    let mut end = start;
    for _ in 0..3 {
        match at(text, end) {
            Some((Class::Number, length)) => end += length,
            _ => break,
        }
    }
    end
}

/// `[^\s\p{L}\p{N}]+[\r\n/]*`
fn signs_end(text: &str, start: usize) -> usize {
    let end = run(text, start, Class::is_sign);
    let tail = text.as_bytes()[end..]
        .iter()
        .take_while(|b| matches!(b, b'\r' | b'\n' | b'/'))
        .count();
    end + tail
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`
fn spaces_end(text: &str, start: usize, first: usize) -> usize {
    let mut end = start;
    let mut last_newline = None;
    let mut last = first;
    while let Some((class, length)) = at(text, end) {
        if !class.is_space() {
            break;
        }
        end += length;
        last = length;
        if class == Class::Newline {
            last_newline = Some(end);
        }
    }
    match last_newline {
        Some(newline) => newline,
        None if end == text.len() || end - last == start => end,
        None => end - last,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    const UPPER: &str = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]";
    const LOWER: &str = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]";
    const CONTRACTION: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?";

    /// The published expression, with its look-ahead implemented by hand.
    struct Oracle {
        all: Regex,
        spaces: Regex,
    }

    impl Oracle {
        fn new() -> Self {
            let pattern = format!(
                r"^(?:[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTION}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+)"
            );
            Self {
                all: Regex::new(&pattern).unwrap(),
                spaces: Regex::new(r"^\s+").unwrap(),
            }
        }

        fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
            let mut pieces = Vec::new();
            let mut rest = text;
            while !rest.is_empty() {
                let end = match self.all.find(rest) {
                    Some(found) => found.end(),
                    None => {
                        let run = self.spaces.find(rest).unwrap().end();
                        let shorter = rest[..run].char_indices().next_back().unwrap().0;
                        if run == rest.len() || shorter == 0 {
                            run
                        } else {
                            shorter
                        }
                    }
                };
                pieces.push(&rest[..end]);
                rest = &rest[end..];
            }
            pieces
        }
    }

    fn pieces(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        each_piece(text, |piece| found.push(piece));
        found
    }

    #[test]
    fn prose_code_and_chinese() {
        assert_eq!(
            pieces("Hello, it's 12345!\n\n  x"),
            ["Hello", ",", " it's", " ", "123", "45", "!\n\n", " ", " x"]
        );
        assert_eq!(
            pieces("HTTPServer camelCase"),
            ["HTTPServer", " camel", "Case"]
        );
        assert_eq!(
            pieces("他说，走吧。ABC中X"),
            ["他说", "，走吧", "。ABC中", "X"]
        );
        assert_eq!(pieces("a   \n \tb"), ["a", "   \n", " ", "\tb"]);
    }

    proptest! {
            #![proptest_config(ProptestConfig::with_cases(300))]
            #[test]
            fn agrees_with_the_published_expression(
                text in "([a-cA-C中文ー\u{301}\u{3000}ǅªſ①१½ \t\r\n'sSlLtTrReEvVdDmM/.,!?—。，_0-9]|\\PC){0,24}"
            ) {
                thread_local!(static ORACLE: Oracle = Oracle::new());
    let expected = ORACLE.with(|oracle| oracle.pieces(&text));
                prop_assert_eq!(pieces(&text), expected);
            }
        }
}
