//! Maintains Quipu's keys in a JSON file that another tool owns. The file may have comments and
//! trailing commas; every byte that is not Quipu's stays.
//!
//! Quipu owns a key named `quipu` whose value calls `quipu`, and every list item that calls
//! `quipu hook`. All other values are shared.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{
    CstArray, CstContainerNode, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode,
};
use serde_json::{Map, Value};
use thiserror::Error;

const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Some editors write it at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadSettings {
    #[error("line {line}: {what}")]
    Syntax { line: usize, what: String },
    #[error("the file does not hold a JSON object")]
    NoObject,
    #[error("`{0}` has another kind of value than the host reads")]
    OtherKind(String),
    #[error("the key `{0}` is there twice")]
    Twice(String),
}

/// Returns the text with Quipu's keys added.
pub fn join(text: &str, ours: &Value) -> Result<String, BadSettings> {
    if text.trim_start_matches(BYTE_ORDER_MARK).trim().is_empty() {
        let new = serde_json::to_string_pretty(ours).expect("a value is JSON");
        return Ok(new + "\n");
    }
    edit(text, |root| {
        let object = root.object_value_or_create();
        join_object(&object.ok_or(BadSettings::NoObject)?, keys_of(ours))
    })
}

/// Returns the text without Quipu's keys and without containers that become empty.
pub fn part(text: &str, ours: &Value) -> Result<String, BadSettings> {
    if text.trim_start_matches(BYTE_ORDER_MARK).trim().is_empty() {
        return Ok(text.to_owned());
    }
    edit(text, |root| match (root.object_value(), root.value()) {
        (Some(object), _) => part_object(&object, keys_of(ours)).map(|_| ()),
        // Comments alone.
        (None, None) => Ok(()),
        (None, Some(_)) => Err(BadSettings::NoObject),
    })
}

fn keys_of(ours: &Value) -> &Map<String, Value> {
    ours.as_object().expect("the table is checked by a test")
}

fn edit(
    text: &str,
    change: impl Fn(&CstRootNode) -> Result<(), BadSettings>,
) -> Result<String, BadSettings> {
    let mark = if text.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len_utf8()
    } else {
        0
    };
    let root = CstRootNode::parse(&text[mark..], &OPTIONS).map_err(|e| BadSettings::Syntax {
        line: e.line_display(),
        what: e.kind().to_string(),
    })?;
    change(&root)?;
    Ok(format!("{}{root}", &text[..mark]))
}

/// The property of a key. A key that is there twice is refused, because hosts differ in which one
/// they read.
fn property(object: &CstObject, key: &str) -> Result<Option<CstObjectProp>, BadSettings> {
    let mut found = object
        .properties()
        .into_iter()
        .filter(|property| property.decoded_name().as_deref() == Some(key));
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(BadSettings::Twice(key.to_owned())),
        (found, None) => Ok(found),
    }
}

fn join_object(object: &CstObject, ours: &Map<String, Value>) -> Result<(), BadSettings> {
    for (key, value) in ours {
        let Some(there) = property(object, key)? else {
            object.append(key, input(value));
            continue;
        };
        if key == "quipu" && (value.is_object() || value.is_array()) {
            if there.to_serde_value().as_ref() != Some(value) {
                there.set_value(input(value));
            }
            continue;
        }
        let other_kind = || BadSettings::OtherKind(key.clone());
        match value {
            Value::Object(keys) => {
                join_object(&there.object_value().ok_or_else(other_kind)?, keys)?;
            }
            Value::Array(items) => join_array(&there.array_value().ok_or_else(other_kind)?, items),
            // A plain value, such as the version of the file, is its owner's.
            _ => {}
        }
    }
    Ok(())
}

fn join_array(array: &CstArray, items: &[Value]) {
    // An entry of an older version is replaced.
    remove_items(array, |item| is_ours(item) && !items.contains(item));
    let there = values(array);
    for item in items.iter().filter(|item| !there.contains(item)) {
        array.append(input(item));
    }
}

/// Whether anything of ours was there.
fn part_object(object: &CstObject, ours: &Map<String, Value>) -> Result<bool, BadSettings> {
    let mut changed = false;
    for (key, value) in ours {
        let Some(there) = property(object, key)? else {
            continue;
        };
        let is_nested = value.is_object() || value.is_array();
        if key == "quipu" && is_nested {
            let value = there.to_serde_value().unwrap_or_default();
            if !value.to_string().contains("\"quipu\"") {
                continue;
            }
            there.remove();
            changed = true;
            continue;
        }
        let (taken, left): (bool, CstContainerNode) = match value {
            Value::Object(keys) => {
                let Some(inner) = there.object_value() else {
                    continue;
                };
                (part_object(&inner, keys)?, inner.into())
            }
            Value::Array(items) => {
                let Some(inner) = there.array_value() else {
                    continue;
                };
                let taken = remove_items(&inner, |item| is_ours(item) || items.contains(item));
                (taken, inner.into())
            }
            _ => continue,
        };
        changed |= taken;
        if taken && is_bare(&left) {
            there.remove();
        }
    }
    // A plain value, such as the version of the file, is removed together with the last entry it
    // describes.
    let rest = object.properties();
    let is_plain = |property: &CstObjectProp| {
        let value = property.to_serde_value();
        property
            .decoded_name()
            .and_then(|name| ours.get(&name))
            .is_some_and(|ours| Some(ours) == value.as_ref() && !ours.is_object())
    };
    if changed && rest.iter().all(is_plain) {
        rest.into_iter().for_each(CstObjectProp::remove);
    }
    Ok(changed)
}

/// Removes the chosen items, and returns whether there were any.
fn remove_items(array: &CstArray, goes: impl Fn(&Value) -> bool) -> bool {
    let chosen: Vec<CstNode> = array
        .elements()
        .into_iter()
        .filter(|item| item.to_serde_value().is_some_and(|item| goes(&item)))
        .collect();
    let any = !chosen.is_empty();
    chosen.into_iter().for_each(CstNode::remove);
    any
}

fn values(array: &CstArray) -> Vec<Value> {
    let items = array.elements();
    items.iter().filter_map(CstNode::to_serde_value).collect()
}

/// Whether a container has neither entries nor comments.
fn is_bare(container: &CstContainerNode) -> bool {
    let inner = container.children();
    inner
        .iter()
        .all(|child| child.is_token() || child.is_whitespace() || child.is_newline())
}

fn is_ours(item: &Value) -> bool {
    item.to_string().contains("quipu hook ")
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(is) => CstInputValue::Bool(*is),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(keys) => {
            let pairs = keys.iter().map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(pairs.collect())
        }
    }
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

    #[test]
    fn comments_stay() {
        let ours = json!({"mcpServers": {"quipu": {"command": "quipu"}}, "hooks": {"Stop": [{"command": "quipu hook stop --agent a"}]}});
        let text = "// mine\n{\n  \"model\": \"x\", // the quick one\n  /* servers */\n  \"mcpServers\": {\n    // none yet\n  },\n}";
        let with = join(text, &ours).unwrap();
        assert!(with.contains("\"quipu\"") && with.contains("quipu hook stop"));
        for with in [&with, &with.replace("\"model\": \"x\"", "\"model\": \"y\"")] {
            let without = part(with, &ours).unwrap();
            for comment in [
                "// mine\n",
                "// the quick one",
                "/* servers */",
                "// none yet",
            ] {
                assert!(
                    with.contains(comment) && without.contains(comment),
                    "{with}\n{without}"
                );
            }
            assert!(!without.contains("quipu"), "{without}");
        }
    }

    #[test]
    fn settings_of_another_shape_are_refused() {
        let ours = json!({"hooks": {"Stop": [{"command": "quipu hook stop"}]}});
        assert_eq!(join("[]", &ours), Err(BadSettings::NoObject));
        let other = Err(BadSettings::OtherKind("hooks".into()));
        assert_eq!(join("{\"hooks\": []}", &ours), other);
        let twice = Err(BadSettings::Twice("hooks".into()));
        assert_eq!(join("{\"hooks\": {}, \"hooks\": {}}", &ours), twice);
        assert!(matches!(
            join("{\n  \"a\": 1\n  \"b\": 2}", &ours),
            Err(BadSettings::Syntax { line: 2, .. })
        ));
        let foreign = "{\"version\": 1, \"hooks\": {\"Stop\": []}}";
        assert_eq!(part(foreign, &ours).unwrap(), foreign);
    }
}
