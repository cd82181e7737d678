//! Judges unique relations (mother, father, wife, husband) and places of birth.
//!
//! A relation is compared only if memory gives a name, not a description.

use super::{Finding, Sentence};
use crate::words::{has_han, is_quoted, is_unreal, says_any, words};

/// The words of each relation. The first of them are also the keys of facts.
const RELATIONS: &[&[&str]] = &[
    &["mother", "母亲", "娘"],
    &["father", "父亲", "爹"],
    &["wife", "妻子"],
    &["husband", "丈夫"],
];
const BIRTH_KEYS: &[&str] = &[
    "birthplace",
    "born in",
    "place of birth",
    "home town",
    "hometown",
    "出生地",
    "籍贯",
    "生于",
    "故乡",
    "家乡",
];
const BIRTH: &[&str] = &[
    "born in",
    "born at",
    "came into the world in",
    "出生于",
    "出生在",
    "生于",
    "生在",
];
const ANOTHER: &[&str] = &[
    "stepmother",
    "stepfather",
    "mother-in-law",
    "father-in-law",
    "godmother",
    "like a",
    "second",
    "继母",
    "继父",
    "岳",
    "养母",
    "养父",
    "义父",
    "干娘",
    "前妻",
    "前夫",
    "former",
    "late",
];

pub fn judge(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    if is_unreal(&sentence.bare) || says_any(&sentence.bare, ANOTHER) {
        return;
    }
    judge_kin(sentence, findings);
    judge_birthplace(sentence, findings);
}

fn judge_kin(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let text = sentence.text;
    for relation in RELATIONS {
        let Some((at, word)) = relation
            .iter()
            .find_map(|word| first_at(text, word).map(|at| (at, *word)))
        else {
            continue;
        };
        let Some(name) =
            name_after(sentence, at + word.len()).or_else(|| name_before(sentence, at))
        else {
            continue;
        };
        if is_quoted(text, at) {
            continue;
        }
        let Some((entity, sure)) = sentence.owner(at) else {
            continue;
        };
        for fact in sentence
            .memory
            .facts_of(entity)
            .filter(|fact| relation.contains(&fact.key.as_str()))
        {
            let stated = fact
                .value
                .split([',', '，', ';', '；', '。', '(', '（'])
                .next()
                .unwrap_or_default()
                .trim();
            // A name can only be compared with a name.
            if stated.is_empty()
                || !(has_han(stated) && stated.chars().count() <= 5
                    || stated.starts_with(char::is_uppercase))
            {
                continue;
            }
            let same = stated.contains(&name)
                || name.contains(stated)
                || stated.split(' ').any(|part| part == name);
            findings.push(sentence.found(
                "relation",
                !same,
                0.85 * sure,
                sentence.why(
                    format!("memory says {word} {stated}, the text {name}"),
                    format!("记忆写的{word}是{stated}，文中是{name}"),
                ),
                fact,
            ));
        }
    }
}

/// Returns the name before a relation: `Ana, Otto's mother,`, `安娜是奥托的母亲`.
fn name_before(sentence: &Sentence<'_>, at: usize) -> Option<String> {
    let nth = sentence
        .mentions
        .iter()
        .rposition(|mention| mention.end <= at && mention.possessive)?;
    let (owner, other) = (
        &sentence.mentions[nth],
        nth.checked_sub(1)
            .and_then(|before| sentence.mentions.get(before))?,
    );
    let own = sentence.text[owner.end..at]
        .trim_start_matches(['\'', '’', 's', '的'])
        .trim()
        .is_empty();
    let between = sentence.text[other.end..owner.start].trim();
    (own && !other.possessive && [",", "is", "was", "是"].contains(&between))
        .then(|| sentence.text[other.start..other.end].to_owned())
}

fn first_at(text: &str, word: &str) -> Option<usize> {
    crate::words::find_all(text, word, true)
        .first()
        .map(|range| range.start)
}

/// Returns the name after a relation: `his mother Ana`, `his mother, Ana,`, `他的母亲安娜`. A
/// Chinese name must be in memory.
fn name_after(sentence: &Sentence<'_>, at: usize) -> Option<String> {
    let text = sentence.text;
    if let Some(mention) = sentence.mentions.iter().find(|mention| mention.start >= at) {
        let between = text[at..mention.start].trim();
        if matches!(
            between,
            "" | "," | "，" | "是" | "名叫" | "叫" | "was" | "is"
        ) {
            return Some(text[mention.start..mention.end].to_owned());
        }
    }
    let rest = text[at..].trim_start_matches([' ', ',', '，']);
    let rest = ["was ", "is ", "named "]
        .iter()
        .find_map(|verb| rest.strip_prefix(verb))
        .unwrap_or(rest);
    for sign in ["名叫", "叫做", "叫作", "叫"] {
        if let Some(name) = rest.strip_prefix(sign) {
            let name: String = name
                .chars()
                .take_while(|c| crate::words::is_han(*c) && !"的在是和与".contains(*c))
                .take(4)
                .collect();
            return (!name.is_empty()).then_some(name);
        }
    }
    let first = words(rest).into_iter().next()?;
    (first.capital && first.range.start == 0 && !first.possessive)
        .then(|| rest[first.range].to_owned())
}

fn judge_birthplace(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let text = sentence.text;
    let Some((at, sign)) = BIRTH
        .iter()
        .find_map(|sign| first_at(text, sign).map(|at| (at, *sign)))
    else {
        return;
    };
    let rest = text[at + sign.len()..].trim_start();
    let place: String = if has_han(sign) {
        rest.chars()
            .take_while(|c| crate::words::is_han(*c) && !"的，年".contains(*c))
            .take(6)
            .collect()
    } else {
        let named = words(rest)
            .into_iter()
            .take_while(|word| word.capital && word.lower.chars().all(char::is_alphabetic));
        named
            .map(|word| rest[word.range].to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let month = super::date::find_dates(rest)
        .iter()
        .any(|date| date.range.start == 0);
    if place.is_empty() || month || is_quoted(text, at) {
        return;
    }
    let Some((facts, sure)) = sentence.facts_at(at) else {
        return;
    };
    for fact in facts
        .iter()
        .filter(|fact| BIRTH_KEYS.contains(&fact.key.as_str()) && !fact.value.is_empty())
    {
        let same = fact.value.contains(&place)
            || place.contains(&fact.value)
            || place.split(' ').any(|part| fact.value.contains(part));
        if super::date::find_dates(&fact.value).is_empty() {
            findings.push(sentence.found(
                "relation",
                !same,
                0.85 * sure,
                sentence.why(
                    format!("memory says {}, the text {place}", fact.value),
                    format!("记忆写的是{}，文中是{place}", fact.value),
                ),
                fact,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::judges::bench::expect;

    #[test]
    fn the_only_mother_and_the_place_of_birth() {
        let memory = "# C\n\n## Otto\n- mother: Rosa\n- birthplace: Lima\n\n## 奥莲\n- 母亲：素娘\n- 出生地：青州\n\n## 素娘\n- 状态：在世\n\n## 桂枝\n- 状态：在世\n";
        expect(
            memory,
            &[
                ("Otto's mother, Ana, kept the books.", &["relation!"]),
                ("Otto's mother Rosa kept the books.", &["relation="]),
                ("Otto's mother kept Ana's books.", &[]),
                ("Otto was born in Cusco.", &["relation!"]),
                ("Otto was born in March.", &[]),
                ("Otto's stepmother Ana kept the books.", &[]),
                ("奥莲的母亲桂枝在灶前。", &["relation!"]),
                ("奥莲的母亲叫素娘。", &["relation="]),
                ("奥莲生于幽州。", &["relation!"]),
                ("奥莲的母亲看了桂枝一眼。", &[]),
            ],
        );
    }
}
