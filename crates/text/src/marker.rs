//! Completion markers: the last line that proves that a file is complete.
//!
//! A marker is an HTML comment `<!-- NAME -->` that occupies the whole last non-blank line. Spaces
//! around it and inside the comment are allowed. A Markdown parser must see it as a comment, too:
//! it does not count in an unclosed code block, in indented code, or as the end of a longer
//! comment. The contract defines the name that a file needs; names must match exactly.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

use crate::scan::options;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker<'t> {
    /// `[A-Z0-9_]+`
    pub name: &'t str,
    pub start: usize,
    pub end: usize,
    /// 1-based.
    pub line: usize,
}

impl Marker<'_> {
    /// Returns the byte range of the comment.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// Returns the marker at the end of a text.
pub fn marker(text: &str) -> Option<Marker<'_>> {
    let last = text.trim_end();
    let line_start = last.rfind('\n').map_or(0, |at| at + 1);
    let line = last[line_start..].trim_start_matches('\u{feff}');
    let comment = line.trim_start();
    let name = comment.strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let named = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    let start = last.len() - comment.len();
    if !named || !is_comment(text, start) {
        return None;
    }
    Some(Marker {
        name,
        start,
        end: last.len(),
        line: 1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..start]).count(),
    })
}

/// Returns the marker line for a name.
pub fn render_marker(name: &str) -> String {
    format!("<!-- {name} -->")
}

/// Returns true if a Markdown parser sees a separate comment at `start`.
fn is_comment(text: &str, start: usize) -> bool {
    let base = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut html_block = None;
    for (event, range) in Parser::new_ext(&text[base..], options()).into_offset_iter() {
        let range = range.start + base..range.end + base;
        if range.start > start {
            break;
        }
        if range.end <= start {
            continue;
        }
        match event {
            Event::Start(Tag::CodeBlock(_)) | Event::Code(_) => return false,
            Event::Start(Tag::HtmlBlock) => html_block = Some(range.start),
            Event::InlineHtml(_) if range.start < start => return false,
            _ => {}
        }
    }
    // In an HTML block, an earlier comment must not still be open.
    html_block.is_none_or(|from| {
        let before = &text[from..start];
        match (before.rfind("<!--"), before.rfind("-->")) {
            (Some(opened), Some(closed)) => opened < closed,
            (Some(_), None) => false,
            (None, _) => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<&str> {
        marker(text).map(|marker| marker.name)
    }

    #[test]
    fn the_last_non_blank_line_counts() {
        assert_eq!(
            name("# A\n\ntext\n\n<!-- DRAFT_COMPLETE -->\n"),
            Some("DRAFT_COMPLETE")
        );
        assert_eq!(name("text\n<!--DONE2-->"), Some("DONE2"));
        assert_eq!(
            name("text\r\n  <!--   R1_CODE_REVIEW_COMPLETE --> \r\n\r\n\u{3000}\n"),
            Some("R1_CODE_REVIEW_COMPLETE")
        );
        assert_eq!(name("\u{feff}<!-- X -->"), Some("X"));
        assert_eq!(name("- item\n  <!-- X -->\n"), Some("X"));
        assert_eq!(name("text\n    <!-- X -->\n"), Some("X"));
        assert_eq!(name("<div>\n<!-- X -->\n"), Some("X"));
        assert_eq!(name("<!-- note -->\n<!-- X -->\n"), Some("X"));
    }

    #[test]
    fn names_are_whole_and_upper_case() {
        assert_ne!(
            name("<!-- R1_CODE_REVIEW_COMPLETE -->"),
            Some("REVIEW_COMPLETE")
        );
        assert_eq!(name("<!-- Review_Complete -->"), None);
        assert_eq!(name("<!-- A B -->"), None);
        assert_eq!(name("<!-- -->"), None);
        assert_eq!(name("<!---->"), None);
        assert_eq!(name("<!-->"), None);
        assert_eq!(name("<!-- A --> <!-- B -->"), None);
    }

    #[test]
    fn nothing_else_may_stand_on_or_after_the_line() {
        assert_eq!(name("<!-- X -->\nmore"), None);
        assert_eq!(name("done <!-- X -->"), None);
        assert_eq!(name("> <!-- X -->"), None);
        assert_eq!(name("<!-- X --> ok"), None);
        assert_eq!(name(""), None);
    }

    #[test]
    fn code_and_longer_comments_prove_nothing() {
        assert_eq!(name("```\n<!-- X -->\n"), None);
        assert_eq!(name("```\n<!-- X -->\n```\n"), None);
        assert_eq!(name("~~~\ncode\n~~~\n\n<!-- X -->\n"), Some("X"));
        assert_eq!(name("text\n\n    <!-- X -->\n"), None);
        assert_eq!(name("<!-- draft\nnotes\n<!-- X -->\n"), None);
        assert_eq!(name("a `b\n<!-- X -->\n"), Some("X"));
    }

    #[test]
    fn the_place_is_exact() {
        let text = "中\n\n <!-- X -->\n";
        let found = marker(text).unwrap();
        assert_eq!(&text[found.range()], "<!-- X -->");
        assert_eq!(found.line, 3);
        assert_eq!(name(&render_marker("A_1")), Some("A_1"));
    }
}
