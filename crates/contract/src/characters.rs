//! Characters that mislead readers: line breaks in one-line fields, invisible characters, terminal
//! controls.
//!
//! The tables list properties of Unicode 17 by code point, because no crate of the workspace
//! provides them. Stored text keeps all of these characters; only names, one-line fields and
//! printed output are restricted.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether some reader starts a new line at this character: the line breaks of Unicode (UAX #14,
/// classes BK, CR, LF and NL) and the separators that Python and some terminals add.
pub fn is_line_break(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether the character has no visible glyph, so that texts with and without it look the same.
pub fn is_invisible(c: char) -> bool {
    is_default_ignorable(c) || is_blank(c)
}

/// The property `Default_Ignorable_Code_Point`: soft hyphen, joiners, Hangul fillers, bidi
/// controls, variation selectors, musical and shorthand format controls, tag characters.
fn is_default_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Characters that Unicode classes as visible but that have no glyph: the empty Braille cell, the
/// musical null note head, the Khitan filler; interlinear and hieroglyph format controls.
fn is_blank(c: char) -> bool {
    matches!(c, '\u{2800}' | '\u{1d159}' | '\u{16fe4}' | '\u{fff9}'..='\u{fffb}'
        | '\u{13430}'..='\u{13440}' | '\u{13447}'..='\u{13455}')
}

/// Whether the code point is a noncharacter or a replacement character (U+FFFC, U+FFFD).
pub(crate) fn is_stand_in(c: char) -> bool {
    matches!(c, '\u{fffc}' | '\u{fffd}' | '\u{fdd0}'..='\u{fdef}') || c as u32 & 0xfffe == 0xfffe
}

/// Whether a terminal or a bidirectional text renderer may act on the character instead of drawing
/// it.
fn is_terminal_control(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes a multi-line text for printing: every terminal control is spelled out (`\u{1b}`). Line
/// feeds, a carriage return before one, and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let kept = |at: usize, c: char| match c {
        '\n' | '\t' => true,
        '\r' => text[at + 1..].starts_with('\n'),
        c => !is_terminal_control(c),
    };
    spelled_out(text, kept)
}

/// Escapes a text for one line: like [`printable`], with line breaks and tabs spelled out too.
pub fn in_one_line(text: &str) -> Cow<'_, str> {
    spelled_out(text, |_, c| !is_line_break(c) && !is_terminal_control(c))
}

/// Escapes a name for messages: every invisible character is spelled out.
pub fn quotable(name: &str) -> String {
    let shown =
        |c: char| c != '\\' && !is_line_break(c) && !is_terminal_control(c) && !is_invisible(c);
    let kept = |_, c: char| shown(c) && !is_stand_in(c);
    spelled_out(name, kept).into_owned()
}

fn spelled_out(text: &str, kept: impl Fn(usize, char) -> bool) -> Cow<'_, str> {
    // Most texts need no escape.
    let Some((first, _)) = text.char_indices().find(|(at, c)| !kept(*at, *c)) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < first) {
        match c {
            c if kept(at, c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c => drop(write!(out, "{}", c.escape_unicode())),
        }
    }
    Cow::Owned(out)
}

/// Refuses a line break in a one-line field.
pub fn check_one_line(what: &str, text: &str) -> Result<(), NotOneLine> {
    match text.chars().find(|c| is_line_break(*c)) {
        Some(found) => Err(NotOneLine {
            what: what.to_owned(),
            found,
        }),
        None => Ok(()),
    }
}

/// A line break in a one-line field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be one line, but contains a line break ({})", .found.escape_default())]
pub struct NotOneLine {
    pub what: String,
    pub found: char,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_nothing_to_obey() {
        assert_eq!(printable("a\tb\r\n写 é 👩‍👩‍👧\n"), "a\tb\r\n写 é 👩‍👩‍👧\n");
        assert_eq!(
            printable("\u{1b}]52;c;eA==\u{7}"),
            "\\u{1b}]52;c;eA==\\u{7}"
        );
        assert_eq!(printable("fine\rdone"), "fine\\rdone");
        assert_eq!(
            printable("\u{9b}2J\u{7f}\u{202e}x\u{2069}\u{200f}\u{61c}"),
            "\\u{9b}2J\\u{7f}\\u{202e}x\\u{2069}\\u{200f}\\u{61c}"
        );
        assert_eq!(in_one_line("a\nb\u{2028}c\td"), "a\\nb\\u{2028}c\\td");
    }

    #[test]
    fn every_line_break_is_known() {
        for c in [
            '\n', '\u{b}', '\u{c}', '\r', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}',
            '\u{2029}',
        ] {
            let error = check_one_line("a title", &format!("a{c}b")).unwrap_err();
            assert_eq!(error.found, c);
        }
        assert_eq!(
            check_one_line("a title", "a\nb").unwrap_err().to_string(),
            "a title must be one line, but contains a line break (\\n)"
        );
        check_one_line("a title", "a\tb").unwrap();
    }
}
