//! Judges metaphors: reports a concept that is described with the image of another concept.
//!
//! Only images and concepts from the metaphor tables of memory count.

use super::{Finding, Sentence};
use crate::words::{find_all, has_han, is_negated, is_unreal, says_any, words};

const LIKE: &[&str] = &[
    "like",
    "as if it were",
    "is",
    "was",
    "are",
    "were",
    "as",
    "became",
    "become",
    "becomes",
    "resembles",
    "resembled",
];
const LIKE_ZH: &[&str] = &[
    "像", "如同", "仿佛", "好比", "犹如", "就是", "宛如", "是一", "似",
];

/// Returns the image without its article.
fn bare(image: &str) -> &str {
    let image = image.trim();
    ["a ", "an ", "the "]
        .iter()
        .find_map(|article| image.strip_prefix(article))
        .unwrap_or(image)
}

/// Returns the position of `image` if the sentence applies it to something.
fn likened(text: &str, image: &str) -> Option<usize> {
    let range = find_all(text, bare(image), true).into_iter().next()?;
    let before = text[..range.start].trim_end();
    if has_han(image) {
        let tail: String = before
            .chars()
            .rev()
            .take(6)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        // 时间是锁链, 时间成了锁链: the verb directly precedes the image.
        let equated = ["是", "成了", "变成", "变成了", "如", "若"]
            .iter()
            .any(|verb| before.ends_with(verb));
        return (equated || says_any(&tail, LIKE_ZH)).then_some(range.start);
    }
    let before = words(before);
    let mut back = before.iter().rev().skip_while(|word| {
        ["a", "an", "the", "kind", "of", "sort", "only", "just"].contains(&word.lower.as_str())
    });
    back.next()
        .is_some_and(|word| LIKE.contains(&word.lower.as_str()))
        .then_some(range.start)
}

pub fn judge(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let text = sentence.text;
    if is_unreal(
        &text
            .replace("as if it were", "")
            .replace("仿佛", "")
            .replace("好像", ""),
    ) {
        return;
    }
    let metaphors = &sentence.memory.metaphors;
    for metaphor in metaphors {
        let Some(at) = likened(text, &metaphor.image) else {
            continue;
        };
        if is_negated(&sentence.bare, at) {
            continue;
        }
        // The image applies to the nearest concept before it.
        let said_of = metaphors.iter().filter_map(|other| {
            find_all(text, &other.concept, true)
                .into_iter()
                .rfind(|range| range.end <= at)
                .map(|range| (range.start, other))
        });
        let Some((_, owner)) = said_of.max_by_key(|(start, _)| *start) else {
            continue;
        };
        let own = owner.concept == metaphor.concept;
        findings.push(Finding {
            judge: "metaphor",
            conflict: !own,
            confidence: 0.85,
            why: if own {
                sentence.why(
                    "the image that this concept has".into(),
                    "正是这一概念的比喻".into(),
                )
            } else {
                let [image, concept] = [&metaphor.image, &metaphor.concept];
                let [other, its] = [&owner.concept, &owner.image];
                sentence.why(
                    format!("`{image}` is the image of `{concept}`; `{other}` has `{its}`"),
                    format!("`{image}` 是 `{concept}` 的比喻；`{other}` 的是 `{its}`"),
                )
            },
            at: metaphor.at.clone(),
            evidence: format!("{}: {}", metaphor.concept, metaphor.image),
            level: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::judges::bench::expect;

    #[test]
    fn an_image_serves_one_concept() {
        let memory = "| concept | metaphor |\n|---|---|\n| lease | a library loan |\n| journal | a ship's log |\n\n| 概念 | 比喻 |\n|---|---|\n| 租约 | 停车票 |\n| 日志 | 航海日记 |\n";
        expect(
            memory,
            &[
                ("The journal is like a library loan.", &["metaphor!"]),
                ("A lease is like a library loan.", &["metaphor="]),
                ("The library loan desk was closed.", &[]),
                ("The journal is not like a library loan.", &[]),
                ("日志就像停车票。", &["metaphor!"]),
                ("租约好比停车票。", &["metaphor="]),
                ("他把停车票夹进日志。", &[]),
            ],
        );
    }
}
