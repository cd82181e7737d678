//! Markdown as its readers see it: without marks, entities resolved, without what draws nothing.
//!
//! What is compared with memory must be what a reader reads: `*Joss* signed with his
//! **ri&#8203;ght** hand` says the same as the plain sentence. Every line of the result belongs to
//! the same line of the source.

use pulldown_cmark::{BrokenLink, CowStr, Event, Parser};
use quipu_contract::is_invisible;
use unicode_normalization::UnicodeNormalization;

use crate::scan::options;

/// Keeps the first line of a paragraph from being read as a block of its own: `1912. A year` is no
/// list here.
const PARAGRAPH: &str = "x ";

/// The labels of link definitions in a whole text, in small letters.
pub fn link_labels(text: &str) -> Vec<String> {
    if !text.contains("]:") {
        return Vec::new();
    }
    let parser = Parser::new_ext(text, options());
    parser
        .reference_definitions()
        .iter()
        .map(|(label, _)| label.to_lowercase())
        .collect()
}

/// The text of one paragraph as it is rendered. `labels` are those of the whole text that the
/// paragraph is from.
pub fn rendered_text(paragraph: &str, labels: &[String]) -> String {
    let source = format!("{PARAGRAPH}{paragraph}");
    let resolve = |link: BrokenLink<'_>| {
        let is_known = labels.contains(&link.reference.to_lowercase());
        is_known.then_some((CowStr::Borrowed(""), CowStr::Borrowed("")))
    };
    let parser = Parser::new_with_broken_link_callback(&source, options(), Some(resolve));
    let mut out = String::with_capacity(source.len());
    let (mut passed, mut raised) = (0, None);
    for (event, range) in parser.into_offset_iter() {
        let text = match event {
            Event::InlineHtml(tag) if is_tag(&tag, "sup") => {
                raised = Some(out.len());
                continue;
            }
            Event::InlineHtml(tag) if is_tag(&tag, "/sup") => {
                drop_note_sign(&mut out, raised.take());
                continue;
            }
            Event::InlineHtml(tag) if tag.starts_with("<![CDATA[") => {
                let inner = tag["<![CDATA[".len()..]
                    .trim_end_matches('>')
                    .trim_end_matches(']')
                    .to_owned();
                CowStr::from(inner)
            }
            Event::Text(text)
            | Event::Code(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => text,
            Event::InlineHtml(tag) if is_tag(&tag, "br") => CowStr::Borrowed(" "),
            // A line break without a newline: a lone carriage return.
            Event::SoftBreak | Event::HardBreak if !source[range.clone()].contains('\n') => {
                CowStr::Borrowed(" ")
            }
            _ => continue,
        };
        if range.start > passed {
            out.extend(source[passed..range.start].matches('\n').map(|_| '\n'));
            passed = range.start;
        }
        out.push_str(&text);
    }
    let text = without_note_signs(out.strip_prefix(PARAGRAPH.trim_end()).unwrap_or(&out));
    visible(&text).trim_start_matches(' ').to_owned()
}

/// Whether this is a tag of that name: of `br` also `<br/>` and `<BR class="x">`, of `/sup` the
/// closing tag.
fn is_tag(tag: &str, name: &str) -> bool {
    let tag = tag.trim_start_matches('<');
    let end = tag
        .char_indices()
        .skip(1)
        .find(|(_, c)| matches!(c, ' ' | '\t' | '\n' | '/' | '>'))
        .map_or(tag.len(), |(at, _)| at);
    tag[..end].eq_ignore_ascii_case(name)
}

/// A raised sign behind a word marks a note and is none of its letters. Units and powers stay:
/// `m²`, `10²`.
const WORD: usize = 3;
/// The longest sign of a note: `12`, `*`, `a, b`.
const NOTE_SIGN: usize = 6;

fn ends_in_word(text: &str) -> bool {
    text.chars()
        .rev()
        .take_while(|c| c.is_alphabetic())
        .take(WORD)
        .count()
        == WORD
        || text.ends_with(|c: char| c.is_alphabetic() && !c.is_ascii())
}

fn drop_note_sign(out: &mut String, raised: Option<usize>) {
    if let Some(from) = raised
        && out[from..].chars().count() <= NOTE_SIGN
        && ends_in_word(&out[..from])
    {
        out.truncate(from);
    }
}

/// The text without raised digits behind words.
fn without_note_signs(text: &str) -> String {
    let is_raised = |c: char| matches!(c, '¹' | '²' | '³' | '⁰' | '⁴'..='⁹');
    if !text.contains(is_raised) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut in_sign = false;
    for c in text.chars() {
        in_sign = is_raised(c) && (in_sign || ends_in_word(&out));
        if !in_sign {
            out.push(c);
        }
    }
    out
}

/// Characters as they look: what draws nothing is left out, any blank is a space, letters and
/// digits in a compatibility form (`Ｒ`, `𝐫`, `ﬁ`) are plain ones. Punctuation keeps its width,
/// which Chinese text needs.
pub fn visible(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_invisible(*c)) {
        match c {
            '\n' => out.push('\n'),
            c if c.is_whitespace() => out.push(' '),
            c if c.is_alphabetic()
                || matches!(c, '\u{ff10}'..='\u{ff19}' | '\u{1d7ce}'..='\u{1d7ff}') =>
            {
                out.extend(std::iter::once(c).nfkc());
            }
            c => out.push(c),
        }
    }
    out.nfc().collect()
}

/// Which comments are blanked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comments {
    /// Those that stand between paragraphs.
    Blocks,
    /// Those within paragraphs too.
    All,
}

/// The text with HTML comments blank, line for line and byte for byte. What only looks like one and
/// is shown to readers (in code, or never closed within its paragraph) stays.
pub fn blank_comments(text: &str, which: Comments) -> String {
    if !text.contains("<!--") {
        return text.to_owned();
    }
    let mut spans: Vec<std::ops::Range<usize>> = Vec::new();
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        let wanted = matches!(event, Event::Html(_))
            || which == Comments::All && matches!(event, Event::InlineHtml(_));
        match spans.last_mut() {
            _ if !wanted => {}
            // The lines of a block come one by one.
            Some(last) if matches!(event, Event::Html(_)) && last.end == range.start => {
                last.end = range.end
            }
            _ => spans.push(range),
        }
    }
    let mut bytes = text.as_bytes().to_vec();
    for span in spans {
        let (mut from, end) = (span.start, span.end);
        while let Some(open) = text[from..end].find("<!--").map(|at| from + at) {
            let close = text[open..end].find("-->").map_or(end, |at| open + at + 3);
            bytes[open..close]
                .iter_mut()
                .filter(|byte| !matches!(**byte, b'\n' | b'\r'))
                .for_each(|byte| *byte = b' ');
            from = close;
        }
    }
    // Whole comments were replaced, which begin and end between characters.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_read_as_it_is_rendered() {
        for (source, read) in [
            (
                "*Joss* signed with his **right** hand",
                "Joss signed with his right hand",
            ),
            (
                "ri\u{200b}ght, ri\u{ad}ght, ri&shy;ght, ri&#8203;ght, ri&ZeroWidthSpace;ght",
                "right, right, right, right, right",
            ),
            (
                "ri<!-- x -->ght, <b>ri</b>ght, ri*g*ht, `right`",
                "right, right, right, right",
            ),
            (
                "[right](a.md \"left\"), [right][one] and [premise]",
                "right, right and [premise]",
            ),
            ("Ｊｏｓｓ 𝐫𝐢𝐠𝐡𝐭 ﬁne&nbsp;day 10²", "Joss right fine day 10²"),
            ("用\u{200b}**右**手，写了：“名”。", "用右手，写了：“名”。"),
            ("1912. A year", "1912. A year"),
            (
                "green<sup>1</sup> eyes, green<SUP>*</SUP> eyes, green¹² eyes, 绿¹眼",
                "green eyes, green eyes, green eyes, 绿眼",
            ),
            ("10<sup>2</sup> m², 10² km²", "102 m², 10² km²"),
            ("gr<![CDATA[ee]]>n <b>eyes</b><br/>here", "green eyes here"),
            ("one\n*two*\nthree", "one\ntwo\nthree"),
            ("a [b](\nc.md) d\ne", "a b\n d\ne"),
            ("caf\u{65}\u{301}", "café"),
        ] {
            assert_eq!(rendered_text(source, &["one".into()]), read, "{source}");
        }
    }

    #[test]
    fn only_comments_are_blank() {
        let text = "a <!-- b --> c\n\n<!-- d\ne -->\n\nf <!-- g\n\nh `<!--` i `-->` j\n";
        let blocks = "a <!-- b --> c\n\n      \n     \n\nf <!-- g\n\nh `<!--` i `-->` j\n";
        assert_eq!(blank_comments(text, Comments::Blocks), blocks);
        assert_eq!(
            blank_comments(text, Comments::All),
            blocks.replacen("<!-- b -->", "          ", 1)
        );
    }
}
