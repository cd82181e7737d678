//! Merges two branches of one file, by its class.
//!
//! An append file keeps every entry of both sides. A JSON state file merges key by key, and its
//! lists by item id; a shared world merges by section and keyed line. Any other file is merged by
//! lines. If both sides changed the same value differently, the merge does not guess: the conflict
//! is left to a person.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};
use similar::TextMerge;

use crate::class::Class;
use crate::form::Form;
use crate::keyed::merge_keyed;

/// The result of a three-way merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub text: String,
    /// The values that both sides changed differently.
    pub conflicts: Vec<String>,
}

/// The settings of a merge.
#[derive(Debug, Clone, Copy)]
pub struct Way<'w> {
    pub class: Class,
    pub form: Option<Form>,
    pub path: &'w str,
    /// The time that a section's history records for the older of two values.
    pub now: &'w str,
    pub theirs_is_newer: bool,
}

/// Merges two branches that began at `base`.
pub fn merge_branches(way: Way<'_>, base: &str, ours: &str, theirs: &str) -> Merged {
    let Way {
        class,
        form,
        path,
        now,
        theirs_is_newer,
    } = way;
    match class {
        Class::State if form == Some(Form::World) => {
            let (newer, older) = if theirs_is_newer {
                (theirs, ours)
            } else {
                (ours, theirs)
            };
            Merged {
                text: merge_keyed(base, newer, older, now),
                conflicts: Vec::new(),
            }
        }
        Class::Append => Merged {
            text: merge_append(base, ours, theirs),
            conflicts: Vec::new(),
        },
        Class::State if path.ends_with(".json") => {
            merge_json(base, ours, theirs).unwrap_or_else(|| merge_lines(base, ours, theirs))
        }
        _ => merge_lines(base, ours, theirs),
    }
}

/// Returns all of ours, then the lines only in theirs. Both sides only appended, so nothing is
/// lost.
fn merge_append(base: &str, ours: &str, theirs: &str) -> String {
    if let (Some(our_tail), Some(their_tail)) = (ours.strip_prefix(base), theirs.strip_prefix(base))
    {
        if our_tail == their_tail || their_tail.is_empty() {
            return ours.to_owned();
        }
        if our_tail.is_empty() {
            return theirs.to_owned();
        }
        return format!("{}{their_tail}", with_newline(ours));
    }
    // One side was itself merged before: keeps the order of ours and inserts their lines at their
    // places.
    let merge = TextMerge::from_lines(base, ours, theirs);
    let mut text = String::new();
    for region in merge.regions() {
        let lines = |range: std::ops::Range<usize>,
                     line: &dyn Fn(usize) -> Option<String>|
         -> Vec<String> { range.filter_map(line).collect() };
        let our = lines(region.ours_range(), &|i| {
            merge.ours_line(i).map(str::to_owned)
        });
        let their = lines(region.theirs_range(), &|i| {
            merge.theirs_line(i).map(str::to_owned)
        });
        let old = lines(region.base_range(), &|i| {
            merge.base_line(i).map(str::to_owned)
        });
        let known: BTreeSet<&String> = our.iter().chain(&old).collect();
        for line in our
            .iter()
            .chain(their.iter().filter(|l| !known.contains(l)))
        {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(line);
        }
    }
    text
}

fn with_newline(text: &str) -> std::borrow::Cow<'_, str> {
    if text.is_empty() || text.ends_with('\n') {
        text.into()
    } else {
        format!("{text}\n").into()
    }
}

fn merge_lines(base: &str, ours: &str, theirs: &str) -> Merged {
    let mut merge = TextMerge::from_lines(base, ours, theirs);
    merge.labels("base", "ours", "theirs");
    let conflicts = merge
        .conflicts()
        .map(|c| format!("line {}", c.ours_range().start + 1))
        .collect();
    let mut bytes = Vec::new();
    merge
        .to_writer(&mut bytes)
        .expect("writing to memory cannot fail");
    Merged {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        conflicts,
    }
}

fn merge_json(base: &str, ours: &str, theirs: &str) -> Option<Merged> {
    let read = |text: &str| {
        if text.trim().is_empty() {
            Some(Value::Null)
        } else {
            serde_json::from_str(text).ok()
        }
    };
    let (base, ours, theirs) = (read(base)?, read(ours)?, read(theirs)?);
    let mut conflicts = Vec::new();
    let merged = merge_values(Some(&base), &ours, &theirs, "", &mut conflicts);
    let mut text = serde_json::to_string_pretty(&merged).expect("a JSON value can be written");
    text.push('\n');
    Some(Merged { text, conflicts })
}

fn merge_values(
    base: Option<&Value>,
    ours: &Value,
    theirs: &Value,
    at: &str,
    conflicts: &mut Vec<String>,
) -> Value {
    if ours == theirs || base == Some(theirs) {
        return ours.clone();
    }
    if base == Some(ours) {
        return theirs.clone();
    }
    match (ours, theirs) {
        (Value::Object(our), Value::Object(their)) => {
            let empty = Map::new();
            let old = base.and_then(Value::as_object).unwrap_or(&empty);
            Value::Object(merge_objects(old, our, their, at, conflicts))
        }
        (Value::Array(our), Value::Array(their)) => {
            let empty = Vec::new();
            let old = base.and_then(Value::as_array).unwrap_or(&empty);
            Value::Array(merge_lists(old, our, their, at, conflicts))
        }
        _ => {
            if let Some(both) = settle(base, ours, theirs, at) {
                return both;
            }
            conflicts.push(if at.is_empty() {
                "/".into()
            } else {
                at.to_owned()
            });
            ours.clone()
        }
    }
}

/// Resolves changes that do not contradict: counters add up, and the later of two times wins.
fn settle(base: Option<&Value>, ours: &Value, theirs: &Value, at: &str) -> Option<Value> {
    let key = at.rsplit('/').next().unwrap_or_default();
    if key.starts_with("total_") {
        let (base, ours, theirs) = (
            base.and_then(Value::as_u64).unwrap_or(0),
            ours.as_u64()?,
            theirs.as_u64()?,
        );
        return Some((ours + theirs).checked_sub(base)?.into());
    }
    // The journal records the last session, so this field is not worth a conflict.
    if key == "last_session" {
        return Some(ours.clone());
    }
    let is_time = |text: &str| {
        text.len() >= 20 && text.is_ascii() && text.as_bytes()[10] == b'T' && text.ends_with('Z')
    };
    let (our, their) = (
        ours.as_str().filter(|t| is_time(t))?,
        theirs.as_str().filter(|t| is_time(t))?,
    );
    let told = key.starts_with("last_") || matches!(key, "updated" | "updated_at");
    told.then(|| {
        if their > our {
            theirs.clone()
        } else {
            ours.clone()
        }
    })
}

fn merge_objects(
    old: &Map<String, Value>,
    our: &Map<String, Value>,
    their: &Map<String, Value>,
    at: &str,
    conflicts: &mut Vec<String>,
) -> Map<String, Value> {
    let mut merged = Map::new();
    for key in our
        .keys()
        .chain(their.keys().filter(|k| !our.contains_key(*k)))
    {
        let place = format!("{at}/{key}");
        match (our.get(key), their.get(key), old.get(key)) {
            (Some(o), Some(t), base) => {
                merged.insert(key.clone(), merge_values(base, o, t, &place, conflicts));
            }
            // One side removed a value. If the other side changed it, the change is kept and
            // reported.
            (Some(kept), None, Some(base)) | (None, Some(kept), Some(base)) => {
                if kept != base {
                    conflicts.push(place);
                    merged.insert(key.clone(), kept.clone());
                }
            }
            (Some(new), None, None) | (None, Some(new), None) => {
                merged.insert(key.clone(), new.clone());
            }
            (None, None, _) => {}
        }
    }
    merged
}

/// Merges items by their `id`, and others by their value. If two items have one name, the first
/// counts.
fn merge_lists(
    old: &[Value],
    our: &[Value],
    their: &[Value],
    at: &str,
    conflicts: &mut Vec<String>,
) -> Vec<Value> {
    let names = |list: &[Value]| -> Vec<String> { list.iter().map(item_name).collect() };
    let (old_names, our_names, their_names) = (names(old), names(our), names(their));
    let (old, ours, theirs) = (
        first_of(&old_names, old),
        first_of(&our_names, our),
        first_of(&their_names, their),
    );
    let mut merged = Vec::new();
    for name in our_names.iter().chain(
        their_names
            .iter()
            .filter(|name| !ours.contains_key(name.as_str())),
    ) {
        match (
            ours.get(name.as_str()),
            theirs.get(name.as_str()),
            old.get(name.as_str()),
        ) {
            (Some(o), Some(t), base) => merged.push(merge_values(
                base.copied(),
                o,
                t,
                &format!("{at}/{name}"),
                conflicts,
            )),
            (Some(kept), None, Some(base)) | (None, Some(kept), Some(base)) => {
                if kept != base {
                    conflicts.push(format!("{at}/{name}"));
                    merged.push((*kept).clone());
                }
            }
            (Some(new), None, None) | (None, Some(new), None) => merged.push((*new).clone()),
            (None, None, _) => {}
        }
    }
    merged
}

fn item_name(item: &Value) -> String {
    item.get("id")
        .map_or_else(|| item.to_string(), ToString::to_string)
}

/// Returns the first item of each name.
fn first_of<'v>(names: &'v [String], items: &'v [Value]) -> HashMap<&'v str, &'v Value> {
    let mut first = HashMap::with_capacity(items.len());
    for (name, item) in names.iter().zip(items) {
        first.entry(name.as_str()).or_insert(item);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outside, judge_outside};
    use proptest::prelude::*;

    fn way(class: Class, path: &str) -> Way<'_> {
        Way {
            class,
            form: None,
            path,
            now: "",
            theirs_is_newer: false,
        }
    }

    #[test]
    fn append_files_keep_both_sides() {
        let merged = merge_branches(way(Class::Append, "g.md"), "a\n", "a\nb\n", "a\nc\n");
        assert_eq!(
            (merged.text.as_str(), merged.conflicts.len()),
            ("a\nb\nc\n", 0)
        );
        assert_eq!(
            merge_branches(way(Class::Append, "g.md"), "a", "a\nb", "a\nc\n").text,
            "a\nb\n\nc\n"
        );
        assert_eq!(
            merge_branches(way(Class::Append, "g.md"), "a\n", "a\nb\n", "a\nb\n").text,
            "a\nb\n"
        );
    }

    #[test]
    fn json_merges_by_key_and_by_id() {
        let base = r#"{"phase":"planning","todos":[{"id":"1","status":"pending"}],"x":1}"#;
        let ours = r#"{"phase":"testing","todos":[{"id":"1","status":"pending"},{"id":"2","status":"pending"}],"x":1}"#;
        let theirs = r#"{"phase":"planning","todos":[{"id":"1","status":"completed"},{"id":"3","status":"pending"}],"x":1,"note":"n"}"#;
        let merged = merge_branches(way(Class::State, "s.json"), base, ours, theirs);
        assert_eq!(merged.conflicts, Vec::<String>::new());
        let value: Value = serde_json::from_str(&merged.text).unwrap();
        assert_eq!(value["phase"], "testing");
        assert_eq!(value["note"], "n");
        let ids: Vec<_> = value["todos"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| (t["id"].as_str().unwrap(), t["status"].as_str().unwrap()))
            .collect();
        assert_eq!(
            ids,
            [("1", "completed"), ("2", "pending"), ("3", "pending")]
        );
    }

    /// With a comparison of every pair of items, each of these cases would take minutes.
    #[test]
    fn long_files_are_merged_in_linear_time() {
        const MANY: usize = 20_000;
        let list = |status: &str| -> String {
            let items: Vec<String> = (0..MANY)
                .map(|n| format!(r#"{{"id":"{n}","status":"{status}"}}"#))
                .collect();
            format!(r#"{{"todos":[{}]}}"#, items.join(","))
        };
        let merged = merge_branches(
            way(Class::State, "s.json"),
            &list("a"),
            &list("b"),
            &list("a"),
        );
        assert_eq!(
            (merged.conflicts.len(), merged.text.matches("\"b\"").count()),
            (0, MANY)
        );
        let lines = |first: &str| -> String { format!("{first}\n") + &"line\n".repeat(MANY) };
        let merged = merge_branches(
            way(Class::Append, "g.md"),
            &lines("a"),
            &lines("b"),
            &lines("c"),
        );
        assert_eq!(merged.text.lines().count(), MANY + 2);
    }

    #[test]
    fn a_key_changed_on_both_sides_is_a_conflict() {
        let merged = merge_branches(
            way(Class::State, "s.json"),
            r#"{"a":{"b":1}}"#,
            r#"{"a":{"b":2}}"#,
            r#"{"a":{"b":3}}"#,
        );
        assert_eq!(merged.conflicts, ["/a/b"]);
    }

    #[test]
    fn counts_add_up_and_the_later_time_holds() {
        let base = r#"{"metadata":{"total_created":2,"last_review":"2026-01-01T00:00:00Z"}}"#;
        let ours = r#"{"metadata":{"total_created":3,"last_review":"2026-01-03T00:00:00Z"}}"#;
        let theirs = r#"{"metadata":{"total_created":5,"last_review":"2026-01-02T00:00:00Z"}}"#;
        let merged = merge_branches(way(Class::State, "s.json"), base, ours, theirs);
        assert_eq!(merged.conflicts, Vec::<String>::new());
        let value: Value = serde_json::from_str(&merged.text).unwrap();
        assert_eq!(
            (
                value["metadata"]["total_created"].as_u64(),
                value["metadata"]["last_review"].as_str()
            ),
            (Some(6), Some("2026-01-03T00:00:00Z"))
        );
    }

    proptest! {
        #[test]
        fn no_entry_of_either_side_is_lost(base in "([abc]\n){0,4}", our in "([d-f]\n){0,4}", their in "([g-i]\n){0,4}") {
            let (ours, theirs) = (format!("{base}{our}"), format!("{base}{their}"));
            let merged = merge_branches(way(Class::Append, "g.md"), &base, &ours, &theirs);
            for side in [&ours, &theirs] {
                let judged = judge_outside(Class::Append, "g.md", Some(side.as_bytes()), Some(merged.text.as_bytes()), &|| None);
                prop_assert!(!matches!(judged, Outside::Flagged { .. }), "{merged:?}");
            }
        }
    }
}
