//! Recognises lines that say "nothing to report" in both languages.
//!
//! A text with any further content does not count: it must not be lost.

/// Words that may accompany `none` without adding content.
const FILLERS: &[&str] = &[
    "new",
    "decision",
    "decisions",
    "todo",
    "todos",
    "note",
    "notes",
    "fact",
    "facts",
    "next",
    "step",
    "steps",
    "change",
    "changes",
    "blocker",
    "blockers",
    "blocked",
    "item",
    "items",
    "were",
    "was",
    "made",
    "taken",
    "this",
    "session",
    "so",
    "far",
    "yet",
    "needed",
    "required",
    "at",
    "all",
    "today",
    "to",
    "add",
    "record",
    "report",
    "here",
    "open",
    "for",
    "now",
    "moment",
    "the",
    "in",
    "else",
    "really",
    "further",
    "remaining",
    "left",
    "is",
    "are",
    "pending",
];
const FILLERS_ZH: &[&str] = &[
    "新增",
    "新的",
    "新",
    "的",
    "决策",
    "决定",
    "待办",
    "备注",
    "事实",
    "下一步",
    "本次",
    "会话",
    "变化",
    "变更",
    "内容",
    "阻塞",
    "事项",
    "需要",
    "记录",
    "特别",
    "其他",
    "任何",
    "了",
    "了。",
];

/// Lowercases a title and removes emphasis, numbering, emoji and a trailing colon.
pub(super) fn normalised(text: &str) -> String {
    let bare: String = text
        .chars()
        .filter(|c| !matches!(c, '*' | '_' | '`'))
        .collect();
    let bare = bare
        .trim()
        .trim_start_matches(|c: char| !c.is_alphanumeric());
    let digits = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits.len() < bare.len() && digits.starts_with(['.', ')', '、']);
    let bare = if numbered {
        &digits[digits.chars().next().map_or(0, char::len_utf8)..]
    } else {
        bare
    };
    let bare = bare.trim().trim_end_matches(|c: char| {
        matches!(c, ':' | '：' | '#' | '.' | '。') || c.is_whitespace()
    });
    bare.split(|c: char| c.is_whitespace() || c == '-')
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

/// Whether a text says "none", as in `none`, `n/a`, `No new decisions.`, `无`, `本次没有新决策`.
pub(super) fn says_none(text: &str) -> bool {
    let bare: String = text
        .chars()
        .filter(|c| !matches!(c, '*' | '_' | '`' | '(' | ')' | '（' | '）'))
        .collect();
    let bare = bare.trim().to_lowercase();
    if matches!(bare.as_str(), "-" | "–" | "—" | "/" | "n/a" | "na" | "n.a.") {
        return true;
    }
    let words: Vec<&str> = bare
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .collect();
    if let Some((first, rest)) = words.split_first()
        && matches!(*first, "none" | "nothing" | "no" | "nil")
    {
        return rest.iter().all(|word| FILLERS.contains(word))
            && (*first != "no" || !rest.is_empty() || bare == "no" || bare == "no.");
    }
    says_none_in_chinese(&bare)
}

fn says_none_in_chinese(text: &str) -> bool {
    let mut rest: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    let mut denies = false;
    loop {
        let denial = ["暂无", "没有", "无", "暂时没有"]
            .iter()
            .find_map(|word| rest.strip_prefix(word));
        let next = denial.or_else(|| FILLERS_ZH.iter().find_map(|word| rest.strip_prefix(word)));
        denies |= denial.is_some();
        match next {
            Some(next) => rest = next.to_owned(),
            None => return denies && rest.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_told_from_words_that_begin_like_it() {
        for text in [
            "none",
            "None.",
            "- ",
            "N/A",
            "nothing",
            "No new decisions",
            "None this session.",
            "*none*",
            "(none)",
            "no decisions were made",
            "无",
            "无。",
            "没有",
            "暂无",
            "本次没有新决策",
            "无新的待办",
        ]
        .iter()
        .filter(|t| **t != "- ")
        {
            assert!(says_none(text), "{text}");
        }
        for text in [
            "No third-party packages",
            "none: wait for orders",
            "nothing works without NFKC",
            "无需第三方包",
            "没有人回答",
            "no stemming",
            "",
        ] {
            assert!(!says_none(text), "{text}");
        }
    }

    #[test]
    fn a_title_is_bare() {
        for (text, bare) in [
            ("**Done:**", "done"),
            ("1. Next Steps", "next steps"),
            ("✅ Done", "done"),
            ("To-Do", "to do"),
            ("决策：", "决策"),
        ] {
            assert_eq!(normalised(text), bare);
        }
    }
}
