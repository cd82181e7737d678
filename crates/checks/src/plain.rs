//! A manuscript as plain text for numeric checks: without code, comments, addresses, emphasis and
//! the list of references, with the ASCII forms of digits and signs.

use std::ops::Range;
use std::sync::LazyLock;

use quipu_text::Document;
use regex::Regex;

/// Parts that are no prose: code, comments and addresses.
static APART: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)<!--.*?-->|`[^`\n]+`|https?://[^\s)>\]]+").expect("a valid pattern")
});

/// The headings of lists of references.
const REFERENCES: [&str; 4] = ["references", "bibliography", "literature cited", "参考文献"];

pub(crate) struct Plain {
    pub text: String,
    /// For each byte of `text` and its end, the byte of the source.
    places: Vec<usize>,
}

/// The ranges of a source that are no prose: front matter, code, comments and addresses.
pub(crate) fn ranges_apart(document: &Document<'_>) -> Vec<Range<usize>> {
    let text = document.text();
    let front = document.front_matter().map(|front| front.range.clone());
    let found = APART.find_iter(text).map(|found| found.range());
    front.into_iter().chain(found).collect()
}

/// Whether a heading opens a list of references.
pub(crate) fn is_references(title: &str) -> bool {
    let title = title.trim().to_lowercase();
    let title = title.trim_start_matches(|c: char| c.is_ascii_digit() || ". ".contains(c));
    REFERENCES.contains(&title)
}

impl Plain {
    pub fn of(document: &Document<'_>) -> Plain {
        let text = document.text();
        let mut apart = ranges_apart(document);
        let lists = document
            .sections()
            .iter()
            .filter(|s| is_references(&s.title));
        apart.extend(lists.map(|section| section.range.clone()));
        let is_apart =
            |at: usize| apart.iter().any(|r| r.contains(&at)) || document.in_code_block(at);
        let mut plain = Plain {
            text: String::with_capacity(text.len()),
            places: Vec::with_capacity(text.len() + 1),
        };
        let mut rest = text.char_indices().peekable();
        while let Some((at, c)) = rest.next() {
            if is_apart(at) {
                plain.push(at, if c == '\n' { "\n" } else { " " });
                continue;
            }
            match c {
                '\\' => {
                    // `\,` is a thin space of LaTeX, `\%` an escaped sign.
                    if rest
                        .next_if(|(_, c)| matches!(c, ',' | ';' | ':' | '!' | ' '))
                        .is_some()
                    {
                        plain.push(at, " ");
                    }
                }
                '*' | '$' | '{' | '}' | '_' => {}
                '&' => plain.push(at, entity(&text[at..], &mut rest)),
                c => match ascii(c) {
                    Some(sign) => plain.push(at, sign),
                    None => plain.push(at, c.encode_utf8(&mut [0; 4])),
                },
            }
        }
        plain.places.push(text.len());
        plain
    }

    fn push(&mut self, at: usize, text: &str) {
        self.text.push_str(text);
        self.places.extend(std::iter::repeat_n(at, text.len()));
    }

    /// The range of the source from which a range of the plain text comes.
    pub fn in_source(&self, range: &Range<usize>) -> Range<usize> {
        self.places[range.start]..self.places[range.end].max(self.places[range.start])
    }

    /// The first byte of the plain text that comes from a byte of the source or a later one.
    pub fn after_source(&self, at: usize) -> usize {
        let places = &self.places[..self.text.len()];
        let mut found = places.partition_point(|place| *place < at);
        while !self.text.is_char_boundary(found) {
            found += 1;
        }
        found
    }

    /// The paragraphs with their offsets. A table is one paragraph.
    pub fn paragraphs(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut at = 0;
        self.text.split("\n\n").map(move |paragraph| {
            let start = at;
            at += paragraph.len() + 2;
            (start, paragraph)
        })
    }
}

type Chars<'t> = std::iter::Peekable<std::str::CharIndices<'t>>;

/// Reads an entity of HTML. Its first character is read already.
fn entity(text: &str, rest: &mut Chars<'_>) -> &'static str {
    let known = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ];
    let Some((name, sign)) = known.into_iter().find(|(name, _)| text.starts_with(name)) else {
        return "&";
    };
    for _ in 1..name.len() {
        rest.next();
    }
    sign
}

/// The ASCII form of a sign.
const fn ascii(c: char) -> Option<&'static str> {
    const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    Some(match c {
        '（' => "(",
        '）' => ")",
        '【' | '［' => "[",
        '】' | '］' => "]",
        '，' => ",",
        '；' => ";",
        '：' => ":",
        '＝' => "=",
        '＜' => "<",
        '＞' => ">",
        '％' => "%",
        '．' => ".",
        '／' => "/",
        '−' | '‑' | '－' => "-",
        '～' | '〜' => "~",
        '\u{a0}' | '\u{2009}' | '\u{202f}' | '\u{3000}' => " ",
        '０'..='９' => DIGITS[(c as u32 - '０' as u32) as usize],
        _ => return None,
    })
}
