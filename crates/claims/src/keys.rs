//! Which keys may have several values at one time, and which values are comparable.

use crate::state::kind_of;
use crate::words::numbers;

/// Keys of which an owner may have any number, in lower case.
const LISTS: &[&str] = &[
    "aliases",
    "alias",
    "also known as",
    "aka",
    "drive",
    "background",
    "temperament",
    "stake",
    "stakes",
    "motive",
    "wants",
    "fear",
    "fears",
    "relation",
    "relations",
    "turn",
    "turns",
    "friend",
    "friends",
    "enemy",
    "enemies",
    "child",
    "children",
    "son",
    "daughter",
    "brother",
    "sister",
    "skill",
    "skills",
    "habit",
    "secret",
    "secrets",
    "scar",
    "scars",
    "event",
    "note",
    "notes",
    "rule",
    "limit",
    "price",
    "promise",
    "planted",
    "due",
    "closed",
    "when",
    "leaves off",
    "别名",
    "又名",
    "又称",
    "化名",
    "绰号",
    "驱动力",
    "核心驱动力",
    "背景",
    "背景因果",
    "性格",
    "利害",
    "动机",
    "恐惧",
    "关系",
    "转折",
    "关键转折",
    "朋友",
    "敌人",
    "孩子",
    "兄弟",
    "姐妹",
    "技能",
    "习惯",
    "秘密",
    "伤疤",
    "事件",
    "备注",
    "规则",
    "代价",
    "埋于",
    "悬念",
    "应收",
    "收于",
    "时间",
    "停在",
];

/// Keys that have one value at one time, in lower case.
const SINGLE: &[&str] = &[
    "age",
    "born",
    "birthplace",
    "birthday",
    "died",
    "handed",
    "hand",
    "eyes",
    "eye colour",
    "eye color",
    "hair",
    "height",
    "mother",
    "father",
    "wife",
    "husband",
    "post",
    "rank",
    "title",
    "trade",
    "job",
    "occupation",
    "profession",
    "home",
    "lives in",
    "name",
    "full name",
    "sex",
    "gender",
    "species",
    "goes by",
    "commanded by",
    "commander",
    "led by",
    "leader",
    "ruled by",
    "ruler",
    "governed by",
    "headed by",
    "captained by",
    "run by",
    "kept by",
    "guarded by",
    "owned by",
    "owner",
    "king",
    "queen",
    "capital",
    "年龄",
    "年纪",
    "岁数",
    "生于",
    "出生",
    "出生地",
    "生日",
    "死于",
    "卒于",
    "惯用手",
    "眼睛",
    "瞳色",
    "发色",
    "头发",
    "身高",
    "母亲",
    "父亲",
    "生母",
    "生父",
    "妻子",
    "丈夫",
    "职务",
    "职业",
    "职位",
    "军衔",
    "头衔",
    "住处",
    "住址",
    "姓名",
    "本名",
    "性别",
    "国王",
    "首都",
    "指挥",
    "指挥者",
    "统领",
    "首领",
    "领袖",
    "掌管",
    "掌管者",
    "主管",
    "负责人",
    "所有者",
    "拥有者",
];

/// Keys whose value does not change in the course of a story.
const FIXED: &[&str] = &[
    "born",
    "birthplace",
    "birthday",
    "mother",
    "father",
    "eyes",
    "eye colour",
    "eye color",
    "生于",
    "出生",
    "出生地",
    "生日",
    "母亲",
    "父亲",
    "生母",
    "生父",
    "眼睛",
    "瞳色",
];

/// Keys of one meaning. The first one names them.
const SAME: [&[&str]; 10] = [
    &["age", "年龄", "年纪", "岁数"],
    &["born", "生于", "出生"],
    &["birthplace", "出生地"],
    &["handed", "hand", "惯用手"],
    &["eyes", "eye colour", "eye color", "眼睛", "瞳色"],
    &["hair", "发色", "头发"],
    &["mother", "母亲", "生母"],
    &["father", "父亲", "生父"],
    &["post", "职务", "职位"],
    &["trade", "job", "occupation", "profession", "职业"],
];

/// Returns the name of a key that has several words: `年龄` is `age`.
pub fn canonical(key: &str) -> &str {
    let same = SAME.iter().find(|keys| keys.contains(&key));
    same.map(|keys| keys[0])
        .or_else(|| kind_of(key).map(|kind| kind.name()))
        .unwrap_or(key)
}

/// Returns true if two keys mean the same, in any case and either language.
pub fn is_same_key(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim().to_lowercase(), b.trim().to_lowercase());
    canonical(&a) == canonical(&b)
}

/// Returns true if several facts of this key may hold at one time.
pub fn is_list(key: &str) -> bool {
    key.is_empty()
        || LISTS.contains(&key)
        || !SINGLE.contains(&key) && kind_of(key).is_some_and(|kind| kind.is_list())
}

/// Returns true if only one fact of this key may hold at one time.
pub fn is_single(key: &str) -> bool {
    SINGLE.contains(&key) || kind_of(key).is_some_and(|kind| !kind.is_list())
}

/// Returns true if a later value of this key corrects the earlier one instead of following it.
pub fn is_fixed(key: &str) -> bool {
    FIXED.contains(&key)
}

/// The statement of a value: without its reason and case.
pub fn gist(value: &str) -> String {
    let first = value
        .split([',', '，', ';', '；', '(', '（', '。'])
        .next()
        .unwrap_or_default();
    let first = first.split(" because ").next().unwrap_or(first);
    let first = first.split("因为").next().unwrap_or(first);
    let lower = first.trim().trim_end_matches('.').to_lowercase();
    let bare = ["the ", "a ", "an "]
        .iter()
        .find_map(|article| lower.strip_prefix(article));
    bare.unwrap_or(&lower).trim().to_owned()
}

/// Returns true if two values exclude each other under one key: of a key with one value, any two
/// that differ; of another key, two numbers or two sides.
pub fn excludes(key: &str, a: &str, b: &str) -> bool {
    let (a, b) = (gist(a), gist(b));
    if a.is_empty() || b.is_empty() || a == b || is_list(key) {
        return false;
    }
    let counts = |text: &str| numbers(text).iter().map(|n| n.value).collect::<Vec<_>>();
    let (of_a, of_b) = (counts(&a), counts(&b));
    if of_a.len() == 1 && of_b.len() == 1 {
        return of_a != of_b;
    }
    // One value may say the same more precisely: `grey`, `grey-green`.
    is_single(key) && !a.contains(&b) && !b.contains(&a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_alternatives_exclude_each_other() {
        for (key, a, b) in [
            ("handed", "left", "right, because the left was crushed"),
            ("chains", "3", "four"),
            ("年龄", "三十一岁", "33"),
            ("status", "dead", "alive"),
            ("眼睛", "灰", "蓝"),
            ("commanded by", "Aldous Crane", "Maren Hale"),
            ("goes by", "Tobias Finch", "Tom Wray"),
            ("指挥者", "沈砚", "陆离"),
        ] {
            assert!(excludes(key, a, b), "{key}: {a}, {b}");
        }
        for (key, a, b) in [
            ("knows", "the truth", "who cut the rope"),
            ("scar", "left palm", "right cheek"),
            ("eyes", "grey", "grey-green"),
            ("handed", "Left", "left, since birth"),
            ("关系", "卡莲", "李素裳"),
            ("age", "41", "forty-one"),
            ("bell", "rung at dawn", "cast in Lyme"),
        ] {
            assert!(!excludes(key, a, b), "{key}: {a}, {b}");
        }
    }
}
