//! Parses a change from a JSON file: several operations that are committed together or not at all.
//!
//! This module only builds the `Change`; the store judges it.

use quipu_contract::{Actor, BadPath, ProjectPath};
use quipu_store::{Change, Expect, Op, Version};
use serde::Deserialize;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ChangeFileError {
    #[error("{file}, line {line}: {what}")]
    Malformed {
        file: String,
        line: usize,
        what: String,
    },
    #[error("{file}, operation {number}: {what}")]
    BadOp {
        file: String,
        number: usize,
        what: String,
    },
    #[error("{file}, operation {number}: {source}")]
    BadPath {
        file: String,
        number: usize,
        source: BadPath,
    },
    #[error("{file} contains no operations")]
    NoOp { file: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeFile {
    why: Option<String>,
    key: Option<String>,
    ops: Vec<OpEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpEntry {
    op: OpName,
    path: String,
    text: Option<String>,
    expect: Option<String>,
    value: Option<serde_json::Value>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum OpName {
    Append,
    Write,
    Create,
    Merge,
    Remove,
}

/// Parses `{"why": …, "key": …, "ops": [{"op": "append", "path": …, "text": …}, …]}`.
pub fn parse_change(file: &str, text: &str, actor: &Actor) -> Result<Change, ChangeFileError> {
    let parsed: ChangeFile =
        serde_json::from_str(text).map_err(|error| ChangeFileError::Malformed {
            file: file.to_owned(),
            line: error.line(),
            what: without_place(&error),
        })?;
    let mut change = Change::by(actor);
    change.why = parsed.why;
    change.key = parsed.key;
    for (index, entry) in parsed.ops.into_iter().enumerate() {
        let bad = |what: String| ChangeFileError::BadOp {
            file: file.to_owned(),
            number: index + 1,
            what,
        };
        let path = ProjectPath::parse(&entry.path).map_err(|source| ChangeFileError::BadPath {
            file: file.to_owned(),
            number: index + 1,
            source,
        })?;
        let wants_text = matches!(entry.op, OpName::Append | OpName::Write | OpName::Create);
        let bytes = match (wants_text, entry.text) {
            (true, Some(text)) => text.into_bytes(),
            (true, None) => return Err(bad("`text` is missing".into())),
            (false, Some(_)) => return Err(bad("`text` is not allowed here".into())),
            (false, None) => Vec::new(),
        };
        let takes_expect = matches!(entry.op, OpName::Write | OpName::Remove);
        let expect = match entry.expect {
            Some(_) if !takes_expect => return Err(bad("`expect` is not allowed here".into())),
            Some(version) => Expect::Version(Version::parse(&version)),
            None => Expect::Any,
        };
        if entry.value.is_some() != (entry.op == OpName::Merge) {
            return Err(bad(
                "`value` is required for `merge`, and allowed only there".into(),
            ));
        }
        change.ops.push(match entry.op {
            OpName::Append => Op::Append {
                path,
                bytes,
                apart: false,
            },
            OpName::Write => Op::Write {
                path,
                bytes,
                expect,
            },
            OpName::Create => Op::Create { path, bytes },
            OpName::Remove => Op::Remove { path, expect },
            OpName::Merge => Op::Merge {
                path,
                value: entry.value.unwrap_or_default(),
            },
        });
    }
    if change.ops.is_empty() {
        return Err(ChangeFileError::NoOp {
            file: file.to_owned(),
        });
    }
    Ok(change)
}

/// Removes " at line 2 column 16" from the parser's message: our message already starts with the
/// place.
fn without_place(error: &serde_json::Error) -> String {
    let told = error.to_string();
    match told.rfind(" at line ") {
        Some(at) => told[..at].to_owned(),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_their_place() {
        for (text, what) in [
            ("{\n\"ops\": [}", "c.json, line 2"),
            (r#"{"ops": []}"#, "no operation"),
            (
                r#"{"ops": [{"op": "append", "path": "a"}]}"#,
                "operation 1: `text` is missing",
            ),
            (
                r#"{"ops": [{"op": "append", "path": "../a", "text": ""}]}"#,
                "leaves the project",
            ),
            (
                r#"{"ops": [{"op": "paint", "path": "a"}]}"#,
                "unknown variant `paint`",
            ),
            (
                r#"{"ops": [{"op": "append", "path": "a", "text": "", "expect": "v"}]}"#,
                "`expect` is not allowed here",
            ),
            (
                r#"{"ops": [{"op": "merge", "path": "a"}]}"#,
                "`value` is required for `merge`",
            ),
        ] {
            let error = parse_change("c.json", text, &Actor::Person)
                .unwrap_err()
                .to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn a_change_is_read() {
        let text = r#"{"why": "w", "key": "k", "ops": [{"op": "append", "path": "a", "text": "x"}, {"op": "write", "path": "b", "text": "y", "expect": "v"}]}"#;
        let change = parse_change("c.json", text, &Actor::Person).unwrap();
        assert_eq!((change.ops.len(), change.key.as_deref()), (2, Some("k")));
    }
}
