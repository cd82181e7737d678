//! Splits a Markdown text into lines of prose and blocks of code, with their line numbers.
//!
//! A code block ends as Markdown defines it, for example at the end of its quotation or list item.
//! Comments are blanked; the rest of their lines counts as prose.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use crate::lines::LineIndex;
use crate::plain::{Comments, blank_comments};
use crate::scan::options;

/// A block of code, fenced or indented.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CodeBlock {
    /// The line number of its first line of code.
    pub line: usize,
    /// The info string after the opening fence.
    pub info: String,
    /// Its lines, without quotation or list markers.
    pub code: Vec<String>,
    /// The last non-blank line of prose before it, unless another code block is between them.
    pub above: String,
}

impl CodeBlock {
    /// Returns the language from the info string.
    pub fn language(&self) -> &str {
        self.info
            .split([' ', ',', '{', ':', '\t'])
            .next()
            .unwrap_or_default()
    }
}

/// The prose and the code of a text.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Lines outside code blocks, with their numbers.
    pub prose: Vec<(usize, String)>,
    pub code: Vec<CodeBlock>,
}

/// Separates the prose of a text from its code.
pub fn split_blocks(text: &str) -> Blocks {
    let lines = LineIndex::new(text);
    let shown = blank_comments(text, Comments::All);
    let mut prose = shown
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.to_owned()))
        .peekable();
    let mut found = Blocks::default();
    let (mut open, mut code): (Option<CodeBlock>, String) = (None, String::new());
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let first = lines.line(range.start);
                let mut above = String::new();
                while let Some((number, line)) = prose.next_if(|(number, _)| *number < first) {
                    // A quoted line may be blank apart from its `>`.
                    let bare = line.trim_start_matches(['>', ' ', '\t']).trim_end();
                    if !bare.is_empty() {
                        above = bare.to_owned();
                    }
                    found.prose.push((number, line));
                }
                let last = lines.line(range.end.saturating_sub(1).max(range.start));
                while prose.next_if(|(number, _)| *number <= last).is_some() {}
                open = Some(match kind {
                    CodeBlockKind::Fenced(info) => CodeBlock {
                        line: first + 1,
                        info: info.trim().to_owned(),
                        above,
                        ..CodeBlock::default()
                    },
                    CodeBlockKind::Indented => CodeBlock {
                        line: first,
                        above,
                        ..CodeBlock::default()
                    },
                });
            }
            Event::Text(text) if open.is_some() => code.push_str(&text),
            Event::End(TagEnd::CodeBlock) => {
                let lines = std::mem::take(&mut code);
                found.code.extend(open.take().map(|block| CodeBlock {
                    code: lines.lines().map(str::to_owned).collect(),
                    ..block
                }));
            }
            _ => {}
        }
    }
    found.prose.extend(prose);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(text: &str) -> Vec<(usize, String)> {
        split_blocks(text)
            .prose
            .into_iter()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(at, line)| (at, line.trim().into()))
            .collect()
    }

    #[test]
    fn blocks_have_their_lines_and_what_is_above() {
        let text = "One\n\n`a.rs:3`\n\n```rust\nlet a = 1;\n\nlet b;\n```\nTwo ``` x ```\n- ~~~~\n  ```\n  ~~~~\n<!-- a\n```\n-->\nEnd\n";
        let lines = ["One", "`a.rs:3`", "Two ``` x ```", "End"].map(str::to_owned);
        assert_eq!(
            prose(text),
            [1, 3, 10, 17].into_iter().zip(lines).collect::<Vec<_>>()
        );
        let found = split_blocks(text).code;
        let code = ["let a = 1;", "", "let b;"].map(str::to_owned).to_vec();
        assert_eq!(
            found[0],
            CodeBlock {
                line: 6,
                info: "rust".into(),
                code,
                above: "`a.rs:3`".into()
            }
        );
        assert_eq!(
            (
                found[1].line,
                found[1].code.as_slice(),
                found[1].above.as_str()
            ),
            (12, ["```".to_owned()].as_slice(), "Two ``` x ```")
        );
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_block_ends_where_readers_see_it_end() {
        for text in [
            "> ~~~\nhere",
            "> ~~~\n\nhere",
            "- ~~~\n\nhere",
            "- ~~~\nhere",
            "    ~~~\nhere",
            "<!-- --> here",
            "<!-- a\nb --> here",
            "<!-- `x` -->\nhere",
            "~~~\nx\n~~~\nhere",
            "1. ```\n   x\n\nhere",
        ] {
            let found = prose(text);
            assert!(
                found.last().is_some_and(|(_, line)| line == "here"),
                "{text:?} {found:?}"
            );
        }
        assert_eq!(prose("~~~\nhere"), []);
        assert_eq!(
            split_blocks("> ```\n> a\n>\n>   b\n> ```\nc").code[0].code,
            ["a", "", "  b"]
        );
        assert_eq!(
            split_blocks("> `a.rs:3`\n>\n> ```\n> a\n> ```\n").code[0].above,
            "`a.rs:3`"
        );
        assert_eq!(
            split_blocks("a\r\n\r\n```\r\nb\r\n```\r\n").code[0].code,
            ["b"]
        );
    }
}
