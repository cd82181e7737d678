//! Splits a section into parts of a few sentences, the size that the encoder was trained for.
//!
//! The number of parts per section is limited. `vectors` encodes and stores the parts.

use super::terms::is_unspaced;

/// The length of a part in characters. A Chinese character counts about three times.
const LENGTH: usize = 160;
/// The maximum number of parts per section. Longer sections get longer parts.
const MOST: usize = 24;

/// Splits a text into parts: lines, split at sentence ends and packed up to a length. Returns at
/// least one.
pub fn parts(text: &str) -> Vec<&str> {
    let limit = LENGTH.max(weight(text) / MOST);
    let mut out = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (mut start, mut size) = (0, 0);
        for (from, to) in sentences(line) {
            let more = weight(&line[from..to]);
            if size > 0 && size + more > limit {
                out.push(line[start..from].trim());
                (start, size) = (from, 0);
            }
            size += more;
        }
        out.push(line[start..].trim());
    }
    out.retain(|part| !part.is_empty());
    while out.len() > MOST {
        // With many short lines, drop every second one instead of the end of the section.
        let mut keep = false;
        out.retain(|_| {
            keep = !keep;
            keep
        });
    }
    if out.is_empty() {
        out.push(text.trim());
    }
    out
}

fn weight(text: &str) -> usize {
    text.chars()
        .map(|c| if is_unspaced(c) { 3 } else { 1 })
        .sum()
}

/// Returns the byte ranges of sentences. Together they cover the whole line.
fn sentences(line: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let spaced = matches!(c, '.' | '!' | '?')
            && chars.peek().is_some_and(|(_, next)| next.is_whitespace());
        if spaced || matches!(c, '。' | '！' | '？' | '；') {
            out.push((start, end));
            start = end;
        }
    }
    if start < line.len() {
        out.push((start, line.len()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_sentences() {
        assert_eq!(parts("One. Two. Three."), ["One. Two. Three."]);
        assert_eq!(parts("first line\n\nsecond"), ["first line", "second"]);
        assert_eq!(parts(""), [""]);
        let long = "这是一个句子，它有二十个左右的字那么长。".repeat(6);
        assert_eq!(parts(&long).len(), 3);
        assert!(parts(&"A short line.\n".repeat(500)).len() <= MOST);
        assert_eq!(parts(&long).concat(), long);
    }
}
