//! Maintains Quipu's keys in a JSON file that another tool owns.
//!
//! Quipu owns a key named `quipu` completely, and every list item that calls `quipu hook`. All
//! other values are shared.

use quipu_text::json::{JsonError, JsonPointer, append_item, parse_json, remove_value, set_value};
use serde_json::Value;

/// Returns the text with Quipu's keys added.
pub fn join(text: &str, ours: &Value) -> Result<String, JsonError> {
    if text.trim().is_empty() {
        return set_value("", &JsonPointer::default(), ours);
    }
    join_at(text.to_owned(), &JsonPointer::default(), ours)
}

fn join_at(text: String, pointer: &JsonPointer, ours: &Value) -> Result<String, JsonError> {
    let there = value_at(&text, pointer)?;
    match (ours, there) {
        (Value::Object(keys), Some(Value::Object(_))) => {
            keys.iter().try_fold(text, |text, (key, value)| {
                let pointer = pointer.child(key);
                if key == "quipu" {
                    set_value(&text, &pointer, value)
                } else {
                    join_at(text, &pointer, value)
                }
            })
        }
        (Value::Array(items), Some(Value::Array(there))) => {
            // An entry of an older version is replaced.
            let stale = |item: &Value| is_ours(item) && !items.contains(item);
            let text = without_items(text, pointer, &there, stale)?;
            let missing = items.iter().filter(|item| !there.contains(item));
            missing
                .into_iter()
                .try_fold(text, |text, item| append_item(&text, pointer, item))
        }
        _ => set_value(&text, pointer, ours),
    }
}

/// Returns the text without Quipu's keys and without containers that become empty.
pub fn part(text: &str, ours: &Value) -> Result<String, JsonError> {
    part_at(text.to_owned(), &JsonPointer::default(), ours)
}

fn part_at(text: String, pointer: &JsonPointer, ours: &Value) -> Result<String, JsonError> {
    let text = match (ours, value_at(&text, pointer)?) {
        (_, None) => return Ok(text),
        (Value::Object(keys), Some(Value::Object(_))) => {
            let (plain, nested): (Vec<_>, Vec<_>) = keys
                .iter()
                .partition(|(_, value)| !value.is_object() && !value.is_array());
            let text = nested.into_iter().try_fold(text, |text, (key, value)| {
                let pointer = pointer.child(key);
                if key == "quipu" {
                    remove_value(&text, &pointer)
                } else {
                    part_at(text, &pointer, value)
                }
            })?;
            // A plain value, such as the version of the file, is removed together with the last
            // entry it describes.
            let left = value_at(&text, pointer)?;
            let is_last = |there: &serde_json::Map<String, Value>| {
                there
                    .iter()
                    .all(|(key, value)| plain.contains(&(key, value)))
            };
            match left
                .as_ref()
                .and_then(Value::as_object)
                .is_some_and(is_last)
            {
                true => plain.iter().try_fold(text, |text, (key, _)| {
                    remove_value(&text, &pointer.child(*key))
                })?,
                false => text,
            }
        }
        (Value::Array(items), Some(Value::Array(there))) => {
            without_items(text, pointer, &there, |item| {
                is_ours(item) || items.contains(item)
            })?
        }
        _ => return Ok(text),
    };
    let is_empty = match value_at(&text, pointer)? {
        Some(Value::Object(keys)) => keys.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => false,
    };
    if is_empty && !pointer.parts().is_empty() {
        remove_value(&text, pointer)
    } else {
        Ok(text)
    }
}

fn without_items(
    text: String,
    pointer: &JsonPointer,
    there: &[Value],
    goes: impl Fn(&Value) -> bool,
) -> Result<String, JsonError> {
    let indices = (0..there.len()).rev().filter(|index| goes(&there[*index]));
    indices.into_iter().try_fold(text, |text, index| {
        remove_value(&text, &pointer.child(index))
    })
}

fn is_ours(item: &Value) -> bool {
    item.to_string().contains("quipu hook ")
}

fn value_at(text: &str, pointer: &JsonPointer) -> Result<Option<Value>, JsonError> {
    Ok(parse_json(text)?.at(pointer).map(|node| node.to_value()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_belongs_to_others_stays() {
        let ours = json!({"mcpServers": {"quipu": {"command": "quipu"}}, "hooks": {"Stop": [{"command": "quipu hook stop --agent a"}]}});
        let text = "{\n    \"model\": \"x\",\n    \"hooks\": {\n        \"Stop\": [ {\"command\": \"beep\"} ]\n    }\n}\n";
        let with = join(text, &ours).unwrap();
        assert_eq!(join(&with, &ours).unwrap(), with);
        let value: Value = serde_json::from_str(&with).unwrap();
        assert_eq!(
            (
                &value["model"],
                value["hooks"]["Stop"].as_array().unwrap().len()
            ),
            (&json!("x"), 2)
        );
        let older = with.replace("--agent a", "--agent old");
        assert_eq!(
            serde_json::from_str::<Value>(&join(&older, &ours).unwrap()).unwrap(),
            value
        );
        let without: Value = serde_json::from_str(&part(&with, &ours).unwrap()).unwrap();
        assert_eq!(without, serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(part(&join("", &ours).unwrap(), &ours).unwrap().trim(), "{}");
    }

    #[test]
    fn a_version_stays_with_what_others_wrote_under_it() {
        let ours =
            json!({"version": 1, "hooks": {"stop": [{"command": "quipu hook stop --agent a"}]}});
        let text = "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [{\"command\": \"beep\"}]\n  }\n}\n";
        let with = join(text, &ours).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&part(&with, &ours).unwrap()).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
        assert_eq!(part(&join("", &ours).unwrap(), &ours).unwrap().trim(), "{}");
    }
}
