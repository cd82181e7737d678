//! Edits a JSON text: sets, adds or removes one value and keeps every other byte.
//!
//! New values follow the layout of their container: on separate lines with the same indentation if
//! the container has several lines, else on one line.

use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::parse::{JsonError, Node, Shape, line_at, parse_json};
use super::pointer::JsonPointer;

/// Sets the value at a pointer. Creates missing objects on the path.
pub fn set_value(text: &str, pointer: &JsonPointer, value: &Value) -> Result<String, JsonError> {
    if text.trim().is_empty() {
        let nested = pointer
            .parts()
            .iter()
            .rev()
            .fold(value.clone(), |inner, key| nest(key, inner));
        return Ok(format!("{}\n", render(&nested, "", "  ", "\n")));
    }
    let root = parse_json(text)?;
    let style = Style::of(text);
    let mut node = &root;
    for (depth, part) in pointer.parts().iter().enumerate() {
        let wrapped = || {
            pointer.parts()[depth + 1..]
                .iter()
                .rev()
                .fold(value.clone(), |inner, key| nest(key, inner))
        };
        match &node.shape {
            Shape::Object(_) => match node.get(part) {
                Some(inner) => node = inner,
                None => return Ok(style.insert(text, node, Some(part), &wrapped())),
            },
            Shape::List(items) => match part.parse::<usize>() {
                Ok(index) if index < items.len() => node = &items[index],
                Ok(index) if index == items.len() => {
                    return Ok(style.insert(text, node, None, &wrapped()));
                }
                _ if part == "-" => return Ok(style.insert(text, node, None, &wrapped())),
                _ => {
                    let what = format!(
                        "`{pointer}`: a list of {} takes an index below that, or `-` for its end",
                        items.len()
                    );
                    return Err(JsonError {
                        line: node.line(text),
                        what,
                    });
                }
            },
            Shape::Plain(_) => {
                let what = format!("`{pointer}`: `{part}` would be inside a plain value");
                return Err(JsonError {
                    line: node.line(text),
                    what,
                });
            }
        }
    }
    if node.to_value() == *value {
        return Ok(text.to_owned());
    }
    let inline = !text[node.span.clone()].contains('\n')
        && matches!(&node.shape, Shape::Object(m) if !m.is_empty());
    let inline = inline
        || matches!(&node.shape, Shape::List(items) if !items.is_empty() && !text[node.span.clone()].contains('\n'));
    let rendered = if inline {
        style.on_one_line(value)
    } else {
        style.render(value, &indent_at(text, node.span.start))
    };
    Ok(replaced(text, node.span.clone(), &rendered))
}

/// Appends an item to the list at a pointer. Creates the list if it is missing.
pub fn append_item(text: &str, pointer: &JsonPointer, item: &Value) -> Result<String, JsonError> {
    let root = if text.trim().is_empty() {
        None
    } else {
        Some(parse_json(text)?)
    };
    match root.as_ref().and_then(|root| root.at(pointer)) {
        Some(Node {
            shape: Shape::List(_),
            ..
        }) => set_value(text, &pointer.child("-"), item),
        Some(Node {
            shape: Shape::Plain(Value::Null),
            ..
        })
        | None => set_value(text, pointer, &Value::Array(vec![item.clone()])),
        Some(other) => Err(JsonError {
            line: other.line(text),
            what: format!("`{pointer}` is not a list"),
        }),
    }
}

/// Removes the value at a pointer. Returns the same text if there is none.
pub fn remove_value(text: &str, pointer: &JsonPointer) -> Result<String, JsonError> {
    let root = parse_json(text)?;
    let Some((last, above)) = pointer.parts().split_last() else {
        return Err(JsonError {
            line: 1,
            what: "the whole document cannot be removed".into(),
        });
    };
    let above = above
        .iter()
        .fold(JsonPointer::default(), |pointer, part| pointer.child(part));
    let Some(container) = root.at(&above) else {
        return Ok(text.to_owned());
    };
    let spans: Vec<_> = match &container.shape {
        Shape::Object(members) => members.iter().map(|m| m.span.clone()).collect(),
        Shape::List(items) => items.iter().map(|i| i.span.clone()).collect(),
        Shape::Plain(_) => return Ok(text.to_owned()),
    };
    let index = match &container.shape {
        Shape::Object(members) => members.iter().rposition(|m| m.key == *last),
        _ => last
            .parse::<usize>()
            .ok()
            .filter(|index| *index < spans.len()),
    };
    let Some(index) = index else {
        return Ok(text.to_owned());
    };
    let cut = match (index, spans.len()) {
        (_, 1) => container.span.start + 1..container.span.end - 1,
        // Remove the comma after it or, for the last item, the comma before it.
        (index, count) if index + 1 < count => spans[index].start..spans[index + 1].start,
        (index, _) => spans[index - 1].end..spans[index].end,
    };
    Ok(replaced(text, cut, ""))
}

fn nest(key: &str, inner: Value) -> Value {
    if key == "-" {
        Value::Array(vec![inner])
    } else {
        Value::Object([(key.to_owned(), inner)].into_iter().collect())
    }
}

fn replaced(text: &str, span: std::ops::Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..span.start], &text[span.end..])
}

/// Returns the indentation of the line that contains an offset.
fn indent_at(text: &str, offset: usize) -> String {
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..]
        .chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect()
}

/// The layout of a text.
struct Style {
    unit: String,
    newline: &'static str,
    /// True if the whole text is on one line.
    flat: bool,
}

impl Style {
    fn of(text: &str) -> Style {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let first = text.lines().skip(1).find(|l| l.starts_with([' ', '\t']));
        let unit = first.map_or("  ".into(), |line| {
            line.chars()
                .take_while(|c| matches!(c, ' ' | '\t'))
                .collect()
        });
        Style {
            unit,
            newline,
            flat: line_at(text.trim_end(), text.len()) == 1,
        }
    }

    fn render(&self, value: &Value, indent: &str) -> String {
        if self.flat {
            self.on_one_line(value)
        } else {
            render(value, indent, &self.unit, self.newline)
        }
    }

    fn on_one_line(&self, value: &Value) -> String {
        let mut bytes = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut bytes, Spaced);
        serde::Serialize::serialize(value, &mut serializer).expect("a JSON value can be written");
        String::from_utf8(bytes).expect("JSON is text")
    }

    /// Adds a member or an item at the end of a container.
    fn insert(&self, text: &str, container: &Node, key: Option<&str>, value: &Value) -> String {
        let last = match &container.shape {
            Shape::Object(members) => members.last().map(|m| m.span.clone()),
            Shape::List(items) => items.last().map(|i| i.span.clone()),
            Shape::Plain(_) => None,
        };
        let key = key
            .map(|k| format!("{}: ", Value::from(k)))
            .unwrap_or_default();
        let whole = &text[container.span.clone()];
        match last {
            // Follow the layout of the preceding items: separate lines or one line.
            Some(last) if whole.contains('\n') => {
                let indent = indent_at(text, last.start);
                let new = format!(
                    ",{}{indent}{key}{}",
                    self.newline,
                    self.render(value, &indent)
                );
                replaced(text, last.end..last.end, &new)
            }
            Some(last) => replaced(
                text,
                last.end..last.end,
                &format!(", {key}{}", self.on_one_line(value)),
            ),
            None => {
                let (open, close) = (&whole[..1], &whole[whole.len() - 1..]);
                if self.flat {
                    return replaced(
                        text,
                        container.span.clone(),
                        &format!("{open}{key}{}{close}", self.on_one_line(value)),
                    );
                }
                let outer = indent_at(text, container.span.start);
                let indent = format!("{outer}{}", self.unit);
                let n = self.newline;
                let new = format!(
                    "{open}{n}{indent}{key}{}{n}{outer}{close}",
                    self.render(value, &indent)
                );
                replaced(text, container.span.clone(), &new)
            }
        }
    }
}

fn render(value: &Value, indent: &str, unit: &str, newline: &str) -> String {
    let mut bytes = Vec::new();
    let mut serializer =
        Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(unit.as_bytes()));
    serde::Serialize::serialize(value, &mut serializer).expect("a JSON value can be written");
    String::from_utf8(bytes)
        .expect("JSON is text")
        .replace('\n', &format!("{newline}{indent}"))
}

/// Formats on one line with spaces: `{"a": 1, "b": [2, 3]}`.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn set(text: &str, pointer: &str, value: Value) -> String {
        set_value(text, &JsonPointer::parse(pointer).unwrap(), &value).unwrap()
    }

    const TEXT: &str = "{\n    \"phase\" : \"planning\",\n\n    \"tags\": [ \"a\",\"b\" ],\n    \"odd\":{\"x\":1.50},\n    \"list\": [\n        {\"id\": 1}\n    ],\n    \"empty\": []\n}\n";

    #[test]
    fn only_what_is_meant_changes() {
        assert_eq!(
            set(TEXT, "/phase", json!("testing")),
            TEXT.replace("planning", "testing")
        );
        assert_eq!(set(TEXT, "/phase", json!("planning")), TEXT);
        assert_eq!(
            set(TEXT, "/odd/y", json!([1, 2])),
            TEXT.replace("1.50", "1.50, \"y\": [1, 2]")
        );
        assert_eq!(
            set(TEXT, "/tags/-", json!("c")),
            TEXT.replace("\"b\"", "\"b\", \"c\"")
        );
        assert_eq!(
            set(TEXT, "/tags/0", json!("c")),
            TEXT.replace("\"a\"", "\"c\"")
        );
    }

    #[test]
    fn what_is_new_looks_like_its_surroundings() {
        assert!(
            set(TEXT, "/list/-", json!({"id": 2})).contains(
                "        {\"id\": 1},\n        {\n            \"id\": 2\n        }\n    ]"
            )
        );
        assert!(
            set(TEXT, "/empty/-", json!("e")).contains("\"empty\": [\n        \"e\"\n    ]\n}")
        );
        assert!(
            set(TEXT, "/new/deep", json!(1))
                .contains("\"empty\": [],\n    \"new\": {\n        \"deep\": 1\n    }\n}\n")
        );
        assert_eq!(
            set("{\"a\":1}", "/b", json!({"c": []})),
            "{\"a\":1, \"b\": {\"c\": []}}"
        );
        assert_eq!(set("{}", "/b", json!(1)), "{\"b\": 1}");
        assert_eq!(
            set("", "/b/c", json!(1)),
            "{\n  \"b\": {\n    \"c\": 1\n  }\n}\n"
        );
        assert_eq!(
            set("{\r\n  \"a\": 1\r\n}\r\n", "/b", json!(2)),
            "{\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}\r\n"
        );
    }

    #[test]
    fn a_value_goes_with_its_comma() {
        let remove =
            |pointer: &str| remove_value(TEXT, &JsonPointer::parse(pointer).unwrap()).unwrap();
        assert!(
            parse_json(&remove("/phase"))
                .unwrap()
                .get("phase")
                .is_none()
        );
        assert!(
            parse_json(&remove("/empty"))
                .unwrap()
                .get("empty")
                .is_none()
        );
        assert!(remove("/tags/1").contains("[ \"a\" ]"));
        assert!(remove("/list/0").contains("\"list\": []"));
        assert_eq!(remove("/nowhere/at/all"), TEXT);
    }

    #[test]
    fn faults_name_their_line() {
        for (text, line, what) in [
            ("{\n\"a\": 1,\n}", 3, "nothing follows a comma"),
            ("{\n\"a\" 1}", 2, "colon"),
            ("{\"a\": 1\n\"b\": 2}", 2, "a comma or `}`"),
            ("{\"a\": tru}", 1, "`tru` is not a value"),
            ("{\n// no\n}", 2, "quotes"),
            ("{\"a\": // no\n1}", 1, "no comments"),
            ("{\"a\": \"open\n}", 1, "closing quote"),
            ("{} x", 1, "follow"),
            ("", 1, "missing"),
        ] {
            let error = parse_json(text).unwrap_err();
            assert!(
                error.line == line && error.what.contains(what),
                "{text:?}: {error}"
            );
        }
        assert!(parse_json(&"[".repeat(100_000)).is_err());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a\"\\\\中\n]{0,4}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-c/~]{1,2}", inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_edit_is_what_the_value_says(value in values(), new in values(), key in "[a-d/~]{1,2}", flat in any::<bool>()) {
            let value = json!({"a": value, "b": [1]});
            let text = if flat { value.to_string() } else { serde_json::to_string_pretty(&value).unwrap() };
            prop_assert_eq!(parse_json(&text).unwrap().to_value(), value.clone());
            let mut wanted = value;
            wanted[&key] = new.clone();
            let edited = set_value(&text, &JsonPointer::default().child(&key), &new).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&edited).unwrap(), wanted.clone());
            let removed = remove_value(&edited, &JsonPointer::default().child(&key)).unwrap();
            wanted.as_object_mut().unwrap().shift_remove(&key);
            prop_assert_eq!(serde_json::from_str::<Value>(&removed).unwrap(), wanted);
        }
    }
}
