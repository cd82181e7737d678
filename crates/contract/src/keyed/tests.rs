//! Tests of keyed Markdown. The property tests check that a merge loses no value and that the newer
//! side wins.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::parse::{parse, render, without_time};
use super::*;

const WORLD: &str = "# World\n\n_Prose that is nobody's: kept._\n\n## Environment\n\n- python: 3.11\n- **tests**: make check\n  (about 40 s)\n\n| host | role |\n|---|---|\n| a1 | web |\n\n## Notes\n\nFree prose.\n\n```\n- key: in code\n```\n\n<!-- example\n## Not a section\n- python: 2\n-->\n";
const WORLD_ZH: &str =
    "# 世界状态\n\n## 环境\n\n- **语言**：Rust\n- 测试命令：make check\n\n## Agent 活动\n";
const T: &str = "2026-01-20T10:00:00Z";

#[test]
fn code_and_comments_end_where_markdown_ends_them() {
    let closed = [
        "````\n```\n````\n",
        "~~~\n```\n~~~\n",
        "``` a ``` b\n",
        "<!-- a\n-->\n",
        "    <!--\n",
        "\t```\n",
        "---\n\nText.\n",
        "---\na: b\n---\n",
    ];
    for text in closed {
        assert_eq!(open_at_end(text), None, "{text}");
        let facts = facts(&format!("{text}\n## S\n\n- key: value\n"));
        assert_eq!(facts.last().map(|f| f.key.as_str()), Some("key"), "{text}");
    }
    for (text, line, close) in [
        ("a\n\n````\n```\n", 3, "````"),
        ("~~~ x\n```\n", 1, "~~~"),
        ("a\n<!-- b\n", 2, "-->"),
    ] {
        assert_eq!(open_at_end(text), Some((line, close.to_owned())), "{text}");
    }
}

#[test]
fn facts_are_found_in_every_notation() {
    let found: Vec<_> = facts(WORLD)
        .into_iter()
        .map(|f| (f.section, f.key, f.value, f.line))
        .collect();
    let owned = |s: &str, k: &str, v: &str, l| (s.to_owned(), k.to_owned(), v.to_owned(), l);
    assert_eq!(
        found,
        [
            owned("Environment", "python", "3.11", 7),
            owned("Environment", "tests", "make check (about 40 s)", 8),
            owned("Environment", "a1", "web", 13)
        ]
    );
    assert_eq!(
        facts(WORLD_ZH)
            .iter()
            .map(|f| f.key.as_str())
            .collect::<Vec<_>>(),
        ["语言", "测试命令"]
    );
}

#[test]
fn a_fact_is_set_in_place_and_the_older_value_is_kept() {
    let (text, was) = set_fact(WORLD, None, &[], "Python", "3.12", T).unwrap();
    assert_eq!(was, Was::Older("3.11".into()));
    assert_eq!(
        text,
        WORLD.replace("python: 3.11", "python: 3.12").replace(
            "| web |\n\n",
            &format!("| web |\n\n### History\n\n- python: 3.11 (until {T})\n\n")
        )
    );
    let (again, was) = set_fact(&text, None, &[], "python", "3.13", T).unwrap();
    assert_eq!(was, Was::Older("3.12".into()));
    assert!(
        again.contains(&format!(
            "- python: 3.11 (until {T})\n- python: 3.12 (until {T})\n\n## Notes"
        )),
        "{again}"
    );
    assert_eq!(
        set_fact(&again, None, &[], "python", "3.13", T).unwrap(),
        (again.clone(), Was::Same)
    );
    let (rows, _) = set_fact(WORLD, None, &[], "a1", "db", T).unwrap();
    assert!(rows.contains("| a1 | db |"), "{rows}");
}

#[test]
fn a_new_fact_is_written_like_its_neighbours() {
    let (text, was) = set_fact(WORLD_ZH, Some("环境"), &[], "版本", "1.95", T).unwrap();
    assert_eq!(
        (text, was),
        (
            WORLD_ZH.replace("make check\n", "make check\n- 版本：1.95\n"),
            Was::New
        )
    );
    let (text, _) = set_fact(WORLD_ZH, Some("Agent 活动"), &[], "otto", "完成", T).unwrap();
    assert_eq!(text, format!("{WORLD_ZH}\n- otto: 完成\n"));
    let (text, _) = set_fact(WORLD_ZH, None, &[], "语言", "Go", T).unwrap();
    assert!(
        text.contains(&format!(
            "make check\n\n### 历史\n\n- 语言：Rust（至 {T}）\n\n## Agent"
        )),
        "{text}"
    );
    assert!(matches!(
        set_fact(WORLD, None, &["Facts"], "new", "x", T),
        Err(KeyedError::WhichSection { .. })
    ));
    assert!(set_fact(WORLD, None, &["Facts", "Notes"], "new", "x", T).is_ok());
    assert!(matches!(
        set_fact(WORLD, Some("None"), &[], "new", "x", T),
        Err(KeyedError::NoSection { .. })
    ));
    assert!(matches!(
        set_fact(WORLD, Some("Notes"), &[], "a: b", "x", T),
        Err(KeyedError::NoKey { .. })
    ));
    assert!(matches!(
        set_fact(WORLD, Some("Notes"), &[], "a", "x\ny", T),
        Err(KeyedError::NotOneLine { .. })
    ));
}

#[test]
fn notes_go_to_the_end_of_a_section_before_comments() {
    let text = add_note(WORLD, "notes", "seen twice").unwrap();
    assert_eq!(
        text,
        WORLD.replace("```\n\n<!--", "```\n\n- seen twice\n\n<!--")
    );
}

#[test]
fn both_sides_survive_and_the_newer_value_holds() {
    let base = WORLD;
    let ours = base
        .replace("python: 3.11", "python: 3.12")
        .replace("## Notes", "## New\n\n- ours: 1\n\n## Notes");
    let theirs = base
        .replace("python: 3.11\n", "python: 3.13\n- cache: on\n")
        .replace("| a1 | web |\n", "| a1 | web |\n| a2 | db |\n")
        .replace("Free prose.", "Free prose, fixed.");
    let merged = merge_keyed(base, &ours, &theirs, T);
    let expected = theirs.replace("python: 3.13", "python: 3.12").replace(
        "| a2 | db |\n\n",
        &format!(
            "| a2 | db |\n\n### History\n\n- python: 3.13 (until {T})\n\n## New\n\n- ours: 1\n\n"
        ),
    );
    assert_eq!(merged, expected);
}

#[test]
fn what_one_side_removed_goes_and_what_the_other_changed_stays() {
    let base = "## A\n\n- a: 1\n- b: 2\n- c: 3\n\n## B\n\n- x: 1\n";
    let ours = "## A\n\n- c: 3\n- d: 4\n";
    let theirs = "## A\n\n- a: 1\n- b: 9\n- c: 3\n\n## B\n\n- x: 2\n";
    assert_eq!(
        merge_keyed(base, ours, theirs, T),
        "## A\n\n- b: 9\n- c: 3\n- d: 4\n\n## B\n\n- x: 2\n"
    );
}

#[test]
fn nested_lines_of_both_are_kept() {
    let base = "## A\n\n- hosts: two\n  - a1\n";
    let merged = merge_keyed(
        base,
        &base.replace("  - a1\n", "  - a1\n  - a2\n"),
        &base.replace("  - a1\n", "  - a1\n  - a3\n"),
        T,
    );
    assert_eq!(merged, "## A\n\n- hosts: two\n  - a1\n  - a3\n  - a2\n");
}

#[test]
fn line_ends_and_an_open_last_line_are_respected() {
    let base = "## A\r\n\r\n- a: 1";
    let merged = merge_keyed(
        base,
        "## A\r\n\r\n- a: 1\r\n- b: 2",
        "## A\r\n\r\n- a: 1\r\n- c: 3",
        T,
    );
    assert_eq!(
        merged
            .replace("\r\n", "\n")
            .lines()
            .filter(|l| l.starts_with('-'))
            .collect::<BTreeSet<_>>()
            .len(),
        3,
        "{merged:?}"
    );
    assert_eq!(
        set_fact(base, None, &[], "a", "2", T).unwrap().0,
        format!("## A\r\n\r\n- a: 2\r\n\r\n### History\r\n\r\n- a: 1 (until {T})\r\n")
    );
}

/// Generates a world of three sections with few keys, so that both sides often change the same key.
fn world() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => ("[a-d]", "[1-4]").prop_map(|(k, v)| format!("- {k}: {v}\n")),
        1 => ("[e-f]", "[1-3]").prop_map(|(k, v)| format!("- **键{k}**：{v}\n")),
        1 => "[p-s]".prop_map(|w| format!("\nprose {w}\n\n")),
        1 => "[t-u]".prop_map(|w| format!("- item {w}\n")),
    ];
    let section = proptest::collection::vec(line, 0..5);
    proptest::collection::vec(section, 3).prop_map(|sections| {
        let mut text = String::from("# World\n\n");
        for (title, lines) in ["One", "Two", "三"].iter().zip(sections) {
            let mut keys = BTreeSet::new();
            text.push_str(&format!("## {title}\n\n"));
            for line in lines {
                // Each key occurs once per section, as in files written by people.
                if keys.insert(
                    line.split([':', '：'])
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                ) {
                    text.push_str(&line);
                }
            }
            text.push('\n');
        }
        text
    })
}

type Told = BTreeMap<(String, String), BTreeSet<String>>;

fn current(text: &str) -> BTreeMap<(String, String), String> {
    facts(text)
        .into_iter()
        .filter(|f| !f.older)
        .map(|f| ((f.section, f.key), f.value))
        .collect()
}

/// Collects every value of each key, current or in the history.
fn told(text: &str) -> Told {
    let mut told = Told::new();
    for fact in facts(text) {
        told.entry((fact.section, fact.key))
            .or_default()
            .insert(without_time(&fact.value).to_owned());
    }
    told
}

/// Collects the lines without a key, each with its section.
fn prose(text: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut found = BTreeSet::new();
    for line in text.lines() {
        if line.starts_with('#') {
            section = line;
        } else if line.starts_with("prose") || line.starts_with("- item") {
            found.insert(format!("{section} {line}"));
        }
    }
    found
}

proptest! {
    #[test]
    fn every_byte_is_accounted_for(text in "(#{1,3} [a-c]\n|- k: v\n|  more\n|\\| a \\| b \\|\n|\\|---\\|---\\|\n|```\n|<!-- x\n|-->\n|\n|text\r\n|键：值\n|---\n){0,14}[a-z]{0,3}") {
        prop_assert_eq!(render(&parse(&text)), text);
    }

    #[test]
    fn nothing_is_lost(base in world(), ours in world(), theirs in world()) {
        let merged = merge_keyed(&base, &ours, &theirs, T);
        let (was, after, now) = (current(&base), told(&merged), current(&merged));
        for (side, other) in [(&ours, &theirs), (&theirs, &ours)] {
            for (key, value) in current(side) {
                let kept = after.get(&key).is_some_and(|values| values.contains(&value));
                // A value may be missing only if the other side removed or replaced it and this
                // side left it unchanged.
                let let_go = was.get(&key) == Some(&value) && current(other).get(&key) != Some(&value);
                prop_assert!(kept || let_go, "{key:?}: {value} of {side}\nis lost in\n{merged}");
            }
            for line in prose(side) {
                let removed = prose(&base).contains(&line) && !prose(other).contains(&line);
                prop_assert!(prose(&merged).contains(&line) || removed, "{line} is lost in\n{merged}");
            }
        }
        // The newer side wins for every key it changed.
        for (key, value) in current(&ours) {
            if was.get(&key) != Some(&value) {
                prop_assert_eq!(now.get(&key), Some(&value), "{}", merged);
            }
        }
    }

    #[test]
    fn either_order_tells_the_same(base in world(), a in world(), b in world()) {
        let (ab, ba) = (merge_keyed(&base, &a, &b, T), merge_keyed(&base, &b, &a, T));
        prop_assert_eq!(current(&ab).into_keys().collect::<Vec<_>>(), current(&ba).into_keys().collect::<Vec<_>>());
        prop_assert_eq!(told(&ab), told(&ba));
        prop_assert_eq!(prose(&ab), prose(&ba));
        let (was, of_a, of_b) = (current(&base), current(&a), current(&b));
        for (key, value) in current(&ab) {
            let clash = of_a.get(&key) != of_b.get(&key) && of_a.get(&key) != was.get(&key) && of_b.get(&key) != was.get(&key);
            prop_assert!(clash || current(&ba)[&key] == value);
        }
    }

    #[test]
    fn merging_again_changes_nothing(base in world(), ours in world(), theirs in world()) {
        let merged = merge_keyed(&base, &ours, &theirs, T);
        prop_assert_eq!(merge_keyed(&base, &ours, &merged, T), merged.clone());
        prop_assert_eq!(merge_keyed(&base, &base, &theirs, T), theirs.clone());
        prop_assert_eq!(merge_keyed(&base, &ours, &base, T), ours.clone());
        prop_assert_eq!(merge_keyed(&base, &ours, &ours, T), ours);
    }
}
