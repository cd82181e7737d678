//! Judges external edits: decides which of them the contract allows.
//!
//! Agents may edit files with their own tools. An edit that the file's class allows is adopted; any
//! other edit is flagged and keeps its bytes until a person or agent decides. This module never
//! reverts an edit.

use std::borrow::Cow;

use crate::class::Class;
use crate::loss::lost_names;

/// The verdict on an external edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outside {
    /// Adopted: bytes were added at the end, from this offset on.
    Grew { from: usize },
    /// Adopted: another version of the whole file.
    Replaced,
    /// Adopted: the file was deleted, and its class allows that.
    Removed,
    /// Not allowed; completes the sentence "`path` …". `line` is the first line that broke the
    /// rule.
    Flagged {
        what: Cow<'static, str>,
        line: Option<usize>,
    },
}

/// Prefixes of a flag on a state file: names vanished, or an older text is back.
const LOST: &str = "lost ";
const WENT_BACK: &str = "went back to ";

/// Whether a flag reports a loss in a state file, which a person may accept.
pub fn is_loss(what: &str) -> bool {
    what.starts_with(LOST) || what.starts_with(WENT_BACK)
}

/// Judges the bytes found (`None`: the file is deleted) against the last bytes in the journal.
/// `before` is `None` for an unknown file. `earlier` finds the commit after which the file held
/// these bytes; it is called only for state files.
pub fn judge_outside(
    class: Class,
    path: &str,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    earlier: &dyn Fn() -> Option<u64>,
) -> Outside {
    let flag = |what: &'static str, line| Outside::Flagged {
        what: what.into(),
        line,
    };
    match (before, after) {
        (_, None) => match class {
            Class::Overwrite | Class::Free => Outside::Removed,
            _ => flag("was removed outside Quipu", None),
        },
        // A new file is allowed in every class.
        (None, Some(after)) => match invalid_json(class, path, after) {
            Some(line) => flag("is not valid JSON", Some(line)),
            None => Outside::Replaced,
        },
        (Some(before), Some(after)) => match class {
            Class::Append => judge_append(before, after),
            Class::Sealed => flag(
                "is sealed, but was edited outside Quipu",
                changed_line(before, after),
            ),
            Class::Record => flag(
                "is a record, but was edited outside Quipu",
                changed_line(before, after),
            ),
            Class::Derived => flag(
                "is derived, but was edited outside Quipu",
                changed_line(before, after),
            ),
            Class::State => match invalid_json(class, path, after) {
                Some(line) => flag("is no longer valid JSON", Some(line)),
                None => judge_state(path, before, after, earlier),
            },
            Class::Overwrite | Class::Free => Outside::Replaced,
        },
    }
}

/// Values may change and names may be added. A name that vanished, or an earlier text, is the
/// result of `git stash`, `git checkout` or an old backup.
fn judge_state(
    path: &str,
    before: &[u8],
    after: &[u8],
    earlier: &dyn Fn() -> Option<u64>,
) -> Outside {
    let what = match (earlier(), lost_names(path, before, after)) {
        (None, None) => return Outside::Replaced,
        (Some(seq), None) => format!("{WENT_BACK}the text of commit @{seq} in an external edit"),
        (None, Some(names)) => format!("{LOST}{names} in an external edit"),
        (Some(seq), Some(names)) => {
            format!("{WENT_BACK}the text of commit @{seq} in an external edit, without {names}")
        }
    };
    Outside::Flagged {
        what: what.into(),
        line: None,
    }
}

/// Allows growth at the end, and a merge of two branches: new lines between old ones, with no old
/// line missing or changed.
fn judge_append(before: &[u8], after: &[u8]) -> Outside {
    if after.starts_with(before) {
        return Outside::Grew { from: before.len() };
    }
    let mut found = after.split_inclusive(|b| *b == b'\n').map(trim_line);
    for (number, line) in before
        .split_inclusive(|b| *b == b'\n')
        .map(trim_line)
        .enumerate()
    {
        // A line that is not UTF-8 may be repaired.
        if std::str::from_utf8(line).is_err() {
            continue;
        }
        if !found.by_ref().any(|candidate| candidate == line) {
            let what = "is append-only, but existing text was changed outside Quipu";
            return Outside::Flagged {
                what: what.into(),
                line: Some(number + 1),
            };
        }
    }
    Outside::Replaced
}

/// A last line that gained its newline counts as the same line.
fn trim_line(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

fn changed_line(before: &[u8], after: &[u8]) -> Option<usize> {
    let at = before
        .iter()
        .zip(after)
        .position(|(a, b)| a != b)
        .unwrap_or(before.len().min(after.len()));
    Some(before[..at].iter().filter(|b| **b == b'\n').count() + 1)
}

/// The line where a `state` file ending in `.json` stops being JSON. A value that cannot be compared
/// (`1e999`, half a surrogate pair, too many levels) is refused: names could vanish beside it.
fn invalid_json(class: Class, path: &str, bytes: &[u8]) -> Option<usize> {
    if class != Class::State || !path.ends_with(".json") {
        return None;
    }
    serde_json::from_slice::<serde_json::Value>(bytes)
        .err()
        .map(|e| e.line())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn judge(class: Class, path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Outside {
        judge_outside(class, path, before, after, &|| None)
    }

    #[test]
    fn a_state_file_that_lost_something_or_went_back_is_flagged() {
        let judge = |after: &str, earlier| {
            let before = Some(&br#"{"a":1,"b":2}"#[..]);
            match judge_outside(
                Class::State,
                "s.json",
                before,
                Some(after.as_bytes()),
                &|| earlier,
            ) {
                Outside::Flagged { what, .. } if is_loss(&what) => what.into_owned(),
                Outside::Replaced => "adopted".to_owned(),
                other => format!("{other:?}"),
            }
        };
        assert_eq!(judge(r#"{"a":3,"b":2,"c":1}"#, None), "adopted");
        assert_eq!(judge(r#"{"a":3}"#, None), "lost `b` in an external edit");
        assert_eq!(
            judge(r#"{"a":3,"b":2}"#, Some(7)),
            "went back to the text of commit @7 in an external edit"
        );
        assert_eq!(
            judge("{}", Some(7)),
            "went back to the text of commit @7 in an external edit, without `a`, `b`"
        );
    }

    #[test]
    fn append_files_may_grow_and_merge_but_not_change() {
        let judge = |before: &str, after: &str| {
            judge(
                Class::Append,
                "g.md",
                Some(before.as_bytes()),
                Some(after.as_bytes()),
            )
        };
        assert_eq!(judge("a\nb\n", "a\nb\nc\n"), Outside::Grew { from: 4 });
        assert_eq!(judge("a\nb\n", "a\nx\nb\ny\n"), Outside::Replaced);
        assert_eq!(judge("a\nb", "a\nx\nb\n"), Outside::Replaced);
        assert!(matches!(
            judge("a\nb\n", "a\nB\n"),
            Outside::Flagged { line: Some(2), .. }
        ));
        assert!(matches!(
            judge("a\nb\n", "b\na\n"),
            Outside::Flagged { line: Some(2), .. }
        ));
        assert!(matches!(
            judge("a\nb\n", "a\n"),
            Outside::Flagged { line: Some(2), .. }
        ));
    }

    #[test]
    fn a_line_of_an_append_file_that_is_no_text_may_be_repaired() {
        let judge =
            |after: &[u8]| judge(Class::Append, "g.md", Some(b"a\nb\xff\nc\n"), Some(after));
        assert_eq!(judge(b"a\nb\nc\n"), Outside::Replaced);
        assert_eq!(judge(b"a\nc\nd\n"), Outside::Replaced);
        assert!(matches!(
            judge(b"a\nb\n"),
            Outside::Flagged { line: Some(3), .. }
        ));
    }

    #[test]
    fn sealed_files_and_records_may_not_be_edited() {
        for class in [Class::Sealed, Class::Record, Class::Derived] {
            assert!(matches!(
                judge(class, "x", Some(b"a\nb"), Some(b"a\nc")),
                Outside::Flagged { line: Some(2), .. }
            ));
            assert!(matches!(
                judge(class, "x", Some(b"a"), None),
                Outside::Flagged { .. }
            ));
        }
    }

    #[test]
    fn a_state_file_must_stay_json() {
        assert_eq!(
            judge(Class::State, "s.json", Some(b"{}"), Some(b"{\"a\":1}")),
            Outside::Replaced
        );
        assert!(matches!(
            judge(Class::State, "s.json", Some(b"{}"), Some(b"{\n\"a\":}")),
            Outside::Flagged { line: Some(2), .. }
        ));
        let deep = format!("{}{}", "[".repeat(130), "]".repeat(130));
        for after in [r#"{"x":1e999}"#, r#"{"x":"\ud800"}"#, &deep] {
            let judged = judge(
                Class::State,
                "s.json",
                Some(br#"{"a":1}"#),
                Some(after.as_bytes()),
            );
            assert!(matches!(judged, Outside::Flagged { .. }), "{after}");
        }
        assert_eq!(
            judge(Class::State, "world.md", Some(b"a"), Some(b"{")),
            Outside::Replaced
        );
    }

    proptest! {
        #[test]
        fn adopted_appends_keep_every_old_line(before in "([abc]{0,2}\n){0,6}", after in "([abc]{0,2}\n){0,8}") {
            if let Outside::Grew { .. } | Outside::Replaced = judge(Class::Append, "x", Some(before.as_bytes()), Some(after.as_bytes())) {
                let mut rest = after.lines();
                for line in before.lines() {
                    prop_assert!(rest.any(|l| l == line));
                }
            }
        }
    }
}
