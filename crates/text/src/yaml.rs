//! Converts YAML front matter to JSON values.
//!
//! The parser reads one document of the YAML 1.2 core schema. Front matter is small and
//! hand-written, so features that only cause surprises or excessive size (aliases, duplicate keys,
//! keys that are not scalars, deep nesting) are errors with their line. Dates stay text.

use granit_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

/// The maximum nesting depth. Values are dropped recursively, so deeper ones could overflow the
/// stack.
const MAX_DEPTH: usize = 64;

/// A syntax error and its 1-based line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    pub line: usize,
    pub reason: String,
}

enum Open {
    List(Vec<Value>),
    Keys(Map<String, Value>, Option<String>),
}

/// Parses a YAML document. An empty one is `null`.
pub(crate) fn parse_yaml(text: &str) -> Result<Value, YamlError> {
    let mut open: Vec<Open> = Vec::new();
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| YamlError {
            line: error.marker().line(),
            reason: error.to_string(),
        })?;
        let refuse = |reason: &str| {
            Err(YamlError {
                line: span.start.line(),
                reason: reason.to_owned(),
            })
        };
        let value = match event {
            Event::Scalar(text, style, _, tag) => scalar(&text, style, tag.as_deref()),
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == MAX_DEPTH => {
                return refuse("nested too deeply");
            }
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Keys(Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(list)) => Value::Array(list),
                Some(Open::Keys(map, _)) => Value::Object(map),
                None => return refuse("unbalanced"),
            },
            Event::Alias(_) => return refuse("aliases are not supported"),
            _ => continue,
        };
        match open.last_mut() {
            None => return Ok(value),
            Some(Open::List(list)) => list.push(value),
            Some(Open::Keys(map, key)) => match (key.take(), value) {
                (Some(name), value) => {
                    map.insert(name, value);
                }
                (None, Value::Array(_) | Value::Object(_)) => {
                    return refuse("a key must be a scalar");
                }
                (None, value) => {
                    let name = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    if map.contains_key(&name) {
                        return refuse(&format!("key `{name}` is given twice"));
                    }
                    *key = Some(name);
                }
            },
        }
    }
    Ok(Value::Null)
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let plain = style == ScalarStyle::Plain;
    let as_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
    if !plain || as_text {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let radix = |prefix, radix| i64::from_str_radix(text.strip_prefix(prefix)?, radix).ok();
    if let Some(integer) = text
        .parse()
        .ok()
        .or_else(|| radix("0x", 16))
        .or_else(|| radix("0o", 8))
    {
        return Some(Number::from(integer));
    }
    // Accepts `1.5` and `2e3`, but not `inf`, `nan` or a version such as `1.2.3`.
    let shaped = text.contains(|c: char| c.is_ascii_digit())
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'+' | b'-' | b'e' | b'E'));
    if shaped {
        Number::from_f64(text.parse().ok()?)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_core_schema() {
        let text = "a: 1\nb: 0x1F\nc: -2.5\nd: yes\ne: true\nf: ~\ng:\nh: 2026-02-21\ni: '12'\nj: [x, {y: z}]\nk: |\n  two\n  lines\nl: 1.2.3\n# note\nm: !!str 5\n角色: 奥托\n";
        assert_eq!(
            parse_yaml(text).unwrap(),
            json!({
                "a": 1, "b": 31, "c": -2.5, "d": "yes", "e": true, "f": null, "g": null, "h": "2026-02-21",
                "i": "12", "j": ["x", {"y": "z"}], "k": "two\nlines\n", "l": "1.2.3", "m": "5", "角色": "奥托"
            })
        );
        assert_eq!(parse_yaml("").unwrap(), Value::Null);
        assert_eq!(parse_yaml("- 1\n- b\n").unwrap(), json!([1, "b"]));
    }

    #[test]
    fn surprises_are_errors_with_their_line() {
        let line = |text: &str| parse_yaml(text).unwrap_err().line;
        assert_eq!(line("a: 1\nb: 2\na: 3\n"), 3);
        assert_eq!(line("a: &x 1\nb: *x\n"), 2);
        assert_eq!(line("? [1, 2]\n: 3\n"), 1);
        assert!(line("a: 1\nb: [1, 2\n") >= 2);
        assert!(parse_yaml(&"[".repeat(100_000)).is_err());
    }
}
