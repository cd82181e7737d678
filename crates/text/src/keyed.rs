//! Keyed lines: `- **Key:** value`, `Key: value`, `键：值`.
//!
//! A key is short, starts a line of running text and ends with a colon: an ASCII colon followed by
//! a space, or a full-width one. A value continues over wrapped lines until the next key, so that
//! replacing it leaves no stale rest. Lines in code, tables and headings are never keyed.

use std::ops::Range;

use crate::scan::{Run, RunKind};

/// The maximum length of a key. A longer one is prose that happens to contain a colon.
const KEY_CHARS: usize = 40;

/// The maximum number of words in a key.
const KEY_WORDS: usize = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The key without markup.
    pub key: String,
    /// The bytes of `key` in the text.
    pub key_range: Range<usize>,
    /// The bytes of the value without surrounding spaces. Empty if nothing follows the colon.
    pub value: Range<usize>,
    pub line: usize,
    /// From the markup of the key to the end of the value.
    pub range: Range<usize>,
}

/// Finds the keyed lines in the runs of a document.
pub(crate) fn plan_keyed(text: &str, runs: &[Run], holes: &[Range<usize>]) -> Vec<Keyed> {
    let mut keyed: Vec<Keyed> = Vec::new();
    for run in runs {
        if matches!(run.kind, RunKind::Heading | RunKind::Cell) {
            continue;
        }
        let first = keyed.len();
        let mut at = run.range.start;
        for line in text[run.range.clone()].split_inclusive('\n') {
            let end = at + line.trim_end().len();
            match parse_keyed(text, at..end.max(at), holes) {
                Some(found) => keyed.push(found),
                None if keyed.len() > first && end > at => {
                    if let Some(open) = keyed.last_mut() {
                        open.extend_to(text, at, end);
                    }
                }
                None => {}
            }
            at += line.len();
        }
    }
    keyed
}

impl Keyed {
    /// Extends the value to a wrapped line.
    fn extend_to(&mut self, text: &str, line_start: usize, end: usize) {
        if self.value.is_empty() {
            let line = &text[line_start..end];
            self.value.start = line_start + (line.len() - line.trim_start().len());
        }
        self.value.end = end;
        self.range.end = end;
    }
}

fn parse_keyed(text: &str, line: Range<usize>, holes: &[Range<usize>]) -> Option<Keyed> {
    let raw = &text[line.clone()];
    let lead = raw.len() - raw.trim_start_matches([' ', '\t', '>']).len();
    let start = line.start + lead;
    let raw = &raw[lead..];
    let bold = ["**", "__", "*", "_", "`"]
        .into_iter()
        .find(|sign| raw.starts_with(sign));
    let (key_at, colon_at, after) = match bold {
        Some(sign) => parse_marked(raw, sign)?,
        None => parse_bare(raw)?,
    };
    let key = raw[key_at.clone()].trim();
    if !is_key(key) || (bold != Some("`") && in_hole(holes, start + colon_at)) {
        return None;
    }
    let key_start =
        start + key_at.start + (raw[key_at.clone()].len() - raw[key_at].trim_start().len());
    let rest = &raw[after..];
    let value_start = start + after + (rest.len() - rest.trim_start().len());
    let value_end = (start + raw.trim_end().len()).max(value_start.min(line.end));
    let value = value_start.min(value_end)..value_end;
    Some(Keyed {
        key: key.to_owned(),
        key_range: key_start..key_start + key.len(),
        range: start..value.end,
        value,
        line: 0,
    })
}

/// Parses a key in markup. Returns the range of the key, the position of the colon and the start of
/// the value.
fn parse_marked(raw: &str, sign: &str) -> Option<(Range<usize>, usize, usize)> {
    let inner = sign.len();
    let close = inner + raw[inner..].find(sign)?;
    let marked = &raw[inner..close];
    let after = close + sign.len();
    // The colon may be inside the markup or directly after it.
    if let Some(colon) = marked
        .chars()
        .next_back()
        .filter(|&c| c == ':' || c == '：')
    {
        let at = close - colon.len_utf8();
        return Some((inner..at, at, after));
    }
    let colon = raw[after..]
        .chars()
        .next()
        .filter(|&c| c == ':' || c == '：')?;
    Some((inner..close, after, after + colon.len_utf8()))
}

fn parse_bare(raw: &str) -> Option<(Range<usize>, usize, usize)> {
    for (at, c) in raw.char_indices().take(KEY_CHARS + 1) {
        let after = at + c.len_utf8();
        let set_off = match c {
            '：' => true,
            ':' => raw[after..].chars().next().is_none_or(char::is_whitespace),
            _ => false,
        };
        if set_off {
            return Some((0..at, at, after));
        }
    }
    None
}

fn is_key(key: &str) -> bool {
    let opens = key.chars().next().is_some_and(char::is_alphanumeric);
    opens
        && key.chars().count() <= KEY_CHARS
        && key.split_whitespace().count() <= KEY_WORDS
        && !key.contains([
            '。', '！', '？', '；', '，', '!', '?', ';', '|', '[', ']', '<', '>', '“', '”', '"',
            '\n',
        ])
        && !key.contains(". ")
}

fn in_hole(holes: &[Range<usize>], at: usize) -> bool {
    let before = holes.partition_point(|hole| hole.start <= at);
    before > 0 && holes[before - 1].end > at
}

#[cfg(test)]
mod tests {
    use crate::Document;

    fn pairs(text: &str) -> Vec<(String, String, usize)> {
        let doc = Document::parse(text);
        doc.keyed_lines()
            .iter()
            .map(|one| {
                assert_eq!(text[one.key_range.clone()], one.key);
                (
                    one.key.clone(),
                    text[one.value.clone()].to_owned(),
                    one.line,
                )
            })
            .collect()
    }

    fn owned(expected: &[(&str, &str, usize)]) -> Vec<(String, String, usize)> {
        expected
            .iter()
            .map(|&(k, v, l)| (k.into(), v.into(), l))
            .collect()
    }

    #[test]
    fn every_notation() {
        let text = "- **Drive:** guilt\n- **Age**: 31\n- Left-handed: yes\n- [ ] Due: ch07\n\nKey: value\n键：值\n**动机**：愧疚\n`a: b`: c\n";
        assert_eq!(
            pairs(text),
            owned(&[
                ("Drive", "guilt", 1),
                ("Age", "31", 2),
                ("Left-handed", "yes", 3),
                ("Due", "ch07", 4),
                ("Key", "value", 6),
                ("键", "值", 7),
                ("动机", "愧疚", 8),
                ("a: b", "c", 9),
            ])
        );
    }

    #[test]
    fn values_run_on_over_wrapped_lines() {
        let text = "- **Why:** one\n  two\n- Next:\n  three\n";
        assert_eq!(
            pairs(text),
            owned(&[("Why", "one\n  two", 1), ("Next", "three", 3)])
        );
    }

    #[test]
    fn crlf_is_no_part_of_a_value() {
        assert_eq!(
            pairs("a: 1\r\nb：2\r\n"),
            owned(&[("a", "1", 1), ("b", "2", 2)])
        );
    }

    #[test]
    fn prose_code_and_tables_are_not_keyed() {
        let text = "# Title: no\n\nAt 12:30 he left. He said, and only once: go\n\nSee https://x.org/a\n\n`x: y`\n\n```\nk: v\n```\n\n| a: b |\n|---|\n| c: d |\n\n“走”：他说\n";
        assert_eq!(pairs(text), owned(&[]));
    }

    #[test]
    fn an_empty_value_lies_after_the_colon() {
        let text = "- Status:\n- x";
        let doc = Document::parse(text);
        let one = &doc.keyed_lines()[0];
        assert_eq!(one.value, 9..9);
    }
}
