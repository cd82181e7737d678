//! Interprets a sign such as ❌ in a text: an objection, only a count of objections, or a statement
//! that there are none.
//!
//! Models write verdicts in many forms: `Pass. 0 ❌, 1 💡.`, `No ❌`, `❌: none`, `| ❌ | 2 |`,
//! `没有 ❌`. None of these is an objection. A count without the counted items requires no answer.

/// The meaning of a sign on one line, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The line does not contain the sign, or says that there is none.
    Nothing,
    /// The line only counts signs or states a verdict.
    Counted,
    /// The line makes a statement.
    Said,
}

/// Phrases that mean "none".
const NONE: [&str; 16] = [
    "none",
    "none found",
    "no objection",
    "no objections",
    "no items",
    "no errors",
    "no issues",
    "nothing",
    "nothing found",
    "nil",
    "n/a",
    "无",
    "没有",
    "未发现",
    "零",
    "暂无",
];

/// Words of a verdict that do not describe a problem.
const VERDICT: [&str; 28] = [
    "verdict",
    "block",
    "blocks",
    "blocked",
    "blocking",
    "fail",
    "fails",
    "failed",
    "rejected",
    "reject",
    "objection",
    "objections",
    "error",
    "errors",
    "finding",
    "findings",
    "item",
    "items",
    "must",
    "fix",
    "mend",
    "结论",
    "不通过",
    "退回",
    "否决",
    "异议",
    "必须改",
    "错误",
];

/// Characters between a sign and its text.
const LEADING: [char; 13] = [
    ' ', ':', '：', '=', '×', '(', '（', '*', '_', '-', '–', '—', '|',
];

const UNITS: [char; 7] = ['个', '条', '处', '项', '×', 'x', '次'];

/// Returns the meaning of a sign on a line without markup and code.
pub fn weigh(line: &str, sign: &str) -> Weight {
    let weights = line
        .match_indices(sign)
        .map(|(at, _)| weigh_one(&line[..at], &line[at + sign.len()..]));
    weights.max().unwrap_or(Weight::Nothing)
}

fn weigh_one(before: &str, after: &str) -> Weight {
    match count_before(before).or_else(|| denied_before(before).then_some(0)) {
        Some(0) => return Weight::Nothing,
        Some(_) if words_up_to_stop(after) <= 3 => return Weight::Counted,
        _ => {}
    }
    let mut after = after.trim_start_matches(LEADING);
    // `❌ Objections: none` means the same as `❌: none`.
    while let Some(word) = VERDICT.iter().find(|word| begins_with_word(after, word)) {
        after = after[word.len()..].trim_start_matches(LEADING);
    }
    match count_after(after) {
        Some(0) => Weight::Nothing,
        Some(_) => Weight::Counted,
        None if says_none(after) => Weight::Nothing,
        None => Weight::Said,
    }
}

fn begins_with_word(text: &str, word: &str) -> bool {
    let begins = text
        .get(..word.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(word));
    begins && !(word.is_ascii() && text[word.len()..].starts_with(|c: char| c.is_alphanumeric()))
}

/// Parses `2 ❌`, `0 个 ❌`.
fn count_before(before: &str) -> Option<u32> {
    let before = before
        .trim_end_matches([' ', '*', '_', '(', '（'])
        .trim_end_matches(UNITS)
        .trim_end();
    let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (rest, number) = before.split_at(before.len() - digits);
    let alone = !rest.ends_with(|c: char| {
        c.is_alphanumeric() && c.is_ascii() || matches!(c, '.' | '-' | '#' | ':')
    });
    number.parse().ok().filter(|_| alone)
}

/// Recognises `no ❌`, `no open ❌`, `没有 ❌`.
fn denied_before(before: &str) -> bool {
    let before = before
        .trim_end_matches([' ', '*', '_', '"', '“', '(', '（'])
        .to_lowercase();
    if ["没有", "没有任何", "无", "未发现", "未见", "不含", "零"]
        .iter()
        .any(|word| before.ends_with(word))
    {
        return true;
    }
    let mut words = before
        .rsplit(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let denies = |word: Option<&str>| matches!(word, Some("no" | "zero" | "without"));
    match words.next() {
        Some("any" | "open" | "remaining" | "further" | "new" | "more" | "single") => {
            denies(words.next())
        }
        word => denies(word),
    }
}

/// Parses `❌ 2`, `❌: 0,`. A number that begins a sentence or a list does not count.
fn count_after(after: &str) -> Option<u32> {
    let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = after.split_at(digits);
    let rest = rest
        .trim_start_matches(' ')
        .trim_start_matches(UNITS)
        .trim();
    let over = rest.trim_end_matches(['.', '。', '*', '_']).is_empty()
        || rest.starts_with([',', '，', ';', '；', ')', '）', '|', '/', '、', '⚠', '💡']);
    number.parse().ok().filter(|_| over)
}

/// Returns true if the first clause of a text only says that there is nothing.
pub fn says_none(text: &str) -> bool {
    let text = text
        .trim()
        .trim_start_matches(['-', '*', '_', '(', '（', ' '])
        .to_lowercase();
    NONE.iter().any(|none| {
        let rest = text
            .strip_prefix(none)
            .map(|rest| rest.trim_start_matches(['*', '_']));
        rest.is_some_and(|rest| {
            rest.is_empty()
                || rest.starts_with([
                    '.', '。', ',', '，', ';', '；', '!', '！', ')', '）', '|', '⚠', '💡',
                ])
        })
    })
}

fn words_up_to_stop(text: &str) -> usize {
    let clause = text
        .split([',', '，', ';', '；', '.', '。', ':', '：', '|', ')', '）'])
        .next()
        .unwrap_or_default();
    // Two Chinese characters count as about one word.
    let wide = clause.chars().filter(|c| *c >= '\u{2e80}').count();
    clause
        .split_whitespace()
        .filter(|word| word.chars().any(|c| c.is_ascii_alphanumeric()))
        .count()
        + wide.div_ceil(2)
}

/// Returns true if a passage only states a verdict without the subject: `❌`, `Verdict: block ❌`,
/// `### ❌ Must fix (2)`.
pub fn says_only_verdict(passage: &str, sign: &str) -> bool {
    let said = passage.replace(sign, " ").to_lowercase();
    let words = said
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words
        .into_iter()
        .all(|word| word.chars().all(|c| c.is_ascii_digit()) || VERDICT.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_denials_are_no_objections() {
        for nothing in [
            "Pass. 0 ❌, 1 💡.",
            "0 ❌ · 2 ⚠️",
            "No ❌.",
            "There is no open ❌ left",
            "❌: none",
            "❌ none found.",
            "❌ 0",
            "❌: 0, ⚠️: 2",
            "❌ (0)",
            "❌：无",
            "没有 ❌",
            "通过。0 个 ❌，1 个 💡",
            "❌ 无。",
            "without ❌",
            "❌ | 0",
            "❌ Objections: none",
            "❌ errors  0",
            "❌ — none, ⚠️ — two",
        ] {
            assert_eq!(weigh(nothing, "❌"), Weight::Nothing, "{nothing}");
        }
        for counted in [
            "Block. 2 ❌, 1 💡.",
            "❌: 2",
            "❌ 3, ⚠️ 1",
            "2 ❌ items",
            "2 个 ❌",
            "1 ❌ remains.",
        ] {
            assert_eq!(weigh(counted, "❌"), Weight::Counted, "{counted}");
        }
        for said in [
            "❌ No `knit()` exists",
            "❌ none of the names exist",
            "❌ 1. No add",
            "❌ 0.8 is the lower bound",
            "Round 2 ❌ the name is still wrong",
            "❌ no such function",
            "❌ Errors are swallowed",
            "❌ fix the name",
            "The third line is wrong ❌, and so on",
            "❌ 3 of 4 calls are missing",
            "L10 ❌ wrong",
            "ch01: ❌ 无此函数",
            "line 12: ❌ wrong name",
        ] {
            assert_eq!(weigh(said, "❌"), Weight::Said, "{said}");
        }
    }

    #[test]
    fn a_verdict_alone_has_nothing_to_answer() {
        for only in [
            "❌",
            "**Verdict:** block ❌",
            "❌ Must fix (2)",
            "结论：不通过 ❌",
        ] {
            assert!(says_only_verdict(only, "❌"), "{only}");
        }
        for more in ["❌ libel", "❌ | no add", "好 | ❌"] {
            assert!(!says_only_verdict(more, "❌"), "{more}");
        }
    }
}
