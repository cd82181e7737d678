//! Fuzzes change files, as `quipu commit` takes them.

use proptest::prelude::*;
use quipu_contract::Actor;
use quipu_protocol::parse_change;
use quipu_testkit::mutated;

const CHANGES: &[&str] = &[
    r#"{"why": "two files", "key": "k1", "ops": [
        {"op": "append", "path": "meta/glossary.md", "text": "term\n"},
        {"op": "write", "path": "drafts/ch01.md", "text": "text\n", "expect": "0123456789abcdef"},
        {"op": "merge", "path": "state.json", "value": {"a": {"b": [1, null, "c"]}}},
        {"op": "create", "path": ".sessions/a.md", "text": ""},
        {"op": "remove", "path": "drafts/ch02.md"}]}"#,
    r#"{"ops": [{"op": "append", "path": "中文/词汇.md", "text": "行\n"}]}"#,
];

proptest! {
    #[test]
    fn a_mutated_change_file_is_read_or_named_at_fault(text in mutated(CHANGES)) {
        match parse_change("change.json", &text, &Actor::Person) {
            Ok(change) => prop_assert!(!change.ops.is_empty()),
            Err(error) => prop_assert!(error.to_string().starts_with("change.json"), "{error}"),
        }
    }
}
