//! Front matter: the YAML (`---`) or TOML (`+++`) block at the start of a file.
//!
//! The fence must be the first line (after a byte-order mark), the next line must not be blank, and
//! the block must contain keys. Otherwise the document starts with a thematic break. A malformed
//! block yields an error with its line, and the rest of the document is still parsed. The contract
//! interprets the keys.

use std::ops::Range;

use serde_json::Value;

use crate::yaml::parse_yaml;

/// The language of a front matter block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Yaml,
    Toml,
}

#[derive(Debug, Clone)]
pub struct FrontMatter {
    pub syntax: Syntax,
    /// The whole block, including both fences and the last line end.
    pub range: Range<usize>,
    /// The text between the fences.
    pub content: Range<usize>,
    /// The parsed keys, or the reason why they could not be parsed.
    pub value: Result<Value, FrontError>,
}

/// The reason why front matter could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: front matter {reason}")]
pub struct FrontError {
    /// 1-based line in the document.
    pub line: usize,
    pub reason: String,
}

/// Parses the front matter of a text. `base` is the offset after any byte-order mark.
pub(crate) fn parse_front(text: &str, base: usize) -> Option<FrontMatter> {
    let rest = &text[base..];
    let (syntax, fence) = match rest.as_bytes().get(..3)? {
        b"---" => (Syntax::Yaml, "---"),
        b"+++" => (Syntax::Toml, "+++"),
        _ => return None,
    };
    let mut lines = rest.split_inclusive('\n');
    let opening = lines.next()?;
    if opening.trim_end() != fence || !opening.ends_with('\n') {
        return None;
    }
    let start = base + opening.len();
    let mut at = start;
    let mut first = true;
    for line in lines {
        let bare = line.trim_end();
        if bare == fence || (syntax == Syntax::Yaml && bare == "...") {
            let content = start..at;
            let value = parse_value(&text[content.clone()], syntax, 2);
            // Front matter has keys. Other valid values are text between two thematic breaks.
            let has_keys = value.as_ref().map_or(true, Value::is_object);
            if !has_keys && !text[content.clone()].trim().is_empty() {
                return None;
            }
            return Some(FrontMatter {
                syntax,
                range: base..at + line.len(),
                content,
                value,
            });
        }
        if first && bare.is_empty() {
            return None;
        }
        first = false;
        at += line.len();
    }
    unclosed(text, base, start, syntax, fence)
}

/// Handles an opening fence without a closing one: an error if keys follow, else a thematic break.
///
/// The block is empty in this case, so that the document is read from its first line.
fn unclosed(
    text: &str,
    base: usize,
    start: usize,
    syntax: Syntax,
    fence: &str,
) -> Option<FrontMatter> {
    let next = text[start..].lines().next()?;
    let sign = if syntax == Syntax::Yaml { ':' } else { '=' };
    let (key, _) = next.split_once(sign)?;
    if key.trim().is_empty() || key.trim().contains(char::is_whitespace) {
        return None;
    }
    Some(FrontMatter {
        syntax,
        range: base..base,
        content: base..base,
        value: Err(FrontError {
            line: 1,
            reason: format!("is never closed: no second `{fence}` line"),
        }),
    })
}

fn parse_value(content: &str, syntax: Syntax, first_line: usize) -> Result<Value, FrontError> {
    match syntax {
        Syntax::Yaml => parse_yaml(content).map_err(|error| FrontError {
            line: first_line + error.line.saturating_sub(1),
            reason: format!("is not valid YAML: {}", error.reason),
        }),
        Syntax::Toml => content
            .parse::<toml::Table>()
            .map(|table| toml_to_json(toml::Value::Table(table)))
            .map_err(|error| {
                let at = error.span().map_or(0, |span| span.start.min(content.len()));
                FrontError {
                    line: first_line
                        + memchr::memchr_iter(b'\n', &content.as_bytes()[..at]).count(),
                    reason: format!("is not valid TOML: {}", error.message()),
                }
            }),
    }
}

/// Converts TOML to JSON. Dates become strings; other values keep their types.
fn toml_to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => {
            serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)
        }
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Datetime(when) => Value::String(when.to_string()),
        toml::Value::Array(list) => list.into_iter().map(toml_to_json).collect(),
        toml::Value::Table(table) => table
            .into_iter()
            .map(|(key, value)| (key, toml_to_json(value)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_read_and_its_range_ends_after_the_closing_fence() {
        let text = "---\ntitle: 奥托\ntags: [arc, scene]\n---\n# A\n";
        let front = parse_front(text, 0).unwrap();
        assert_eq!(
            &text[front.range.clone()],
            "---\ntitle: 奥托\ntags: [arc, scene]\n---\n"
        );
        let value = front.value.unwrap();
        assert_eq!(value["title"], "奥托");
        assert_eq!(value["tags"][1], "scene");
    }

    #[test]
    fn text_between_two_breaks_is_text() {
        for text in [
            "---\n# H\n\nbody\n---\n",
            "---\n# Only a heading\n---\n",
            "---\n- a\n- b\n---\n",
        ] {
            assert!(parse_front(text, 0).is_none(), "{text:?}");
        }
        assert!(parse_front("---\n---\n", 0).is_some());
        assert!(parse_front("---\n# a comment\ntitle: x\n---\n", 0).is_some());
        assert!(parse_front("---\ntitle: [x\n---\n", 0).is_some_and(|front| front.value.is_err()));
    }

    #[test]
    fn toml_dates_become_text() {
        let text = "+++\r\nday = 2026-02-21\r\nn = 3\r\n+++\r\nbody";
        let front = parse_front(text, 0).unwrap();
        assert_eq!(front.syntax, Syntax::Toml);
        let value = front.value.unwrap();
        assert_eq!(value["day"], "2026-02-21");
        assert_eq!(value["n"], 3);
    }

    #[test]
    fn malformed_blocks_name_their_line() {
        let yaml = parse_front("---\na: 1\nb: [1, 2\nc: 3\n---\ntext", 0).unwrap();
        let error = yaml.value.unwrap_err();
        assert!((3..=5).contains(&error.line), "{error}");
        let toml = parse_front("+++\na = 1\nb = = 2\n+++\n", 0).unwrap();
        assert_eq!(toml.value.unwrap_err().line, 3);
    }

    #[test]
    fn a_thematic_break_is_not_front_matter() {
        assert!(parse_front("---\n\ntext\n\n---\n", 0).is_none());
        assert!(parse_front("---\nJust a line of prose\n", 0).is_none());
        assert!(parse_front("----\na: 1\n----\n", 0).is_none());
        assert!(parse_front("text\n---\na: 1\n---\n", 0).is_none());
    }

    #[test]
    fn an_unclosed_block_is_reported_and_takes_no_text() {
        let front = parse_front("---\ntitle: x\n# A\n", 0).unwrap();
        assert!(front.range.is_empty());
        assert_eq!(front.value.unwrap_err().line, 1);
    }
}
