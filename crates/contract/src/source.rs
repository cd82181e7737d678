//! Contract files as texts, and the lines that messages name.
//!
//! Every rule, pointer and unit knows its line. The lines are indexed once per file, so that a
//! contract with many thousand units is resolved in linear time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use crate::fault::Place;
use crate::precompile::{SyntaxError, precompile};

/// A contract file: the name shown in messages, and its text.
#[derive(Debug, Clone)]
pub struct Source {
    pub file: String,
    pub text: Cow<'static, str>,
    /// The encoded form, if it was produced at build time.
    pub precompiled: Option<&'static [u8]>,
    lines: OnceLock<Lines>,
}

#[derive(Debug, Clone, Default)]
struct Lines {
    /// Byte offset of each line start.
    starts: Vec<usize>,
    /// The first line of each table header: `roles.writer` for `[roles.writer]`.
    headers: HashMap<String, usize>,
}

impl Source {
    pub fn new(file: impl Into<String>, text: impl Into<Cow<'static, str>>) -> Source {
        Source {
            file: file.into(),
            text: text.into(),
            precompiled: None,
            lines: OnceLock::new(),
        }
    }

    /// A file built into the program, with its encoded form.
    pub fn compiled(
        file: impl Into<String>,
        text: impl Into<Cow<'static, str>>,
        precompiled: Option<&'static [u8]>,
    ) -> Source {
        Source {
            precompiled,
            ..Source::new(file, text)
        }
    }

    /// Parses the file: from its encoded form, or from its text.
    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, SyntaxError> {
        match self
            .precompiled
            .and_then(|bytes| crate::precompiled::read(bytes).ok())
        {
            Some(parsed) => Ok(parsed),
            None => crate::precompiled::read(&precompile(&self.text)?),
        }
    }

    /// Returns the line on which a span begins.
    pub(crate) fn place(&self, span: Range<usize>) -> Place {
        let line = self
            .lines()
            .starts
            .partition_point(|start| *start <= span.start.min(self.text.len()));
        Place {
            file: self.file.clone(),
            line,
        }
    }

    /// Returns the line of `[HEADER]`. The span of a table that several headers fill begins
    /// elsewhere.
    pub(crate) fn header_place(&self, header: &str, span: Range<usize>) -> Place {
        match self.lines().headers.get(header) {
            Some(line) => Place {
                file: self.file.clone(),
                line: *line,
            },
            None => self.place(span),
        }
    }

    fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| {
            let mut lines = Lines::default();
            lines.starts.push(0);
            lines.starts.extend(
                memchr::memchr_iter(b'\n', self.text.as_bytes()).map(|newline| newline + 1),
            );
            for (nth, line) in self.text.lines().enumerate() {
                if let Some((header, _)) =
                    line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
                {
                    lines.headers.entry(header.to_owned()).or_insert(nth + 1);
                }
            }
            lines
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_of_the_file() {
        let source = Source::new(
            "q.toml",
            "a = 1\n[roles.writer]\nb = 2\n[roles.writer.x]\n[roles.writer]\n",
        );
        let line = |at: usize| source.place(at..at).line;
        assert_eq!(
            [line(0), line(5), line(6), line(22), line(9999)],
            [1, 1, 2, 3, 6]
        );
        assert_eq!(source.header_place("roles.writer", 0..0).line, 2);
        assert_eq!(source.header_place("roles.reader", 22..22).line, 3);
        assert_eq!(Source::new("empty", "").place(0..0).line, 1);
    }
}
