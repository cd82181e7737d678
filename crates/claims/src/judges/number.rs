//! Judges ages and counts.
//!
//! An age is compared only if it refers to the present, and a count only if it is a total.

use std::collections::BTreeSet;

use super::{Finding, Sentence};
use crate::memory::Fact;
use crate::words::{
    Number, clause_before, has_han, is_negated, is_quoted, is_unreal, near_before, numbers,
    says_any, stem, words,
};

const AGE_KEYS: &[&str] = &["age", "aged", "years old", "年龄", "年纪", "岁数"];
/// Signs of a time other than the present.
const ELSEWHEN: &[&str] = &[
    "when",
    "at the age",
    "had been",
    "as a boy",
    "as a girl",
    "as a child",
    "ago",
    "since",
    "until",
    "later",
    "by the time",
    "before",
    "after",
    "will be",
    "looked",
    "seemed",
    "felt",
    "had turned",
    "younger",
    "older",
    "nearly",
    "almost",
    "about",
    "over",
    "under",
    "那年",
    "时候",
    "小时候",
    "当年",
    "曾",
    "以前",
    "后来",
    "年后",
    "看上去",
    "像是",
    "将满",
    "不到",
    "快",
    "近",
    "约",
    "多",
    "之前",
    "比",
    "才",
    "早在",
    "起",
    "等",
    "就",
];
/// Chinese words before a number that is a present age.
const AGED_ZH: &[&str] = &[
    "今年", "现年", "年方", "年仅", "年已", "刚满", "芳龄", "年满",
];

pub fn judge_age(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let text = sentence.text;
    for number in numbers(text) {
        if !is_age(sentence, &number)
            || is_quoted(text, number.range.start)
            || is_unreal(&sentence.bare)
            || says_any(&sentence.bare, ELSEWHEN)
        {
            continue;
        }
        // `At forty, Otto …`, `四十岁的奥托`: the person is named after the age.
        let lead = text[..number.range.start].trim().to_lowercase();
        let rest = number.range.end
            + if text[number.range.end..].starts_with('岁') {
                '岁'.len_utf8()
            } else {
                0
            };
        let after = (lead == "at" || lead.is_empty())
            .then(|| sentence.named_after(rest))
            .flatten();
        let told = match after {
            Some(entity) => Some((sentence.memory.facts_of(entity).collect(), 1.0)),
            None => sentence.facts_at(number.range.start),
        };
        let Some((facts, sure)) = told else { continue };
        for fact in facts
            .iter()
            .filter(|fact| AGE_KEYS.contains(&fact.key.as_str()))
        {
            // `31 in ch03` is the age at one point in time and cannot be compared.
            let bare = fact
                .value
                .trim_end_matches("years old")
                .trim_end_matches("years")
                .trim()
                .trim_end_matches('岁')
                .trim();
            if let [stated] = numbers(bare).as_slice()
                && stated.range.len() == bare.len()
            {
                let (known, said) = (stated.value, number.value);
                let why = sentence.why(
                    format!("memory says {known}, the text {said}"),
                    format!("记忆写的是{known}，文中是{said}"),
                );
                findings.push(sentence.found(
                    "age",
                    stated.value != number.value,
                    0.85 * sure,
                    why,
                    fact,
                ));
            }
        }
    }
}

/// Returns true if a number is an age: `34 years old`, `34-year-old`, `aged 34`, `Otto, 34,`,
/// `Otto was 34.`, `34岁`.
fn is_age(sentence: &Sentence<'_>, number: &Number) -> bool {
    let (before, after) = (
        &sentence.text[..number.range.start],
        &sentence.text[number.range.end..],
    );
    if after.starts_with('岁') {
        return !before.ends_with('第');
    }
    if AGED_ZH.iter().any(|sign| before.ends_with(sign)) {
        return after.is_empty() || after.starts_with(['了', '，', '。', '、', '；']);
    }
    // `At forty, Otto still slept with the lamp on.`
    if before.trim().eq_ignore_ascii_case("at") && after.starts_with(',') {
        return sentence.named_after(number.range.end).is_some();
    }
    // `Otto turned forty that morning.`
    let turned = ["turned", "had just turned"]
        .iter()
        .any(|verb| before.trim_end().ends_with(verb));
    let when = words(after).first().is_some_and(|word| {
        ["that", "this", "on", "last", "yesterday", "today", "in"].contains(&word.lower.as_str())
    });
    if turned && when {
        return true;
    }
    if after.starts_with(" years of age")
        || after
            .trim_start_matches([' ', '-'])
            .starts_with("years old")
        || after.starts_with("-year-old")
        || after.starts_with(" year old")
    {
        // `a thirty-year-old whisky`: the number belongs to the noun after it.
        return !after.trim_start_matches([' ', '-']).starts_with("year")
            || after.contains("years old")
            || person_follows(after);
    }
    let ends = after.trim_start().is_empty()
        || after.starts_with([',', '.', ';', ' '])
            && !after.trim_start().starts_with(char::is_alphanumeric);
    let named = sentence.mentions.iter().any(|mention| {
        let between = before.get(mention.end..).unwrap_or("…").trim();
        !mention.possessive
            && matches!(
                between,
                "," | ", now"
                    | ", only"
                    | ", already"
                    | "was only"
                    | "was now"
                    | "was"
                    | "is"
                    | "turned"
                    | ", aged"
                    | "was aged"
                    | "had just turned"
            )
    });
    let pronoun = ["he was", "she was", "he is", "she is", "aged"]
        .iter()
        .any(|lead| before.trim_end().to_lowercase().ends_with(lead));
    ends && (named || pronoun)
}

fn person_follows(after: &str) -> bool {
    let next = words(after)
        .into_iter()
        .find(|word| !["year", "old"].contains(&word.lower.as_str()));
    next.is_some_and(|word| {
        word.capital
            || [
                "with", "who", "from", "man", "woman", "boy", "girl", "keeper", "captain", "widow",
                "widower",
            ]
            .contains(&word.lower.as_str())
    })
}

const VAGUE: &[&str] = &[
    "about",
    "nearly",
    "almost",
    "over",
    "more than",
    "fewer than",
    "at least",
    "some",
    "around",
    "half",
    "another",
    "roughly",
    "first",
    "last",
    "remaining",
    "left",
    "of them",
    "of the",
    "more",
    "since",
    "new",
    "约",
    "近",
    "大约",
    "多",
    "余",
    "几乎",
    "至少",
    "不到",
    "超过",
    "前",
    "后",
    "第",
    "又",
    "另外",
    "其中",
    "每",
    "剩",
    "还",
];
/// Signs of a wish or a plan, or of another place nearby.
const NOT_ITS_OWN: &[&str] = &[
    "wanted", "wants", "hoped", "planned", "meant", "wished", "想", "打算", "希望", "计划", "隔壁",
    "旁边", "对面", "附近",
];
/// Signs that a number is a total.
const WHOLE: &[&str] = &[
    "are", "were", "the", "all", "its", "has", "had", "have", "with", "counts", "counted",
    "numbered", "holds", "exactly",
];
const WHOLE_ZH: &[&str] = &[
    "共", "有", "统共", "全部", "总共", "一共", "这", "那", "整整",
];

pub fn judge_count(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let text = sentence.text;
    if says_any(&sentence.bare, NOT_ITS_OWN) {
        return;
    }
    let said = std::cell::LazyCell::new(|| numbers(text));
    let mut asked = BTreeSet::new();
    for mention in &sentence.mentions {
        if asked.contains(&mention.entity) {
            continue;
        }
        // `beside the Tower`, `left the Tower for a house of nine rooms`: the count is not the
        // Tower's own.
        let lead = words(near_before(text, mention.start))
            .into_iter()
            .rev()
            .find(|word| word.lower != "the")
            .map(|word| word.lower);
        if lead.is_some_and(|lead| {
            [
                "beside", "behind", "near", "left", "by", "opposite", "outside",
            ]
            .contains(&lead.as_str())
        }) {
            continue;
        }
        asked.insert(mention.entity);
        for fact in sentence
            .memory
            .facts_of(mention.entity)
            .filter(|fact| !fact.key.is_empty() && !AGE_KEYS.contains(&fact.key.as_str()))
        {
            let found = numbers(&fact.value);
            let [stated] = found.as_slice() else { continue };
            let dated = !super::date::find_dates(&fact.value).is_empty();
            // A count consists of a number and at most a unit.
            if dated
                || fact.value.chars().count() > stated.range.len() + 12
                || stated.range.start != 0
            {
                continue;
            }
            let stated = stated.value;
            for number in said.iter().filter(|number| counts(text, number, &fact.key)) {
                if is_quoted(text, number.range.start)
                    || is_unreal(&sentence.bare)
                    || is_negated(&sentence.bare, number.range.start)
                {
                    continue;
                }
                let (key, said) = (&fact.key, number.value);
                let why = sentence.why(
                    format!("memory says {stated} {key}, the text {said}"),
                    format!("记忆写的是{key}{stated}，文中是{said}"),
                );
                findings.push(sentence.found("count", stated != number.value, 0.8, why, fact));
            }
        }
    }
    judge_unit(sentence, &said, findings);
    findings.dedup_by(|a, b| a.judge == "count" && a == b);
}

/// The least number that is a count and no handful, and how far a slip is from the right one.
const LEAST_COUNT: u64 = 10;
const LARGEST_FACTOR: u64 = 2;

/// Compares a number with a fact about something that the scene has named, by their unit:
/// `stairs: 168 steps` and “all 186 steps”. The unit must belong to one fact alone.
fn judge_unit(sentence: &Sentence<'_>, said: &[Number], findings: &mut Vec<Finding>) {
    if said.is_empty() || is_unreal(&sentence.bare) {
        return;
    }
    let mut facts: Vec<(&Fact, u64, String)> = Vec::new();
    let named: BTreeSet<usize> = sentence
        .named
        .iter()
        .map(|nth| sentence.memory.first_of(*nth))
        .collect();
    for entity in named {
        for fact in sentence.memory.facts_of(entity) {
            if let Some((stated, unit)) = stated_unit(fact) {
                facts.push((fact, stated, unit));
            }
        }
    }
    for (fact, stated, unit) in &facts {
        let is_judged = |found: &Finding| found.judge == "count" && found.at == fact.at;
        let is_shared = facts.iter().filter(|(_, _, other)| other == unit).count() > 1;
        if is_shared || findings.iter().any(is_judged) {
            continue;
        }
        for number in said
            .iter()
            .filter(|number| counts(sentence.text, number, unit))
        {
            let value = number.value;
            let is_near = value <= stated * LARGEST_FACTOR && *stated <= value * LARGEST_FACTOR;
            if value < LEAST_COUNT
                || !is_near
                || is_quoted(sentence.text, number.range.start)
                || is_negated(&sentence.bare, number.range.start)
            {
                continue;
            }
            let why = sentence.why(
                format!("memory says {stated} {unit}, the text {value}"),
                format!("记忆写的是{stated}{unit}，文中是{value}"),
            );
            findings.push(sentence.found("count", value != *stated, 0.75, why, fact));
        }
    }
}

/// Returns the number and the unit of a fact whose value has nothing else.
fn stated_unit(fact: &Fact) -> Option<(u64, String)> {
    let value = crate::keys::gist(&fact.value);
    let found = numbers(&value);
    let [stated] = found.as_slice() else {
        return None;
    };
    let unit = value[stated.range.end..].trim();
    let is_unit = match has_han(unit) {
        true => unit.chars().count() <= 3 && !AGE_KEYS.contains(&fact.key.as_str()) && unit != "岁",
        false => !unit.is_empty() && unit.chars().all(char::is_alphabetic) && unit.ends_with('s'),
    };
    let is_count = stated.range.start == 0 && stated.value >= LEAST_COUNT && is_unit;
    let is_own_key = stem(&unit.to_lowercase()) == stem(&fact.key);
    let is_time = [
        "years", "days", "months", "weeks", "hours", "minutes", "年", "天", "日", "月",
    ];
    (is_count && !is_own_key && !is_time.contains(&unit)).then(|| (stated.value, unit.to_owned()))
}

/// Returns true if a number is the total of `key`.
fn counts(text: &str, number: &Number, key: &str) -> bool {
    let (before, after) = (
        clause_before(text, number.range.start),
        &text[number.range.end..],
    );
    if has_han(key) {
        // 二百一十四级台阶
        let unit: String = after.chars().take(4 + key.chars().count()).collect();
        let near = unit
            .find(key)
            .is_some_and(|at| unit[..at].chars().count() <= 3);
        let tail: String = before
            .chars()
            .rev()
            .take(6)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        // 房间有七间, 十一间房间全空着
        let named = before.strip_suffix('有').is_some_and(|before| {
            before
                .trim_end_matches(['共', '一', '总', '只'])
                .ends_with(key)
        });
        let all = near
            && unit
                .find(key)
                .is_some_and(|at| after[at + key.len()..].starts_with(['全', '都']));
        if named && !says_any(&tail, VAGUE) && !after.starts_with(['多', '余', '几']) {
            return true;
        }
        return near
            && (all || WHOLE_ZH.iter().any(|sign| tail.contains(sign)))
            && !says_any(&tail, VAGUE)
            && !after.starts_with(['多', '余', '几']);
    }
    let noun = words(key)
        .last()
        .map(|word| stem(&word.lower).to_owned())
        .unwrap_or_default();
    let near = words(after)
        .iter()
        .take(2)
        .any(|word| stem(&word.lower) == noun);
    let leads: Vec<String> = words(before)
        .into_iter()
        .rev()
        .take(2)
        .map(|word| word.lower)
        .collect();
    let behind = says_any(after, &["in all", "altogether", "in total"]);
    near && (behind || leads.iter().any(|lead| WHOLE.contains(&lead.as_str())))
        && !leads.iter().any(|lead| VAGUE.contains(&lead.as_str()))
        && !before.to_lowercase().trim_end().ends_with("of the")
}

#[cfg(test)]
mod tests {
    use crate::judges::bench::expect;

    const MEMORY: &str = "# C\n\n## Otto\n- age: 31\n\n## The Tower\n- steps: 214\n- built: 1880\n\n## 沈砚\n- 年龄：三十一岁\n\n## 灯塔\n- 台阶：214级\n";

    #[test]
    fn ages_are_compared_at_one_time() {
        expect(
            MEMORY,
            &[
                ("Otto, 34, had never left.", &["age!"]),
                ("Otto was thirty-four years old.", &["age!"]),
                ("Otto was thirty-one.", &["age="]),
                ("Otto was twelve when the bridge fell.", &[]),
                ("Otto poured a thirty-year-old whisky.", &[]),
                ("Otto had waited 34 years.", &[]),
                ("沈砚今年三十四岁。", &["age!"]),
                ("沈砚三十一岁了。", &["age="]),
                ("沈砚十二岁那年，桥塌了。", &[]),
            ],
        );
    }

    #[test]
    fn counts_are_compared_where_all_are_meant() {
        expect(
            MEMORY,
            &[
                ("The Tower has two hundred and ten steps.", &["count!"]),
                ("She climbed the 214 steps of The Tower.", &["count="]),
                ("In The Tower she climbed forty steps and stopped.", &[]),
                ("The Tower has about two hundred steps.", &[]),
                ("灯塔共有二百一十级台阶。", &["count!"]),
                ("灯塔里，他爬了四十级台阶就停下。", &[]),
            ],
        );
    }

    #[test]
    fn a_unit_belongs_to_the_place_of_the_scene() {
        let memory = "# C\n\n## Skerry Light\n- stairs: 168 steps\n- built: 1880\n\n## 石塔\n- 台阶：168级\n";
        expect(
            memory,
            &[
                (
                    "Skerry Light was dark.\n\nShe climbed all 186 steps.",
                    &["count!"],
                ),
                (
                    "Skerry Light was dark. She counted the 168 steps.",
                    &["count="],
                ),
                ("She climbed all 186 steps.", &[]),
                ("Skerry Light was dark. She climbed forty steps.", &[]),
                (
                    "Skerry Light was dark. She took the ten steps down to the cellar.",
                    &[],
                ),
                (
                    "Skerry Light was dark. Nobody had counted all 186 steps.",
                    &[],
                ),
                ("石塔很暗。\n\n她数过，一共一百八十六级。", &["count!"]),
                ("石塔很暗。她爬了八十级就停下。", &[]),
            ],
        );
    }
}
