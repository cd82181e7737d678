//! The part of a section that shows why it was found.

use std::collections::HashSet;

use super::terms::{Reader, Term};

/// Characters of a snippet at most.
const LENGTH: usize = 240;

/// The stretch of whole words of `text` that holds most different terms of the question.
pub fn snippet(text: &str, said: &HashSet<Term>, reader: &mut Reader) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let starts: Vec<usize> = flat.char_indices().map(|(at, _)| at).collect();
    if starts.len() <= LENGTH {
        return flat;
    }
    let step = LENGTH / 4;
    let mut best = (0, 0);
    for first in (0..starts.len() - LENGTH + step).step_by(step) {
        let end = starts.get(first + LENGTH).copied().unwrap_or(flat.len());
        let mut found = HashSet::new();
        reader.read(&flat[starts[first]..end], |term, _| {
            if said.contains(&term) {
                found.insert(term);
            }
        });
        if found.len() > best.0 {
            best = (found.len(), first);
        }
    }
    let first = best.1.min(starts.len() - LENGTH);
    let end = starts.get(first + LENGTH).copied().unwrap_or(flat.len());
    let mut cut = &flat[starts[first]..end];
    // Begin and end at a space where there is one, so that no word is torn.
    if first > 0 {
        cut = cut.split_once(' ').filter(|(torn, _)| torn.len() < 24).map_or(cut, |(_, rest)| rest);
    }
    if end < flat.len() {
        cut = cut.rsplit_once(' ').filter(|(_, torn)| torn.len() < 24).map_or(cut, |(rest, _)| rest);
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
        let mut said = HashSet::new();
        reader.read("orphanage 铁路", |term, _| {
            said.insert(term);
        });
        let text = format!("{} the orphanage by the sea {}", "word ".repeat(100), "tail ".repeat(100));
        let shown = snippet(&text, &said, &mut reader);
        assert!(shown.contains("orphanage") && shown.starts_with('…') && shown.ends_with('…'));
        let chinese = format!("{}广茂铁路全长{}", "字".repeat(500), "词".repeat(500));
        assert!(snippet(&chinese, &said, &mut reader).contains("铁路"));
        assert_eq!(snippet("short", &said, &mut reader), "short");
    }
}
