//! Maps byte offsets to line and column numbers.
//!
//! Lines end at `\n`, as in editors, `grep -n` and diffs. A `\r` before it belongs to the line end.
//! Numbers are 1-based and columns count characters. `Positions` only moves forward, so that many
//! lookups in a file with one huge line take linear time.

use std::ops::Range;

/// The start of every line of a text.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    /// Finds the line starts of `text`.
    pub fn new(text: &str) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        Self { starts }
    }

    /// Returns the 1-based line that contains the byte at `offset`.
    pub fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset)
    }

    /// Returns the byte range of a 1-based line, including its line end.
    pub fn range(&self, line: usize, text_len: usize) -> Option<Range<usize>> {
        let start = *self.starts.get(line.checked_sub(1)?)?;
        let end = self.starts.get(line).copied().unwrap_or(text_len);
        Some(start..end)
    }
}

/// Converts ascending byte offsets to (line, column) pairs in one pass over the text.
pub(crate) struct Positions<'t> {
    text: &'t str,
    offset: usize,
    line: usize,
    column: usize,
}

impl<'t> Positions<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
            column: 1,
        }
    }

    /// Moves to `offset`, which must not precede the previous one.
    pub(crate) fn at(&mut self, offset: usize) -> (usize, usize) {
        let walked = &self.text[self.offset..offset];
        match memchr::memrchr(b'\n', walked.as_bytes()) {
            Some(last) => {
                self.line += memchr::memchr_iter(b'\n', walked.as_bytes()).count();
                self.column = 1 + walked[last + 1..].chars().count();
            }
            None => self.column += walked.chars().count(),
        }
        self.offset = offset;
        (self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_one_based_and_keep_their_ends() {
        let text = "a\r\n中文\n\nlast";
        let lines = LineIndex::new(text);
        assert_eq!(lines.line(0), 1);
        assert_eq!(lines.line(text.find('文').unwrap()), 2);
        assert_eq!(lines.line(text.len()), 4);
        assert_eq!(&text[lines.range(1, text.len()).unwrap()], "a\r\n");
        assert_eq!(&text[lines.range(4, text.len()).unwrap()], "last");
        assert_eq!(lines.range(5, text.len()), None);
        assert_eq!(lines.range(0, text.len()), None);
    }

    #[test]
    fn columns_count_characters_not_bytes() {
        let text = "中文x\nab中y";
        let mut positions = Positions::new(text);
        assert_eq!(positions.at(text.find('x').unwrap()), (1, 3));
        assert_eq!(positions.at(text.find('b').unwrap()), (2, 2));
        assert_eq!(positions.at(text.find('y').unwrap()), (2, 4));
    }
}
