//! Fuzzes the Markdown of memory files: sections, links, keyed lines, markers, merges.

use proptest::prelude::*;
use quipu_contract::{facts, merge_keyed};
use quipu_testkit::mutated;
use quipu_text::{Document, count_words, first_sentence, marker, passages_with};

const TEXTS: &[&str] = &[
    "---\ntitle: A\ntags: [x, y]\n---\n\n# One\n\nText with [a link](b.md#two), [[wiki|x]] and `code`.\n\n## Two {#two}\n\n- [ ] task → c.md\n\n<!-- DONE -->\n",
    "# 世界\n\n## 港口\n\n- **灯塔:** 已修 [→ history.md#灯塔]\n- 船长：老裘（因 2026-11-01）\n\n| 键 | 值 |\n|---|---|\n| a | b |\n",
    include_str!("../../../../profiles/relay/templates/en/PROJECT.md"),
];

proptest! {
    #[test]
    fn any_markdown_is_taken_apart_and_put_together_again(text in mutated(TEXTS)) {
        let document = Document::parse(&text);
        for section in document.sections() {
            prop_assert!(text.get(section.range.clone()).is_some(), "{text:?}");
            let _ = (document.first_sentence(section), document.heading_path(section));
        }
        let _ = (document.links().len(), document.keyed_lines().len(), document.front_matter().is_some());
        let _ = (marker(&text), count_words(&text), first_sentence(&text), passages_with(&text, "❌"));
    }

    #[test]
    fn a_keyed_merge_with_itself_changes_nothing(text in mutated(TEXTS), other in mutated(TEXTS)) {
        prop_assert_eq!(merge_keyed(&text, &text, &text, "2026-11-17"), text.clone());
        prop_assert_eq!(merge_keyed(&text, &text, &other, "2026-11-17"), other.clone());
        let merged = merge_keyed("", &text, &other, "2026-11-17");
        let _ = facts(&merged);
    }
}
