//! Text as markup: escaping, and what a script (as in writing) a text is in.

use std::fmt::Write as _;

/// Which of the two spellings of HTML is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Markup {
    /// Pages: `<br>`.
    Html,
    /// EPUB: `<br/>`.
    Xhtml,
}

impl Markup {
    /// The end of an element that has no content.
    pub fn void(self) -> &'static str {
        match self {
            Markup::Html => ">",
            Markup::Xhtml => "/>",
        }
    }
}

/// Adds text, with everything that markup could mistake escaped and what neither HTML nor XML may
/// hold left out.
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

/// Whether neither HTML nor XML may hold a character.
pub(crate) fn is_unfit(c: char) -> bool {
    c.is_control() || matches!(c, '\u{fdd0}'..='\u{fdef}') || (c as u32) & 0xfffe == 0xfffe
}

pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    escape_into(&mut out, text);
    out
}

/// A path as an address: every byte that an address may not hold is percent-encoded.
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

/// Han characters, kana and hangul, and their punctuation: no space belongs between two of them.
pub(crate) fn is_cjk(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{303f}' | '\u{3040}'..='\u{30ff}' | '\u{3100}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

/// How many letters of a text are Han (or kana) and how many are other letters.
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

/// The address of `to` from the folder of `from`, both paths of the project.
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
