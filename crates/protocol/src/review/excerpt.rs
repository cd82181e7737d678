//! Excerpts of long lines: the sentences that changed or that a comment rests on.
//!
//! Many manuscripts have a paragraph on one line. A word that changed in it would show the whole
//! paragraph, and again as it was.

use std::collections::BTreeSet;
use std::ops::Range;

use quipu_text::first_sentence;

/// A shorter line is shown whole.
const LONG: usize = 240;
/// The first characters of a line of which nothing else is shown.
const START: usize = 60;

/// The sentences of a paragraph with their bytes.
pub(super) fn sentences(line: &str) -> Vec<(Range<usize>, &str)> {
    let mut found = Vec::new();
    let mut at = line.len() - line.trim_start().len();
    while at < line.trim_end().len() {
        let sentence = first_sentence(&line[at..]);
        found.push((at..at + sentence.len(), sentence));
        at += sentence.len();
        at += line[at..].len() - line[at..].trim_start().len();
    }
    found
}

/// All sentences of some lines.
pub(super) fn sentences_of<'t>(lines: &[&'t str]) -> BTreeSet<&'t str> {
    let all = lines.iter().flat_map(|line| sentences(line));
    all.map(|(_, sentence)| sentence).collect()
}

/// A line without the sentences that the reader needs not see; `known` are those. Sentences that
/// overlap `wanted`, bytes of the line, are kept.
pub(super) fn excerpt(line: &str, known: &BTreeSet<&str>, wanted: &[Range<usize>]) -> String {
    if line.len() <= LONG {
        return line.to_owned();
    }
    let is_wanted = |own: &Range<usize>| {
        let meets = |other: &Range<usize>| own.start < other.end && other.start < own.end;
        wanted.iter().any(meets)
    };
    let (mut text, mut is_cut) = (String::new(), false);
    for (range, sentence) in sentences(line) {
        if known.contains(sentence) && !is_wanted(&range) {
            is_cut = true;
            continue;
        }
        if std::mem::take(&mut is_cut) {
            text.push_str("… ");
        }
        text.push_str(sentence);
        text.push(' ');
    }
    if text.is_empty() {
        text = line.chars().take(START).collect();
        is_cut = true;
    }
    if is_cut {
        text.push('…');
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_shows_what_changed_and_what_is_quoted() {
        let same = "It stays as it was, with all of the words that it had before, and with more. ";
        let line = format!("{same}New words. {same}A quoted one. {same}{same}");
        let known = sentences_of(&[line.as_str()]);
        let known: BTreeSet<&str> = known.into_iter().filter(|s| *s != "New words.").collect();
        let at = line.find("quoted").unwrap();
        let wanted = at..at + 6;
        assert_eq!(
            excerpt(&line, &known, std::slice::from_ref(&wanted)),
            "… New words. … A quoted one. …"
        );
        let all = sentences_of(&[line.as_str()]);
        let start: String = line.chars().take(START).collect();
        assert_eq!(excerpt(&line, &all, &[]), format!("{start}…"));
        assert_eq!(excerpt("Short. Line.", &all, &[]), "Short. Line.");
        let none = BTreeSet::new();
        assert_eq!(excerpt(&line, &none, &[]), line.trim_end());
    }
}
