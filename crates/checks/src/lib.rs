//! Checks of a manuscript that need no model: citations against the bibliography, reversed ranges,
//! arithmetic, numbers of tables in the text, lengths, identifiers, and statistics.
//!
//! Pure: texts in, findings with their lines out. A finding is certain or left out: a check that
//! depends on something that the text does not say (a one-sided test, a corrected p-value, a scale
//! of several items) is silent. Numbers count as wrong only beyond rounding.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod arithmetic;
mod bibliography;
mod citations;
mod doi;
mod grim;
mod length;
mod number;
mod plain;
mod ranges;
mod statistics;
mod tables;

use quipu_contract::Language;
use quipu_text::Document;

pub use length::Limits;

/// A bibliography in BibTeX or BibLaTeX.
#[derive(Debug, Clone, Copy)]
pub struct Bibliography<'t> {
    pub path: &'t str,
    pub text: &'t str,
}

/// The texts to check.
#[derive(Debug, Clone, Copy)]
pub struct Input<'t> {
    pub manuscript: &'t str,
    pub bibliographies: &'t [Bibliography<'t>],
    pub limits: Limits,
    /// The language of the findings.
    pub language: Language,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gravity {
    Important,
    Minor,
}

/// A fault, and the words that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The bibliography; none if it is the manuscript.
    pub path: Option<String>,
    /// 1-based.
    pub line: usize,
    pub quote: String,
    pub gravity: Gravity,
    /// The fault and its remedy.
    pub text: String,
}

/// The findings, and a line for each kind of check with what it covered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    pub findings: Vec<Finding>,
    pub covered: Vec<String>,
}

/// Checks a manuscript.
pub fn check(input: &Input<'_>) -> Checked {
    let document = Document::parse(input.manuscript);
    let plain = plain::Plain::of(&document);
    let mut found = Finder {
        source: input.manuscript,
        plain: &plain,
        language: input.language,
        checked: Checked::default(),
    };
    length::check(&document, &input.limits, &mut found);
    citations::check(&document, input.bibliographies, &mut found);
    doi::check(input, &mut found);
    ranges::check(&mut found);
    arithmetic::check(&document, &mut found);
    tables::check(&document, &mut found);
    statistics::check(&mut found);
    grim::check(&mut found);
    let mut checked = found.checked;
    checked
        .findings
        .sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    checked.findings.dedup();
    checked
}

/// The most characters of a quotation.
const LONGEST_QUOTE: usize = 120;

/// Collects findings.
struct Finder<'c> {
    source: &'c str,
    plain: &'c plain::Plain,
    language: Language,
    checked: Checked,
}

impl Finder<'_> {
    fn say(&self, en: String, zh: String) -> String {
        match self.language {
            Language::En => en,
            Language::Zh => zh,
        }
    }

    /// Adds a finding about a range of the plain text.
    fn plain(&mut self, range: std::ops::Range<usize>, gravity: Gravity, text: String) {
        // A quotation that opens a bracket closes it.
        let words = &self.plain.text[range.clone()];
        let rest = &self.plain.text[range.end..];
        let closing = rest
            .chars()
            .take_while(|c| matches!(c, '%' | ')' | ']'))
            .count();
        let closing = if words.contains(['(', '[']) {
            closing
        } else {
            0
        };
        let range = self.plain.in_source(&(range.start..range.end + closing));
        self.source(range, gravity, text);
    }

    /// Adds a finding about a range of the manuscript.
    fn source(&mut self, range: std::ops::Range<usize>, gravity: Gravity, text: String) {
        let finding = finding(None, self.source, range, gravity, text);
        self.checked.findings.push(finding);
    }

    fn covered(&mut self, en: String, zh: String) {
        let line = self.say(en, zh);
        self.checked.covered.push(line);
    }
}

/// A finding about a range of a text.
fn finding(
    path: Option<&str>,
    text: &str,
    range: std::ops::Range<usize>,
    gravity: Gravity,
    what: String,
) -> Finding {
    let start = range.start + text[range.clone()].len() - text[range.clone()].trim_start().len();
    Finding {
        path: path.map(str::to_owned),
        line: 1 + text[..start].matches('\n').count(),
        quote: quotable(&text[start..range.end.max(start)]),
        gravity,
        text: what,
    }
}

/// Words on one line, without quotation marks, which would end the quotation.
fn quotable(words: &str) -> String {
    let pieces = words.split(['"', '“', '”']);
    let longest = pieces.max_by_key(|piece| piece.len()).unwrap_or_default();
    let line = longest.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(LONGEST_QUOTE).collect()
}

#[cfg(test)]
mod samples;
