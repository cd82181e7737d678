//! Detects names that an external edit removed from a state file.
//!
//! Many actors edit a state file, and its values change all the time. Named entries (a key of an
//! object, an item with an `id`, a keyed line of Markdown in its section) do not disappear in
//! ordinary work. If one is missing, an older copy of the file was probably restored over it.

use serde_json::Value;

use crate::characters::quotable;
use crate::keyed::missing_facts;

/// Maximum number of names listed; the rest is counted.
const NAMED: usize = 3;

/// Returns the names that vanished between two texts of a state file, as a phrase; `None` if all
/// are there.
pub(crate) fn lost_names(path: &str, before: &[u8], after: &[u8]) -> Option<String> {
    let mut lost = Vec::new();
    if path.ends_with(".json") {
        if let (Ok(before), Ok(after)) = (
            serde_json::from_slice(before),
            serde_json::from_slice(after),
        ) {
            lose_values(&before, &after, "", &mut lost);
        }
    } else if let (Ok(before), Ok(after)) =
        (std::str::from_utf8(before), std::str::from_utf8(after))
    {
        let missing = missing_facts(before, after).into_iter();
        lost.extend(missing.map(|fact| {
            if fact.section.is_empty() {
                fact.key
            } else {
                format!("{}/{}", fact.section, fact.key)
            }
        }));
    }
    // A whole item is more informative than a field of another.
    lost.sort_by_key(|name| name.matches('/').count());
    let mut named = lost
        .iter()
        .take(NAMED)
        .map(|name| format!("`{}`", quotable(name)))
        .collect::<Vec<_>>()
        .join(", ");
    if lost.len() > NAMED {
        named.push_str(&format!(" and {} more", lost.len() - NAMED));
    }
    (!lost.is_empty()).then_some(named)
}

fn lose_values(before: &Value, after: &Value, at: &str, lost: &mut Vec<String>) {
    let below = |name: &str| {
        if at.is_empty() {
            name.to_owned()
        } else {
            format!("{at}/{name}")
        }
    };
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                match after.get(key) {
                    Some(now) => lose_values(value, now, &below(key), lost),
                    None => lost.push(below(key)),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for item in before {
                let Some(id) = item.get("id") else { continue };
                let name = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
                match after.iter().find(|other| other.get("id") == Some(id)) {
                    Some(now) => lose_values(item, now, &below(&name), lost),
                    None => lost.push(below(&name)),
                }
            }
        }
        // A value with named entries was replaced by another kind of value.
        (Value::Object(names), _) if !names.is_empty() => lost.push(if at.is_empty() {
            "/".into()
        } else {
            at.to_owned()
        }),
        (Value::Array(items), _) if items.iter().any(|item| item.get("id").is_some()) => {
            lost.push(if at.is_empty() {
                "/".into()
            } else {
                at.to_owned()
            });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(path: &str, before: &str, after: &str) -> Option<String> {
        lost_names(path, before.as_bytes(), after.as_bytes())
    }

    #[test]
    fn a_line_break_in_a_key_makes_no_line() {
        let lost = lost("s.json", r#"{"k\n\n## Now\n\n1. run this":1}"#, "{}");
        assert_eq!(lost.as_deref(), Some("`k\\n\\n## Now\\n\\n1. run this`"));
    }

    #[test]
    fn keys_and_items_with_an_id_are_missed_and_values_are_not() {
        let before = r#"{"phase":"plan","tags":["a","b"],"todos":[{"id":"1","s":"open"},{"id":2,"s":"open"}]}"#;
        for after in [
            r#"{"phase":"test","tags":[],"todos":[{"id":2,"s":"done"},{"id":"1","s":"open"}]}"#,
            r#"{"phase":null,"tags":["c"],"todos":[{"id":"0"},{"id":"1","s":""},{"id":2,"s":"open"}],"new":1}"#,
        ] {
            assert_eq!(lost("s.json", before, after), None, "{after}");
        }
        let after = r#"{"phase":"plan","todos":[{"id":"1"}]}"#;
        assert_eq!(
            lost("s.json", before, after).unwrap(),
            "`tags`, `todos/2`, `todos/1/s`"
        );
        assert_eq!(
            lost(
                "s.json",
                before,
                r#"{"phase":"plan","tags":0,"todos":null}"#
            )
            .unwrap(),
            "`todos`"
        );
        assert_eq!(lost("s.json", before, "[]").unwrap(), "`/`");
        let many = r#"{"a":1,"b":1,"c":1,"d":1,"e":1}"#;
        assert_eq!(
            lost("s.json", many, "{}").unwrap(),
            "`a`, `b`, `c` and 2 more"
        );
    }

    #[test]
    fn keyed_lines_are_missed_and_other_lines_are_not() {
        let before = "# World\n\n## Places\n\n- harbour: north\n- mill: east\n\nSome words.\n";
        assert_eq!(
            lost(
                "w.md",
                before,
                "# World\n\n## Places\n\n- mill: west\n- harbour: south\n"
            ),
            None
        );
        assert_eq!(
            lost("w.md", before, "# World\n\n## Places\n\n- harbour: north\n").unwrap(),
            "`Places/mill`"
        );
    }

    #[test]
    fn a_keyed_line_is_missed_in_its_own_section() {
        let before = "# People\n\n## Anna\n\n- age: 30\n- eyes: blue\n\n### History\n\n- eyes: grey (until ch01)\n\n## Otto\n\n- age: 50\n- eyes: green\n";
        let without_otto = &before[..before.find("## Otto").unwrap()];
        assert_eq!(
            lost("c.md", before, without_otto).unwrap(),
            "`Otto/age`, `Otto/eyes`"
        );
        let replaced = before.replace("## Otto", "## Mary");
        assert_eq!(
            lost("c.md", before, &replaced).unwrap(),
            "`Otto/age`, `Otto/eyes`"
        );
        let only_in_history = before.replace("- eyes: blue\n", "");
        assert_eq!(
            lost("c.md", before, &only_in_history).unwrap(),
            "`Anna/eyes`"
        );
        for after in [
            before.replace("# People", "# Figures"),
            before.replace("- age: 30\n- eyes: blue", "- Eyes: brown\n- age: 31"),
            format!("{before}\n## Mary\n\n- age: 7\n"),
            format!("{before}\n# Places\n\n- mill: east\n"),
            before.replace("### History\n\n- eyes: grey (until ch01)\n\n", ""),
        ] {
            assert_eq!(lost("c.md", before, &after), None, "{after}");
        }
    }

    #[test]
    fn sections_of_one_title_and_rows_of_one_key_are_told_apart() {
        let before = "## Anna\n\n### Body\n\n- age: 30\n\n## Otto\n\n### Body\n\n- age: 50\n";
        let without = before.replace("## Otto\n\n### Body\n\n- age: 50\n", "");
        assert_eq!(lost("c.md", before, &without).unwrap(), "`Body/age`");
        let table = "| Day | Event |\n|---|---|\n| 1 | dawn |\n| 1 | dusk |\n";
        let without = table.replace("| 1 | dusk |\n", "");
        assert_eq!(lost("t.md", table, &without).unwrap(), "`1`");
        let twice = format!("{table}| 1 | dusk |\n");
        assert_eq!(lost("t.md", &twice, table), None);
    }
}
