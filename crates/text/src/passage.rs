//! Finds the passages of a text that carry a sign such as ❌, which reports use for objections.
//!
//! A sign counts in list items of any depth, paragraphs, headings, table rows, quotations and HTML,
//! with or without emphasis, but not in code and comments. A sign made of letters may also occur as
//! a word in prose, so it counts only at the start of a list item. Counts (`0 ❌`) and denials
//! (`❌: none`) are not passages.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::scan::options;
use crate::sign::{Weight, says_none, says_only_verdict, weigh};

/// Returns the source of each passage with a sign, on one line. Text below a list item with a sign
/// belongs to that item's passage. A nested item is reported together with its parent.
pub fn passages_with(text: &str, sign: &str) -> Vec<String> {
    read(text, sign)
        .into_iter()
        .filter(|found| found.is_item(sign))
        .map(|found| found.text)
        .collect()
}

/// Returns a passage that only counts signs or states a verdict, if no passage of the text says
/// what is wrong.
pub fn find_stray_sign(text: &str, sign: &str) -> Option<String> {
    let found = read(text, sign);
    if found.iter().any(|found| found.is_item(sign)) {
        None
    } else {
        found.into_iter().next().map(|found| found.text)
    }
}

struct Found {
    text: String,
    weight: Weight,
    heading: bool,
}

impl Found {
    fn is_item(&self, sign: &str) -> bool {
        self.weight == Weight::Said && (is_word(sign) || !says_only_verdict(&self.text, sign))
    }
}

/// Returns true if a sign is made of letters.
fn is_word(sign: &str) -> bool {
    sign.chars().any(|c| c.is_alphanumeric() || c.is_ascii())
}

fn read(text: &str, sign: &str) -> Vec<Found> {
    let mut reader = Reader {
        text,
        sign,
        word: is_word(sign),
        code: false,
        row: false,
        head: false,
        heading: false,
        lines: Vec::new(),
        open: false,
        items: Vec::new(),
        found: Vec::new(),
    };
    if !sign.is_empty() {
        for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
            reader.event(event, range);
        }
    }
    reader.found
}

/// One line of a block: its range, and its text outside code.
struct Line {
    range: Range<usize>,
    plain: String,
}

/// A list item that has not ended yet.
#[derive(Default)]
struct Open {
    /// The text of its first block.
    text: Option<String>,
    /// The index of the newest passage in this item.
    passage: Option<usize>,
}

struct Reader<'t> {
    text: &'t str,
    sign: &'t str,
    word: bool,
    code: bool,
    row: bool,
    /// True if the current row is the header of its table.
    head: bool,
    heading: bool,
    /// The lines of the current block.
    lines: Vec<Line>,
    /// True if the last line continues.
    open: bool,
    items: Vec<Open>,
    found: Vec<Found>,
}

impl<'t> Reader<'t> {
    fn event(&mut self, event: Event<'t>, range: Range<usize>) {
        match event {
            Event::Start(
                Tag::Emphasis
                | Tag::Strong
                | Tag::Strikethrough
                | Tag::Link { .. }
                | Tag::Image { .. }
                | Tag::TableCell,
            ) => {
                self.speak(range.start..range.start, " ");
            }
            Event::End(
                TagEnd::Emphasis
                | TagEnd::Strong
                | TagEnd::Strikethrough
                | TagEnd::Link
                | TagEnd::Image
                | TagEnd::TableCell,
            ) => {
                self.speak(range.end..range.end, "");
            }
            Event::Text(said) if !self.code => self.speak(range, &said),
            // Code counts as text, but a sign inside it does not count.
            Event::Code(_) => self.speak(range, "`"),
            Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_) => {
                self.speak(range, " ");
            }
            Event::SoftBreak | Event::HardBreak => self.open = self.row,
            Event::Start(tag) => self.start(&tag, range),
            Event::End(tag) => self.end(tag),
            Event::Rule => self.close(),
            Event::Text(_) | Event::Html(_) | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag<'t>, range: Range<usize>) {
        self.close();
        match tag {
            Tag::Item => self.items.push(Open::default()),
            Tag::CodeBlock(_) => self.code = true,
            Tag::TableHead => (self.row, self.head) = (true, true),
            Tag::TableRow => self.row = true,
            Tag::Heading { .. } => self.heading = true,
            Tag::HtmlBlock => self.read_html(range),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        self.close();
        match tag {
            TagEnd::Item => {
                self.items.pop();
            }
            TagEnd::CodeBlock => self.code = false,
            TagEnd::TableHead | TagEnd::TableRow => (self.row, self.head) = (false, false),
            TagEnd::Heading(_) => self.heading = false,
            _ => {}
        }
    }

    fn speak(&mut self, range: Range<usize>, said: &str) {
        match self.lines.last_mut().filter(|_| self.open) {
            Some(line) => {
                line.range.end = line.range.end.max(range.end);
                line.plain.push_str(said);
            }
            None => {
                self.open = true;
                self.lines.push(Line {
                    range,
                    plain: said.to_owned(),
                });
            }
        }
    }

    /// Reads the lines of an HTML block, without its comments.
    fn read_html(&mut self, range: Range<usize>) {
        let mut comment = false;
        let mut at = range.start;
        for line in self.text[range].split_inclusive('\n') {
            let (mut rest, mut plain) = (line, String::new());
            while let Some(end) = rest.find(if comment { "-->" } else { "<!--" }) {
                if !comment {
                    plain.push_str(&rest[..end]);
                }
                rest = &rest[end + if comment { 3 } else { 4 }..];
                comment = !comment;
            }
            if !comment {
                plain.push_str(rest);
            }
            if !plain.trim().is_empty() {
                self.lines.push(Line {
                    range: at..at + line.trim_end().len(),
                    plain,
                });
                self.close();
            }
            at += line.len();
        }
    }

    /// Ends a block. Each line that begins with the sign starts a passage.
    fn close(&mut self) {
        self.open = false;
        let lines = std::mem::take(&mut self.lines);
        let mut passages: Vec<(String, Weight)> = Vec::new();
        for line in &lines {
            let source = self.source(&line.range);
            let begins =
                line.plain.trim_start().starts_with(self.sign) || source.starts_with(self.sign);
            let weight = if self.word {
                let carries = begins
                    && passages.is_empty()
                    && self.items.last().is_some_and(|item| item.text.is_none());
                if carries {
                    Weight::Said
                } else {
                    Weight::Nothing
                }
            } else {
                weigh(&line.plain, self.sign)
            };
            match passages
                .last_mut()
                .filter(|_| !(begins && weight > Weight::Nothing))
            {
                Some((passage, known)) => {
                    passage.push(' ');
                    passage.push_str(&source);
                    *known = weight.max(*known);
                }
                None => passages.push((source, weight)),
            }
        }
        let whole = passages
            .iter()
            .map(|(passage, _)| passage.as_str())
            .collect::<Vec<_>>()
            .join(" ");
        if whole.is_empty() {
            return;
        }
        // A sign may be the header of a column.
        passages.retain(|(passage, weight)| {
            *weight > Weight::Nothing && !(self.head && says_only_verdict(passage, self.sign))
        });
        if passages.is_empty() {
            self.carry_on(&whole);
        } else {
            let alone = self.items.iter().all(|item| item.passage.is_none());
            let about = self
                .items
                .iter()
                .rev()
                .find_map(|item| item.text.clone())
                .filter(|_| alone);
            for (passage, weight) in passages {
                let text = match &about {
                    Some(about) => format!("{passage} ({about})"),
                    None => passage,
                };
                self.found.push(Found {
                    text,
                    weight,
                    heading: self.heading,
                });
            }
            if let Some(item) = self.items.last_mut() {
                item.passage = Some(self.found.len() - 1);
            }
        }
        if let Some(item) = self.items.last_mut() {
            item.text.get_or_insert(whole);
        }
    }

    /// Handles a block without the sign: it belongs to the passage of its list item, or it says
    /// that there is nothing under a heading with the sign.
    fn carry_on(&mut self, whole: &str) {
        if let Some(at) = self.items.iter().rev().find_map(|item| item.passage) {
            self.found[at].text.push(' ');
            self.found[at].text.push_str(whole);
        } else if says_none(whole)
            && self
                .found
                .last()
                .is_some_and(|found| found.heading && says_only_verdict(&found.text, self.sign))
        {
            self.found.pop();
        }
    }

    fn source(&self, range: &Range<usize>) -> String {
        let source = self.text[range.clone()]
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        if self.row {
            source.trim_matches(['|', ' ']).to_owned()
        } else {
            source
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        passages_with(text, "❌")
    }

    #[test]
    fn a_sign_that_says_something_counts_wherever_it_stands() {
        assert_eq!(
            found("- ❌ `knit()` does not exist\n- fine\n"),
            ["❌ `knit()` does not exist"]
        );
        assert_eq!(
            found("- **❌ add does not exist**\n"),
            ["**❌ add does not exist**"]
        );
        assert_eq!(found("1. __❌__ *泄露密钥*\n"), ["__❌__ *泄露密钥*"]);
        assert_eq!(
            found("Verdict.\n\n❌ Line 3 is\nwrong.\n❌ 第七行有误\n"),
            ["❌ Line 3 is wrong.", "❌ 第七行有误"]
        );
        assert_eq!(
            found("The third line\nis wrong ❌, and so\non.\n"),
            ["The third line is wrong ❌, and so on."]
        );
        assert_eq!(
            found("| ok | what |\n|---|---|\n| ❌ | no `add` |\n| 好 | **❌** |\n| yes | x |\n"),
            ["❌ | no `add`", "好 | **❌**"]
        );
        assert_eq!(found("| ❌ | no add |\n|---|---|\n"), ["❌ | no add"]);
        assert_eq!(
            found("### ❌ 1. No add\n\nText.\n\n> ❌ quoted\n"),
            ["❌ 1. No add", "❌ quoted"]
        );
        assert_eq!(
            found("- [ ] ❌ open\n\n[❌ link](a.md)\n"),
            ["❌ open", "[❌ link](a.md)"]
        );
        assert_eq!(
            found("## ❌ Must fix\n\n- none\n\n## ❌\n\n- ❌ one\n"),
            ["❌ one"]
        );
        assert_eq!(
            found("&#10060; by its number\n"),
            ["&#10060; by its number"]
        );
        assert_eq!(found("<pre>\n❌ swallowed\n"), ["❌ swallowed"]);
        assert_eq!(found("<b>❌</b> inline\n"), ["<b>❌</b> inline"]);
    }

    #[test]
    fn a_count_is_no_item_and_without_items_it_is_stray() {
        let pass = "## Verdict\n\n**Pass.** 0 ❌, 1 💡.\n\n| ❌ | ⚠️ |\n|---|---|\n| none | 2 |\n";
        assert_eq!(
            (found(pass), find_stray_sign(pass, "❌")),
            (Vec::new(), None)
        );
        assert_eq!(find_stray_sign("Pass. 0 ❌, 1 💡.\n", "❌"), None);
        assert_eq!(
            find_stray_sign("## Verdict\n\nBlock: 2 ❌.\n", "❌").as_deref(),
            Some("Block: 2 ❌.")
        );
        assert_eq!(
            find_stray_sign("Block: 1 ❌.\n\n- ❌ no `add`\n", "❌"),
            None
        );
        assert_eq!(find_stray_sign("## ❌ Must fix\n\n- none\n", "❌"), None);
        assert_eq!(
            find_stray_sign("## ❌ Must fix\n\n- the name\n", "❌").as_deref(),
            Some("❌ Must fix")
        );
        assert_eq!(
            found("- ❌\n  - the name is wrong\n"),
            ["❌ the name is wrong"]
        );
    }

    #[test]
    fn nested_items_keep_what_they_belong_to() {
        assert_eq!(
            found("- add\n  - ❌ is missing\n  - fine\n"),
            ["❌ is missing (add)"]
        );
        assert_eq!(
            found("- ❌ add\n  - source: a.rs:3\n\n  And more.\n- other\n"),
            ["❌ add source: a.rs:3 And more."]
        );
        assert_eq!(found("- ❌ one\n  - ❌ two\n"), ["❌ one", "❌ two"]);
        assert_eq!(found("- add\n\n  ❌ missing\n"), ["❌ missing (add)"]);
    }

    #[test]
    fn code_and_comments_carry_no_sign() {
        assert_eq!(
            found(
                "`❌`\n\n```\n❌\n```\n\n    ❌\n\n<!-- ❌ -->\n\na <!-- ❌ --> b\n\n<!--\n- ❌ old\n-->\n"
            ),
            [""; 0]
        );
        assert_eq!(found("- `❌` is drawn red\n"), [""; 0]);
        assert_eq!(found(""), [""; 0]);
        assert_eq!(passages_with("- a\n", ""), [""; 0]);
    }

    #[test]
    fn a_word_is_a_sign_only_at_the_beginning_of_an_item() {
        let text = "This must not be.\n\nMUST be said.\n\n- MUST mend\n- **MUST** too\n- it MUST\n";
        assert_eq!(passages_with(text, "MUST"), ["MUST mend", "**MUST** too"]);
    }
}
