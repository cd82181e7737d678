//! Finds quotations in a manuscript.
//!
//! White space, letter case, emphasis, and the forms of quotation marks and dashes do not matter,
//! so that a quotation over a line break or from a rendered page is found. Every other character
//! must match. An ellipsis stands for omitted words.

use std::ops::Range;

use super::sentences::{by_line, sentences};

/// The bytes that an ellipsis may stand for.
const LONGEST_GAP: usize = 600;
/// A shorter quotation could stand anywhere.
const SHORTEST: usize = 2;
/// A line must share this much of a quotation to be named as the nearest.
const NEAR: f64 = 0.25;
/// Lines in messages are cut to this length.
const SHOWN: usize = 90;

/// A text whose quotations can be looked up.
pub struct Passages<'t> {
    text: &'t str,
    plain: String,
    /// For each byte of `plain`, the byte of `text` it comes from.
    places: Vec<usize>,
    /// The first byte of each line in `text`.
    lines: Vec<usize>,
}

/// A passage in the plain form of a text, with its first and last line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    pub plain: Range<usize>,
    pub first: usize,
    pub last: usize,
}

impl Passage {
    pub fn overlaps(&self, other: &Passage) -> bool {
        self.plain.start < other.plain.end && other.plain.start < self.plain.end
    }
}

impl<'t> Passages<'t> {
    pub fn of(text: &'t str) -> Passages<'t> {
        let (plain, places) = plain_form(text);
        let mut lines = vec![0];
        lines.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Passages {
            text,
            plain,
            places,
            lines,
        }
    }

    /// The 1-based line of a byte of the text.
    fn line(&self, byte: usize) -> usize {
        self.lines.partition_point(|start| *start <= byte)
    }

    fn passage(&self, plain: Range<usize>) -> Passage {
        let bytes = self.bytes(&plain);
        Passage {
            first: self.line(bytes.start),
            last: self.line(bytes.end.saturating_sub(1)),
            plain,
        }
    }

    /// The bytes of the text from which a passage comes.
    pub fn bytes(&self, plain: &Range<usize>) -> Range<usize> {
        let start = self.places.get(plain.start).copied().unwrap_or_default();
        let last = plain.end.saturating_sub(1);
        let last = self.places.get(last).copied().unwrap_or_default();
        let width = self.text[last..].chars().next().map_or(0, char::len_utf8);
        start..last + width
    }

    /// Every place of a quotation, in order.
    pub fn find(&self, quote: &str) -> Vec<Passage> {
        let parts: Vec<String> = quote
            .replace("[…]", "…")
            .replace("[...]", "…")
            .replace("...", "…")
            .split('…')
            .map(|part| plain_form(part).0)
            .filter(|part| !part.is_empty())
            .collect();
        let Some((first, rest)) = parts.split_first() else {
            return Vec::new();
        };
        if parts.iter().map(|part| part.chars().count()).sum::<usize>() < SHORTEST {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (start, _) in self.plain.match_indices(first.as_str()) {
            let mut end = start + first.len();
            let follows = rest.iter().all(|part| {
                let next = self.plain[end..].find(part.as_str());
                let near = next.filter(|gap| *gap <= LONGEST_GAP);
                end += near.unwrap_or_default() + part.len();
                near.is_some()
            });
            if follows {
                found.push(self.passage(start..end));
            }
        }
        found
    }

    /// The place of a quotation on these lines, or the reason why there is none.
    pub fn locate(&self, lines: (usize, usize), quote: &str) -> Result<Passage, String> {
        let found = self.find(quote);
        let on = |passage: &&Passage| passage.first <= lines.1 && lines.0 <= passage.last;
        // Words that stand in one place alone need no line to be found.
        let only = match found.as_slice() {
            [passage] => Some(passage),
            _ => None,
        };
        if let Some(passage) = found.iter().find(on).or(only) {
            return Ok(passage.clone());
        }
        let nearest = found.iter().min_by_key(|p| p.first.abs_diff(lines.0));
        if let Some(passage) = nearest {
            return Err(format!(
                "\"{}\" is on line {}, not {}: write L{}",
                shorten(quote, SHOWN),
                passage.first,
                lines.0,
                passage.first
            ));
        }
        let there = match self.nearest(quote) {
            Some((number, line)) => {
                format!(
                    "; the nearest line is L{number}: \"{}\"",
                    shorten(line, SHOWN)
                )
            }
            None => String::new(),
        };
        Err(format!(
            "\"{}\" is not in the text: quote its words exactly{there}",
            shorten(quote, SHOWN)
        ))
    }

    /// The sentence that shares most with a quotation, with its line.
    fn nearest(&self, quote: &str) -> Option<(usize, &'t str)> {
        let wanted = pairs(&plain_form(quote).0);
        let share = |line: &str| {
            let there = pairs(&plain_form(line).0);
            let common = wanted.iter().filter(|pair| there.contains(pair)).count();
            common as f64 / wanted.len().max(1) as f64
        };
        // A paragraph on one line is too long to be shown.
        let all = sentences(self.text).into_iter();
        let parts = all.flat_map(|sentence| by_line(self.text, &sentence.bytes));
        parts
            .map(|(number, part)| (share(part), number, part))
            .filter(|(share, ..)| *share >= NEAR)
            // The first of equal sentences.
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, number, sentence)| (number, sentence))
    }
}

fn pairs(plain: &str) -> Vec<(char, char)> {
    let chars: Vec<char> = plain.chars().collect();
    chars.windows(2).map(|two| (two[0], two[1])).collect()
}

/// The first characters of a text.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(limit).collect();
    if chars.next().is_some() {
        start + "…"
    } else {
        start
    }
}

/// A text without what does not matter in a quotation, and for each byte its place in the text.
fn plain_form(text: &str) -> (String, Vec<usize>) {
    let (mut plain, mut places) = (String::new(), Vec::new());
    for (at, c) in text.char_indices() {
        let c = match c {
            c if c.is_whitespace() => continue,
            '*' | '`' | '\\' | '\u{200b}' | '\u{feff}' => continue,
            '“' | '”' | '„' | '«' | '»' | '「' | '」' | '『' | '』' => '"',
            '‘' | '’' => '\'',
            '–' | '—' | '−' | '‐' | '‑' => '-',
            c => c,
        };
        for lower in c.to_lowercase() {
            plain.push(lower);
            places.resize(plain.len(), at);
        }
    }
    (plain, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# Knots\n\nThe mean was **8.35** and\n8.27 in “both” groups.\n\n样本量为\n二十四人。\n";

    #[test]
    fn a_quotation_is_found_over_line_breaks_and_marks() {
        let passages = Passages::of(TEXT);
        let lines = |quote: &str| {
            let found = passages.find(quote);
            found.iter().map(|p| (p.first, p.last)).collect::<Vec<_>>()
        };
        assert_eq!(lines("8.35 and 8.27"), [(3, 4)]);
        assert_eq!(lines("the mean … \"both\" groups"), [(3, 4)]);
        assert_eq!(lines("样本量为二十四人"), [(6, 7)]);
        assert_eq!(lines("8.36 and 8.27"), []);
        assert_eq!(lines("…"), []);
        let found = &passages.find("样本量")[0];
        assert_eq!(&TEXT[passages.bytes(&found.plain)], "样本量");
    }

    #[test]
    fn a_wrong_line_and_an_invented_quotation_are_told_apart() {
        let passages = Passages::of(TEXT);
        assert!(passages.locate((4, 4), "8.35 and 8.27").is_ok());
        assert_eq!(
            passages.locate((1, 1), "in both\" groups").unwrap_err(),
            "\"in both\" groups\" is not in the text: quote its words exactly; the nearest line is \
             L4: \"8.27 in “both” groups.\""
        );
        // Words in one place alone are found whatever the line; others are not.
        assert_eq!(passages.locate((1, 1), "8.35").unwrap().first, 3);
        let twice = Passages::of("# Knots\n\n8.35 N\n\n8.35 N\n");
        assert_eq!(
            twice.locate((1, 1), "8.35").unwrap_err(),
            "\"8.35\" is on line 3, not 1: write L3"
        );
        let invented = passages.locate((6, 6), "样本量为二十六人").unwrap_err();
        assert!(
            invented.contains("L6: \"样本量为\"") || invented.contains("L7"),
            "{invented}"
        );
        let long = "It begins. The cord of the first group was wet, and the other was not.";
        let invented = Passages::of(long).locate((1, 1), "the cord of the second group was wet");
        assert!(
            invented
                .unwrap_err()
                .ends_with("L1: \"The cord of the first group was wet, and the other was not.\"")
        );
        assert!(
            !passages
                .locate((1, 1), "zzzz")
                .unwrap_err()
                .contains("nearest")
        );
    }
}
