//! Judges the colour of eyes and hair.
//!
//! Related shades count as equal. Dyed hair, wigs and temporary colours are ignored.

use super::{Finding, Sentence};
use crate::words::{is_negated, is_quoted, is_unreal, says_any, words};

/// Groups of colours that count as equal.
const COLOURS: &[&[&str]] = &[
    &["black", "raven", "jet", "黑", "乌黑"],
    &["brown", "chestnut", "hazel", "棕", "褐"],
    &["blue", "azure", "蓝"],
    &["green", "emerald", "绿", "碧"],
    &["grey", "gray", "灰"],
    &[
        "blond", "blonde", "fair", "golden", "flaxen", "yellow", "金",
    ],
    &["red", "auburn", "ginger", "copper", "红"],
    &["white", "silver", "白", "银"],
    &["violet", "purple", "紫"],
    &["amber", "琥珀"],
];

struct Part {
    judge: &'static str,
    keys: &'static [&'static str],
    english: &'static [&'static str],
    chinese: &'static [&'static str],
    /// Temporary colours, such as eyes red from weeping.
    passing: &'static [&'static str],
}

const PARTS: &[Part] = &[
    Part {
        judge: "colour",
        keys: &[
            "eyes",
            "eye colour",
            "eye color",
            "eye",
            "眼睛",
            "瞳色",
            "眼",
            "眸",
            "眼眸",
        ],
        english: &["eyes", "eyed", "eye"],
        chinese: &["眼睛", "双眼", "眼眸", "眸子", "瞳孔", "双眸"],
        passing: &["red", "红", "white", "白"],
    },
    Part {
        judge: "colour",
        keys: &["hair", "hair colour", "hair color", "头发", "发色", "发"],
        english: &["hair", "haired", "curls", "braid"],
        chinese: &["头发", "长发", "短发", "发丝", "辫子", "发辫", "发"],
        passing: &[],
    },
];

fn kin(word: &str) -> Option<usize> {
    COLOURS.iter().position(|row| row.contains(&word))
}

/// Returns the colour group that a value names.
fn stated(value: &str) -> Option<usize> {
    let mut found: Vec<usize> = words(value)
        .iter()
        .filter_map(|word| kin(&word.lower))
        .collect();
    found.extend(
        COLOURS
            .iter()
            .enumerate()
            .filter(|(_, row)| row.iter().any(|c| !c.is_ascii() && value.contains(c)))
            .map(|(nth, _)| nth),
    );
    found.dedup();
    if let [one] = found.as_slice() {
        Some(*one)
    } else {
        None
    }
}

/// Returns the colour group that a sentence gives a body part, its word, and the position of the
/// part.
fn shown(text: &str, part: &Part) -> Option<(usize, String, usize)> {
    let words = words(text);
    let links = [
        "were", "was", "are", "is", "a", "the", "pale", "deep", "bright", "very", "light", "dark",
        "as",
    ];
    let mut found: Vec<(usize, String, usize)> = Vec::new();
    for (nth, word) in words
        .iter()
        .enumerate()
        .filter(|(_, word)| part.english.contains(&word.lower.as_str()))
    {
        // The colour precedes the part, perhaps with another adjective between them, or follows a
        // verb.
        let before = words[nth.saturating_sub(3)..nth].iter().rev();
        let apart = |w: &&crate::words::Word| {
            !text[w.range.end..word.range.start].contains([',', '.', ';'])
                || kin(&w.lower).is_some()
        };
        let left = before
            .take_while(apart)
            .filter(|w| !["and", "with", "of"].contains(&w.lower.as_str()))
            .find_map(|w| Some((kin(&w.lower)?, w.lower.clone())));
        // `The eyes of Otto were green`: the owner is between the part and the verb.
        let owned = usize::from(words.get(nth + 1).is_some_and(|w| w.lower == "of")) * 2;
        let verb = words
            .get(nth + 1 + owned)
            .is_some_and(|w| ["were", "was", "are", "is"].contains(&w.lower.as_str()));
        let right = words[(nth + 1 + owned).min(words.len())..]
            .iter()
            .take(5)
            .find(|w| !links.contains(&w.lower.as_str()) || kin(&w.lower).is_some());
        let right = right
            .filter(|_| verb)
            .and_then(|w| Some((kin(&w.lower)?, w.lower.clone())));
        let at = if owned > 0 {
            words[(nth + owned).min(words.len() - 1)].range.end
        } else {
            word.range.start
        };
        found.extend(left.or(right).map(|(kin, name)| (kin, name, at)));
    }
    for noun in part.chinese {
        for (at, _) in text.match_indices(noun) {
            let before: Vec<char> = text[..at].chars().rev().take(4).collect();
            let before: String = before.into_iter().rev().collect();
            let after: String = text[at + noun.len()..].chars().take(6).collect();
            let linked = ["是", "为", "呈", "泛着", "透着", "乌", "漆"]
                .iter()
                .any(|verb| after.starts_with(verb));
            let colour = |part: &str| {
                COLOURS.iter().enumerate().find_map(|(nth, row)| {
                    row.iter()
                        .find(|c| !c.is_ascii() && part.contains(**c))
                        .map(|c| (nth, (*c).to_owned()))
                })
            };
            let adjective = before.ends_with('的')
                || before.ends_with("色")
                || before
                    .chars()
                    .next_back()
                    .is_some_and(|c| kin(&c.to_string()).is_some());
            let hit = if adjective { colour(&before) } else { None }
                .or_else(|| if linked { colour(&after) } else { None });
            found.extend(hit.map(|(kin, name)| (kin, name, at)));
        }
    }
    let first = found.first()?.clone();
    found
        .iter()
        .all(|(kin, _, _)| *kin == first.0)
        .then_some(first)
}

pub fn judge(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    for part in PARTS {
        let Some((colour, name, at)) = shown(sentence.text, part) else {
            continue;
        };
        let dyed = says_any(
            sentence.text,
            &[
                "dyed", "wig", "lens", "lenses", "gone", "turned", "染", "假发", "变",
            ],
        );
        if part.passing.contains(&name.as_str())
            || dyed
            || is_unreal(&sentence.bare)
            || is_quoted(sentence.text, at)
            || is_negated(&sentence.bare, at)
        {
            continue;
        }
        let Some((facts, sure)) = sentence.facts_at(at) else {
            continue;
        };
        for fact in facts
            .iter()
            .filter(|fact| part.keys.contains(&fact.key.as_str()))
        {
            if let Some(stated) = stated(&fact.value) {
                let known = &fact.value;
                let why = sentence.why(
                    format!("memory says {known}, the text {name}"),
                    format!("记忆写的是{known}，文中是{name}"),
                );
                findings.push(sentence.found(part.judge, stated != colour, 0.85 * sure, why, fact));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::judges::bench::expect;

    #[test]
    fn colours_are_compared() {
        let memory = "# C\n\n## Otto\n- eyes: grey\n- hair: dark brown\n\n## Mara\n- drive: x\n\n## 奥莲\n- 眼睛：绿色\n- 头发：黑\n";
        expect(
            memory,
            &[
                ("Otto's blue eyes followed the boat.", &["colour!"]),
                ("Otto's gray eyes followed the boat.", &["colour="]),
                ("Otto looked up. His eyes were a pale green.", &["colour!"]),
                ("Otto's eyes were red from the smoke.", &[]),
                ("Otto saw Mara's blue eyes.", &[]),
                ("Otto watched the blue water with tired eyes.", &[]),
                ("Otto brushed the blond hair from his face.", &["colour!"]),
                ("奥莲的蓝眼睛望着海。", &["colour!"]),
                ("奥莲抬起头，碧绿的眸子一动不动。", &["colour="]),
                ("奥莲的头发是金色的。", &["colour!"]),
                ("奥莲把头发染成金色。", &[]),
                ("The eyes of Otto were green.", &["colour!"]),
                ("蓝色的海映在奥莲的眼睛里。", &[]),
            ],
        );
    }
}
