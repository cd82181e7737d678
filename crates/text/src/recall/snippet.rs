//! The part of a section that shows why it was found.

use super::segment::TermSet;
use super::terms::{Reader, Term};

/// Characters of a snippet at most.
const LENGTH: usize = 240;

/// The stretch of whole words of `text` that holds most different terms of the question, with what
/// stands around them: a quarter of the rest before the first, since the answer mostly follows the
/// words of the question.
pub fn snippet(text: &str, said: &TermSet, reader: &mut Reader) -> String {
    let mut flat = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !flat.is_empty() {
            flat.push(' ');
        }
        flat.push_str(word);
    }
    if flat.chars().count() <= LENGTH {
        return flat;
    }
    let starts: Vec<usize> = flat.char_indices().map(|(at, _)| at).collect();
    // Every term of the question that occurs, with the characters it stands on.
    let character = |byte: usize| starts.partition_point(|start| *start < byte);
    let mut places: Vec<(usize, usize, Term)> = Vec::new();
    reader.read_places(&flat, |range, term, _| {
        if said.contains(&term) {
            places.push((character(range.start), character(range.end), term));
        }
    });
    let step = LENGTH / 4;
    // How many terms, and the characters from the first to the last of them.
    let mut best = (0, 0..0);
    let mut found: Vec<Term> = Vec::new();
    // Places are in the order of the text: what is behind one window is behind the next.
    let mut ahead = &places[..];
    for first in (0..starts.len() - LENGTH + step).step_by(step) {
        ahead = &ahead[ahead
            .iter()
            .take_while(|(start, ..)| *start < first)
            .count()..];
        let within = || {
            ahead
                .iter()
                .take_while(|(start, ..)| *start < first + LENGTH)
                .filter(|(_, end, _)| *end <= first + LENGTH)
        };
        found.clear();
        found.extend(within().map(|(_, _, term)| *term));
        found.sort_unstable();
        found.dedup();
        if found.len() > best.0 {
            let from = within().map(|(start, ..)| *start).min().unwrap_or(first);
            let to = within().map(|(_, end, _)| *end).max().unwrap_or(first);
            best = (found.len(), from..to);
        }
    }
    let rest = LENGTH.saturating_sub(best.1.len());
    let first = best
        .1
        .start
        .saturating_sub(rest / 4)
        .min(starts.len() - LENGTH);
    let end = starts.get(first + LENGTH).copied().unwrap_or(flat.len());
    let mut cut = &flat[starts[first]..end];
    // Begin and end at a space where there is one, so that no word is torn.
    if first > 0 {
        cut = cut
            .split_once(' ')
            .filter(|(torn, _)| torn.len() < 24)
            .map_or(cut, |(_, rest)| rest);
    }
    if end < flat.len() {
        cut = cut
            .rsplit_once(' ')
            .filter(|(_, torn)| torn.len() < 24)
            .map_or(cut, |(rest, _)| rest);
    }
    let open = if first > 0 { "… " } else { "" };
    let close = if end < flat.len() { " …" } else { "" };
    format!("{open}{cut}{close}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_matching_part() {
        let mut reader = Reader::new();
        let mut said = TermSet::default();
        reader.read("orphanage 铁路", |term, _| {
            said.insert(term);
        });
        let text = format!(
            "{} the orphanage by the sea {}",
            "word ".repeat(100),
            "tail ".repeat(100)
        );
        let shown = snippet(&text, &said, &mut reader);
        assert!(shown.contains("orphanage") && shown.starts_with('…') && shown.ends_with('…'));
        let chinese = format!("{}广茂铁路全长{}", "字".repeat(500), "词".repeat(500));
        assert!(snippet(&chinese, &said, &mut reader).contains("铁路"));
        assert_eq!(snippet("short", &said, &mut reader), "short");
    }

    #[test]
    fn shows_what_follows_the_words_of_the_question() {
        let mut reader = Reader::new();
        let mut said = TermSet::default();
        reader.read("staging database password", |term, _| {
            said.insert(term);
        });
        for before in 0..120 {
            let text = format!(
                "{}the staging database has its password in vault entry 7 {}",
                "word ".repeat(before),
                "tail ".repeat(100)
            );
            let shown = snippet(&text, &said, &mut reader);
            assert!(
                shown.contains("the staging database has its password in vault entry 7"),
                "{before}: {shown}"
            );
        }
    }
}
