//! The objects that somebody holds: the value of `holds: …`.
//!
//! A value lists objects and may say of each from whom, where or why: `the brass key, from Ines`,
//! `铜钥匙，得自沈砚`. Such a clause names no object.

use crate::keys::gist;
use crate::memory::{Memory, listed};
use crate::state::Kind;
use crate::words::has_han;

/// First words of a clause that says from whom, where, when or why.
const REMARKS: &[&str] = &[
    "from",
    "of",
    "with",
    "without",
    "by",
    "in",
    "inside",
    "into",
    "at",
    "on",
    "under",
    "beneath",
    "behind",
    "beside",
    "near",
    "around",
    "between",
    "since",
    "after",
    "before",
    "until",
    "when",
    "while",
    "because",
    "as",
    "for",
    "to",
    "which",
    "who",
    "whose",
    "that",
    "where",
    "taken",
    "given",
    "got",
    "received",
    "bought",
    "borrowed",
    "stolen",
    "found",
    "won",
    "lent",
    "inherited",
    "hidden",
    "kept",
    "sewn",
    "tied",
    "hanging",
    "once",
    "now",
    "not",
    "but",
    "though",
    "still",
    "formerly",
];
/// Beginnings of such a clause.
const REMARKS_HAN: &[&str] = &[
    "从", "在", "由", "因", "为了", "是", "原属", "原是", "原本", "属于", "本是", "已", "尚", "仍",
    "只剩", "跟",
];
/// The first and the second character of such a clause: `得自`, `藏在`, `缝进`, `存于`, `交给`.
const VERBS_HAN: &str =
    "得来取借买偷夺拾出拿抢藏放挂系缝揣收锁埋夹压留存戴别插贴绑裹塞装交送还传寄";
const AFTER_VERB_HAN: &str = "自在进于给到";

/// Returns the objects that the value of `holds:` lists, without what it says about them.
pub(crate) fn things_of(value: &str) -> Vec<String> {
    let clauses = value.split([',', '，', ';', '；', '。']);
    let clauses = clauses.map(|clause| {
        let clause = clause.trim();
        clause.strip_prefix("and ").unwrap_or(clause).trim()
    });
    clauses
        .filter(|clause| !is_remark(clause))
        .flat_map(listed)
        .collect()
}

fn is_remark(clause: &str) -> bool {
    let lower = clause.to_lowercase();
    let first = lower.split_whitespace().next().unwrap_or_default();
    let mut chars = clause.chars();
    let is_verb = chars.next().is_some_and(|c| VERBS_HAN.contains(c));
    let is_placed = chars.next().is_some_and(|c| AFTER_VERB_HAN.contains(c));
    REMARKS.contains(&first)
        || lower.ends_with("'s")
        || lower.ends_with("’s")
        || REMARKS_HAN.iter().any(|sign| clause.starts_with(sign))
        || is_verb && is_placed
}

/// Returns the certain objects that a fact puts into a hand, each with its holder.
pub(crate) fn held_objects(
    memory: &Memory,
    kind: Option<Kind>,
    owner: &str,
    value: &str,
) -> Vec<(String, String)> {
    let who = |name: &str| match memory.find_owner(name) {
        Some(found) => memory.entities[memory.first_of(found)].name.clone(),
        None => name.to_lowercase(),
    };
    match kind {
        Some(Kind::Holds) => things_of(value)
            .iter()
            .filter(|text| is_one_object(memory, text))
            .map(|text| (object_name(memory, text), who(owner)))
            .collect(),
        Some(Kind::HeldBy) => vec![(object_name(memory, owner), who(&gist(value)))],
        _ => Vec::new(),
    }
}

/// Returns the name by which an object is compared.
fn object_name(memory: &Memory, text: &str) -> String {
    match memory.find_owner(text) {
        Some(found) => gist(&memory.entities[memory.first_of(found)].name),
        None => gist(text),
    }
}

/// Returns true if the words name one certain object: `the brass key`, not `a knife`.
pub(crate) fn is_one_object(memory: &Memory, object: &str) -> bool {
    let lower = object.to_lowercase();
    memory.find_owner(object).is_some()
        || if has_han(object) {
            object.chars().count() >= 3 && !object.starts_with(['一', '几', '些'])
        } else {
            lower.starts_with("the ") || lower.contains("'s ") || lower.contains("’s ")
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_about_an_object_is_no_object() {
        for (value, things) in [
            ("the brass key", vec!["the brass key"]),
            (
                "the brass key, from the warden's office",
                vec!["the brass key"],
            ),
            ("the brass key, the warden's", vec!["the brass key"]),
            ("the brass key, a lamp", vec!["the brass key", "a lamp"]),
            (
                "the brass key, taken from Ines, and a lamp, because it is dark",
                vec!["the brass key", "a lamp"],
            ),
            ("铜钥匙，得自沈砚", vec!["铜钥匙"]),
            ("铜钥匙，从沈砚、裴伯手里拿来", vec!["铜钥匙"]),
            ("铜钥匙，系在脖子上，一把小刀", vec!["铜钥匙", "一把小刀"]),
            ("账本、铜钥匙，因为裴伯已死", vec!["账本", "铜钥匙"]),
            (
                "铜钥匙，关于盐鸥号的信，补给包",
                vec!["铜钥匙", "关于盐鸥号的信", "补给包"],
            ),
            ("自鸣钟、原稿，进货单", vec!["自鸣钟", "原稿", "进货单"]),
        ] {
            assert_eq!(things_of(value), things, "{value}");
        }
    }
}
