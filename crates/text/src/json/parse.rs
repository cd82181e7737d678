//! Parses a JSON text and records the byte range of each value.
//!
//! The grammar is strict JSON with a limit on nesting, so that hostile input cannot overflow the
//! stack. Errors carry a line. `edit` uses the ranges to change a text in place.

use std::ops::Range;

use serde_json::Value;
use thiserror::Error;

use super::pointer::JsonPointer;

/// The maximum nesting depth. Deeper texts would overflow the stack.
const DEEPEST: usize = 120;

/// A syntax error and its line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub struct JsonError {
    pub line: usize,
    pub what: String,
}

/// A value and its byte range.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub span: Range<usize>,
    pub shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Object(Vec<Member>),
    List(Vec<Node>),
    /// A string, a number, `true`, `false` or `null`.
    Plain(Value),
}

/// A key with its value. The span covers both.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub key: String,
    pub span: Range<usize>,
    pub value: Node,
}

impl Node {
    /// Returns the member of an object. If a key occurs twice, the last one counts, as in other
    /// parsers.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.shape {
            Shape::Object(members) => members.iter().rfind(|m| m.key == key).map(|m| &m.value),
            _ => None,
        }
    }

    pub fn items(&self) -> &[Node] {
        match &self.shape {
            Shape::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the value at a pointer.
    pub fn at(&self, pointer: &JsonPointer) -> Option<&Node> {
        pointer
            .parts()
            .iter()
            .try_fold(self, |node, part| match &node.shape {
                Shape::Object(_) => node.get(part),
                Shape::List(items) => part
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get(index)),
                Shape::Plain(_) => None,
            })
    }

    pub fn to_value(&self) -> Value {
        match &self.shape {
            Shape::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|m| (m.key.clone(), m.value.to_value()))
                    .collect(),
            ),
            Shape::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Shape::Plain(value) => value.clone(),
        }
    }

    /// Returns the 1-based line on which the value begins.
    pub fn line(&self, text: &str) -> usize {
        line_at(text, self.span.start)
    }
}

/// Parses a text. An empty text is an error.
pub fn parse_json(text: &str) -> Result<Node, JsonError> {
    let mut reader = Reader { text, at: 0 };
    let node = reader.value(0)?;
    reader.blanks();
    if reader.at < text.len() {
        return Err(reader.error("nothing may follow the value"));
    }
    Ok(node)
}

pub(super) fn line_at(text: &str, offset: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..offset.min(text.len())]).count() + 1
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn error(&self, what: impl Into<String>) -> JsonError {
        JsonError {
            line: line_at(self.text, self.at),
            what: what.into(),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self
            .peek()
            .is_some_and(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
        {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, JsonError> {
        self.blanks();
        if depth > DEEPEST {
            return Err(self.error("nested too deeply"));
        }
        let start = self.at;
        let shape = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Shape::Plain(Value::String(self.string()?)),
            Some(_) => self.word()?,
            None => return Err(self.error("a value is missing")),
        };
        Ok(Node {
            span: start..self.at,
            shape,
        })
    }

    fn object(&mut self, depth: usize) -> Result<Shape, JsonError> {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(b'}') if members.is_empty() => break,
                Some(b'"') => {}
                Some(b'}') => return Err(self.error("nothing follows a comma")),
                _ => return Err(self.error("a key in quotes is missing")),
            }
            let start = self.at;
            let key = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.error(format!("a colon is missing after \"{key}\"")));
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            members.push(Member {
                key,
                span: start..self.at,
                value,
            });
            if self.more(b'}')? {
                continue;
            }
            return Ok(Shape::Object(members));
        }
        self.at += 1;
        Ok(Shape::Object(members))
    }

    fn list(&mut self, depth: usize) -> Result<Shape, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Shape::List(items));
        }
        loop {
            self.blanks();
            if self.peek() == Some(b']') {
                return Err(self.error("nothing follows a comma"));
            }
            items.push(self.value(depth + 1)?);
            if !self.more(b']')? {
                return Ok(Shape::List(items));
            }
        }
    }

    /// Consumes the comma or the closing bracket. Returns true if another item follows.
    fn more(&mut self, close: u8) -> Result<bool, JsonError> {
        self.blanks();
        let found = self.peek();
        if found != Some(b',') && found != Some(close) {
            return Err(self.error(format!("a comma or `{}` is missing", char::from(close))));
        }
        self.at += 1;
        Ok(found == Some(b','))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => return Err(self.error("a text has no closing quote")),
                Some(_) => end += 1,
            }
        }
        let read = serde_json::from_str(&self.text[self.at..=end]);
        let text =
            read.map_err(|_| self.error("a text contains a character that JSON does not allow"))?;
        self.at = end + 1;
        Ok(text)
    }

    fn word(&mut self) -> Result<Shape, JsonError> {
        let rest = &self.text[self.at..];
        let length = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')))
            .unwrap_or(rest.len());
        let value = serde_json::from_str(&rest[..length]).map_err(|_| {
            match rest.starts_with("//") || rest.starts_with("/*") {
                true => {
                    self.error("JSON has no comments; put the comment into a key such as \"notes\"")
                }
                false if rest.starts_with('\u{feff}') => self.error(
                    "the file starts with a byte order mark, which JSON does not allow: save it \
                     without one",
                ),
                false => self.error(format!(
                    "`{}` is not a value",
                    rest.chars().take(length.clamp(1, 20)).collect::<String>()
                )),
            }
        })?;
        self.at += length;
        Ok(Shape::Plain(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_value_is_named_whatever_its_letters() {
        for (text, line, what) in [
            ("{\n\"a\": é}", 2, "`é` is not a value"),
            ("值", 1, "`值` is not a value"),
            ("[nul]", 1, "`nul` is not a value"),
            ("\u{feff}{}", 1, "byte order mark"),
        ] {
            let error = parse_json(text).unwrap_err();
            assert!(
                error.line == line && error.what.contains(what),
                "{text}: {error:?}"
            );
        }
    }
}
