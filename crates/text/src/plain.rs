//! Renders Markdown as plain text: without markup and invisible characters, and with entities
//! decoded.
//!
//! Checks against memory must see the text that a reader sees:
//! `*Joss* signed with his **ri&#8203;ght** hand` says the same as the plain sentence. Every line
//! of the result corresponds to the same line of the source.

use pulldown_cmark::{BrokenLink, CowStr, Event, Parser};
use quipu_contract::is_invisible;
use unicode_normalization::UnicodeNormalization;

use crate::scan::options;

/// Prevents the first line of a paragraph from being parsed as a block: `1912. A year` must not
/// become a list.
const PARAGRAPH: &str = "x ";

/// Returns the labels of all link definitions in a text, in lower case.
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

/// Returns the rendered text of one paragraph. `labels` are the link labels of the whole text.
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
            // A line break without a newline is a lone carriage return.
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

/// Returns true if this is a tag of that name. `br` also matches `<br/>` and `<BR class="x">`;
/// `/sup` matches the closing tag.
fn is_tag(tag: &str, name: &str) -> bool {
    let tag = tag.trim_start_matches('<');
    let end = tag
        .char_indices()
        .skip(1)
        .find(|(_, c)| matches!(c, ' ' | '\t' | '\n' | '/' | '>'))
        .map_or(tag.len(), |(at, _)| at);
    tag[..end].eq_ignore_ascii_case(name)
}

/// A superscript after a word of at least this many letters is a note reference and is dropped.
/// Units and powers are kept: `m²`, `10²`.
const WORD: usize = 3;
/// The maximum length of a note reference: `12`, `*`, `a, b`.
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

/// Removes superscript digits after words.
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

/// Normalises characters to their appearance: removes invisible ones, turns any whitespace into a
/// space, and replaces compatibility forms of letters and digits (`Ｒ`, `𝐫`, `ﬁ`). Punctuation
/// keeps its width, which Chinese text needs.
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

/// The comments to blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comments {
    /// Comments between paragraphs.
    Blocks,
    /// Also comments within paragraphs.
    All,
}

/// Replaces HTML comments with spaces and keeps all line and byte positions. Text that only looks
/// like a comment and is shown to readers (in code, or not closed within its paragraph) is kept.
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
            // The parser reports the lines of a block one by one.
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
    // Only whole comments were replaced, so the result is valid UTF-8.
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
