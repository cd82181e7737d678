//! The sentences of a manuscript with their lines: what a revision is compared by.
//!
//! Many manuscripts have a paragraph on one line, and others wrap their lines. By sentences, a word
//! that changed does not show a whole paragraph, and a paragraph that was wrapped anew has not changed.

use std::ops::Range;

use quipu_text::first_sentence;

/// A shorter line ends its paragraph: it is a title, a field or an item.
const WRAPPED: usize = 50;

/// A sentence of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    pub bytes: Range<usize>,
    /// Its words with single spaces.
    pub plain: String,
}

impl Sentence {
    pub fn overlaps(&self, other: &Range<usize>) -> bool {
        self.bytes.start < other.end && other.start < self.bytes.end
    }
}

/// The sentences of a text, in order.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    for paragraph in paragraphs(text) {
        let mut at = paragraph.start;
        loop {
            let rest = &text[at..paragraph.end];
            at += rest.len() - rest.trim_start().len();
            let sentence = first_sentence(&text[at..paragraph.end]);
            if sentence.is_empty() {
                break;
            }
            let words: Vec<&str> = sentence.split_whitespace().collect();
            found.push(Sentence {
                bytes: at..at + sentence.len(),
                plain: words.join(" "),
            });
            at += sentence.len();
        }
    }
    found
}

/// The bytes of the paragraphs of a text: lines that are wrapped, or single lines.
fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let (mut at, mut is_open) = (0, false);
    for line in text.split_inclusive('\n') {
        let bytes = at..at + line.len();
        at = bytes.end;
        let is_plain = line.starts_with(is_prose) && !is_item(line);
        match found.last_mut().filter(|_| is_open && is_plain) {
            Some(last) => last.end = bytes.end,
            None => found.push(bytes),
        }
        is_open = is_plain && line.len() >= WRAPPED;
    }
    found
}

fn is_prose(c: char) -> bool {
    c.is_alphanumeric() || "([\"“‘《「*_`$\\".contains(c)
}

/// Whether a line is an item of a list: `* one`, `2. two`.
fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < line.len() && rest.starts_with(['.', ')']);
    is_numbered || line.starts_with("* ")
}

/// The bytes of lines, counted from 1.
pub(super) fn bytes_of_lines(text: &str, first: usize, last: usize) -> Range<usize> {
    let mut starts = vec![0];
    starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    let start = |line: usize| starts.get(line).copied().unwrap_or(text.len());
    start(first.saturating_sub(1))..start(last)
}

/// The parts of some bytes by line: the number of the line, from 1, and the text.
pub(super) fn by_line<'t>(text: &'t str, bytes: &Range<usize>) -> Vec<(usize, &'t str)> {
    let first = text[..bytes.start].matches('\n').count() + 1;
    let parts = text[bytes.clone()].split('\n').enumerate();
    parts.map(|(at, part)| (first + at, part.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_paragraph_is_split_into_sentences() {
        let text = "title: Knots\ntags:\n  - rope\n\nWe tied twenty-four cords and measured how strong\n\
                    each was. The mean was 8.35 N, e.g. for hemp.\n- An item.\n";
        let plain: Vec<String> = sentences(text).into_iter().map(|s| s.plain).collect();
        assert_eq!(
            plain,
            [
                "title: Knots",
                "tags:",
                "- rope",
                "We tied twenty-four cords and measured how strong each was.",
                "The mean was 8.35 N, e.g. for hemp.",
                "- An item.",
            ]
        );
        let wrapped = &sentences(text)[3];
        assert_eq!(
            by_line(text, &wrapped.bytes),
            [
                (5, "We tied twenty-four cords and measured how strong"),
                (6, "each was.")
            ]
        );
        assert!(wrapped.overlaps(&bytes_of_lines(text, 6, 6)));
        assert!(!wrapped.overlaps(&bytes_of_lines(text, 7, 7)));
        assert!(sentences("").is_empty());
        assert_eq!(sentences("一句。又一句。\n").len(), 2);
    }
}
