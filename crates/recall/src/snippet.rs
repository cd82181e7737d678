//! Selects the part of a section that shows why it was found.
//!
//! A snippet has a maximum length and is not cut inside a word. It does not affect the ranking.

use super::segment::TermSet;
use super::terms::{Reader, Term, is_unspaced};

/// The maximum width of a snippet. A character of a script without spaces says as much as two
/// letters.
const WIDTH: usize = 160;

/// Returns the excerpt of `text` with the most distinct terms of the question, cut at word
/// boundaries. A quarter of the remaining space goes before the first term, because the answer
/// mostly follows the words of the question.
pub fn snippet(text: &str, said: &TermSet, reader: &mut Reader) -> String {
    let mut flat = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !flat.is_empty() {
            flat.push(' ');
        }
        flat.push_str(word);
    }
    let starts: Vec<usize> = flat.char_indices().map(|(at, _)| at).collect();
    let unspaced = flat.chars().filter(|c| is_unspaced(*c)).count();
    if starts.len() + unspaced <= WIDTH {
        return flat;
    }
    let length = WIDTH * starts.len() / (starts.len() + unspaced);
    // All occurrences of the question's terms, in character positions.
    let character = |byte: usize| starts.partition_point(|start| *start < byte);
    let mut places: Vec<(usize, usize, Term)> = Vec::new();
    reader.read_places(&flat, |range, term, _| {
        if said.contains(&term) {
            places.push((character(range.start), character(range.end), term));
        }
    });
    let step = length / 4;
    // The number of distinct terms, and the range from the first to the last.
    let mut best = (0, 0..0);
    let mut found: Vec<Term> = Vec::new();
    // Occurrences are sorted, so those before one window are also before the next.
    let mut ahead = &places[..];
    for first in (0..starts.len() - length + step).step_by(step) {
        ahead = &ahead[ahead
            .iter()
            .take_while(|(start, ..)| *start < first)
            .count()..];
        let within = || {
            ahead
                .iter()
                .take_while(|(start, ..)| *start < first + length)
                .filter(|(_, end, _)| *end <= first + length)
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
    let rest = length.saturating_sub(best.1.len());
    let first = best
        .1
        .start
        .saturating_sub(rest / 4)
        .min(starts.len() - length);
    let end = starts.get(first + length).copied().unwrap_or(flat.len());
    let mut cut = &flat[starts[first]..end];
    // Cut at a space if there is one nearby, so that no word is split.
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
