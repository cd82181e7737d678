//! Entries of a section: list items and table rows.
//!
//! An entry is the smallest thing that memory files grow by. Each knows its bytes and its line, so
//! that it can be cited and edited in place. Keyed lines (`Key: value`) are in `keyed`.

use std::ops::Range;

/// The state of a task list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// `[ ]`
    Open,
    /// `[x]`
    Done,
}

/// How much of an item is struck through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strike {
    None,
    /// Some words inside it.
    Part,
    /// It opens with struck text and a remark follows: `~~find the cause~~ (known)`.
    Lead,
    Whole,
}

/// A list item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its own first block of text without markup, marker or task box.
    pub text: String,
    /// 0 for a top-level list.
    pub depth: u16,
    pub task: Option<Task>,
    /// The bytes of `[ ]` or `[x]`.
    pub task_mark: Option<Range<usize>>,
    pub strike: Strike,
    pub line: usize,
    /// The source of `text`, without marker, task box and nested items.
    pub content: Range<usize>,
    /// The whole item, nested items included.
    pub range: Range<usize>,
}

/// A table; its rows are kept apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub header: Vec<Cell>,
    pub line: usize,
    pub range: Range<usize>,
}

/// A row under a table's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The index of its table.
    pub table: usize,
    pub cells: Vec<Cell>,
    pub line: usize,
    pub range: Range<usize>,
}

/// One cell: its text without markup and the bytes it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    pub range: Range<usize>,
}

/// Anything with a place in the text.
pub trait Placed {
    /// The bytes it covers.
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

/// Those of `sorted` (by start) that start inside `range`.
pub(crate) fn within<'a, T: Placed>(sorted: &'a [T], range: &Range<usize>) -> &'a [T] {
    let from = sorted.partition_point(|one| one.range().start < range.start);
    let to = sorted.partition_point(|one| one.range().start < range.end);
    &sorted[from..to.max(from)]
}
