//! Helpers for markup: escaping, percent-encoding, relative addresses and detection of CJK text.
//!
//! Text of chapters becomes markup only through `escape_into`. The JSON of the search page has its
//! own escaping.

use std::fmt::Write as _;

/// The syntax to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Markup {
    /// Pages: `<br>`.
    Html,
    /// EPUB: `<br/>`.
    Xhtml,
}

impl Markup {
    /// Returns the end of the tag of an empty element.
    pub fn void(self) -> &'static str {
        match self {
            Markup::Html => ">",
            Markup::Xhtml => "/>",
        }
    }
}

/// Appends escaped text. Drops characters that neither HTML nor XML allows.
pub(crate) fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => {}
            '\t' | '\n' => out.push(c),
            c if is_unfit(c) => {}
            c => out.push(c),
        }
    }
}

/// Returns true if neither HTML nor XML allows the character.
pub(crate) fn is_unfit(c: char) -> bool {
    c.is_control() || matches!(c, '\u{fdd0}'..='\u{fdef}') || (c as u32) & 0xfffe == 0xfffe
}

/// Returns escaped text.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    escape_into(&mut out, text);
    out
}

/// Percent-encodes every byte of a path that a URL does not allow.
pub(crate) fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(byte as char)
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Returns true for Han characters, kana, hangul and their punctuation. No space belongs between
/// two of them.
pub(crate) fn is_cjk(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{303f}' | '\u{3040}'..='\u{30ff}' | '\u{3100}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

/// Counts the CJK letters and the other letters of a text.
pub(crate) fn letters(text: &str) -> (usize, usize) {
    let cjk = text
        .chars()
        .filter(|c| is_cjk(*c) && c.is_alphabetic())
        .count();
    (
        cjk,
        text.chars().filter(|c| c.is_alphabetic()).count() - cjk,
    )
}

/// Returns the address of `to` relative to the folder of `from`. Both are project paths.
pub(crate) fn relative(from: &str, to: &str) -> String {
    let mut here: Vec<&str> = from.split('/').collect();
    here.pop();
    let there: Vec<&str> = to.split('/').collect();
    let shared = here
        .iter()
        .zip(&there[..there.len() - 1])
        .take_while(|(a, b)| a == b)
        .count();
    let mut parts = vec![".."; here.len() - shared];
    parts.extend(&there[shared..]);
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_from_file_to_file() {
        assert_eq!(
            relative("publish/ch01.html", "publish/ch02.html"),
            "ch02.html"
        );
        assert_eq!(
            relative("publish/ch01.html", "publish/media/a.png"),
            "media/a.png"
        );
        assert_eq!(relative("a/b/x.html", "c/y.html"), "../../c/y.html");
        assert_eq!(relative("x.html", "y.html"), "y.html");
    }

    #[test]
    fn nothing_that_breaks_a_page_passes() {
        assert_eq!(
            escaped("<a href=\"x\">&\u{0}\u{b}\u{ffff}\r\n"),
            "&lt;a href=&quot;x&quot;&gt;&amp;\n"
        );
        assert_eq!(encoded("图 1.png"), "%E5%9B%BE%201.png");
    }
}
