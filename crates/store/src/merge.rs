//! Merging JSON objects by key.

/// RFC 7396: objects merge key by key, `null` removes, everything else replaces.
pub(crate) fn merge(into: &mut serde_json::Value, patch: &serde_json::Value) {
    use serde_json::Value::{Null, Object};
    let Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = Object(serde_json::Map::new());
    }
    let Object(target) = into else { return };
    for (key, value) in patch {
        if *value == Null {
            target.shift_remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merging_keeps_what_is_not_named() {
        let mut document = json!({"b": 1, "a": {"x": 1, "y": [1]}, "unknown": "kept"});
        merge(&mut document, &json!({"a": {"x": 2}, "b": null, "c": [3]}));
        assert_eq!(document.to_string(), r#"{"a":{"x":2,"y":[1]},"unknown":"kept","c":[3]}"#);
    }
}
