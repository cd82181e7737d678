//! Blocks that are still open at the end of a text, and lines that a block hides.
//!
//! A comment, a code fence or a tag such as `<pre>` that is never closed swallows every entry that
//! is added behind it: no reader finds them.

use std::collections::HashSet;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use quipu_contract::open_at_end;

use crate::front::parse_front;
use crate::lines::LineIndex;
use crate::scan::options;

/// A block that nothing closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenBlock {
    /// The line that opens it.
    pub line: usize,
    /// The line that would close it.
    pub close: String,
}

/// Stands behind a text, and is a heading unless a block of the text swallows it.
const PROBE: &str = "\n\n## behind\n";
/// Tags that make a block which goes on over blank lines.
const TAGS: [&str; 4] = ["script", "pre", "style", "textarea"];

/// Whether a text can open such a block, or close one.
pub fn may_open_block(text: &str) -> bool {
    ["<", "```", "~~~"].iter().any(|sign| text.contains(sign))
}

/// The block that is still open at the end of a text, for a reader of Markdown or of keyed lines.
pub fn open_block(text: &str) -> Option<OpenBlock> {
    if !may_open_block(text) {
        return None;
    }
    let probe = format!("{text}{PROBE}");
    let swallowed = blocks(&probe).find(|(range, _)| range.end > text.len() + 2);
    match swallowed {
        Some((range, fence)) => Some(OpenBlock {
            line: LineIndex::new(&probe).line(range.start),
            close: closing(probe[range.start..].trim_start(), fence),
        }),
        None => open_at_end(text).map(|(line, close)| OpenBlock { line, close }),
    }
}

/// The first line of `before` that its readers saw and that readers of `after` do not: a block of
/// code or HTML was put around it, or it became front matter.
pub fn hidden_line(before: &str, after: &str) -> Option<usize> {
    let shown_after = shown_lines(after);
    let mut shown_after = shown_after.iter();
    shown_lines(before)
        .iter()
        .find(|(_, line)| !shown_after.any(|(_, other)| other == line))
        .map(|(number, _)| *number)
}

/// The first line of `before` that its readers saw and that a block of `after` hides: it is still
/// there, but only inside code, HTML or front matter. Lines that changed or went away do not count.
pub fn covered_line(before: &str, after: &str) -> Option<usize> {
    let shown: HashSet<&str> = shown_lines(after)
        .into_iter()
        .map(|(_, line)| line)
        .collect();
    let present: HashSet<&str> = after.lines().map(str::trim_end).collect();
    shown_lines(before)
        .into_iter()
        .find(|(_, line)| present.contains(line) && !shown.contains(line))
        .map(|(number, _)| number)
}

/// The lines outside front matter, fenced code and HTML that are not blank, with their numbers.
fn shown_lines(text: &str) -> Vec<(usize, &str)> {
    let index = LineIndex::new(text);
    let front =
        (parse_front(text, mark_length(text)).is_some()).then(|| (0..body_start(text), false));
    let mut hidden = front
        .into_iter()
        .chain(blocks(text))
        .map(|(range, _)| {
            let last = range.end.saturating_sub(1).max(range.start);
            index.line(range.start)..=index.line(last)
        })
        .peekable();
    let mut shown = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        while hidden.next_if(|lines| *lines.end() < number).is_some() {}
        let is_hidden = hidden.peek().is_some_and(|lines| lines.contains(&number));
        if !is_hidden && !line.trim().is_empty() {
            shown.push((number, line.trim_end()));
        }
    }
    shown
}

/// The offset of the text after a byte order mark and front matter.
fn body_start(text: &str) -> usize {
    let mark = mark_length(text);
    parse_front(text, mark).map_or(mark, |front| front.range.end)
}

fn mark_length(text: &str) -> usize {
    if text.starts_with('\u{feff}') { 3 } else { 0 }
}

/// The blocks of fenced code and of HTML; true for code.
fn blocks(text: &str) -> impl Iterator<Item = (std::ops::Range<usize>, bool)> {
    let base = body_start(text);
    Parser::new_ext(&text[base..], options())
        .into_offset_iter()
        .filter_map(move |(event, range)| {
            let range = range.start + base..range.end + base;
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Some((range, true)),
                Event::Start(Tag::HtmlBlock) => Some((range, false)),
                _ => None,
            }
        })
}

/// The text that closes the block that a text begins with.
fn closing(opening: &str, fence: bool) -> String {
    if fence {
        let sign = opening.chars().next().unwrap_or('`');
        return opening.chars().take_while(|c| *c == sign).collect();
    }
    let lower: String = opening.chars().take(16).collect::<String>().to_lowercase();
    let tag = TAGS.iter().find(|tag| {
        lower
            .strip_prefix('<')
            .is_some_and(|rest| rest.starts_with(**tag))
    });
    match tag {
        Some(tag) => format!("</{tag}>"),
        None if lower.starts_with("<!--") => "-->".into(),
        None if lower.starts_with("<?") => "?>".into(),
        None if lower.starts_with("<![cdata[") => "]]>".into(),
        None => ">".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_open_is_found_with_what_closes_it() {
        for (text, line, close) in [
            ("# T\n\n<!--", 3, "-->"),
            ("a\n<!-- b", 2, "-->"),
            ("a\n````rust\n```\n", 2, "````"),
            ("~~~\n", 1, "~~~"),
            ("<pre>\n\na", 1, "</pre>"),
            ("<SCRIPT src=x>\n", 1, "</script>"),
            ("<?php\n", 1, "?>"),
            ("<![CDATA[ a\n", 1, "]]>"),
            ("<!DOCTYPE html\n", 1, ">"),
            ("---\na: b\n---\n<!--\n", 4, "-->"),
            // Only the reader of keyed lines is fooled.
            ("<div>\n<!--\n\n", 2, "-->"),
        ] {
            let found = open_block(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found.line, found.close.as_str()), (line, close), "{text}");
            assert_eq!(open_block(&format!("{text}\n{close}\n")), None, "{text}");
        }
    }

    #[test]
    fn what_ends_with_its_entry_is_not_open() {
        for text in [
            "",
            "- a <b>\n",
            "- item\n  ```\n  code\n",
            "> ```\n> code\n",
            "````\n```\n````\n",
            "`<!--` and a < b\n",
            "    <!--\n",
            "<div>\n",
            "<!-- END -->\n",
            "```\n<!--\n```\n",
        ] {
            assert_eq!(open_block(text), None, "{text}");
        }
    }

    #[test]
    fn a_line_that_a_new_block_hides_is_found() {
        let before = "# D\n\n## One\n\n- a: b\n\n```\ncode\n```\n";
        for (above, below) in [("<!--\n", ""), ("<!--\n", "\n-->\n"), ("~~~\n", "~~~\n")] {
            let after = format!("# D\n\n{above}{}{below}", &before[5..]);
            assert_eq!(hidden_line(before, &after), Some(3), "{after}");
        }
        for after in [format!("---\n{before}---\n"), format!("+++\n{before}+++\n")] {
            assert_eq!(hidden_line(before, &after), Some(1), "{after}");
        }
        for (above, below) in [("<pre>\n", "</pre>\n"), ("<div>\n", "\n</div>\n")] {
            let after = before.replace("- a: b\n", &format!("{above}- a: b\n{below}"));
            assert_eq!(covered_line(before, &after), Some(5), "{after}");
        }
        for after in [
            before.replace("a: b", "a: c"),
            before.replace("- a: b\n", ""),
        ] {
            assert_eq!(covered_line(before, &after), None, "{after}");
        }
        let open = format!("---\ntitle: x\n{before}");
        assert!(hidden_line(&open, &format!("{open}---\n")).is_some());
        for after in [
            format!("# D\n\n## Zero\n\n```\n- a: b\n```\n{}", &before[4..]),
            format!("{before}\n<!-- x\n-->\n"),
        ] {
            assert_eq!(hidden_line(before, &after), None, "{after}");
        }
    }
}
