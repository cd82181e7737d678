//! Judges handedness and occupation.
//!
//! The hand counts only if the sentence shows it at skilled work and gives no reason, such as an
//! injury. An occupation counts only if the sentence states it of a named entity.

use super::{Finding, Sentence};
use crate::injury::is_healed;
use crate::memory::Fact;
use crate::state::Kind;
use crate::words::{clause_before, find_all, is_negated, is_quoted, is_unreal, says_any, words};

const HAND_KEYS: &[&str] = &[
    "handed",
    "hand",
    "dominant hand",
    "handedness",
    "writing hand",
    "惯用手",
    "利手",
    "用手",
];

/// Activities that people do with the dominant hand.
const SKILLS: &[&str] = &[
    "wrote",
    "write",
    "writes",
    "writing",
    "signed",
    "sign",
    "signs",
    "signing",
    "drew",
    "draws",
    "draw",
    "sketched",
    "sketching",
    "painted",
    "painting",
    "threw",
    "throws",
    "throw",
    "hurled",
    "carved",
    "carving",
    "sewed",
    "stitched",
    "stitching",
    "scribbled",
    "scrawled",
    "fenced",
    "fencing",
    "whittled",
    "inked",
    "lettered",
    "copied",
    "shaved",
    "aimed",
    "fired",
    "dealt",
    "brushed",
    "etched",
    "penned",
    "struck",
    "hammered",
    "cut",
    "sliced",
    "stabbed",
    "swung",
    "lunged",
    "slashed",
    "chopped",
    "sawed",
    "stirred",
    "played",
    "shot",
];
const SKILLS_ZH: &[&str] = &[
    "写", "签", "执笔", "握笔", "提笔", "落笔", "画", "描", "掷", "投", "扔", "挥剑", "使剑",
    "握剑", "持剑", "拔剑", "刻", "雕", "缝", "绣", "切", "抄", "夹菜", "射", "瞄准", "开枪",
    "挥刀", "砍", "削", "拨", "舞剑", "刺", "劈", "弹琴", "下棋", "使刀", "扔",
];
/// Words that explain the use of the other hand.
const CAUSES: &[&str] = &[
    "broken",
    "injured",
    "bandaged",
    "sling",
    "wounded",
    "burnt",
    "burned",
    "numb",
    "clumsily",
    "awkwardly",
    "badly",
    "practised",
    "practiced",
    "learning",
    "forced",
    "because",
    "since",
    "受伤",
    "断了",
    "包扎",
    "绷带",
    "吊着",
    "笨拙",
    "歪歪扭扭",
    "练习",
    "强迫",
    "因为",
    "烫伤",
    "麻木",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hand {
    Left,
    Right,
}

impl Hand {
    fn name(self) -> &'static str {
        if self == Hand::Left { "left" } else { "right" }
    }

    fn chinese(self) -> &'static str {
        if self == Hand::Left { "左" } else { "右" }
    }
}

/// Returns the dominant hand that a fact states.
fn stated(fact: &Fact) -> Option<Hand> {
    let text = fact.text.to_lowercase();
    let keyed = HAND_KEYS.contains(&fact.key.as_str());
    // The reason of a change may name the other hand.
    let value = crate::keys::gist(&fact.value);
    let left = keyed && says_any(&value, &["left", "左"])
        || says_any(
            &text,
            &["left-handed", "left-hander", "left handed", "左撇子"],
        );
    let right = keyed && says_any(&value, &["right", "右"])
        || says_any(&text, &["right-handed", "right-hander", "右撇子"]);
    match (left, right) {
        (true, false) => Some(Hand::Left),
        (false, true) => Some(Hand::Right),
        _ => None,
    }
}

/// Returns the hand that a sentence shows at work, and the position of the work.
fn shown(text: &str) -> Option<(Hand, usize)> {
    let mut found = Vec::new();
    for (hand, english, chinese) in [(Hand::Left, "left", "左"), (Hand::Right, "right", "右")] {
        for phrase in [
            format!("{english}-handed"),
            format!("{english}-hander"),
            format!("{english} handed"),
            format!("{chinese}撇子"),
            format!("惯用{chinese}手"),
        ] {
            found.extend(
                find_all(text, &phrase, true)
                    .first()
                    .map(|range| (hand, range.start)),
            );
        }
        if let Some(range) = find_all(text, &format!("{english} hand"), true).first() {
            let before = text[..range.start].to_lowercase();
            // An adjective may precede the hand: `with a steady right hand`.
            let near: String = words(&before)
                .iter()
                .rev()
                .take(3)
                .rev()
                .map(|word| format!("{} ", word.lower))
                .collect();
            let by = [
                "with his",
                "with her",
                "with their",
                "with the",
                "with a",
                "using his",
                "using her",
            ];
            let held = ["in his", "in her", "in the"];
            let with = |signs: &[&str]| {
                signs
                    .iter()
                    .any(|sign| format!(" {near}").contains(&format!(" {sign} ")))
            };
            // The work is a verb earlier in the clause, and the person is named before that verb.
            let work = words(clause_before(text, range.start))
                .into_iter()
                .find(|word| SKILLS.contains(&word.lower.as_str()));
            let clause_at = range.start - clause_before(text, range.start).len();
            let subject = words(&text[range.end..])
                .first()
                .is_some_and(|next| SKILLS.contains(&next.lower.as_str()));
            match work {
                Some(work) if with(&by) || with(&held) => {
                    found.push((hand, clause_at + work.range.start))
                }
                _ if subject => found.push((hand, range.start)),
                // `picked up the pen with his right hand and signed`
                _ if (with(&by) || with(&held))
                    && says_any(
                        clause_before(text, range.start),
                        &["pen", "quill", "brush", "chisel"],
                    ) =>
                {
                    found.push((hand, range.start));
                }
                // `reached for the hammer with his right hand and struck`,
                // `With her left hand Mara drew`
                _ if with(&by) && works_next(&text[range.end..]) => found.push((hand, range.start)),
                _ => {}
            }
        }
        for range in find_all(text, &format!("{chinese}手"), false) {
            let after: String = text[range.end..].chars().take(10).collect();
            let before = &text[..range.start];
            let used = before.ends_with(['用', '以', '是', '拿', '使'])
                || before.ends_with("伸出")
                || after.starts_with("一扬")
                || SKILLS_ZH.iter().any(|skill| after.starts_with(skill));
            if used && SKILLS_ZH.iter().any(|skill| after.contains(skill)) {
                found.push((hand, range.start));
            }
        }
    }
    // A sentence that mentions both hands proves nothing.
    let first = *found.first()?;
    let other = if first.0 == Hand::Left {
        ["right hand", "右手"]
    } else {
        ["left hand", "左手"]
    };
    (found.iter().all(|(hand, _)| *hand == first.0) && !says_any(text, &other)).then_some(first)
}

/// Returns true if the text after a hand describes its work: `and struck twice`, `Mara drew a map`,
/// but not `while writing`.
fn works_next(after: &str) -> bool {
    let after = after.split([',', ';', '.']).next().unwrap_or_default();
    let next = words(after);
    let joined = next
        .first()
        .is_some_and(|word| word.lower == "and" || word.capital);
    let work = next
        .iter()
        .take(3)
        .any(|word| SKILLS.contains(&word.lower.as_str()));
    joined && work && !says_any(after, &["with", "while"])
}

pub fn judge_hand(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let Some((hand, at)) = shown(sentence.text) else {
        return;
    };
    if is_unreal(&sentence.bare)
        || is_negated(&sentence.bare, at)
        || is_quoted(sentence.text, at)
        || says_any(&sentence.bare, CAUSES)
    {
        return;
    }
    // `Otto's brother signed`: the hand is the brother's.
    let another = sentence
        .mentions
        .iter()
        .rfind(|mention| mention.end <= at)
        .is_some_and(|mention| {
            let between = &sentence.text[mention.end..at];
            mention.possessive
                && (words(between).iter().any(|word| word.lower != "s")
                    || between.chars().count() > 2 && between.starts_with('的'))
        });
    if another {
        return;
    }
    // `With her left hand Mara drew`, `Being left-handed, Otto …`: the person is named after the
    // hand.
    let fronted = sentence
        .mentions
        .first()
        .filter(|first| first.start > at && !first.possessive);
    let fronted = fronted.filter(|first| {
        let lead = words(&sentence.text[..at])
            .first()
            .map(|word| word.lower.clone())
            .unwrap_or_default();
        ["with", "being"].contains(&lead.as_str())
            && words(&sentence.text[at..first.start]).len() <= 3
    });
    let told = match fronted {
        Some(first) => Some((sentence.memory.facts_of(first.entity).collect(), 1.0)),
        None => sentence.facts_at(at),
    };
    let Some((facts, sure)) = told else { return };
    let Some((fact, stated)) = facts.iter().find_map(|fact| Some((fact, stated(fact)?))) else {
        return;
    };
    if stated != hand && facts.iter().any(|fact| hurts(fact, stated)) {
        return;
    }
    let (known, shown) = (stated.name(), hand.name());
    let why = sentence.why(
        format!("memory says {known}, the text shows the {shown} hand in use"),
        format!(
            "记忆写的是{}手，文中用的是{}手",
            stated.chinese(),
            hand.chinese()
        ),
    );
    findings.push(sentence.found("hand", stated != hand, 0.9 * sure, why, fact));
}

/// Returns true if a fact says that a hand, or the arm that moves it, is injured: its owner uses the
/// other one.
fn hurts(fact: &Fact, hand: Hand) -> bool {
    const ARM: [&str; 10] = [
        "hand", "hands", "wrist", "wrists", "arm", "arms", "shoulder", "elbow", "fingers", "thumb",
    ];
    const ARM_HAN: [char; 8] = ['手', '腕', '臂', '肩', '肘', '掌', '指', '膀'];
    if fact.kind() != Some(Kind::Injury) || is_healed(&fact.value) {
        return false;
    }
    let lower = fact.value.to_lowercase();
    let said = words(&lower);
    let is_arm = |nth: usize| {
        let mut next = said.iter().skip(nth + 1).take(2);
        next.any(|word| ARM.contains(&word.lower.as_str()))
    };
    let english = [hand.name(), "both"];
    let mut sides = said.iter().enumerate();
    let chinese = [hand.chinese(), "双", "两只", "两"];
    sides.any(|(nth, word)| english.contains(&word.lower.as_str()) && is_arm(nth))
        || chinese.iter().any(|side| {
            let mut found = lower.match_indices(side);
            found.any(|(at, _)| lower[at + side.len()..].starts_with(ARM_HAN))
        })
}

const TRADE_KEYS: &[&str] = &[
    "occupation",
    "profession",
    "trade",
    "job",
    "works as",
    "职业",
    "职务",
    "行当",
    "身份",
];
const TRADES: &[&str] = &[
    "baker",
    "blacksmith",
    "smith",
    "butcher",
    "carpenter",
    "cook",
    "doctor",
    "surgeon",
    "nurse",
    "farmer",
    "fisherman",
    "sailor",
    "captain",
    "soldier",
    "teacher",
    "tailor",
    "weaver",
    "potter",
    "painter",
    "poet",
    "judge",
    "lawyer",
    "priest",
    "monk",
    "merchant",
    "miller",
    "mason",
    "miner",
    "midwife",
    "hunter",
    "innkeeper",
    "clerk",
    "printer",
    "librarian",
    "shepherd",
    "cobbler",
    "shoemaker",
    "gardener",
    "clockmaker",
    "watchmaker",
    "locksmith",
    "pilot",
    "ferryman",
    "musician",
    "violinist",
    "apothecary",
    "glazier",
    "cartographer",
    "archivist",
    "barber",
];
const TRADES_ZH: &[&str] = &[
    "面包师",
    "铁匠",
    "屠夫",
    "木匠",
    "厨师",
    "厨子",
    "医生",
    "大夫",
    "护士",
    "农夫",
    "渔夫",
    "水手",
    "船长",
    "士兵",
    "教师",
    "裁缝",
    "织工",
    "陶匠",
    "画师",
    "诗人",
    "法官",
    "律师",
    "牧师",
    "僧人",
    "商人",
    "磨坊主",
    "石匠",
    "矿工",
    "接生婆",
    "猎人",
    "店主",
    "书记员",
    "印刷工",
    "图书管理员",
    "牧羊人",
    "鞋匠",
    "园丁",
    "钟表匠",
    "锁匠",
    "摆渡人",
    "琴师",
    "药师",
    "捕快",
    "镖师",
    "账房",
    "说书人",
];

/// Returns true if an occupation precedes the name: `As a priest, Otto …`, `身为牧师，奥托……`.
fn is_fronted(before: &str) -> bool {
    let before = before.trim().to_lowercase();
    ["as a", "as an", "身为", "作为", "身为一名"].contains(&before.as_str())
}

/// Returns true if the text between a name and an occupation states that the person has it:
/// `was the best`, `, a`, `the`, `是城里最好的`, `做了二十年`.
fn is_called(between: &str, after: &str) -> bool {
    if crate::words::has_han(between) || between.is_empty() {
        let between = between.trim_start_matches(['，', ' ']);
        let praised = between.strip_prefix('是').is_some_and(|rest| {
            let plain = rest
                .trim_start_matches("一")
                .trim_start_matches(['个', '名', '位'])
                .trim_start_matches(['老', '小']);
            plain.is_empty()
                || plain.ends_with('的')
                    && plain.chars().count() <= 7
                    && !plain.contains(['和', '与', '跟', '给', '对'])
        });
        let served =
            (between.starts_with("做了") || between.starts_with("当了")) && between.ends_with('年');
        return praised
            || served
            || between == "当" && !after.starts_with('过')
            || between == "身为"
            || ["这个", "这位"].contains(&between)
            || between == "以" && after.starts_with("为业");
    }
    const PRAISE: &[&str] = &[
        "a", "an", "the", "best", "finest", "only", "old", "young", "good", "poor", "simple",
        "honest", "humble", "great", "skilled", "famous", "local", "village", "town", "clever",
        "gifted", "master", "mere",
    ];
    let said: Vec<String> = words(between).into_iter().map(|word| word.lower).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let rest = match said.as_slice() {
        ["was" | "is", rest @ ..]
        | ["has", "been", rest @ ..]
        | ["worked" | "works" | "served" | "serves", "as", rest @ ..] => rest,
        [
            "earned" | "earns" | "made" | "makes",
            "a",
            "living",
            "as",
            rest @ ..,
        ] => rest,
        rest if between.trim_start().starts_with(',') || rest == ["the"] => rest,
        _ => return false,
    };
    !rest.is_empty() && rest.len() <= 3 && rest.iter().all(|word| PRAISE.contains(word))
}

pub fn judge_trade(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let trade = |text: &str| {
        let english = words(text)
            .into_iter()
            .find(|word| TRADES.contains(&word.lower.as_str()))
            .map(|word| (word.range.start, word.lower));
        let chinese = TRADES_ZH
            .iter()
            .find_map(|trade| text.find(trade).map(|at| (at, (*trade).to_owned())));
        english.or(chinese)
    };
    let Some((at, named)) = trade(sentence.text) else {
        return;
    };
    let end = at + named.len();
    let fronted = is_fronted(&sentence.text[..at])
        .then(|| sentence.named_after(end))
        .flatten();
    let behind = || {
        let mention = sentence
            .mentions
            .iter()
            .rfind(|mention| mention.end <= at && !mention.possessive)?;
        (is_called(&sentence.text[mention.end..at], &sentence.text[end..])
            && !sentence.text[end..].starts_with("'s"))
        .then_some(mention.entity)
    };
    let Some(entity) = fronted.or_else(behind) else {
        return;
    };
    if is_unreal(&sentence.bare)
        || is_quoted(sentence.text, at)
        || says_any(
            &sentence.bare,
            &[
                "once",
                "had been",
                "年轻时",
                "当年",
                "后来",
                "former",
                "过去",
            ],
        )
    {
        return;
    }
    for fact in sentence
        .memory
        .facts_of(entity)
        .filter(|fact| TRADE_KEYS.contains(&fact.key.as_str()))
    {
        if let Some((_, stated)) = trade(&fact.value) {
            let why = sentence.why(
                format!("memory says {stated}, the text {named}"),
                format!("记忆写的是{stated}，文中是{named}"),
            );
            findings.push(sentence.found("trade", stated != named, 0.85, why, fact));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::judges::bench::expect;

    const MEMORY: &str = "# C\n\n## Otto\n- handed: left\n- occupation: clockmaker\n\n## Mara\n- drive: guilt\n\n## 沈砚\n- 别名：守灯人\n- 惯用手：左\n- 职业：钟表匠\n\n## 阿岳\n- [章] 天生的右撇子\n";

    #[test]
    fn a_pronoun_is_carried_over_paragraphs_if_one_person_fits() {
        let memory = "# C\n\n## Mara\n- handed: left\n- [arc] she never forgave the sea\n\n## Ivo\n- trade: clerk, because his father was one\n\n## Ilse\n- handed: left\n\n## 沈砚\n- 惯用手：左\n- [弧] 他不信神\n";
        expect(
            memory,
            &[
                (
                    "Mara sat with Ivo.\n\nNobody spoke.\n\nShe signed with her right hand.",
                    &["hand!"],
                ),
                ("Mara sat with Ivo.\n\nHe signed with his right hand.", &[]),
                (
                    "Mara sat with Ilse.\n\nShe signed with her right hand.",
                    &[],
                ),
                (
                    "Mara sat.\n\n## Later\n\nShe signed with her right hand.",
                    &[],
                ),
                ("沈砚坐下。\n\n他用右手签了字。", &["hand!"]),
            ],
        );
    }

    #[test]
    fn the_wrong_hand_is_caught() {
        expect(
            MEMORY,
            &[
                ("Otto signed the log with his right hand.", &["hand!"]),
                (
                    "Otto sat down. He wrote the name with his right hand.",
                    &["hand!"],
                ),
                ("Otto signed it with his left hand.", &["hand="]),
                // The rendered text counts, not its markup.
                ("*Otto* signed the log with his **right** hand.", &["hand!"]),
                (
                    "Ot\u{200b}to signed the log with his ri\u{ad}ght hand.",
                    &["hand!"],
                ),
                ("沈\u{200b}砚用**右**手签了名。", &["hand!"]),
                ("沈砚用右手签了名。", &["hand!"]),
                ("守灯人提起笔，她用右手写下日期。", &["hand!"]),
                ("阿岳左手执笔，慢慢写下名字。", &["hand!"]),
                ("阿岳是个左撇子。", &["hand!"]),
            ],
        );
    }

    #[test]
    fn what_proves_nothing_is_let_be() {
        expect(
            MEMORY,
            &[
                ("Otto put his right hand on the rail.", &[]),
                (
                    "His left arm broken, Otto signed clumsily with his right hand.",
                    &[],
                ),
                ("Otto watched Mara sign with her right hand.", &[]),
                ("Otto's brother signed with his right hand.", &[]),
                ("If Otto signed with his right hand, they would know.", &[]),
                ("“Otto signs with his right hand,” Mara said.", &[]),
                ("沈砚右手扶着栏杆。", &[]),
                ("沈砚左手受伤，只好用右手写字。", &[]),
                ("沈砚从不用右手写字。", &[]),
                ("沈砚的弟弟站在一旁，用右手签了名。", &[]),
            ],
        );
    }

    #[test]
    fn whose_hand_is_injured_uses_the_other_one() {
        let of = |injury: &str| format!("# C\n\n## Otto\n- handed: left\n- {injury}\n");
        let right = "Otto signed the log with his right hand.";
        for injury in [
            "injury: the left hand is ruined (from ch04)",
            "wound: left wrist burnt",
            "injury: both hands frostbitten",
        ] {
            expect(&of(injury), &[(right, &[])]);
        }
        for injury in [
            "injury: left leg broken",
            "injury: left wrist, healed",
            "injury: right hand cut",
        ] {
            expect(&of(injury), &[(right, &["hand!"])]);
        }
        let of = |injury: &str| format!("# C\n\n## 沈砚\n- 惯用手：左\n- 伤势：{injury}\n");
        for injury in ["左手废了，手指再也伸不直（自 ch04.1）", "双手冻伤"] {
            expect(&of(injury), &[("沈砚用右手签了名。", &[])]);
        }
        for injury in ["左腿骨折", "左腕已愈"] {
            expect(&of(injury), &[("沈砚用右手签了名。", &["hand!"])]);
        }
    }

    #[test]
    fn a_trade_is_compared_with_a_trade() {
        expect(
            MEMORY,
            &[
                ("Otto was a baker, and tired.", &["trade!"]),
                ("Otto, a clockmaker, looked up.", &["trade="]),
                ("Otto was a fool.", &[]),
                ("Otto had once been a baker.", &[]),
                ("沈砚是个铁匠。", &["trade!"]),
                ("沈砚去找铁匠。", &[]),
            ],
        );
    }
}
