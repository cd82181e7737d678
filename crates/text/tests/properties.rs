//! Properties that hold for any text: parsing is total, ranges are sound, edits keep every other
//! byte.

#![allow(clippy::unwrap_used)]

use std::ops::Range;

use proptest::prelude::*;
use quipu_text::{Counter, Document, Place, Placed, first_sentence, marker};

/// Fragments that meet in unlucky ways when joined.
fn markdown() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        "#{1,7} ?[a-c中文 *`\\[\\]]{0,8}\n".boxed(),
        Just("---\n".to_owned()).boxed(),
        Just("===\n".to_owned()).boxed(),
        Just("```\n".to_owned()).boxed(),
        Just("~~~ x\r\n".to_owned()).boxed(),
        Just("<a id=\"x\"></a>\n".to_owned()).boxed(),
        Just("<!-- DONE -->\n".to_owned()).boxed(),
        Just("<!--".to_owned()).boxed(),
        Just("\u{feff}".to_owned()).boxed(),
        Just("\r".to_owned()).boxed(),
        Just("\r\n".to_owned()).boxed(),
        Just("\n\n".to_owned()).boxed(),
        Just("> ".to_owned()).boxed(),
        Just("    ".to_owned()).boxed(),
        Just("\t".to_owned()).boxed(),
        Just("- [x] ~~a~~ b → c.md#d\n".to_owned()).boxed(),
        Just("1. **Key:** value\n".to_owned()).boxed(),
        Just("  - 键：值 [→ a.md#乙]\n".to_owned()).boxed(),
        Just("[[w|x]] [arc] [⊣ p#q] [l](m.md#n) [r]\n".to_owned()).boxed(),
        Just("[r]: s.md\n".to_owned()).boxed(),
        Just("![i](j.png)".to_owned()).boxed(),
        Just("| a | b |\n|---|---|\n| c |\n| `d|e` | f | g |\n".to_owned()).boxed(),
        Just("a: 1\n".to_owned()).boxed(),
        Just("+++\n".to_owned()).boxed(),
        Just("[^1]: note\n".to_owned()).boxed(),
        "[a-z中。！“” \\[\\]()`*_→⊣#|:\\\\]{0,6}".boxed(),
        "\\PC{0,3}".boxed(),
    ];
    prop::collection::vec(fragment, 0..14).prop_map(|parts| parts.concat())
}

fn sound(text: &str, range: &Range<usize>) {
    assert!(
        text.get(range.clone()).is_some(),
        "{range:?} is not a range of {text:?}"
    );
}

fn ordered<T: Placed>(text: &str, placed: &[T]) {
    for one in placed {
        sound(text, one.range());
    }
    for two in placed.windows(2) {
        assert!(two[0].range().start <= two[1].range().start, "{text:?}");
    }
}

fn check_sections(doc: &Document<'_>) {
    let text = doc.text();
    let sections = doc.sections();
    assert!(!sections.is_empty());
    for (nth, section) in sections.iter().enumerate() {
        assert_eq!(section.id.0, nth);
        for range in [&section.range, &section.heading, &section.body] {
            sound(text, range);
        }
        assert!(section.range.start <= section.heading.start);
        assert_eq!(section.heading.end, section.body.start);
        assert!(section.body.end <= section.range.end);
        let before = &text[..section.heading.start];
        assert_eq!(section.line, 1 + before.matches('\n').count(), "{text:?}");
        if let Some(next) = sections.get(nth + 1) {
            assert_eq!(section.body.end, next.range.start, "bodies meet: {text:?}");
        } else {
            assert_eq!(section.body.end, text.len());
        }
        let inner = section.parent.map(|parent| doc.section(parent));
        if let Some(parent) = inner {
            assert!(parent.level < section.level);
            assert!(
                parent.range.start < section.range.start && section.range.end <= parent.range.end
            );
        }
        // The next section that is not deeper starts where this one ends.
        let after = sections[nth + 1..]
            .iter()
            .find(|other| other.level <= section.level);
        if section.level > 0 {
            assert_eq!(
                section.range.end,
                after.map_or(text.len(), |other| other.range.start)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn parsing_is_total_and_ranges_are_sound(text in prop_oneof![markdown(), any::<String>()]) {
        let doc = Document::parse(&text);
        check_sections(&doc);
        ordered(&text, doc.items());
        ordered(&text, doc.tables());
        ordered(&text, doc.keyed_lines());
        ordered(&text, doc.links());
        ordered(&text, doc.level_tags());
        for item in doc.items() {
            sound(&text, &item.content);
            prop_assert!(item.range.start <= item.content.start && item.content.end <= item.range.end);
        }
        for row in doc.rows_in(&(0..text.len())) {
            let table = &doc.tables()[row.table];
            prop_assert!(table.range.start < row.range.start && row.range.end <= table.range.end);
            prop_assert_eq!(row.cells.len(), table.header.len());
            row.cells.iter().for_each(|cell| sound(&text, &cell.range));
        }
        for link in doc.links() {
            sound(&text, &link.target);
            let line = doc.lines().range(link.line, text.len()).unwrap();
            prop_assert!(line.contains(&link.range.start));
            prop_assert_eq!(text[line.start..link.range.start].chars().count() + 1, link.column);
        }
        for line in doc.keyed_lines() {
            sound(&text, &line.value);
            prop_assert_eq!(&text[line.key_range.clone()], line.key.as_str());
        }
        if let Some(front) = doc.front_matter() {
            sound(&text, &front.range);
        }
        for section in doc.sections() {
            if let Some(sentence) = doc.first_sentence(section) {
                prop_assert!(!sentence.trim().is_empty());
            }
            if !section.slug.is_empty() {
                prop_assert!(doc.find(&section.slug).is_ok(), "{}", section.slug);
            }
        }
    }

    #[test]
    fn edits_keep_every_other_byte(text in markdown(), nth in any::<prop::sample::Index>(), new in "[a-z中 \n-]{0,12}") {
        let doc = Document::parse(&text);
        let section = &doc.sections()[nth.index(doc.sections().len())];
        let plans = [
            Some((doc.plan_replace_body(section, &new), doc.replace_body(section, &new))),
            Some((doc.plan_append_entry(section, &new), doc.append_entry(section, &new))),
            doc.plan_set_keyed(section, "Key", &new).ok().map(|plan| (plan, doc.set_keyed(section, "Key", &new))),
        ];
        for (plan, edited) in plans.into_iter().flatten() {
            sound(&text, &plan.range);
            prop_assert!(section.body.start <= plan.range.start && plan.range.end <= section.body.end);
            if let Ok(edited) = edited {
                prop_assert!(edited.starts_with(&text[..plan.range.start]));
                prop_assert!(edited.ends_with(&text[plan.range.end..]));
                prop_assert_eq!(edited.len(), text.len() - plan.range.len() + plan.text.len());
                let before = marker(&text).map(|marker| marker.name);
                if before.is_some() && !new.trim().is_empty() {
                    prop_assert_eq!(marker(&edited).map(|marker| marker.name), before);
                }
            }
        }
        for place in [Place::Before(section.id), Place::After(section.id), Place::End] {
            let Ok(edited) = doc.insert_section(place, 2, "New", &new) else { continue };
            let same = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            let head = same(&text, &edited);
            let reversed = |s: &str| s.chars().rev().collect::<String>();
            let tail = same(&reversed(&text), &reversed(&edited));
            prop_assert!(head + tail >= text.len(), "{text:?} became {edited:?}");
        }
    }

    #[test]
    fn a_value_that_was_set_is_read_back(value in "[a-z中][a-z中 ]{0,10}[a-z中]") {
        let text = "# A\n\n- **Other:** x\n\n## B\n";
        let doc = Document::parse(text);
        let edited = doc.set_keyed(&doc.sections()[0], "Key", &value).unwrap();
        let read = Document::parse(&edited);
        let line = read.keyed_in(&read.sections()[0].body).iter().find(|line| line.key == "Key").unwrap();
        prop_assert_eq!(read.slice(&line.value), value.as_str());
    }

    #[test]
    fn small_readers_are_total(text in prop_oneof![markdown(), any::<String>()]) {
        prop_assert!(text.trim().starts_with(first_sentence(&text)));
        if let Some(found) = marker(&text) {
            prop_assert!(text[found.range()].starts_with("<!--"));
            prop_assert_eq!(text[found.end..].trim(), "");
        }
        for counter in Counter::ALL {
            let count = counter.count(&text).0;
            prop_assert_eq!(count == 0, text.is_empty());
        }
        prop_assert!(Counter::O200k.count(&text).0 <= text.len() as u64);
    }
}

/// Each would take minutes if any step were quadratic.
#[test]
fn huge_inputs_are_linear() {
    for unit in [
        "# a\n",
        "[→ [",
        "- a\n",
        "a: b\n",
        "[x](y.md) ",
        "> ",
        "| a ",
        "`",
        "*a_",
        "<!--",
        "\\[",
        "[[a",
        "<a id=x>\n",
        "{#a",
        "a. ",
    ] {
        let text = unit.repeat(40_000 / unit.len() * 10);
        let doc = Document::parse(&text);
        assert!(doc.sections().len() <= text.len());
        assert_eq!(marker(&text), None);
        let _ = doc.first_sentence(&doc.sections()[0]);
    }
}
