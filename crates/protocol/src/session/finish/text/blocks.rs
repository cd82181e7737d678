//! Splits a finish text into headings and items. This module parses Markdown; the caller interprets
//! the items.

use super::decision::{field_name, is_field};
use super::names::{Section, section_of};

/// The content below one heading or label.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    /// None for an unknown heading, or for text before the first heading.
    pub section: Option<Section>,
    pub title: String,
    pub line: usize,
    /// The level of the heading; 0 for a label.
    level: usize,
    pub items: Vec<Item>,
    /// The lines of the block as they were written, without comments.
    pub raw: String,
}

/// One list entry or one paragraph.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub line: usize,
    pub text: String,
    /// The first line as it was written: `text` has no bold markers.
    pub raw: String,
    /// Further lines, each with a flag: whether it is a nested list entry.
    pub body: Vec<(bool, String)>,
    /// The character in its checkbox: `x` or a space.
    pub checked: Option<char>,
    /// The subheading above it.
    pub group: Option<String>,
    indent: usize,
    is_entry: bool,
    pub is_heading: bool,
}

impl Item {
    /// Joins all lines: nested entries after a semicolon, wrapped lines after a space.
    pub fn whole(&self) -> String {
        self.joined(&self.text)
    }

    /// The same, with all markup.
    pub fn raw_whole(&self) -> String {
        self.joined(&self.raw)
    }

    fn joined(&self, first: &str) -> String {
        let mut whole = first.to_owned();
        let has_code = self
            .body
            .iter()
            .any(|(_, line)| line.trim_start().starts_with("```"));
        for (is_entry, line) in &self.body {
            let wide = |c: Option<char>| c.is_some_and(|c| c > '\u{2e7f}');
            let between = match (has_code, is_entry) {
                (true, _) => "\n",
                (false, true) if whole.ends_with([':', '：']) => " ",
                (false, true) => "; ",
                (false, false)
                    if wide(whole.chars().last()) && wide(line.trim().chars().next()) =>
                {
                    ""
                }
                (false, false) => " ",
            };
            whole.push_str(between);
            whole.push_str(if has_code { line } else { line.trim() });
        }
        whole
    }
}

/// Parses a text. `keys` are the names that the project's own closers read.
pub(super) fn parse_blocks(text: &str, keys: &[&'static str]) -> Vec<Block> {
    let text = unfenced(text.trim_start_matches('\u{feff}'));
    let mut sorter = Sorter {
        keys,
        blocks: Vec::new(),
        blank: true,
        fence: None,
        comment: false,
    };
    for (number, line) in text {
        sorter.line(number, line);
    }
    sorter.blocks
}

/// Returns the numbered lines, without a code fence that encloses all of them.
fn unfenced(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<(usize, &str)> = (1..)
        .zip(text.lines().map(|l| l.strip_suffix('\r').unwrap_or(l)))
        .collect();
    let said: Vec<usize> = (0..lines.len())
        .filter(|at| !lines[*at].1.trim().is_empty())
        .collect();
    let is_fence = |at: &usize| lines[*at].1.trim_start().starts_with("```");
    match (said.first(), said.last()) {
        (Some(first), Some(last))
            if first < last && is_fence(first) && lines[*last].1.trim() == "```" =>
        {
            lines[first + 1..*last].to_vec()
        }
        _ => lines,
    }
}

struct Sorter<'k> {
    keys: &'k [&'static str],
    blocks: Vec<Block>,
    /// Whether the previous line was empty.
    blank: bool,
    fence: Option<&'static str>,
    comment: bool,
}

impl Sorter<'_> {
    fn line(&mut self, number: usize, raw: &str) {
        if let Some(fence) = self.fence {
            self.go_on(number, raw.trim_end().to_owned(), false);
            self.keep_raw(raw);
            if raw.trim().starts_with(fence) {
                self.fence = None;
            }
            return;
        }
        let raw = &without_comments(raw);
        let line = raw.trim();
        if self.comment || line.starts_with("<!--") {
            self.comment = !line.ends_with("-->");
            return;
        }
        if line.is_empty() {
            self.blank = true;
            self.keep_raw("");
            return;
        }
        let is_rule = line.len() >= 3
            && ['-', '*', '_', '=']
                .iter()
                .any(|rule| line.chars().all(|c| c == *rule));
        if is_rule {
            self.blank = true;
            return;
        }
        if let Some(fence) = ["```", "~~~"]
            .into_iter()
            .find(|fence| line.starts_with(fence))
        {
            self.fence = Some(fence);
            self.go_on(number, raw.trim_end().to_owned(), false);
            self.keep_raw(raw);
            return;
        }
        let indent = raw
            .chars()
            .take_while(|c| c.is_whitespace())
            .map(|c| if c == '\t' { 4 } else { 1 })
            .sum();
        let before = self.blocks.len();
        self.sort(number, indent, line);
        if self.blocks.len() == before {
            self.keep_raw(raw);
        }
        self.blank = false;
    }

    /// Adds a line to the block as it was written.
    fn keep_raw(&mut self, line: &str) {
        if let Some(block) = self.blocks.last_mut() {
            if !block.raw.is_empty() {
                block.raw.push('\n');
            }
            block.raw.push_str(line);
        }
    }

    fn sort(&mut self, number: usize, indent: usize, line: &str) {
        if let Some((level, title)) = heading(line) {
            return self.heading(number, level, title);
        }
        let entry = entry(line);
        let labels = entry.is_none()
            || self
                .blocks
                .last()
                .is_none_or(|b| matches!(b.section, None | Some(Section::State)));
        let plain = entry.as_ref().map_or(line, |(_, rest)| *rest);
        if indent < 2
            && labels
            && !self.is_field(plain)
            && let Some((section, title, value)) = label(plain, self.keys)
            && !self.is_group(section, 7, value)
        {
            return self.open(Some(section), title, number, 0, value);
        }
        match entry {
            Some((checked, rest)) => self.entry(number, indent, checked, rest),
            None => self.plain(number, indent, line),
        }
    }

    /// Whether a line continues the decision above it, as in `Why: …`.
    fn is_field(&self, line: &str) -> bool {
        let Some(block) = self
            .blocks
            .last()
            .filter(|b| b.section == Some(Section::Decisions))
        else {
            return false;
        };
        let Some(last) = block.items.last() else {
            return false;
        };
        is_field(line)
            && (last.is_heading
                || !self.blank
                || section_of(field_name(line), self.keys) != Some(Section::Decisions))
    }

    fn heading(&mut self, number: usize, level: usize, title: &str) {
        let split = || {
            let (name, value) = title.split_once([':', '：'])?;
            Some((section_of(name, self.keys)?, value))
        };
        let known = section_of(title, self.keys)
            .map(|section| (section, ""))
            .or_else(split);
        match known {
            Some((section, value)) if !self.is_group(section, level, value) => {
                self.open(Some(section), title, number, level, value)
            }
            _ => match self.blocks.last_mut() {
                // A subheading begins an item, or groups the items below it.
                Some(block)
                    if block.section.is_some() && block.level > 0 && level > block.level =>
                {
                    block.items.push(Item {
                        is_heading: true,
                        ..Item::new(number, clean(title))
                    });
                }
                _ => self.open(None, title, number, level, ""),
            },
        }
        self.blank = true;
    }

    /// Whether a known name below the todos only groups them, as in `### Done` or `Blocked:`.
    fn is_group(&mut self, section: Section, level: usize, value: &str) -> bool {
        let sorts = matches!(
            section,
            Section::Done
                | Section::Blocked
                | Section::InProgress
                | Section::Later
                | Section::Unblocked
        );
        let Some(block) = self.blocks.last_mut() else {
            return false;
        };
        let is_group = sorts
            && block.section == Some(Section::Todos)
            && block.level > 0
            && level > block.level
            && value.trim().is_empty();
        if is_group && level == 7 {
            block.items.push(Item {
                is_heading: true,
                ..Item::new(0, section.names().0.to_owned())
            });
        }
        is_group
    }

    fn open(
        &mut self,
        section: Option<Section>,
        title: &str,
        line: usize,
        level: usize,
        value: &str,
    ) {
        self.blocks.push(Block {
            section,
            title: clean(title),
            line,
            level,
            items: Vec::new(),
            raw: value.trim().to_owned(),
        });
        if !value.trim().is_empty() {
            self.plain(line, 0, value.trim());
        }
        self.blank = true;
    }

    fn block(&mut self, line: usize) -> &mut Block {
        if self.blocks.is_empty() {
            self.blocks.push(Block {
                section: None,
                title: String::new(),
                line,
                level: 0,
                items: Vec::new(),
                raw: String::new(),
            });
        }
        self.blocks.last_mut().expect("pushed above")
    }

    fn entry(&mut self, number: usize, indent: usize, checked: Option<char>, text: &str) {
        let block = self.block(number);
        let takes_all = block.section == Some(Section::Decisions);
        match block.items.last_mut() {
            Some(last) if last.is_entry && indent >= last.indent + 2 => {
                last.body.push((true, text.to_owned()))
            }
            // Entries below a subheading that is a decision are its fields.
            Some(last) if takes_all && (last.is_heading || is_field(text)) => {
                last.body.push((true, text.to_owned()))
            }
            _ => {
                let mut item = Item {
                    indent,
                    is_entry: true,
                    checked,
                    raw: text.trim().to_owned(),
                    ..Item::new(number, clean_marks(text))
                };
                item.group = self.group();
                self.block(number).items.push(item);
            }
        }
    }

    fn plain(&mut self, number: usize, indent: usize, text: &str) {
        let (blank, group) = (self.blank, self.group());
        let block = self.block(number);
        let by_line = matches!(block.section, Some(Section::Todos | Section::Later));
        match block.items.last_mut() {
            Some(last)
                if block.section == Some(Section::Decisions)
                    && (last.is_heading || is_field(text)) =>
            {
                last.body.push((false, text.to_owned()))
            }
            Some(last)
                if !last.is_heading && (!blank || indent >= 2) && (!by_line || last.is_entry) =>
            {
                last.body.push((false, text.to_owned()));
            }
            _ => {
                let (checked, text) = boxed(text);
                block.items.push(Item {
                    checked,
                    group,
                    indent,
                    raw: text.trim().to_owned(),
                    ..Item::new(number, clean_marks(text))
                });
            }
        }
    }

    fn go_on(&mut self, number: usize, line: String, is_entry: bool) {
        let block = self.block(number);
        match block.items.last_mut() {
            Some(last) => last.body.push((is_entry, line)),
            None => block.items.push(Item::new(number, line)),
        }
    }

    /// The subheading above the next item.
    fn group(&self) -> Option<String> {
        let block = self
            .blocks
            .last()
            .filter(|b| b.section != Some(Section::Decisions))?;
        block
            .items
            .iter()
            .rfind(|item| item.is_heading)
            .map(|item| item.text.clone())
    }
}

impl Item {
    fn new(line: usize, text: String) -> Item {
        Item {
            line,
            raw: text.clone(),
            text,
            body: Vec::new(),
            checked: None,
            group: None,
            indent: 0,
            is_entry: false,
            is_heading: false,
        }
    }

    /// Whether it only groups the items below it.
    pub fn is_subheading(&self) -> bool {
        self.is_heading && self.body.is_empty()
    }
}

/// Removes comments that begin and end within the line.
fn without_comments(line: &str) -> String {
    let mut line = line.to_owned();
    while let Some(start) = line.find("<!--")
        && let Some(end) = line[start..].find("-->")
    {
        line.replace_range(start..start + end + 3, "");
    }
    line.trim_end().to_owned()
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let title = line.get(level..)?;
    let is_one = (1..=6).contains(&level) && title.starts_with(char::is_whitespace);
    is_one.then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

/// Returns the text after a bullet or a number, and the character in its checkbox.
fn entry(line: &str) -> Option<(Option<char>, &str)> {
    let bullet = line
        .strip_prefix(['-', '*', '+', '•', '·', '–', '—', '▪', '●'])
        .filter(|rest| rest.starts_with(char::is_whitespace));
    let numbered = || {
        let inner = line.strip_prefix(['(', '（']).unwrap_or(line);
        let rest = inner.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = inner.len() - rest.len();
        let behind = rest
            .strip_prefix(['.', ')', '）'])
            .filter(|rest| rest.starts_with(char::is_whitespace));
        behind
            .or_else(|| rest.strip_prefix('、'))
            .filter(|_| (1..=3).contains(&digits))
    };
    match bullet.or_else(numbered) {
        Some(rest) => Some(boxed(rest.trim())),
        None => {
            let (checked, rest) = boxed(line);
            checked.map(|c| (Some(c), rest))
        }
    }
}

/// Splits `[x] text` into the checkbox character and the text.
fn boxed(text: &str) -> (Option<char>, &str) {
    for (mark, meaning) in [
        ("☐", ' '),
        ("☑", 'x'),
        ("✅", 'x'),
        ("✔️", 'x'),
        ("✔", 'x'),
        ("✓", 'x'),
    ] {
        if let Some(rest) = text.strip_prefix(mark) {
            return (Some(meaning), rest.trim_start());
        }
    }
    let inner = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match inner {
        Some((mark, rest))
            if mark.chars().count() == 1 && rest.starts_with(char::is_whitespace) =>
        {
            (
                mark.chars().next().map(|c| c.to_ascii_lowercase()),
                rest.trim_start(),
            )
        }
        Some(("", rest)) if rest.starts_with(char::is_whitespace) => (Some(' '), rest.trim_start()),
        _ => (None, text),
    }
}

/// Parses `Done:`, `**Phase**: testing`, `Decisions：无` or `**Notes**` into the section, its name
/// and the text after the colon.
fn label<'l>(line: &'l str, keys: &[&'static str]) -> Option<(Section, &'l str, &'l str)> {
    if let Some(rest) = line.strip_prefix("**").or_else(|| line.strip_prefix("__")) {
        let end = rest.find("**").or_else(|| rest.find("__"))?;
        let (name, value) = (&rest[..end], rest[end + 2..].trim_start());
        let section = section_of(name, keys)?;
        let value = value
            .strip_prefix([':', '：'])
            .or_else(|| value.is_empty().then_some(""))
            .or(name.ends_with([':', '：']).then_some(value))?;
        return Some((section, name, value));
    }
    let (name, value) = line.split_once([':', '：'])?;
    (name.chars().count() <= 24)
        .then(|| section_of(name, keys))
        .flatten()
        .map(|section| (section, name, value))
}

fn clean(text: &str) -> String {
    text.replace("**", "")
        .trim()
        .trim_end_matches([':', '：'])
        .trim()
        .to_owned()
}

/// Removes bold markers around words: `**Title** rest`. Markers inside code are operators and stay:
/// `2**8`, `f(**kwargs)`.
fn clean_marks(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.trim();
    while let Some(at) = rest.find("**") {
        let inner = &rest[at + 2..];
        let opens = rest[..at]
            .chars()
            .next_back()
            .or(out.chars().next_back())
            .is_none_or(|c| !c.is_ascii_alphanumeric() && !"([{=,`".contains(c))
            && inner.starts_with(|c: char| !c.is_whitespace());
        let close = inner.find("**").filter(|close| opens && *close > 0);
        out.push_str(&rest[..at]);
        match close {
            Some(close) => {
                out.push_str(&inner[..close]);
                rest = &inner[close + 2..];
            }
            None => {
                out.push_str("**");
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bold_is_removed_and_code_is_kept() {
        for (text, clean) in [
            ("**Title** rest", "Title rest"),
            ("see **a** and **b**.", "see a and b."),
            ("2**8 + 3**9", "2**8 + 3**9"),
            ("f(**kwargs) and g(**opts)", "f(**kwargs) and g(**opts)"),
            ("改为**粗体**字", "改为粗体字"),
        ] {
            assert_eq!(clean_marks(text), clean);
        }
    }

    #[test]
    fn a_block_keeps_its_lines_as_written() {
        let text =
            "## Solution\n\n- f(**kw)  and __init__\n\n```\n# <!-- x -->\n```\n\nLesson: *args\n";
        let blocks = parse_blocks(text, &["solution", "lesson"]);
        assert_eq!(
            blocks[0].raw.trim(),
            "- f(**kw)  and __init__\n\n```\n# <!-- x -->\n```"
        );
        assert_eq!(blocks[1].raw, "*args");
        assert_eq!(blocks[1].items[0].raw_whole(), "*args");
    }
}
