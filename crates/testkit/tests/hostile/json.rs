//! Fuzzes the in-place editor of JSON with untrusted files.

use proptest::prelude::*;
use quipu_store::merge_object;
use quipu_testkit::mutated;
use quipu_text::json::{JsonPointer, append_item, parse_json, remove_value, set_value};
use serde_json::{Value, json};

const STATES: &[&str] = &[
    "{\n  \"phase\": \"planning\",\n  \"progress\": {\"completed\": [1, 2.5e3, \"x\\u4e2d\"], \"blocked\": []},\n  \"ok\": true\n}\n",
    "\u{feff}{\"todos\": [{\"id\": \"t1\", \"title\": \"一\"}, {\"id\": \"t2\"}], \"n\": null}",
    "[[], {}, \"\\\"\", -0.0]",
];

proptest! {
    #[test]
    fn edits_of_mutated_json_refuse_it_or_leave_json(text in mutated(STATES)) {
        let value = json!({"新": [1, {"deep": null}]});
        for pointer in ["/progress", "/progress/completed/0", "/todos/1/title", "/a~1b/c", ""] {
            let Ok(pointer) = JsonPointer::parse(pointer) else { continue };
            let edits = [set_value(&text, &pointer, &value), append_item(&text, &pointer, &value), remove_value(&text, &pointer)];
            for edited in edits.into_iter().flatten() {
                prop_assert!(parse_json(&edited).is_ok(), "{text:?} became {edited:?}");
            }
        }
    }

    #[test]
    fn what_is_parsed_means_what_serde_reads(text in mutated(STATES)) {
        if parse_json(&text).is_ok() {
            let plain = text.strip_prefix('\u{feff}').unwrap_or(&text);
            prop_assert!(serde_json::from_str::<Value>(plain).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn a_merge_into_mutated_json_refuses_it_or_sets_the_keys(text in mutated(STATES)) {
        let patch = json!({"phase": "testing", "progress": {"in_progress": "x"}});
        if let Ok(merged) = merge_object(text.as_bytes(), patch.as_object().unwrap()) {
            let Ok(read) = serde_json::from_slice::<Value>(&merged) else {
                // A number that is too large for `Value` stays as written.
                prop_assert!(serde_json::from_str::<Value>(&text).is_err(), "{text:?}");
                return Ok(());
            };
            prop_assert_eq!(&read["phase"], "testing");
            prop_assert_eq!(&read["progress"]["in_progress"], "x");
        }
    }
}
