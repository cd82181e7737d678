//! Parses a text into parts (a heading and the text directly under it) and units (one entry each).
//!
//! Invariant: `render` of the result of `parse` is the same text, byte for byte. A unit is a keyed
//! line with its indented lines, a table row, or an opaque block of prose, code or comment.

use std::collections::HashMap;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

/// A longer "key" is a clause of prose that happens to end in a colon.
const KEY_CHARS: usize = 40;
/// A key with more words is prose, too.
const KEY_WORDS: usize = 6;

/// A heading and the entries directly under it. The first unit is the heading, empty for the text
/// before the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Folded titles from the outermost heading to this one, and a counter among equal ones.
    pub id: String,
    pub titles: Vec<String>,
    /// 1 to 6, or 0 before the first heading.
    pub level: usize,
    pub line: usize,
    pub units: Vec<Unit>,
}

/// One entry with the blank lines after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub id: String,
    pub text: String,
    pub gap: String,
    pub line: usize,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Heading,
    /// `value` covers wrapped lines; `rest` begins with the first nested item. Both are offsets
    /// into `text`.
    Keyed {
        key: String,
        value: Range<usize>,
        rest: usize,
    },
    /// A table row with its cells, the first of which is the key.
    Row {
        key: String,
        cells: Vec<Range<usize>>,
    },
    /// A list item without a key.
    Item,
    Comment,
    Block,
}

impl Part {
    pub fn title(&self) -> &str {
        self.titles.last().map_or("", String::as_str)
    }

    pub fn render(&self) -> String {
        self.units
            .iter()
            .fold(String::new(), |text, unit| text + &unit.text + &unit.gap)
    }

    pub fn is_history(&self) -> bool {
        self.level > 0 && matches!(fold(self.title()).as_str(), "history" | "历史" | "历史记录")
    }

    pub fn find(&self, id: &str) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.id == id)
    }
}

impl Unit {
    pub fn key(&self) -> Option<&str> {
        match &self.kind {
            Kind::Keyed { key, .. } | Kind::Row { key, .. } => Some(key),
            _ => None,
        }
    }

    /// Returns the value on one line: wrapped lines joined, further cells of a row separated by
    /// `|`.
    pub fn value(&self) -> String {
        match &self.kind {
            Kind::Keyed { value, .. } => self.text[value.clone()]
                .lines()
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" "),
            Kind::Row { cells, .. } => cells
                .iter()
                .skip(1)
                .map(|cell| self.text[cell.clone()].trim())
                .collect::<Vec<_>>()
                .join(" | "),
            _ => String::new(),
        }
    }

    /// Returns the text nested below a keyed line.
    pub fn rest(&self) -> &str {
        match &self.kind {
            Kind::Keyed { rest, .. } => &self.text[*rest..],
            _ => "",
        }
    }
}

pub(super) fn render(parts: &[Part]) -> String {
    let mut text = String::new();
    let eol = if parts
        .iter()
        .any(|part| part.units.iter().any(|u| u.text.ends_with("\r\n")))
    {
        "\r\n"
    } else {
        "\n"
    };
    for unit in parts
        .iter()
        .flat_map(|part| &part.units)
        .filter(|unit| !unit.text.is_empty() || !unit.gap.is_empty())
    {
        // Only the last line of a text may lack its newline. Text inserted after it starts on a new
        // line.
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(eol);
        }
        text.push_str(&unit.text);
        text.push_str(&unit.gap);
    }
    text
}

/// Normalizes keys and titles for comparison.
pub(super) fn fold(text: &str) -> String {
    let plain: String = text.nfkc().flat_map(char::to_lowercase).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn parse(text: &str) -> Vec<Part> {
    parse_to_end(text).parts
}

/// The line whose comment or fence is still open at the end of a text, and what closes it.
pub fn open_at_end(text: &str) -> Option<(usize, String)> {
    let (close, line) = parse_to_end(text).until?;
    Some((line, close))
}

fn parse_to_end(text: &str) -> Parser {
    let mut parser = Parser {
        has_front: text.starts_with("---")
            && text.lines().skip(1).any(|line| line.trim_end() == "---"),
        ..Parser::default()
    };
    parser.open(0, "", String::new(), 1);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        parser.line(line, index + 1);
    }
    parser.close();
    parser
}

#[derive(Default)]
struct Parser {
    parts: Vec<Part>,
    /// Titles above the current part with their levels.
    above: Vec<(usize, String)>,
    seen: HashMap<String, usize>,
    /// The text that ends the open block (a fence, `-->` or a front matter's `---`), and the line
    /// that opened it.
    until: Option<(String, usize)>,
    /// Whether front matter opens the text: a `---` that nothing closes is a rule across the page.
    has_front: bool,
    /// Whether a table's delimiter line was just seen, so that rows follow.
    in_table: bool,
}

impl Parser {
    fn open(&mut self, level: usize, title: &str, heading: String, line: usize) {
        self.close();
        self.in_table = false;
        while self.above.last().is_some_and(|(above, _)| *above >= level) {
            self.above.pop();
        }
        if level > 0 {
            self.above.push((level, title.to_owned()));
        }
        let titles: Vec<String> = self.above.iter().map(|(_, title)| title.clone()).collect();
        let path = titles
            .iter()
            .map(|title| fold(title))
            .collect::<Vec<_>>()
            .join("\u{1}");
        let nth = self.seen.entry(path.clone()).or_insert(0);
        let id = format!("{path}\u{2}{nth}");
        *nth += 1;
        let unit = Unit {
            id: "#".into(),
            text: heading,
            gap: String::new(),
            line,
            kind: Kind::Heading,
        };
        self.parts.push(Part {
            id,
            titles,
            level,
            line,
            units: vec![unit],
        });
    }

    /// Assigns ids to the units of the finished part.
    fn close(&mut self) {
        let Some(part) = self.parts.last_mut() else {
            return;
        };
        let history = part.is_history();
        let mut seen: HashMap<String, usize> = HashMap::new();
        for unit in part.units.iter_mut().skip(1) {
            unit.finish();
            let name = match &unit.kind {
                // The history may hold several values of one key; equal ones are merged.
                Kind::Keyed { key, .. } if history => {
                    format!("h{}\u{1}{}", fold(key), without_time(&unit.value()))
                }
                Kind::Keyed { key, .. } => format!("k{}", fold(key)),
                Kind::Row { key, .. } => format!("r{}", fold(key)),
                _ => format!("b{}", unit.text.trim_end()),
            };
            let nth = seen.entry(name.clone()).or_insert(0);
            unit.id = format!("{name}\u{2}{nth}");
            *nth += 1;
        }
    }

    fn line(&mut self, line: &str, number: usize) {
        if let Some((end, _)) = &self.until {
            let ends = match end.as_str() {
                "-->" => line.contains("-->"),
                "---" => line.trim_end() == "---",
                fence => {
                    let trimmed = line.trim();
                    trimmed.starts_with(fence) && trimmed.trim_start_matches(&fence[..1]).is_empty()
                }
            };
            if ends {
                self.until = None;
            }
            self.extend(line);
            return;
        }
        if line.trim().is_empty() {
            self.in_table = false;
            if let Some(last) = self.last() {
                last.gap.push_str(line);
            }
            return;
        }
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let indented = indent >= 2 || line.starts_with('\t');
        // Indented lines belong to the item above, even after a blank line.
        if indented
            && self
                .last()
                .is_some_and(|last| matches!(last.kind, Kind::Keyed { .. } | Kind::Item))
        {
            self.extend(line);
            return;
        }
        if let Some((level, title)) = heading(line) {
            self.open(level, &title, line.to_owned(), number);
            return;
        }
        let trimmed = line.trim();
        // Deeper than that, a line is code or goes on with a paragraph.
        let opener = if indent < 4 && !line.starts_with('\t') {
            trimmed
        } else {
            ""
        };
        if number == 1 && self.has_front && line.trim_end() == "---" {
            self.until = Some(("---".into(), number));
            self.push(line, number, Kind::Block);
        } else if let Some(fence) = opening_fence(opener) {
            self.until = Some((fence.to_owned(), number));
            self.push(line, number, Kind::Block);
        } else if opener.starts_with("<!--") {
            if !trimmed.contains("-->") {
                self.until = Some(("-->".into(), number));
            }
            self.push(line, number, Kind::Comment);
        } else if trimmed.starts_with('|') {
            self.table_line(line, number);
        } else if let Some(content) = item_content(line) {
            let kind = match split_key(&line[content..]) {
                Some((key, value)) => Kind::Keyed {
                    key: key.to_owned(),
                    value: content + value..line.len(),
                    rest: line.len(),
                },
                None => Kind::Item,
            };
            self.push(line, number, kind);
        } else {
            self.plain(line, number);
        }
    }

    fn table_line(&mut self, line: &str, number: usize) {
        let delimiter = line
            .trim()
            .chars()
            .all(|c| matches!(c, '|' | '-' | ':' | ' '))
            && line.contains('-');
        if delimiter {
            self.in_table = true;
        }
        let kind = match cells(line) {
            cells if self.in_table && !delimiter && cells.len() > 1 => Kind::Row {
                key: line[cells[0].clone()].trim().to_owned(),
                cells,
            },
            _ => Kind::Block,
        };
        self.push(line, number, kind);
    }

    /// Parses a line of running text. It is keyed if it opens a paragraph or follows a keyed line.
    fn plain(&mut self, line: &str, number: usize) {
        let follows = self
            .last()
            .filter(|last| last.gap.is_empty() && last.kind != Kind::Heading)
            .map(|last| last.kind.clone());
        let lead = line.len() - line.trim_start().len();
        let keyed = split_key(&line[lead..]);
        match (follows, keyed) {
            (None | Some(Kind::Keyed { .. }), Some((key, value))) => {
                self.push(
                    line,
                    number,
                    Kind::Keyed {
                        key: key.to_owned(),
                        value: lead + value..line.len(),
                        rest: line.len(),
                    },
                );
            }
            (Some(Kind::Keyed { .. } | Kind::Item | Kind::Block), _) => self.extend(line),
            _ => self.push(line, number, Kind::Block),
        }
    }

    fn push(&mut self, line: &str, number: usize, kind: Kind) {
        let unit = Unit {
            id: String::new(),
            text: line.to_owned(),
            gap: String::new(),
            line: number,
            kind,
        };
        if let Some(part) = self.parts.last_mut() {
            part.units.push(unit);
        }
    }

    fn extend(&mut self, line: &str) {
        if let Some(last) = self.last() {
            let gap = std::mem::take(&mut last.gap);
            last.text.push_str(&gap);
            last.text.push_str(line);
        }
    }

    fn last(&mut self) -> Option<&mut Unit> {
        self.parts.last_mut().and_then(|part| part.units.last_mut())
    }
}

impl Unit {
    /// Determines the end of a keyed line's value, after all its lines are known.
    pub fn finish(&mut self) {
        let Kind::Keyed { value, rest, .. } = &mut self.kind else {
            return;
        };
        let mut end = 0;
        for (index, line) in self.text.split_inclusive('\n').enumerate() {
            if index > 0 && (item_content(line.trim_start()).is_some() || line.trim().is_empty()) {
                break;
            }
            end += line.len();
        }
        *rest = end;
        let raw = &self.text[value.start..end];
        let start = value.start + raw.len() - raw.trim_start().len();
        *value = start
            .min(value.start + raw.trim_end().len())
            .max(value.start)..value.start + raw.trim_end().len();
        if value.start > value.end {
            value.start = value.end;
        }
    }
}

/// The signs that open a block of code. Behind backticks no backtick may follow: that is code within
/// a line.
fn opening_fence(line: &str) -> Option<&str> {
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(sign);
    let fence = &line[..line.len() - rest.len()];
    (fence.len() >= 3 && !(sign == '`' && rest.contains('`'))).then_some(fence)
}

fn heading(line: &str) -> Option<(usize, String)> {
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    let start = line.trim_start_matches(' ');
    if line.len() - start.len() > 3 {
        return None;
    }
    let level = start.bytes().take_while(|b| *b == b'#').count();
    let rest = &start[level..];
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
    {
        return None;
    }
    Some((
        level,
        rest.trim().trim_end_matches('#').trim_end().to_owned(),
    ))
}

/// Returns the start of a list item's text, after its marker and checkbox.
pub(super) fn item_content(line: &str) -> Option<usize> {
    let start = line.len() - line.trim_start_matches(' ').len();
    let rest = &line[start..];
    let sign = match rest.chars().next()? {
        '-' | '*' | '+' => 1,
        c if c.is_ascii_digit() => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            digits
                + rest[digits..]
                    .chars()
                    .next()
                    .filter(|c| matches!(c, '.' | ')'))
                    .map(char::len_utf8)?
        }
        _ => return None,
    };
    let after = &rest[sign..];
    let blank = after.len() - after.trim_start_matches([' ', '\t']).len();
    if blank == 0 {
        return None;
    }
    let mut content = start + sign + blank;
    for mark in ["[ ] ", "[x] ", "[X] "] {
        if line[content..].starts_with(mark) {
            content += mark.len();
        }
    }
    Some(content)
}

/// Returns a key and the start of its value: `key: value`, `**key**：value`, `**key:** value`.
pub(super) fn split_key(content: &str) -> Option<(&str, usize)> {
    let sign = ["**", "__", "`"]
        .into_iter()
        .find(|sign| content.starts_with(sign));
    let (key, after) = match sign {
        Some(sign) => {
            let close = sign.len() + content[sign.len()..].find(sign)?;
            let marked = &content[sign.len()..close];
            let after = close + sign.len();
            match marked
                .chars()
                .next_back()
                .filter(|c| matches!(c, ':' | '：'))
            {
                Some(colon) => (&marked[..marked.len() - colon.len_utf8()], after),
                None => {
                    let colon = content[after..]
                        .chars()
                        .next()
                        .filter(|c| matches!(c, ':' | '：'))?;
                    (marked, after + colon.len_utf8())
                }
            }
        }
        None => content
            .char_indices()
            .take(KEY_CHARS + 1)
            .find_map(|(at, c)| {
                let after = at + c.len_utf8();
                let apart = match c {
                    '：' => true,
                    ':' => content[after..]
                        .chars()
                        .next()
                        .is_none_or(char::is_whitespace),
                    _ => false,
                };
                apart.then(|| (&content[..at], after))
            })?,
    };
    let key = key.trim();
    is_key(key).then_some((key, after))
}

fn is_key(key: &str) -> bool {
    key.chars().next().is_some_and(char::is_alphanumeric)
        && key.chars().count() <= KEY_CHARS
        && key.split_whitespace().count() <= KEY_WORDS
        && !key.contains([
            '。', '！', '？', '；', '，', '!', '?', ';', '|', '[', ']', '<', '>', '“', '”', '"',
            '\n',
        ])
        && !key.contains(". ")
}

/// Returns the cells of a table line, without the bars.
fn cells(line: &str) -> Vec<Range<usize>> {
    let end = line.trim_end().len();
    let mut bars: Vec<usize> = Vec::new();
    let mut escaped = false;
    for (at, c) in line[..end].char_indices() {
        if c == '|' && !escaped {
            bars.push(at);
        }
        escaped = c == '\\' && !escaped;
    }
    if bars.last().is_some_and(|bar| bar + 1 < end) {
        bars.push(end);
    }
    bars.windows(2).map(|pair| pair[0] + 1..pair[1]).collect()
}

/// Strips the time from the end of a history value.
pub(super) fn without_time(value: &str) -> &str {
    let cut = value.rfind(" (until ").or_else(|| value.rfind("（至"));
    cut.map_or(value, |at| &value[..at]).trim()
}
