//! Entries of a section: list items and table rows.
//!
//! An entry is the smallest unit that is added to memory files. Each has its byte range and line,
//! so that it can be cited and edited in place. Keyed lines (`Key: value`) are in `keyed`.

use std::ops::Range;

/// The state of a task list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// `[ ]`
    Open,
    /// `[x]`
    Done,
}

/// The extent of strikethrough in an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strike {
    None,
    /// Only some words inside it.
    Part,
    /// It starts with struck text and a remark follows: `~~find the cause~~ (known)`.
    Lead,
    Whole,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The text of its first block, without markup, list marker and task box.
    pub text: String,
    /// 0 for a top-level list.
    pub depth: u16,
    pub task: Option<Task>,
    /// The bytes of `[ ]` or `[x]`.
    pub task_mark: Option<Range<usize>>,
    pub strike: Strike,
    pub line: usize,
    /// The source of `text`, without list marker, task box and nested items.
    pub content: Range<usize>,
    /// The whole item, including nested items.
    pub range: Range<usize>,
}

/// A table. Its rows are stored separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub header: Vec<Cell>,
    pub line: usize,
    pub range: Range<usize>,
}

/// A row of a table, without the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub table: usize,
    pub cells: Vec<Cell>,
    pub line: usize,
    pub range: Range<usize>,
}

/// A cell: its text without markup, and its byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    pub range: Range<usize>,
}

/// An element with a position in the text.
pub trait Placed {
    fn range(&self) -> &Range<usize>;
}

macro_rules! placed {
    ($($kind:ty),*) => {$(
        impl Placed for $kind {
            fn range(&self) -> &Range<usize> {
                &self.range
            }
        }
    )*};
}
placed!(
    Item,
    Table,
    Row,
    Cell,
    crate::Keyed,
    crate::Link,
    crate::LevelTag
);

/// Returns the elements of `sorted` (by start) that start inside `range`.
pub(crate) fn within<'a, T: Placed>(sorted: &'a [T], range: &Range<usize>) -> &'a [T] {
    let from = sorted.partition_point(|one| one.range().start < range.start);
    let to = sorted.partition_point(|one| one.range().start < range.end);
    &sorted[from..to.max(from)]
}
