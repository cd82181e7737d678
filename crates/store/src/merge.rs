//! Merging an object into the text of a JSON file, by key.

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// RFC 7396: objects merge key by key, `null` removes, everything else replaces. What the patch does not name stays as it is
/// written: long numbers, keys that are there twice, and the order.
pub fn merge_object(text: &[u8], patch: &Map<String, Value>) -> serde_json::Result<Vec<u8>> {
    let fields = if text.iter().all(u8::is_ascii_whitespace) { Fields::default() } else { serde_json::from_slice(text)? };
    let mut merged = merge_fields(fields, patch, 0)?.into_bytes();
    merged.push(b'\n');
    Ok(merged)
}

fn merge_fields(mut fields: Fields, patch: &Map<String, Value>, depth: usize) -> serde_json::Result<String> {
    for (key, value) in patch {
        // Of a key that is there twice the last counts, as for every reader.
        let place = fields.0.iter().rposition(|(name, _)| name == key);
        let new = match value {
            Value::Null => {
                fields.0.retain(|(name, _)| name != key);
                continue;
            }
            Value::Object(inner) => {
                let old = place.and_then(|place| serde_json::from_str(&fields.0[place].1).ok()).unwrap_or_default();
                merge_fields(old, inner, depth + 1)?
            }
            // Lines of a list stand as deep as the key.
            other => serde_json::to_string_pretty(other)?.replace('\n', &format!("\n{}", "  ".repeat(depth + 1))),
        };
        match place {
            Some(place) => fields.0[place].1 = new,
            None => fields.0.push((key.clone(), new)),
        }
    }
    if fields.0.is_empty() {
        return Ok("{}".to_owned());
    }
    let indent = "  ".repeat(depth);
    let lines = fields.0.iter().map(|(key, value)| Ok(format!("{indent}  {}: {value}", serde_json::to_string(key)?)));
    Ok(format!("{{\n{}\n{indent}}}", lines.collect::<serde_json::Result<Vec<_>>>()?.join(",\n")))
}

/// The keys of an object in their order, with their values as they are written.
#[derive(Default)]
struct Fields(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Fields, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, told: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                told.write_str("an object")
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
        let Value::Object(patch) = patch else { panic!("only an object is merged") };
        String::from_utf8(merge_object(text.as_bytes(), &patch).unwrap()).unwrap()
    }

    #[test]
    fn merging_keeps_what_is_not_named() {
        let text = "{\"b\": 1, \"a\": {\"x\": 1, \"y\": [1]}, \"unknown\": \"kept\"}";
        let left = "{\n  \"a\": {\n    \"x\": 2,\n    \"y\": [1]\n  },\n  \"unknown\": \"kept\",\n  \"c\": [\n    3\n  ]\n}\n";
        assert_eq!(merged(text, json!({"a": {"x": 2}, "b": null, "c": [3]})), left);
    }

    #[test]
    fn what_is_written_in_its_own_way_stays_so() {
        let text = "{\n  \"long\": 123456789012345678901234567890,\n  \"é\": \"\\u00e9\",\n  \"twice\": 1,\n  \"twice\": 2,\n  \"a\": {\n    \"b\": 1.50\n  }\n}\n";
        assert_eq!(merged(text, json!({})), text);
        assert_eq!(merged(text, json!({"twice": 3})), text.replace(": 2", ": 3"));
        assert_eq!(merged(text, json!({"a": {"b": null}})), text.replace("{\n    \"b\": 1.50\n  }", "{}"));
    }

    #[test]
    fn an_empty_file_is_an_empty_object_and_nothing_else_is() {
        assert_eq!(merged(" \n", json!({"a": {"b": 1}})), "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n");
        for text in ["[1]", "\"x\"", "{", "null"] {
            assert!(merge_object(text.as_bytes(), &Map::new()).is_err(), "{text}");
        }
    }
}
