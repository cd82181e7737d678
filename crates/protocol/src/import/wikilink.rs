//! Turns `[[Target]]` links between notes into Markdown links.
//!
//! `[[Coffee]]` becomes `[[Coffee]](Coffee.md)`: the text stays, and Markdown parsers see a link.

use std::collections::HashMap;

use quipu_text::{Document, slug};

use super::source::Piece;

/// Resolves the links between pieces. Links without a matching piece stay unchanged.
pub(super) fn lead(pieces: &mut [Piece]) {
    let known = names_of(pieces);
    for piece in pieces.iter_mut().filter(|piece| piece.is_markdown()) {
        let Ok(text) = std::str::from_utf8(&piece.bytes) else {
            continue;
        };
        let led = led(text, &piece.to, &known);
        piece.bytes = led.into_bytes();
    }
}

/// All names of each note in lower case: its path, file name, title and permalink.
fn names_of(pieces: &[Piece]) -> HashMap<String, String> {
    let mut known = HashMap::new();
    let mut name = |name: &str, to: &str| {
        known
            .entry(name.to_lowercase())
            .or_insert_with(|| to.to_owned());
    };
    for piece in pieces.iter().filter(|piece| piece.is_markdown()) {
        let stem = piece.from.trim_end_matches(".md");
        name(stem, &piece.to);
        name(&piece.from, &piece.to);
        if let Ok(text) = std::str::from_utf8(&piece.bytes)
            && let Some(Ok(front)) = Document::parse(text)
                .front_matter()
                .map(|front| front.value.as_ref())
        {
            for key in ["permalink", "title"] {
                if let Some(said) = front.get(key).and_then(|value| value.as_str()) {
                    name(said, &piece.to);
                }
            }
        }
    }
    // Add bare file names last: two folders may contain the same name.
    for piece in pieces.iter().filter(|piece| piece.is_markdown()) {
        let stem = piece.from.trim_end_matches(".md");
        name(stem.rsplit('/').next().unwrap_or(stem), &piece.to);
    }
    known
}

fn led(text: &str, here: &str, known: &HashMap<String, String>) -> String {
    let document = Document::parse(text);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    // Track the backticks since the start of the line and the next `]]` in one pass, so that the
    // cost does not grow with the number of openings.
    let (mut passed, mut ticks, mut close) = (0, 0usize, 0);
    for (at, _) in text.match_indices("[[") {
        for byte in text[passed..at].bytes() {
            ticks = if byte == b'\n' {
                0
            } else {
                ticks + usize::from(byte == b'`')
            };
        }
        passed = at;
        if close <= at {
            let Some(length) = text[at..].find("]]") else {
                break;
            };
            close = at + length;
        }
        if at < done {
            continue;
        }
        let (inner, end) = (&text[at + 2..close], close + 2);
        let in_code = document.in_code_block(at) || ticks % 2 == 1;
        let embeds = text[..at].ends_with('!');
        if in_code || embeds || inner.contains(['\n', '[']) || text[end..].starts_with(['(', '[']) {
            continue;
        }
        let target = inner.split('|').next().unwrap_or(inner).trim();
        let (page, heading) = target
            .split_once('#')
            .map_or((target, None), |(page, heading)| (page, Some(heading)));
        let Some(to) = known.get(&page.trim().to_lowercase()) else {
            continue;
        };
        let anchor = heading.map(|h| format!("#{}", slug(h))).unwrap_or_default();
        out.push_str(&text[done..end]);
        out.push_str(&format!("({}{anchor})", address(&relative(here, to))));
        done = end;
    }
    out.push_str(&text[done..]);
    out
}

/// The relative path from one file to another.
fn relative(here: &str, to: &str) -> String {
    let (here, there): (Vec<&str>, Vec<&str>) =
        (here.split('/').collect(), to.split('/').collect());
    let shared = here
        .iter()
        .zip(&there)
        .take(here.len() - 1)
        .take_while(|(a, b)| a == b)
        .count();
    let up = std::iter::repeat_n("..", here.len() - 1 - shared);
    up.chain(there[shared..].iter().copied())
        .collect::<Vec<_>>()
        .join("/")
}

/// Percent-encodes characters that would end a link's address.
pub(super) fn address(path: &str) -> String {
    path.replace('%', "%25")
        .replace(' ', "%20")
        .replace('(', "%28")
        .replace(')', "%29")
        .replace('#', "%23")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searching the text again for each opening would take minutes.
    #[test]
    fn many_openings_are_read_in_linear_time() {
        let text = "[".repeat(100_000) + "]]";
        assert_eq!(led(&text, "a.md", &HashMap::new()), text);
    }

    #[test]
    fn links_lead_and_words_stay() {
        let note = |name: &str, text: &str| Piece::of_file(name, text.as_bytes().to_vec());
        let mut pieces = [
            note(
                "notes/Coffee.md",
                "---\ntitle: Coffee Brewing\npermalink: notes/coffee-brewing\n---\n- pairs_with [[Tea (green)]]\n",
            ),
            note(
                "drinks/Tea.md",
                "---\ntitle: Tea (green)\n---\nSee [[Coffee Brewing#Grind size|this]], [[coffee]], [[nothing]], `[[Tea]]`, ![[Tea]].\n",
            ),
        ];
        lead(&mut pieces);
        let text = |at: usize| String::from_utf8(pieces[at].bytes.clone()).unwrap();
        assert!(
            text(0).contains("- pairs_with [[Tea (green)]](../drinks/Tea.md)\n"),
            "{}",
            text(0)
        );
        let tea = text(1);
        assert!(tea.contains("[[Coffee Brewing#Grind size|this]](../notes/Coffee.md#grind-size), [[coffee]](../notes/Coffee.md), [[nothing]], `[[Tea]]`, ![[Tea]]."), "{tea}");
        let links = Document::parse(&tea)
            .links()
            .iter()
            .map(|link| link.path.clone())
            .collect::<Vec<_>>();
        assert_eq!(
            links,
            ["../notes/Coffee.md", "../notes/Coffee.md", "nothing", "Tea"]
        );
        let again = tea.clone();
        lead(&mut pieces);
        assert_eq!(String::from_utf8(pieces[1].bytes.clone()).unwrap(), again);
    }
}
