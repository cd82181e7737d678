//! Judges the order of two events, from facts about the order or from their dates.
//!
//! Only sentences that mention exactly two entities are judged.

use super::date::{EVENT_KEYS, find_dates};
use super::{Finding, Sentence};
use crate::memory::{Fact, Memory, Mention};
use crate::words::{has_han, is_quoted, is_unreal, says_any};

const BEFORE_KEYS: &[&str] = &[
    "before",
    "earlier than",
    "precedes",
    "先于",
    "早于",
    "在前于",
];
const AFTER_KEYS: &[&str] = &["after", "later than", "follows", "后于", "晚于"];

/// Returns true if the first event happened before the second, and the fact that says so.
fn known(memory: &Memory, first: usize, second: usize) -> Option<(bool, &Fact)> {
    let says = |from: usize, to: usize| {
        memory.facts_of(from).find_map(|fact| {
            let named = memory.entities[to]
                .names
                .iter()
                .any(|name| fact.value.contains(name.as_str()));
            let before = BEFORE_KEYS.contains(&fact.key.as_str());
            (named && (before || AFTER_KEYS.contains(&fact.key.as_str()))).then_some((before, fact))
        })
    };
    if let Some(found) = says(first, second) {
        return Some(found);
    }
    if let Some((before, fact)) = says(second, first) {
        return Some((!before, fact));
    }
    let dated = |entity: usize| {
        let fact = memory
            .facts_of(entity)
            .find(|fact| EVENT_KEYS.contains(&fact.key.as_str()))?;
        Some((find_dates(&fact.value).first()?.key()?, fact))
    };
    let ((a, fact), (b, _)) = (dated(first)?, dated(second)?);
    // A date without a month cannot be ordered within its year.
    (a.0 != b.0 || a.1 != b.1 && a.1 > 0 && b.1 > 0).then_some((a < b, fact))
}

/// Returns true if the sentence puts the first mention before the second, false if after it.
fn told(text: &str, first: &Mention, second: &Mention) -> Option<bool> {
    let (lead, middle, tail) = (
        &text[..first.start],
        &text[first.end..second.start],
        &text[second.end..],
    );
    if has_han(text) {
        let starts = |part: &str, signs: &[&str]| {
            signs
                .iter()
                .any(|sign| part.trim_start_matches(['的', ' ']).starts_with(sign))
        };
        if starts(tail, &["之前", "以前"]) {
            return middle.contains(['在', '于', '发']).then_some(true);
        }
        if starts(tail, &["之后", "以后"]) {
            return middle.contains(['在', '于', '发']).then_some(false);
        }
        if (lead.ends_with("先有") || lead.ends_with("先是"))
            && ["后有", "再有", "才有", "然后", "后是", "才是"]
                .iter()
                .any(|sign| middle.ends_with(sign))
        {
            return Some(true);
        }
        // 大火之后，洪水来了；大火结束以后，才有洪水
        let middle = ["结束", "过去", "平息", "停了"]
            .iter()
            .find_map(|end| middle.strip_prefix(end))
            .unwrap_or(middle);
        if starts(middle, &["之前", "以前"]) {
            return Some(false);
        }
        if starts(middle, &["之后", "以后", "过后"]) {
            return Some(true);
        }
        if says_any(middle, &["早于", "先于"]) {
            return Some(true);
        }
        return says_any(middle, &["晚于", "后于"]).then_some(false);
    }
    let tidy = |part: &str| part.trim().trim_end_matches("the").trim().to_lowercase();
    let (lead, between) = (tidy(lead), tidy(middle));
    let near = |part: &str, sign: &str| part.ends_with(sign);
    match () {
        () if near(&between, "before")
            || near(&between, "preceded")
            || near(&between, "earlier than") =>
        {
            Some(true)
        }
        () if near(&between, "after")
            || near(&between, "followed")
            || near(&between, "later than") =>
        {
            Some(false)
        }
        () if near(&lead, "first came") && between.contains("then") => Some(true),
        () if near(&lead, "when")
            && ["had ended", "was over", "had passed"]
                .iter()
                .any(|over| between.contains(over)) =>
        {
            Some(true)
        }
        () if near(&lead, "before") => Some(false),
        () if near(&lead, "after") => Some(true),
        () => None,
    }
}

pub fn judge(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let [first, second] = sentence.mentions.as_slice() else {
        return;
    };
    if first.entity == second.entity
        || is_unreal(&sentence.bare)
        || is_quoted(sentence.text, second.start)
        || says_any(
            sentence.text,
            &["not", "never", "不是", "并非", "吗", "?", "？"],
        )
    {
        return;
    }
    let (Some(told), Some((known, fact))) = (
        told(sentence.text, first, second),
        known(sentence.memory, first.entity, second.entity),
    ) else {
        return;
    };
    let name = |mention: &Mention| &sentence.memory.entities[mention.entity].name;
    let (order, zh) = if known {
        ("before", "前")
    } else {
        ("after", "后")
    };
    let why = sentence.why(
        format!("memory puts {} {order} {}", name(first), name(second)),
        format!("按记忆，{}在{}之{zh}", name(first), name(second)),
    );
    findings.push(sentence.found("order", told != known, 0.85, why, fact));
}

#[cfg(test)]
mod tests {
    use crate::judges::bench::expect;

    #[test]
    fn events_keep_their_order() {
        let memory = "# E\n\n## The Flood\n- when: 1904\n\n## The Great Fire\n- when: 1911\n\n## The Truce\n- before: The Flood\n\n## 洪水\n- 时间：1904年\n\n## 大火\n- 时间：1911年\n";
        expect(
            memory,
            &[
                ("The Great Fire came before The Flood.", &["order!"]),
                ("The Flood came before The Great Fire.", &["order="]),
                ("After The Great Fire came The Flood.", &["order!"]),
                ("The Truce was signed after The Flood.", &["order!"]),
                ("They spoke of The Great Fire and The Flood.", &[]),
                ("大火发生在洪水之前。", &["order!"]),
                ("洪水之后，大火烧了三天。", &["order="]),
                ("大火之后，洪水来了。", &["order!"]),
                ("他们谈起大火和洪水。", &[]),
            ],
        );
    }
}
