//! Recognises entries of a report that say "there is nothing to report", in English and Chinese.
//!
//! An entry that denies issues and says more is neither an issue nor its absence: the reviewer has
//! to say which. A wrong guess would decide the verdict.

/// The meaning of an entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Nothing,
    Content,
    /// It denies issues and says something else.
    Unclear,
}

/// The nouns that are denied.
const ISSUES: &[&str] = &[
    "issue",
    "issues",
    "problem",
    "problems",
    "concern",
    "concerns",
    "flaw",
    "flaws",
    "error",
    "errors",
    "defect",
    "defects",
    "fault",
    "faults",
    "finding",
    "findings",
    "objection",
    "objections",
    "weakness",
    "weaknesses",
    "shortcoming",
    "shortcomings",
    "blocker",
    "blockers",
    "point",
    "points",
    "item",
    "items",
    "comment",
    "comments",
    "recommendation",
    "recommendations",
    "suggestion",
    "suggestions",
    "change",
    "changes",
    "revision",
    "revisions",
    "action",
    "actions",
];

/// Adjectives between the denial and the noun.
const GRAVE: &[&str] = &[
    "critical",
    "major",
    "serious",
    "severe",
    "significant",
    "fatal",
    "blocking",
    "important",
    "substantive",
    "substantial",
    "fundamental",
    "real",
    "true",
    "such",
    "further",
    "additional",
    "other",
    "new",
    "obvious",
    "apparent",
    "specific",
    "particular",
    "outstanding",
    "remaining",
    "open",
    "unresolved",
    "pressing",
    "urgent",
    "technical",
    "methodological",
    "ethical",
    "statistical",
    "minor",
    "and",
    "or",
];

/// Words that add nothing to a denial.
const FILLERS: &[&str] = &[
    "there",
    "are",
    "is",
    "was",
    "were",
    "have",
    "has",
    "had",
    "been",
    "be",
    "being",
    "i",
    "we",
    "it",
    "found",
    "find",
    "identified",
    "identify",
    "noted",
    "note",
    "detected",
    "detect",
    "observed",
    "observe",
    "seen",
    "see",
    "raised",
    "raise",
    "reported",
    "report",
    "recorded",
    "apparent",
    "known",
    "remain",
    "remains",
    "exist",
    "exists",
    "arise",
    "arose",
    "emerged",
    "present",
    "at",
    "this",
    "that",
    "the",
    "these",
    "those",
    "in",
    "of",
    "for",
    "from",
    "to",
    "my",
    "our",
    "a",
    "an",
    "any",
    "all",
    "so",
    "far",
    "here",
    "now",
    "currently",
    "stage",
    "time",
    "moment",
    "round",
    "review",
    "reviewer",
    "section",
    "sections",
    "manuscript",
    "paper",
    "text",
    "draft",
    "version",
    "article",
    "submission",
    "document",
    "abstract",
    "title",
    "introduction",
    "methods",
    "methodology",
    "results",
    "discussion",
    "conclusion",
    "references",
    "scope",
    "area",
    "domain",
    "remit",
    "subject",
    "must",
    "need",
    "needs",
    "needed",
    "required",
    "necessary",
    "addressed",
    "before",
    "publication",
    "block",
    "would",
    "prevent",
    "which",
    "list",
    "entry",
    "kind",
    "which",
    "within",
    "during",
    "with",
    "regarding",
    "on",
    "part",
    "contains",
    "contain",
    "shows",
    "not",
    "applicable",
    "n",
    "does",
    "do",
    "did",
    "whatsoever",
    "else",
    "to",
    "add",
    "me",
    "level",
    "critical",
    "yet",
];

const DENIALS: &[&str] = &["no", "none", "nothing", "nil"];

/// Words after a denied noun that begin an exception.
const CONTRASTS: &[&str] = &[
    "but", "however", "although", "though", "except", "apart", "besides", "beyond", "aside",
    "only", "save", "unless", "while", "still",
];

pub(super) fn read_entry(entry: &str) -> Entry {
    let bare: String = entry
        .chars()
        .filter(|c| !matches!(c, '*' | '_' | '`'))
        .collect();
    let bare = bare.trim().to_lowercase();
    if bare.chars().all(|c| !c.is_alphanumeric()) {
        return Entry::Nothing;
    }
    let is_wide = |c: char| c > '\u{2e7f}' && c.is_alphanumeric();
    let wide: String = bare.chars().filter(|c| is_wide(*c)).collect();
    let narrow: String = bare
        .chars()
        .map(|c| if is_wide(c) { ' ' } else { c })
        .collect();
    let parts = [
        (!wide.is_empty()).then(|| in_chinese(&wide)),
        narrow
            .contains(char::is_alphanumeric)
            .then(|| in_english(&narrow)),
    ];
    let mut parts = parts.into_iter().flatten();
    let first = parts.next().unwrap_or(Entry::Nothing);
    match (first, parts.next()) {
        (one, None) => one,
        (Entry::Nothing, Some(Entry::Nothing)) => Entry::Nothing,
        (Entry::Content, Some(Entry::Content)) => Entry::Content,
        _ => Entry::Unclear,
    }
}

fn in_english(text: &str) -> Entry {
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    if ["n a", "na", "not applicable", "nothing to report"].contains(&words.join(" ").as_str()) {
        return Entry::Nothing;
    }
    // `no`, or the `any` of `did not find any`.
    let is_denial = |at: usize| {
        let is_not = |word: &&str| *word == "not" || word.ends_with("n't");
        DENIALS.contains(&words[at])
            || words[at] == "any" && words[at.saturating_sub(3)..at].iter().any(is_not)
    };
    let Some(denial) = (0..words.len()).find(|at| is_denial(*at)) else {
        return Entry::Content;
    };
    let adds_nothing = |word: &&str| {
        [ISSUES, GRAVE, FILLERS, DENIALS]
            .iter()
            .any(|list| list.contains(word))
            || word.ends_with("n't")
    };
    let mut denied = words[denial + 1..]
        .iter()
        .skip_while(|word| GRAVE.contains(*word));
    // `no error bars` denies bars.
    let denies_issues = denied.next().is_some_and(|word| ISSUES.contains(word))
        && denied
            .next()
            .is_none_or(|word| adds_nothing(word) || CONTRASTS.contains(word));
    let stands_alone = denial == 0 && matches!(words[0], "none" | "nothing" | "nil");
    if words.iter().all(adds_nothing) && (denies_issues || stands_alone) {
        return Entry::Nothing;
    }
    let is_none_with_more = words[0] == "none" && words.get(1) != Some(&"of");
    if denies_issues || is_none_with_more {
        return Entry::Unclear;
    }
    Entry::Content
}

const DENIALS_ZH: &[&str] = &[
    "未发现",
    "没有发现",
    "并未发现",
    "尚未发现",
    "暂未发现",
    "未见",
    "未提出",
    "不存在",
    "并无",
    "不适用",
    "没有",
    "暂无",
    "无需",
    "不需要",
    "不必",
    "尚无",
    "均无",
    "未有",
    "无",
];
const GRAVE_ZH: &[&str] = &[
    "关键性",
    "关键",
    "重大",
    "严重",
    "致命",
    "明显",
    "重要",
    "核心",
    "任何",
    "其他",
    "其它",
    "新的",
    "必须",
    "需要",
    "解决",
    "处理",
    "特别",
    "原则性",
    "实质性",
    "进一步",
    "更多",
    "显著",
    "此类",
    "的",
    "有",
    "和",
    "或",
    "及",
];
const ISSUES_ZH: &[&str] = &[
    "问题", "缺陷", "错误", "意见", "建议", "异议", "疑虑", "硬伤", "瑕疵", "不足", "修改", "改动",
    "调整", "事项", "内容", "发现",
];
const FILLERS_ZH: &[&str] = &[
    "目前",
    "现阶段",
    "此阶段",
    "本阶段",
    "当前",
    "暂时",
    "本节",
    "本部分",
    "本稿",
    "本文",
    "稿件",
    "全文",
    "文中",
    "论文",
    "手稿",
    "在",
    "此",
    "中",
    "里",
    "了",
    "发现",
    "存在",
    "评审",
    "审稿",
    "人",
    "本次",
    "到",
    "为止",
    "迄今",
    "我",
    "报告",
    "可",
    "应",
    "须",
    "也",
    "已",
    "范围",
    "内",
    "方面",
    "上",
    "的",
];

fn in_chinese(text: &str) -> Entry {
    if ["不适用", "无", "没有", "暂无"].contains(&text) {
        return Entry::Nothing;
    }
    let (mut rest, mut denies, mut denied, mut adds) = (text, false, false, false);
    let strip = |rest: &mut &str, list: &[&str]| -> bool {
        let longest = list
            .iter()
            .filter(|word| rest.starts_with(**word))
            .max_by_key(|word| word.len());
        let Some(word) = longest else { return false };
        *rest = &rest[word.len()..];
        true
    };
    while !rest.is_empty() {
        if !denies && strip(&mut rest, DENIALS_ZH) {
            denies = true;
            while strip(&mut rest, GRAVE_ZH) {}
            denied = rest.is_empty() || strip(&mut rest, ISSUES_ZH);
            continue;
        }
        let known = [FILLERS_ZH, GRAVE_ZH, ISSUES_ZH];
        if !known.iter().any(|list| strip(&mut rest, list)) {
            adds = true;
            let first = rest.chars().next().map_or(rest.len(), char::len_utf8);
            rest = &rest[first..];
        }
    }
    match (denies && denied, adds) {
        (true, false) => Entry::Nothing,
        (true, true) => Entry::Unclear,
        (false, _) => Entry::Content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_in_both_languages_are_nothing() {
        for text in [
            "None",
            "None.",
            "**None**",
            "None identified.",
            "None at this stage.",
            "None found in this section",
            "N/A",
            "Not applicable.",
            "No critical issues were identified.",
            "There are no critical issues.",
            "There are no critical or major issues at this stage.",
            "No issues.",
            "I did not identify any critical issues.",
            "We found no serious flaws in the manuscript.",
            "The manuscript has no critical issues.",
            "No critical issues that must be addressed before publication.",
            "No changes are required.",
            "Nothing to report.",
            "-",
            "无",
            "无。",
            "没有",
            "暂无。",
            "不适用",
            "未发现关键问题。",
            "没有关键问题",
            "目前没有发现需要解决的重大问题。",
            "本稿不存在致命缺陷。",
            "无关键性问题",
            "无需修改",
            "无（None）",
            "None（无）",
        ] {
            assert_eq!(read_entry(text), Entry::Nothing, "{text}");
        }
    }

    #[test]
    fn issues_are_content_even_if_they_deny_something() {
        for text in [
            "No ethics approval is stated.",
            "None of the figures has labelled axes.",
            "Nothing supports the claim in L3.",
            "The sample is too small.",
            "There is no control group.",
            "No error bars are shown.",
            "The error bars are not defined.",
            "The data are not available",
            "没有说明样本量。",
            "无伦理审批号。",
            "无法复现主要结果。",
            "样本量不足。",
            "没有对照组，结论不成立。",
        ] {
            assert_eq!(read_entry(text), Entry::Content, "{text}");
        }
    }

    #[test]
    fn a_denial_that_says_more_is_unclear() {
        for text in [
            "No critical issues, but the sample is too small.",
            "None, although the power analysis is missing.",
            "There are no critical issues except the missing consent.",
            "无重大问题，但样本量太小。",
            "没有关键问题，不过图三缺少误差线。",
        ] {
            assert_eq!(read_entry(text), Entry::Unclear, "{text}");
        }
    }
}
