//! The values of a JSON file that are worth finding or reading one by one, each at its pointer.
//!
//! A list item is one value, and so is an object without lists and objects; of any other object each
//! member is. Values that only say when and in which session something was saved are left out of a
//! search, but can be read.

use quipu_text::json::{JsonPointer, Node, Shape, parse_json};
use serde_json::Value;

use crate::project::times::parse_moment;

/// A value of a JSON file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonPlace {
    /// The parts of its pointer.
    pub parts: Vec<String>,
    pub line: usize,
    pub text: String,
}

/// Members with these names say when something was saved and by which session.
const BOOKKEEPING: [&str; 4] = ["last_update", "last_session", "session_id", "metadata"];

/// A file with more values is data, not memory: it is searched as one text.
const MOST_PLACES: usize = 5_000;

/// Whether a file is read as JSON.
pub(crate) fn is_json(path: &str) -> bool {
    path.len() > 5 && path.as_bytes()[path.len() - 5..].eq_ignore_ascii_case(b".json")
}

/// The values of a JSON text, in their order. None if it is no JSON object or list, or too large.
pub(crate) fn json_places(text: &str) -> Option<Vec<JsonPlace>> {
    let root = parse_json(text).ok()?;
    if matches!(root.shape, Shape::Plain(_)) {
        return None;
    }
    let mut found = Places {
        text,
        places: Vec::new(),
        line: 1,
        at: 0,
    };
    found.members(&root, &mut Vec::new());
    (found.places.len() <= MOST_PLACES).then_some(found.places)
}

/// The value at a pointer of a JSON text, such as `progress/next_steps/0`, as it is in the file.
pub(crate) fn json_at<'t>(text: &'t str, pointer: &str) -> Option<(usize, &'t str)> {
    let root = parse_json(text).ok()?;
    let node = root.at(&JsonPointer::parse(pointer).ok()?)?;
    Some((node.line(text), &text[node.span.clone()]))
}

/// The names of the members of a JSON object.
pub(crate) fn json_keys(text: &str) -> Vec<String> {
    match parse_json(text).map(|root| root.shape) {
        Ok(Shape::Object(members)) => members.into_iter().map(|member| member.key).collect(),
        _ => Vec::new(),
    }
}

struct Places<'t> {
    text: &'t str,
    places: Vec<JsonPlace>,
    /// The line of the byte `at`: values come in order, so that lines are counted once.
    line: usize,
    at: usize,
}

impl Places<'_> {
    fn members(&mut self, node: &Node, parts: &mut Vec<String>) {
        let children: Vec<(String, &Node)> = match &node.shape {
            Shape::Object(members) => members
                .iter()
                .map(|member| (member.key.clone(), &member.value))
                .collect(),
            Shape::List(items) => (0..).map(|n: usize| n.to_string()).zip(items).collect(),
            Shape::Plain(_) => Vec::new(),
        };
        let is_list = matches!(node.shape, Shape::List(_));
        for (name, child) in children {
            if self.places.len() > MOST_PLACES || BOOKKEEPING.contains(&name.as_str()) {
                continue;
            }
            parts.push(name);
            if is_list || is_flat(child) {
                self.add(child, parts);
            } else {
                self.members(child, parts);
            }
            parts.pop();
        }
    }

    fn add(&mut self, node: &Node, parts: &[String]) {
        let mut text = String::new();
        say(node, "", &mut text);
        if text.is_empty() {
            return;
        }
        let start = node.span.start.max(self.at);
        self.line += self.text[self.at..start].matches('\n').count();
        self.at = start;
        self.places.push(JsonPlace {
            parts: parts.to_vec(),
            line: self.line,
            text,
        });
    }
}

/// Whether a value has no lists and objects in it.
fn is_flat(node: &Node) -> bool {
    let is_plain = |node: &Node| matches!(node.shape, Shape::Plain(_));
    match &node.shape {
        Shape::Plain(_) => true,
        Shape::Object(members) => members.iter().all(|member| is_plain(&member.value)),
        Shape::List(_) => false,
    }
}

/// Says a value in words: a line for each member that has a value and is not a moment.
fn say(node: &Node, name: &str, text: &mut String) {
    match &node.shape {
        Shape::Object(members) => {
            for member in members {
                say(&member.value, &member.key, text);
            }
        }
        Shape::List(items) => {
            for item in items {
                say(item, name, text);
            }
        }
        Shape::Plain(Value::Null) => {}
        Shape::Plain(value) => {
            let value = match value {
                Value::String(value) => value.trim().to_owned(),
                other => other.to_string(),
            };
            let is_moment = value.contains('T') && parse_moment(&value).is_some();
            if value.is_empty() || is_moment {
                return;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            if !name.is_empty() {
                text.push_str(name);
                text.push_str(": ");
            }
            text.push_str(&value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fact_is_a_place_of_its_own() {
        let text = r#"{"phase": "testing", "progress": {"completed": ["a", "b"],
 "in_progress": ""}, "deploy": {"region": "eu", "port": 8080},
 "blocked": [{"item": "c", "since": "2026-01-01T00:00:00Z"}], "last_update": "2026-01-01T00:00:00Z"}"#;
        let places = json_places(text).unwrap();
        let said: Vec<(String, usize, &str)> = places
            .iter()
            .map(|place| (place.parts.join("/"), place.line, place.text.as_str()))
            .collect();
        assert_eq!(
            said,
            [
                ("phase".to_owned(), 1, "testing"),
                ("progress/completed/0".to_owned(), 1, "a"),
                ("progress/completed/1".to_owned(), 1, "b"),
                ("deploy".to_owned(), 2, "region: eu\nport: 8080"),
                ("blocked/0".to_owned(), 3, "item: c"),
            ]
        );
        for place in &places {
            assert!(json_at(text, &place.parts.join("/")).is_some());
        }
        assert_eq!(json_at(text, "deploy/port"), Some((2, "8080")));
        assert_eq!(json_at(text, "deploy/host"), None);
        assert_eq!(json_places("[1"), None);
        assert_eq!(json_places("7"), None);
    }
}
