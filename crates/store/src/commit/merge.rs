//! Merges an object into the text of a JSON file, by key.
//!
//! Everything that the patch does not name keeps its spelling and order.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// RFC 7396: objects merge key by key, `null` removes, everything else replaces. Fields that the
/// patch does not name keep their text: long numbers, duplicate keys, and the order.
pub fn merge_object(text: &[u8], patch: &Map<String, Value>) -> serde_json::Result<Vec<u8>> {
    let fields = if text.iter().all(u8::is_ascii_whitespace) {
        Fields::default()
    } else {
        serde_json::from_slice(text)?
    };
    let mut merged = merge_fields(fields, patch, 0)?.into_bytes();
    merged.push(b'\n');
    Ok(merged)
}

fn merge_fields(
    fields: Fields,
    patch: &Map<String, Value>,
    depth: usize,
) -> serde_json::Result<String> {
    // The last of several duplicate keys counts, as in every JSON reader.
    let mut places: HashMap<String, Vec<usize>> = HashMap::with_capacity(fields.0.len());
    for (place, (key, _)) in fields.0.iter().enumerate() {
        places.entry(key.clone()).or_default().push(place);
    }
    let mut fields: Vec<Option<(String, String)>> = fields.0.into_iter().map(Some).collect();
    for (key, value) in patch {
        let places = places.get(key).map(Vec::as_slice).unwrap_or_default();
        let last = places.last().copied();
        let new = match value {
            Value::Null => {
                places.iter().for_each(|place| fields[*place] = None);
                continue;
            }
            Value::Object(inner) => {
                let old = last.and_then(|place| fields[place].as_ref());
                let old = old
                    .and_then(|(_, text)| serde_json::from_str(text).ok())
                    .unwrap_or_default();
                merge_fields(old, inner, depth + 1)?
            }
            // Indent the lines of a list like the key.
            other => serde_json::to_string_pretty(other)?
                .replace('\n', &format!("\n{}", "  ".repeat(depth + 1))),
        };
        match last {
            Some(place) => fields[place] = Some((key.clone(), new)),
            None => fields.push(Some((key.clone(), new))),
        }
    }
    let indent = "  ".repeat(depth);
    let lines = fields.iter().flatten().map(|(key, value)| {
        Ok(format!(
            "{indent}  {}: {value}",
            serde_json::to_string(key)?
        ))
    });
    let lines = lines.collect::<serde_json::Result<Vec<_>>>()?;
    Ok(if lines.is_empty() {
        "{}".to_owned()
    } else {
        format!("{{\n{}\n{indent}}}", lines.join(",\n"))
    })
}

/// The keys of an object in order, with the text of their values.
#[derive(Default)]
struct Fields(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Fields, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.push((key, value.get().to_owned()));
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(text: &str, patch: Value) -> String {
        let Value::Object(patch) = patch else {
            panic!("only an object is merged")
        };
        String::from_utf8(merge_object(text.as_bytes(), &patch).unwrap()).unwrap()
    }

    #[test]
    fn merging_keeps_what_is_not_named() {
        let text = "{\"b\": 1, \"a\": {\"x\": 1, \"y\": [1]}, \"unknown\": \"kept\"}";
        let left = "{\n  \"a\": {\n    \"x\": 2,\n    \"y\": [1]\n  },\n  \"unknown\": \"kept\",\n  \"c\": [\n    3\n  ]\n}\n";
        assert_eq!(
            merged(text, json!({"a": {"x": 2}, "b": null, "c": [3]})),
            left
        );
    }

    #[test]
    fn what_is_written_in_its_own_way_stays_so() {
        let text = "{\n  \"long\": 123456789012345678901234567890,\n  \"é\": \"\\u00e9\",\n  \"twice\": 1,\n  \"twice\": 2,\n  \"a\": {\n    \"b\": 1.50\n  }\n}\n";
        assert_eq!(merged(text, json!({})), text);
        assert_eq!(
            merged(text, json!({"twice": 3})),
            text.replace(": 2", ": 3")
        );
        assert_eq!(
            merged(text, json!({"a": {"b": null}})),
            text.replace("{\n    \"b\": 1.50\n  }", "{}")
        );
    }

    #[test]
    fn an_empty_file_is_an_empty_object_and_nothing_else_is() {
        assert_eq!(
            merged(" \n", json!({"a": {"b": 1}})),
            "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"
        );
        for text in ["[1]", "\"x\"", "{", "null"] {
            assert!(
                merge_object(text.as_bytes(), &Map::new()).is_err(),
                "{text}"
            );
        }
    }

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_key_that_is_there_twice_is_replaced_last_and_removed_whole() {
        let text = r#"{"a": 1, "b": 1.50, "a": 2}"#;
        assert_eq!(
            merged(text, value(r#"{"a": 3, "c": [1]}"#)),
            "{\n  \"a\": 1,\n  \"b\": 1.50,\n  \"a\": 3,\n  \"c\": [\n    1\n  ]\n}\n"
        );
        assert_eq!(
            merged(text, value(r#"{"a": null}"#)),
            "{\n  \"b\": 1.50\n}\n"
        );
        assert_eq!(merged("{\"a\": 1}", value(r#"{"a": null}"#)), "{}\n");
        assert_eq!(
            merged("", value(r#"{"a": {"b": 1, "c": null}}"#)),
            "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"
        );
    }

    /// A linear search for each key would take minutes.
    #[test]
    fn many_keys_are_merged_in_linear_time() {
        const MANY: usize = 60_000;
        let object = |from: usize, value: &str| -> String {
            let members: Vec<String> = (from..from + MANY)
                .map(|n| format!("\"k{n}\":{value}"))
                .collect();
            format!("{{{}}}", members.join(","))
        };
        let text = merged(&object(0, "1"), value(&object(MANY / 2, "2")));
        assert_eq!(
            (text.matches(": 1").count(), text.matches(": 2").count()),
            (MANY / 2, MANY)
        );
        assert_eq!(merged(&object(0, "1"), value(&object(0, "null"))), "{}\n");
    }
}
