//! Judges actions of characters that are dead or absent.
//!
//! A name counts only if an action verb follows it. Memories, dreams and quoted speech are ignored.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Sentence};
use crate::memory::{Fact, Mention};
use crate::threads::chapter_number;
use crate::titles::before_title;
use crate::words::{
    clause_before, is_han, is_unreal, near_after, near_before, quotations, says_any, words,
};

const STATUS_KEYS: &[&str] = &["status", "fate", "state", "状态", "结局", "生死"];
const DEATH_KEYS: &[&str] = &["died", "death", "dies", "死于", "卒于", "去世"];
const ABSENT_KEYS: &[&str] = &["absent", "away", "whereabouts", "不在", "离场", "下落"];
const DEAD: &[&str] = &[
    "dead",
    "died",
    "deceased",
    "killed",
    "drowned",
    "passed away",
    "murdered",
    "executed",
    "hanged",
    "slain",
    "perished",
    "死",
    "已故",
    "身亡",
    "去世",
    "溺亡",
    "阵亡",
    "逝",
    "殁",
    "遇害",
    "被杀",
    "亡故",
];
const AWAY: &[&str] = &[
    "absent",
    "abroad",
    "away",
    "missing",
    "imprisoned",
    "in prison",
    "失踪",
    "离开",
    "远行",
    "在外",
    "被囚",
    "出海",
];

/// Signs of the past, or of something that represents the dead.
const PAST: &[&str] = &[
    "had",
    "remember",
    "remembered",
    "remembers",
    "recalled",
    "memory",
    "memories",
    "ghost",
    "grave",
    "tomb",
    "portrait",
    "photograph",
    "picture",
    "letter",
    "voice of",
    "once",
    "years ago",
    "before",
    "back then",
    "used to",
    "dream",
    "dreamed",
    "dreamt",
    "thought of",
    "story",
    "statue",
    "body",
    "corpse",
    "coffin",
    "funeral",
    "buried",
    "mourned",
    "when",
    "记得",
    "想起",
    "回忆",
    "梦",
    "棺",
    "多年以前",
    "坟",
    "墓",
    "遗像",
    "遗",
    "生前",
    "曾",
    "当年",
    "那年",
    "鬼魂",
    "亡魂",
    "灵位",
    "画像",
    "信",
    "尸",
    "葬",
    "从前",
    "以前",
    "小时候",
    "往事",
    "照片",
    "故事",
];

const ACTS: &[&str] = &[
    "said",
    "says",
    "asked",
    "answered",
    "replied",
    "shouted",
    "whispered",
    "laughed",
    "smiled",
    "nodded",
    "walked",
    "ran",
    "came",
    "went",
    "sat",
    "stood",
    "rose",
    "took",
    "gave",
    "opened",
    "closed",
    "shut",
    "lit",
    "poured",
    "drank",
    "ate",
    "pulled",
    "pushed",
    "threw",
    "picked",
    "handed",
    "turned",
    "looked",
    "watched",
    "climbed",
    "knocked",
    "entered",
    "left",
    "signed",
    "wrote",
    "cut",
    "tied",
    "rowed",
    "held",
    "lifted",
    "raised",
    "put",
    "set",
    "crossed",
    "waved",
    "stepped",
    "shook",
    "called",
    "bowed",
    "leaned",
    "reached",
    "drew",
    "carried",
    "cooked",
    "sang",
    "slept",
    "woke",
    "laid",
    "rode",
    "spoke",
    "told",
    "began",
    "broke",
    "brought",
    "bought",
    "dug",
    "drove",
    "fought",
    "found",
    "got",
    "hid",
    "hung",
    "knelt",
    "led",
    "made",
    "met",
    "paid",
    "read",
    "rang",
    "saw",
    "sent",
    "shot",
    "showed",
    "sold",
    "stole",
    "struck",
    "swam",
    "swept",
    "swung",
    "tore",
    "wept",
];
/// Past tenses that are not actions: events that happened to someone, or states.
const SUFFERED: &[&str] = &[
    "died",
    "lived",
    "loved",
    "named",
    "killed",
    "buried",
    "missed",
    "used",
    "seemed",
    "appeared",
    "remained",
    "belonged",
    "existed",
    "deserved",
    "drowned",
    "murdered",
    "needed",
    "hated",
    "wanted",
    "mattered",
    "passed",
    "vanished",
    "disappeared",
    "perished",
    "rested",
    "owned",
    "hanged",
    "executed",
    "mentioned",
    "indeed",
    "red",
    "bed",
    "sacred",
    "beloved",
    "hundred",
];
const ACTS_ZH: &[&str] = &[
    "说", "问", "答", "喊", "笑", "点头", "点了", "走", "跑", "来到", "坐", "站", "拿", "递",
    "打开", "推", "拉", "关上", "倒", "喝", "吃", "扔", "举", "转身", "看", "爬", "敲", "写", "签",
    "切", "系", "划", "抱", "挥", "伸", "放下", "睡", "醒", "低头", "抬头", "把", "提", "接过",
    "叹", "摊", "咳", "骑", "补", "叫", "唱", "哭", "跳", "吹", "掏", "握", "牵", "砍", "打", "拍",
    "摇", "翻", "读", "洗", "擦", "穿过", "追", "逃", "躲", "跪", "蹲", "挥手", "端", "捡", "抓",
    "抬", "撕", "烧", "收拾", "指着", "搬",
];

#[derive(Clone, Copy)]
enum Gone {
    Dead,
    Away,
}

/// Returns true if a fact says that its owner is dead.
pub(crate) fn says_dead(key: &str, value: &str) -> bool {
    let opening = value
        .split([',', '，', ';', '；', '(', '（', '。'])
        .next()
        .unwrap_or_default();
    let is_doubtful = says_any(
        opening,
        &[
            "not", "believed", "presumed", "未死", "没死", "以为", "疑", "生死",
        ],
    );
    STATUS_KEYS.contains(&key) && says_any(opening, DEAD) && !is_doubtful
        || DEATH_KEYS.contains(&key) && !value.is_empty()
}

/// Returns the reason why someone cannot act in this chapter, and the fact that says so.
fn gone<'m>(sentence: &Sentence<'m>, entity: usize) -> Option<(Gone, &'m Fact)> {
    sentence.memory.facts_of(entity).find_map(|fact| {
        let key = fact.key.as_str();
        let opening = fact
            .value
            .split([',', '，', ';', '；', '(', '（', '。'])
            .next()
            .unwrap_or_default();
        let dead = says_dead(key, &fact.value);
        let away = STATUS_KEYS.contains(&key) && says_any(opening, AWAY)
            || ABSENT_KEYS.contains(&key) && !fact.value.is_empty();
        let span: Vec<u64> = chapters(&fact.value);
        let within = match (sentence.chapter, span.as_slice()) {
            (_, []) => true,
            (None, _) => false,
            // With one chapter, the dead cannot act after it, and the absent neither in it nor
            // after it. Several chapters are a range from the first to the last.
            (Some(now), [from]) => now > *from || away && now == *from,
            (Some(now), [from, .., to]) => (*from..=*to).contains(&now),
        };
        let whose = if dead {
            Some(Gone::Dead)
        } else if away {
            Some(Gone::Away)
        } else {
            None
        };
        whose.filter(|_| within).map(|gone| (gone, fact))
    })
}

/// Returns the chapters that a value names, in order.
fn chapters(value: &str) -> Vec<u64> {
    let spaced = value.replace(['–', '—', '-', '至', '到', '~'], " ");
    spaced
        .split([' ', ',', '，', '、'])
        .filter_map(chapter_number)
        .collect()
}

pub fn judge(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let text = sentence.text;
    if is_unreal(&sentence.bare) || says_any(&sentence.bare, PAST) {
        return;
    }
    let quoted = quotations(text);
    let first_han = text
        .char_indices()
        .find(|(_, c)| is_han(*c))
        .map_or(text.len(), |(at, _)| at);
    let mut known: BTreeMap<usize, Option<(Gone, &Fact)>> = BTreeMap::new();
    let mut told = BTreeSet::new();
    for (mention, acts) in sentence.mentions.iter().zip(who_acts(sentence)) {
        let said = || quoted.iter().any(|range| range.contains(&mention.start));
        if !acts
            || mention.possessive
            || said()
            || is_object(sentence, mention.start, first_han < mention.start)
        {
            continue;
        }
        let found = known
            .entry(mention.entity)
            .or_insert_with(|| gone(sentence, mention.entity));
        let Some((gone, fact)) = found.filter(|_| told.insert(mention.entity)) else {
            continue;
        };
        let name = &sentence.memory.entities[mention.entity].name;
        let (what, zh, sure) = match gone {
            Gone::Dead => ("dead", "已死", 0.85),
            Gone::Away => ("not here", "不在此处", 0.75),
        };
        findings.push(sentence.found(
            "presence",
            true,
            sure,
            sentence.why(
                format!("{name} is {what}, but acts"),
                format!("{name}{zh}，却在行动"),
            ),
            fact,
        ));
    }
}

/// For each mention, determines whether an action verb follows the name, or the name joined to it.
fn who_acts(sentence: &Sentence<'_>) -> Vec<bool> {
    let mut acting = vec![false; sentence.mentions.len()];
    let mut next: Option<(&Mention, bool)> = None;
    for (acts, mention) in acting.iter_mut().zip(&sentence.mentions).rev() {
        let joined = |next: &Mention| {
            ["and", "和", "与"].contains(&sentence.text[mention.end..next.start].trim())
                && !next.possessive
        };
        *acts = match next {
            Some((next, acts)) if joined(next) => acts,
            _ => acts_alone(sentence.text, mention, next.map(|(next, _)| next)),
        };
        next = Some((mention, *acts));
    }
    acting
}

fn acts_alone(text: &str, mention: &Mention, next: Option<&Mention>) -> bool {
    // `沈舟对她笑了笑`, `Tom, to Mara, nodded`: the addressee is between name and verb.
    let after = &text[mention.end..];
    let toward = ["对", "朝", "向", "冲"]
        .iter()
        .any(|sign| after.starts_with(sign));
    let end = match next.filter(|next| toward && next.start - mention.end <= 3) {
        Some(next) => next.end,
        None if toward => {
            mention.end
                + after
                    .char_indices()
                    .nth(2)
                    .map_or(after.len(), |(at, _)| at)
        }
        None => mention.end,
    };
    does(near_after(text, end)) || is_inverted(text, mention)
}

/// Verbs that may stand before their subject: `On the bridge stood Captain Vale`.
const BEFORE_SUBJECT: &[&str] = &[
    "stood", "sat", "came", "went", "walked", "ran", "strode", "stepped", "knelt", "crouched",
    "waited", "leaned", "appeared", "entered", "emerged", "rode", "climbed", "rushed", "stumbled",
    "standing", "sitting", "waiting", "kneeling",
];
const BEFORE_SUBJECT_ZH: &[&str] = &[
    "站着",
    "坐着",
    "蹲着",
    "跪着",
    "站了",
    "坐了",
    "走来",
    "走来了",
    "走出",
    "走进",
    "跑来",
    "来了",
    "走着",
    "立着",
];
/// Words that open such a sentence.
const OPENS_INVERTED: &[&str] = &[
    "in", "on", "at", "under", "beside", "behind", "before", "above", "below", "between", "among",
    "by", "near", "from", "out", "up", "down", "over", "across", "through", "there", "here",
    "then", "outside", "inside", "into", "around", "against", "beyond", "atop", "upon", "next",
    "along",
];
/// Likenesses stand where people do.
const LIKENESSES: &[&str] = &[
    "statue",
    "portrait",
    "bronze",
    "marble",
    "stone",
    "painted",
    "carved",
    "effigy",
    "photograph",
    "像",
    "画",
    "雕",
    "照片",
    "牌位",
];

/// Returns true if a verb stands before the name, its subject: `In came Tom`, `门口站着沈舟`.
fn is_inverted(text: &str, mention: &Mention) -> bool {
    let before = before_title(&text[..mention.start]);
    if BEFORE_SUBJECT_ZH.iter().any(|verb| before.ends_with(verb)) {
        let ends = text[mention.end..]
            .chars()
            .next()
            .is_none_or(|c| !is_han(c));
        return ends && !says_any(text, LIKENESSES);
    }
    let near = near_before(before, before.len());
    let clause = words(clause_before(near, near.len()));
    let (Some(first), Some(last)) = (clause.first(), clause.last()) else {
        return false;
    };
    clause.len() >= 2
        && OPENS_INVERTED.contains(&first.lower.as_str())
        && BEFORE_SUBJECT.contains(&last.lower.as_str())
        && !says_any(text, LIKENESSES)
}

fn does(after: &str) -> bool {
    if after
        .chars()
        .find(|c| !c.is_whitespace())
        .is_some_and(crate::words::is_han)
    {
        let near: String = after
            .chars()
            .take_while(|c| crate::words::is_han(*c))
            .take(6)
            .collect();
        let near = [
            "低声", "轻声", "大声", "慢慢", "忽然", "突然", "默默", "终于",
        ]
        .iter()
        .find_map(|how| near.strip_prefix(how))
        .unwrap_or(&near);
        let near = near.trim_start_matches([
            '也', '便', '就', '又', '却', '忽', '然', '缓', '慢', '轻', '地', '才', '正', '已',
            '都',
        ]);
        return ACTS_ZH.iter().any(|act| near.starts_with(act))
            && !near.contains('没')
            && !near.starts_with("来不及");
    }
    let skipped = [
        "then", "slowly", "quietly", "only", "just", "himself", "herself", "suddenly", "quickly",
        "never", "softly",
    ];
    let next: Vec<String> = words(after)
        .into_iter()
        .take(4)
        .map(|word| word.lower)
        .filter(|word| !skipped.contains(&word.as_str()))
        .take(2)
        .collect();
    let joined = after.trim_start().starts_with(char::is_alphanumeric);
    joined
        && match next.as_slice() {
            [verb, doing] if verb == "was" || verb == "is" => {
                doing.len() > 5
                    && doing.ends_with("ing")
                    && ![
                        "lying",
                        "resting",
                        "missing",
                        "nothing",
                        "something",
                        "dying",
                    ]
                    .contains(&doing.as_str())
            }
            [verb, ..] => {
                ACTS.contains(&verb.as_str())
                    || verb.len() > 4 && verb.ends_with("ed") && !SUFFERED.contains(&verb.as_str())
            }
            [] => false,
        }
}

/// Returns true if a name is the object of the text before it: `about Tom said nothing more`,
/// `谁也不信沈舟说`.
fn is_object(sentence: &Sentence<'_>, start: usize, in_chinese: bool) -> bool {
    let before = sentence.text[..start].trim_end();
    if in_chinese {
        // `阿岳和沈舟骑马`: both act if the first name begins the clause.
        let joined = before.ends_with(['和', '与']);
        let end = before.len().saturating_sub('和'.len_utf8());
        let first = sentence
            .mentions
            .binary_search_by_key(&end, |other| other.end)
            .ok()
            .filter(|_| joined);
        let first = first.and_then(|nth| sentence.mentions.get(nth));
        if first.is_some_and(|first| {
            crate::words::clause_before(sentence.text, first.start)
                .trim()
                .is_empty()
        }) {
            return false;
        }
        return before.ends_with([
            '像', '如', '替', '为', '对', '把', '被', '给', '跟', '和', '与', '听', '信', '讲',
        ]);
    }
    let last = words(near_before(before, before.len()))
        .into_iter()
        .last()
        .map(|word| word.lower)
        .unwrap_or_default();
    [
        "of", "about", "for", "to", "like", "as", "what", "how", "that", "whom", "than", "by",
        "from", "where", "the", "a", "way",
    ]
    .contains(&last.as_str())
        && !before.ends_with([',', '.', ';', '”', '"'])
}

#[cfg(test)]
mod tests {
    use crate::judges::bench::expect;

    #[test]
    fn the_dead_do_not_act() {
        let memory = "# C\n\n## Tom\n- status: dead, drowned off the rock\n\n## Hale\n- absent: ch04–ch09\n\n## Ines\n- died: ch12\n\n## 沈舟\n- 状态：已死\n\n## 郝督察\n- 不在：ch08至ch10\n";
        expect(
            memory,
            &[
                ("Tom opened the door.", &["presence!"]),
                ("She turned, and Tom slowly nodded.", &["presence!"]),
                ("Hale lit the lamp.", &["presence!"]),
                ("沈舟推开门。", &["presence!"]),
                ("On the bridge stood Captain Tom.", &["presence!"]),
                ("In came Tom, wet to the knees.", &["presence!"]),
                ("Beside the stove sat Ana, and Tom was dead.", &[]),
                ("In the square stood Tom, in bronze.", &[]),
                ("In the square stood Tom's widow.", &[]),
                ("门口站着沈舟。", &["presence!"]),
                ("门口立着沈舟的像。", &[]),
                ("郝督察笑了。", &["presence!"]),
                // The draft is chapter nine, in which she is still alive.
                ("Ines opened the door.", &[]),
                ("She remembered how Tom opened doors.", &[]),
                ("Tom's door opened.", &[]),
                ("“Tom opened the door,” she said.", &[]),
                ("She spoke to Tom, as ever, and got no answer.", &[]),
                ("Tom had opened the door that night.", &[]),
                ("她想起沈舟推开门的样子。", &[]),
                ("沈舟的门开着。", &[]),
                ("梦里沈舟笑了。", &[]),
            ],
        );
    }
}
