//! One pass over the CommonMark events of a document.
//!
//! The scanner collects, in document order, the positions of headings, list items, tables, Markdown
//! links, runs of inline text, and holes (code and HTML, which other modules must skip). Every
//! range is in bytes of the whole text. This file only knows Markdown; `section`, `entry`, `link`
//! and `keyed` interpret the result.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType, OffsetIter, Options, Parser, Tag, TagEnd};

use crate::entry::{Cell, Item, Row, Strike, Table, Task};
use crate::html::anchor_ids;
use crate::link::destination_range;

/// A heading that opens a section.
#[derive(Debug)]
pub(crate) struct Heading {
    /// The heading itself, from the start of its line.
    pub range: Range<usize>,
    /// The start of the section, which is before the heading if anchors directly precede it.
    pub start: usize,
    pub level: u8,
    pub plain: String,
    pub ids: Vec<String>,
}

/// The kind of block that contains a run of inline text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunKind {
    Paragraph,
    Item,
    Heading,
    Cell,
}

/// The inline text of one block.
#[derive(Debug)]
pub(crate) struct Run {
    pub kind: RunKind,
    pub range: Range<usize>,
    /// The innermost list item that contains it.
    pub item: Option<usize>,
}

/// A link in Markdown syntax.
#[derive(Debug)]
pub(crate) struct MarkdownLink {
    pub image: bool,
    pub reference: bool,
    pub range: Range<usize>,
    pub target: Range<usize>,
    pub destination: String,
}

#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub headings: Vec<Heading>,
    pub items: Vec<Item>,
    pub tables: Vec<Table>,
    pub rows: Vec<Row>,
    pub runs: Vec<Run>,
    pub holes: Vec<Range<usize>>,
    /// Fenced and indented code blocks.
    pub code_blocks: Vec<Range<usize>>,
    pub links: Vec<MarkdownLink>,
}

pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
}

/// Scans `text` from the byte `base` on (after a byte-order mark and front matter).
pub(crate) fn scan(text: &str, base: usize) -> Scan {
    let mut events = Parser::new_ext(&text[base..], options()).into_offset_iter();
    let mut scanner = Scanner {
        text,
        base,
        found: Scan::default(),
        containers: 0,
        list_depth: 0,
        code: false,
        image: 0,
        struck: 0,
        kind: RunKind::Paragraph,
        run: None,
        plain: String::new(),
        strike: StrikeTally::default(),
        open_items: Vec::new(),
        open_links: Vec::new(),
        heading: None,
        pending: None,
        spoken: false,
        cells: Vec::new(),
    };
    while let Some((event, range)) = events.next() {
        let range = range.start + base..range.end + base;
        scanner.event(event, range, &events);
    }
    scanner.found
}

struct OpenLink {
    link_type: LinkType,
    image: bool,
    range: Range<usize>,
    inner_end: usize,
    destination: String,
    label: String,
}

/// Anchors that apply to the next heading.
struct Pending {
    start: usize,
    ids: Vec<String>,
}

/// Counts the struck characters of a run.
#[derive(Default)]
struct StrikeTally {
    leads: bool,
    struck: usize,
    total: usize,
}

impl StrikeTally {
    fn add(&mut self, text: &str, struck: bool) {
        let visible = text.chars().filter(|c| !c.is_whitespace()).count();
        if self.total == 0 && visible > 0 {
            self.leads = struck;
        }
        self.total += visible;
        if struck {
            self.struck += visible;
        }
    }

    fn verdict(&self) -> Strike {
        match (self.struck, self.leads) {
            (0, _) => Strike::None,
            (struck, _) if struck == self.total => Strike::Whole,
            (_, true) => Strike::Lead,
            (_, false) => Strike::Part,
        }
    }
}

struct Scanner<'t> {
    text: &'t str,
    base: usize,
    found: Scan,
    containers: usize,
    list_depth: usize,
    code: bool,
    image: usize,
    struck: usize,
    kind: RunKind,
    run: Option<Run>,
    plain: String,
    strike: StrikeTally,
    open_items: Vec<usize>,
    open_links: Vec<OpenLink>,
    heading: Option<Heading>,
    pending: Option<Pending>,
    /// True if the open run contains anything except anchors.
    spoken: bool,
    cells: Vec<Cell>,
}

impl<'t> Scanner<'t> {
    fn event(&mut self, event: Event<'t>, range: Range<usize>, events: &OffsetIter<'t>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag, range, events),
            Event::Text(text) => {
                if !self.code {
                    self.inline(&range);
                    self.speak(&text);
                    if !text.trim().is_empty() {
                        self.forget_anchors();
                    }
                }
            }
            Event::Code(text) => {
                self.inline(&range);
                self.speak(&text);
                self.found.holes.push(range);
                self.forget_anchors();
            }
            Event::InlineHtml(html) => {
                self.inline(&range);
                self.html(&html, &range);
                self.found.holes.push(range);
            }
            Event::Html(html) => self.html(&html, &range),
            Event::SoftBreak | Event::HardBreak => {
                self.inline(&range);
                if !self.plain.is_empty() {
                    self.plain.push(' ');
                }
            }
            Event::TaskListMarker(done) => {
                if let Some(item) = self.open_items.last().map(|&at| &mut self.found.items[at]) {
                    item.task = Some(if done { Task::Done } else { Task::Open });
                    item.task_mark = Some(range);
                }
            }
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {
                self.inline(&range);
            }
            Event::Rule => {
                self.close_run();
                self.pending = None;
            }
        }
    }

    fn start(&mut self, tag: Tag<'t>, range: Range<usize>) {
        match tag {
            Tag::Emphasis | Tag::Strong | Tag::Superscript | Tag::Subscript => self.inline(&range),
            Tag::Strikethrough => {
                self.inline(&range);
                self.struck += 1;
            }
            Tag::Link {
                link_type,
                dest_url,
                id,
                ..
            } => {
                self.open_link(link_type, false, range, &dest_url, &id);
            }
            Tag::Image {
                link_type,
                dest_url,
                id,
                ..
            } => {
                self.open_link(link_type, true, range, &dest_url, &id);
                self.image += 1;
            }
            block => {
                self.close_run();
                self.start_block(block, range);
            }
        }
    }

    fn start_block(&mut self, tag: Tag<'t>, range: Range<usize>) {
        if !matches!(tag, Tag::Heading { .. } | Tag::HtmlBlock | Tag::Paragraph) {
            self.pending = None;
        }
        match tag {
            Tag::Heading { level, .. } => {
                self.kind = RunKind::Heading;
                let start = line_start(self.text, self.base, range.start);
                let pending = self.pending.take();
                if self.containers == 0 {
                    self.heading = Some(Heading {
                        start: pending.as_ref().map_or(start, |p| p.start),
                        range: start..range.end,
                        level: level as u8,
                        plain: String::new(),
                        ids: pending.map_or_else(Vec::new, |p| p.ids),
                    });
                }
            }
            Tag::Paragraph => self.kind = RunKind::Paragraph,
            Tag::BlockQuote(_) | Tag::FootnoteDefinition(_) => self.containers += 1,
            Tag::CodeBlock(_) => {
                self.code = true;
                self.found.holes.push(range.clone());
                self.found.code_blocks.push(range);
            }
            Tag::HtmlBlock => self.found.holes.push(range),
            Tag::List(_) => {
                self.containers += 1;
                self.list_depth += 1;
            }
            Tag::Item => {
                self.containers += 1;
                self.kind = RunKind::Item;
                self.open_items.push(self.found.items.len());
                self.found.items.push(Item {
                    text: String::new(),
                    depth: u16::try_from(self.list_depth.saturating_sub(1)).unwrap_or(u16::MAX),
                    task: None,
                    task_mark: None,
                    strike: Strike::None,
                    line: 0,
                    content: range.end..range.end,
                    range,
                });
            }
            Tag::Table(_) => {
                self.containers += 1;
                self.found.tables.push(Table {
                    header: Vec::new(),
                    range,
                    line: 0,
                });
            }
            Tag::TableCell => {
                self.kind = RunKind::Cell;
                self.plain.clear();
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>, events: &OffsetIter<'t>) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Superscript | TagEnd::Subscript => {
                self.inline(&range);
            }
            TagEnd::Strikethrough => {
                self.inline(&range);
                self.struck -= 1;
            }
            TagEnd::Link => self.close_link(&range, events),
            TagEnd::Image => {
                self.image -= 1;
                self.close_link(&range, events);
            }
            block => {
                self.close_run();
                self.end_block(block, range);
            }
        }
    }

    fn end_block(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Heading(_) => self.found.headings.extend(self.heading.take()),
            TagEnd::BlockQuote(_) | TagEnd::FootnoteDefinition => self.containers -= 1,
            TagEnd::CodeBlock => self.code = false,
            TagEnd::List(_) => {
                self.containers -= 1;
                self.list_depth -= 1;
            }
            TagEnd::Item => {
                self.containers -= 1;
                self.open_items.pop();
            }
            TagEnd::Table => self.containers -= 1,
            TagEnd::TableCell => {
                let text = std::mem::take(&mut self.plain).trim().to_owned();
                self.cells.push(Cell {
                    text,
                    range: trimmed(self.text, range),
                });
            }
            TagEnd::TableHead => {
                if let Some(table) = self.found.tables.last_mut() {
                    table.header = std::mem::take(&mut self.cells);
                }
            }
            TagEnd::TableRow => self.found.rows.push(Row {
                table: self.found.tables.len().saturating_sub(1),
                cells: std::mem::take(&mut self.cells),
                range,
                line: 0,
            }),
            _ => {}
        }
        if matches!(tag, TagEnd::Item | TagEnd::List(_)) {
            self.kind = RunKind::Item;
        } else if !matches!(tag, TagEnd::HtmlBlock) {
            self.kind = RunKind::Paragraph;
        }
    }

    /// Extends the open run to `range`. Opens a run if there is none.
    fn inline(&mut self, range: &Range<usize>) {
        if let Some(link) = self.open_links.last_mut() {
            link.inner_end = link.inner_end.max(range.end);
        }
        match &mut self.run {
            Some(run) => run.range.end = run.range.end.max(range.end),
            None => {
                self.plain.clear();
                self.spoken = false;
                self.strike = StrikeTally::default();
                let kind = match self.kind {
                    RunKind::Paragraph if !self.open_items.is_empty() => RunKind::Item,
                    kind => kind,
                };
                self.run = Some(Run {
                    kind,
                    range: range.clone(),
                    item: self.open_items.last().copied(),
                });
            }
        }
    }

    /// Discards pending anchors, because other content precedes the next heading.
    fn forget_anchors(&mut self) {
        self.spoken = true;
        self.pending = None;
    }

    fn speak(&mut self, text: &str) {
        if self.image > 0 {
            return;
        }
        let kept = self
            .run
            .as_ref()
            .is_some_and(|run| run.kind != RunKind::Paragraph);
        if kept {
            self.plain.push_str(text);
            self.strike.add(text, self.struck > 0);
        }
    }

    fn close_run(&mut self) {
        self.spoken = false;
        let Some(run) = self.run.take() else { return };
        match run.kind {
            RunKind::Heading => {
                if let Some(heading) = &mut self.heading {
                    heading.plain = self.plain.trim().to_owned();
                }
            }
            RunKind::Item => {
                if let Some(at) = run.item {
                    let item = &mut self.found.items[at];
                    if item.content.is_empty() {
                        item.content = run.range.clone();
                        item.text = self.plain.trim().to_owned();
                        item.strike = self.strike.verdict();
                    }
                }
            }
            RunKind::Paragraph | RunKind::Cell => {}
        }
        self.found.runs.push(run);
    }

    fn html(&mut self, html: &str, range: &Range<usize>) {
        let Some(ids) = anchor_ids(html) else {
            self.pending = None;
            return;
        };
        if let Some(heading) = &mut self.heading {
            heading.ids.extend(ids);
        } else if self.containers == 0 && !self.spoken && !html.trim().is_empty() {
            let start = line_start(self.text, self.base, range.start);
            let pending = self.pending.get_or_insert(Pending {
                start,
                ids: Vec::new(),
            });
            pending.ids.extend(ids);
        }
    }

    fn open_link(
        &mut self,
        kind: LinkType,
        image: bool,
        range: Range<usize>,
        to: &str,
        label: &str,
    ) {
        self.inline(&range);
        self.forget_anchors();
        let bracket = if image { 2 } else { 1 };
        self.open_links.push(OpenLink {
            link_type: kind,
            image,
            inner_end: (range.start + bracket).min(range.end),
            range,
            destination: to.to_owned(),
            label: label.to_owned(),
        });
    }

    fn close_link(&mut self, range: &Range<usize>, events: &OffsetIter<'t>) {
        let Some(link) = self.open_links.pop() else {
            return;
        };
        self.inline(range);
        let (target, reference) = match link.link_type {
            LinkType::Inline => (
                destination_range(self.text, link.inner_end..link.range.end, "]("),
                false,
            ),
            LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut => {
                let definition = events.reference_definitions().get(&link.label);
                let span = definition.map(|d| d.span.start + self.base..d.span.end + self.base);
                (
                    span.and_then(|span| destination_range(self.text, span, "]:")),
                    true,
                )
            }
            _ => (None, false),
        };
        if let Some(target) = target {
            self.found.links.push(MarkdownLink {
                image: link.image,
                reference,
                range: link.range,
                target,
                destination: link.destination,
            });
        }
    }
}

/// Returns the start of the line if only whitespace precedes `at`.
fn line_start(text: &str, base: usize, at: usize) -> usize {
    let indent = text.as_bytes()[base..at]
        .iter()
        .rev()
        .take_while(|&&byte| byte == b' ' || byte == b'\t')
        .count();
    at - indent
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let raw = &text[range.clone()];
    let start = range.start + (raw.len() - raw.trim_start().len());
    start..start + raw.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_may_be_nested_deeper_than_a_depth_can_say() {
        let text = "- ".repeat(66_000) + "x\n";
        let document = crate::Document::parse(&text);
        assert_eq!(
            document.items().last().map(|item| item.depth),
            Some(u16::MAX)
        );
    }

    #[test]
    fn code_and_html_become_holes() {
        let text = "a `b` c\n\n```\nd\n```\n\n<div>\ne\n</div>\n";
        let found = scan(text, 0);
        let holes: Vec<_> = found.holes.iter().map(|r| text[r.clone()].trim()).collect();
        assert_eq!(holes, ["`b`", "```\nd\n```", "<div>\ne\n</div>"]);
        assert_eq!(found.code_blocks.len(), 1);
    }

    #[test]
    fn runs_carry_the_kind_of_their_block() {
        let text = "# H\n\np\n\n- i\n\n  more\n\n| a |\n|---|\n| c |\n";
        let found = scan(text, 0);
        let runs: Vec<_> = found
            .runs
            .iter()
            .map(|r| (r.kind, &text[r.range.clone()]))
            .collect();
        assert_eq!(
            runs,
            [
                (RunKind::Heading, "H"),
                (RunKind::Paragraph, "p"),
                (RunKind::Item, "i"),
                (RunKind::Item, "more"),
                (RunKind::Cell, "a"),
                (RunKind::Cell, "c"),
            ]
        );
    }
}
