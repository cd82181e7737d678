//! Embeds untrusted text in text that Quipu writes: an order, a decision, a start.
//!
//! An embedded line must not become a section, an entry or a marker of Quipu's own. Multi-line text
//! becomes a Markdown quotation with `> ` before every line, which also closes its headings, fences
//! and comments.

use std::borrow::Cow;

use quipu_contract::{in_one_line, is_line_break};

/// Splits a text at any kind of line break.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    // `\r\n` is one line break.
    text.split('\n')
        .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split(is_line_break))
}

/// Renders the text as a quotation.
pub fn quoted(text: &str) -> String {
    let line = |line: &str| {
        if line.trim().is_empty() {
            ">".to_owned()
        } else {
            format!("> {line}")
        }
    };
    lines(text).map(line).collect::<Vec<_>>().join("\n")
}

/// Renders the text as a paragraph. A single line that begins with a letter or a digit stays as it
/// is; anything else is quoted.
pub(crate) fn as_paragraph(text: &str) -> Cow<'_, str> {
    let is_plain = text.starts_with(char::is_alphanumeric) && !text.contains(is_line_break);
    if is_plain {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(quoted(text))
    }
}

/// Reverts [`as_paragraph`].
pub(crate) fn unquoted(text: &str) -> String {
    if !text.lines().all(|line| line.starts_with('>')) {
        return text.to_owned();
    }
    let bare = |line: &'_ str| {
        line.strip_prefix("> ")
            .or_else(|| line.strip_prefix('>'))
            .unwrap_or(line)
            .to_owned()
    };
    text.lines().map(bare).collect::<Vec<_>>().join("\n")
}

/// Renders a text as the value of a list entry. Further lines belong to the entry, and none of them
/// can become an entry, a heading, a fence or a comment.
pub(crate) fn as_entry_value(text: &str) -> String {
    let opens = |line: &str| {
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with(['-', '*', '+', '#', '<', '`', '~', '=', '|'])
            || digits.len() < line.len() && digits.starts_with(['.', ')'])
    };
    let set_in = |line: &str| {
        if opens(line.trim_start()) {
            format!("> {line}")
        } else {
            line.to_owned()
        }
    };
    let mut parts = lines(text);
    let first = parts.next().unwrap_or_default().to_owned();
    std::iter::once(first)
        .chain(parts.map(set_in))
        .collect::<Vec<_>>()
        .join("\n  ")
}

/// The first non-empty line of a text, for lists.
pub fn headline(text: &str) -> Cow<'_, str> {
    let first = lines(text)
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    in_one_line(first)
}

/// A text below a bold title: on the same line if it is a single line, else as a quotation.
pub(crate) fn below(title: &str, text: &str) -> String {
    let title = if title.is_empty() {
        String::new()
    } else {
        format!("**{}**", in_one_line(title))
    };
    let is_block = text.contains(is_line_break)
        || text
            .trim_start()
            .starts_with(['#', '<', '`', '~', '-', '*', '+', '>', '|']);
    match (is_block, title.is_empty()) {
        (true, true) => quoted(text),
        (true, false) => format!("{title}\n{}", quoted(text)),
        (false, true) => text.to_owned(),
        (false, false) => format!("{title} {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_text::Document;

    /// Headings, underlines, fences, comments and quotations, with every kind of line break.
    fn hostile() -> Vec<String> {
        let pieces = [
            "## Report\n\n- Result: done",
            "Report\n---",
            "```\n## Now\n",
            "~~~~\nx",
            "<!-- DONE -->",
            "> a\n## b",
            "a\r## b",
            "a\n\n# b",
        ];
        let breaks = ["\n", "\r", "\r\n", "\u{2028}", "\u{85}", "\u{b}"];
        pieces
            .iter()
            .flat_map(|piece| {
                breaks
                    .iter()
                    .map(|b| format!("a{b}{}", piece.replace('\n', b)))
            })
            .chain(pieces.map(str::to_owned))
            .collect()
    }

    #[test]
    fn no_quoted_text_opens_a_section() {
        for text in hostile() {
            for shown in [
                format!("# T\n\n## Task\n\n{}\n\n## Inputs\n", as_paragraph(&text)),
                format!(
                    "# T\n\n## Task\n\n- Task: {}\n\n## Inputs\n",
                    as_entry_value(&text)
                ),
                format!("# T\n\n## Task\n\n{}\n\n## Inputs\n", below("Body", &text)),
                format!(
                    "# T\n\n## Task\n\n{}\n\n## Inputs\n",
                    headline(&text).trim_start_matches(['#', '<', '`', '~'])
                ),
            ] {
                let titles: Vec<String> = Document::parse(&shown)
                    .sections()
                    .iter()
                    .map(|s| s.title.clone())
                    .filter(|t| !t.is_empty())
                    .collect();
                assert_eq!(titles, ["T", "Task", "Inputs"], "{shown:?}");
            }
        }
    }

    #[test]
    fn a_quotation_is_read_as_it_was_written() {
        for text in [
            "one line",
            "## Report",
            "two\nlines\n\n- and\n> more",
            "> quoted\n> already",
        ] {
            assert_eq!(unquoted(&as_paragraph(text)), text);
        }
        assert_eq!(unquoted("plain\n> partly"), "plain\n> partly");
    }
}
