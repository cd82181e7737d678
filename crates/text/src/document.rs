//! A parsed Markdown document over borrowed text.
//!
//! `parse` never fails and never panics: malformed parts are represented as values. Every range is
//! in bytes of the given text, including a byte-order mark and front matter. Ranges are on
//! character boundaries and in document order. Parsing takes linear time. This module does not
//! change the text; see `splice`.

use std::ops::Range;
use std::sync::OnceLock;

use crate::anchor::{AnchorIndex, Miss, preferred};
use crate::entry::{Cell, Item, Row, Table, within};
use crate::front::{FrontMatter, parse_front};
use crate::keyed::{Keyed, plan_keyed};
use crate::lines::LineIndex;
use crate::link::{LevelTag, Link, plan_links};
use crate::scan::scan;
use crate::section::{Section, SectionId, plan_sections};
use crate::sentence::first_prose_sentence;

/// A Markdown text and the positions of its elements.
#[derive(Debug, Clone)]
pub struct Document<'t> {
    text: &'t str,
    front: Option<FrontMatter>,
    lines: LineIndex,
    sections: Vec<Section>,
    /// Built on the first lookup, because most callers never look up a section.
    anchors: OnceLock<AnchorIndex>,
    items: Vec<Item>,
    tables: Vec<Table>,
    rows: Vec<Row>,
    keyed: Vec<Keyed>,
    links: Vec<Link>,
    tags: Vec<LevelTag>,
    code_blocks: Vec<Range<usize>>,
}

impl<'t> Document<'t> {
    pub fn parse(text: &'t str) -> Self {
        let mark = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let front = parse_front(text, mark);
        let base = front.as_ref().map_or(mark, |front| front.range.end);
        let lines = LineIndex::new(text);
        let mut found = scan(text, base);
        found.holes.sort_by_key(|hole| hole.start);

        let sections = plan_sections(text, base, found.headings, &lines);
        let (links, tags) = plan_links(text, &found.runs, &found.holes, found.links);
        let mut keyed = plan_keyed(text, &found.runs, &found.holes);
        for one in &mut keyed {
            one.line = lines.line(one.range.start);
        }
        for item in &mut found.items {
            item.line = lines.line(item.range.start);
        }
        for table in &mut found.tables {
            table.line = lines.line(table.range.start);
        }
        for row in &mut found.rows {
            row.line = lines.line(row.range.start);
        }
        Self {
            text,
            front,
            lines,
            sections,
            anchors: OnceLock::new(),
            items: found.items,
            tables: found.tables,
            rows: found.rows,
            keyed,
            links,
            tags,
            code_blocks: found.code_blocks,
        }
    }

    pub fn text(&self) -> &'t str {
        self.text
    }

    pub fn slice(&self, range: &Range<usize>) -> &'t str {
        &self.text[range.clone()]
    }

    /// Returns the front matter, if there is any.
    pub fn front_matter(&self) -> Option<&FrontMatter> {
        self.front.as_ref()
    }

    /// Returns the index from byte offsets to line numbers.
    pub fn lines(&self) -> &LineIndex {
        &self.lines
    }

    /// Returns all sections in document order. Never empty.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    pub fn section(&self, id: SectionId) -> &Section {
        &self.sections[id.0]
    }

    /// Returns the innermost section that contains the byte at `offset`.
    pub fn section_at(&self, offset: usize) -> &Section {
        let after = self
            .sections
            .partition_point(|section| section.range.start <= offset);
        &self.sections[after.saturating_sub(1)]
    }

    /// Returns the sections with headings, from the outermost down to this one.
    pub fn headings(&self, section: &Section) -> impl Iterator<Item = &Section> {
        let above = std::iter::successors(Some(self.section(section.id)), |below| {
            below.parent.map(|id| self.section(id))
        });
        let mut path: Vec<&Section> = above.filter(|section| section.level > 0).collect();
        path.reverse();
        path.into_iter()
    }

    /// Returns the titles from the outermost heading down to this section.
    pub fn heading_path(&self, section: &Section) -> Vec<&str> {
        self.headings(section)
            .map(|section| section.title.as_str())
            .collect()
    }

    /// Returns the direct subsections.
    pub fn children(&self, section: &Section) -> impl Iterator<Item = &Section> {
        let id = section.id;
        let end = section.range.end;
        self.sections[id.0 + 1..]
            .iter()
            .take_while(move |below| below.range.start < end)
            .filter(move |below| below.parent == Some(id))
    }

    /// Finds the section that an anchor, a heading or a heading path names.
    pub fn find(&self, anchor: &str) -> Result<&Section, Miss> {
        self.anchors().find(&self.sections, anchor)
    }

    /// Like `find`, but does not search for near anchors after a miss, which compares all names.
    pub fn lookup(&self, anchor: &str) -> Option<&Section> {
        self.anchors().lookup(&self.sections, anchor)
    }

    /// Returns the anchors most similar to one that names no section, best first. Compares all
    /// `anchor_count` names.
    pub fn nearest(&self, anchor: &str) -> Vec<String> {
        self.anchors().nearest(anchor)
    }

    /// Returns the number of names of all sections.
    pub fn anchor_count(&self) -> usize {
        self.anchors().len()
    }

    fn anchors(&self) -> &AnchorIndex {
        self.anchors
            .get_or_init(|| AnchorIndex::new(&self.sections))
    }

    /// Returns the anchor to use in a link to a section: explicit ID, CJK heading or slug.
    pub fn anchor_of<'s>(&self, section: &'s Section) -> &'s str {
        preferred(section)
    }

    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the list items that start in a range (a section's `body` or `range`).
    pub fn items_in(&self, range: &Range<usize>) -> &[Item] {
        within(&self.items, range)
    }

    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the tables that start in a range.
    pub fn tables_in(&self, range: &Range<usize>) -> &[Table] {
        within(&self.tables, range)
    }

    /// Returns the table rows that start in a range.
    pub fn rows_in(&self, range: &Range<usize>) -> &[Row] {
        within(&self.rows, range)
    }

    /// Returns a row as pairs of header and cell.
    pub fn record<'d>(&'d self, row: &'d Row) -> impl Iterator<Item = (&'d str, &'d Cell)> {
        let header = &self.tables[row.table].header;
        header.iter().map(|cell| cell.text.as_str()).zip(&row.cells)
    }

    /// Returns the cell of a row under a header.
    pub fn cell<'d>(&'d self, row: &'d Row, header: &str) -> Option<&'d Cell> {
        self.record(row)
            .find(|(name, _)| *name == header)
            .map(|(_, cell)| cell)
    }

    pub fn keyed_lines(&self) -> &[Keyed] {
        &self.keyed
    }

    /// Returns the keyed lines that start in a range.
    pub fn keyed_in(&self, range: &Range<usize>) -> &[Keyed] {
        within(&self.keyed, range)
    }

    /// Returns every link and press mark.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the links that start in a range.
    pub fn links_in(&self, range: &Range<usize>) -> &[Link] {
        within(&self.links, range)
    }

    pub fn level_tags(&self) -> &[LevelTag] {
        &self.tags
    }

    /// Returns the level tags that start in a range (a section's `heading`, an item's `content`).
    pub fn level_tags_in(&self, range: &Range<usize>) -> &[LevelTag] {
        within(&self.tags, range)
    }

    /// Returns true if the byte at `offset` is in a code block.
    pub fn in_code_block(&self, offset: usize) -> bool {
        let before = self
            .code_blocks
            .partition_point(|block| block.start <= offset);
        before > 0 && self.code_blocks[before - 1].end > offset
    }

    /// Returns the first sentence of prose in a section or, if there is none, in its subsections.
    pub fn first_sentence(&self, section: &Section) -> Option<String> {
        let start = section.heading.start.max(section.range.start);
        first_prose_sentence(&self.text[start..section.range.end])
    }
}
