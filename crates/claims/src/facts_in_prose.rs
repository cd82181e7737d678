//! Tells sentences that state a fact from those that only move a story on.
//!
//! The signs are general: numbers, denials and habits, kin, death, possession and loss, knowledge,
//! names, places of living, ability. They help to select evidence; no judge uses them.

use crate::words::{has_han, numbers, words};

/// Signs of one sort.
type Sort = (&'static [&'static str], &'static [&'static str]);

const SORTS: &[Sort] = &[
    (
        &[
            "never", "always", "nobody", "none", "neither", "only", "every", "first", "last",
            "once", "no", "not", "without",
        ],
        &[
            "从不",
            "从来",
            "从没",
            "从未",
            "再没",
            "再也",
            "绝不",
            "不会",
            "一向",
            "头一",
            "第一次",
            "最后",
            "只有",
            "一生",
            "没有",
            "不得",
            "未曾",
            "往后",
        ],
    ),
    (
        &[
            "brother", "sister", "mother", "father", "son", "daughter", "uncle", "aunt", "cousin",
            "nephew", "niece", "wife", "husband", "widow", "widower", "married", "met", "child",
            "children", "twin",
        ],
        &[
            "哥", "弟", "姐", "妹", "父", "母", "爹", "娘", "儿子", "女儿", "叔", "舅", "姑", "姨",
            "侄", "甥", "妻", "丈夫", "寡", "见面", "亲生", "师父", "徒",
        ],
    ),
    (
        &[
            "dead", "died", "death", "buried", "killed", "drowned", "funeral", "grave", "born",
            "alive",
        ],
        &[
            "死", "埋", "葬", "火化", "薨", "亡", "殉", "坟", "断气", "出生", "活着",
        ],
    ),
    (
        &[
            "broke", "broken", "lost", "gave", "sold", "burned", "burnt", "sank", "stolen",
            "buried", "sent", "tied", "hid", "locked", "key", "kept",
        ],
        &[
            "断", "碎", "丢", "卖", "烧", "沉", "给了", "送", "藏", "锁", "钥匙", "不在", "拧",
            "交给", "还给",
        ],
    ),
    (
        &[
            "know", "knew", "known", "told", "tell", "secret", "heard", "promise", "promised",
            "swore", "vow",
        ],
        &[
            "知道", "告诉", "秘密", "发誓", "答应", "不提", "没提", "没说", "瞒", "听说",
        ],
    ),
    (
        &[
            "name", "named", "called", "lived", "lives", "lodged", "north", "south", "east",
            "west", "left", "right",
        ],
        &["叫", "名", "姓", "住", "北", "南", "东", "西", "左", "右"],
    ),
    (
        &[
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
            "spring",
            "summer",
            "autumn",
            "winter",
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
            "noon",
            "rain",
            "snow",
            "wind",
            "year",
            "years",
        ],
        &[
            "年", "月初", "初", "春", "夏", "秋", "冬", "雨", "雪", "风", "岁", "节", "重阳",
            "中秋",
        ],
    ),
    (
        &[
            "cannot", "can't", "couldn't", "could", "able", "blind", "deaf", "mute", "swim",
            "read", "write",
        ],
        &[
            "不会", "不能", "看不", "听不", "瞎", "聋", "哑", "识字", "认得",
        ],
    ),
];

/// Returns the number of sorts of signs in a sentence, from 0 to 1.
pub fn factual(text: &str) -> f32 {
    let said: Vec<String> = words(text).into_iter().map(|word| word.lower).collect();
    let is_han = has_han(text);
    let has = |(english, chinese): &&Sort| {
        said.iter().any(|word| english.contains(&word.as_str()))
            || is_han && chinese.iter().any(|sign| text.contains(sign))
    };
    let sorts = SORTS.iter().filter(has).count() + usize::from(!numbers(text).is_empty());
    (sorts.min(4) as f32) / 4.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_outweigh_movement() {
        for (fact, movement) in [
            (
                "She had never been on a horse in her life.",
                "She looked at the water.",
            ),
            ("They buried him on a Wednesday.", "He rose and smiled."),
            ("打那天起，我再没碰过一口鱼。", "他抬头看了看天色。"),
        ] {
            assert!(factual(fact) > factual(movement), "{fact}");
        }
    }
}
