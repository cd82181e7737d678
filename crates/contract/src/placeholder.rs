//! Lines that stand for text someone was too lazy to write: "… rest unchanged", 「其余不变」.
//!
//! Such a line is short and says two things: what is meant (the rest, the sections before) and what became of it (unchanged, left out).
//! Words that ordinary prose uses as well count only in brackets or beside an ellipsis.

use crate::guard::Finding;

/// The first line that stands for text which is not there.
pub fn find_placeholder(text: &str) -> Option<Finding> {
    for (index, line) in text.lines().enumerate() {
        // Long lines are prose that mentions such words, not a placeholder.
        if line.len() <= 160 && is_placeholder(line) {
            return Some(Finding { line: index + 1, what: format!("`{}` stands for text that is not there", line.trim()) });
        }
    }
    None
}

fn is_placeholder(line: &str) -> bool {
    let bare: String = line
        .chars()
        .map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })
        .collect::<String>()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if bare.is_empty() {
        return false;
    }
    let start = line.trim_start_matches([' ', '\t', '-', '*', '>']);
    let dotted = line.contains("...") || line.contains('…');
    let bracketed = dotted || start.starts_with(['[', '(', '<', '（', '【', '［', '〔', '「']);
    // Why it was left out says nothing about what was.
    let bare = REASONS.iter().find_map(|why| bare.strip_suffix(why)).unwrap_or(&bare);
    let is_left = |text: &str| dotted && text.split(' ').count() <= 4 && MEANT.iter().any(|m| text.starts_with(m)) && only_means_text(text);
    is_english(bare, bracketed, bracketed || start.starts_with(['/', '#']))
        || is_left(bare)
        || (!bare.is_ascii() && is_chinese(bare, bracketed))
}

const REASONS: [&str; 5] = [" for brevity", " for space", " for length", " to save space", " for now"];
/// What begins a stand-in that says only which text is meant, beside an ellipsis.
const MEANT: [&str; 5] = ["previous ", "original ", "remaining ", "existing ", "other "];

/// What became of the text that is meant.
const STATES: [&str; 15] = [
    "unchanged",
    "remains the same",
    "remain the same",
    "stays the same",
    "as before",
    "omitted",
    "goes here",
    "same as before",
    "unmodified",
    "truncated",
    "abridged",
    "snipped",
    "elided",
    "left out",
    "not shown",
];

fn is_english(bare: &str, bracketed: bool, elided: bool) -> bool {
    const SUBJECTS: [&str; 12] = [
        "the rest",
        "rest",
        "remaining",
        "the remaining",
        "remainder",
        "existing",
        "previous",
        "everything else",
        "other sections",
        "all other",
        "unchanged",
        "same",
    ];
    let words = bare.split(' ').count();
    if words <= 10 && SUBJECTS.iter().any(|s| bare.starts_with(s)) && STATES.iter().any(|s| bare.ends_with(s)) {
        // "Same as before" alone is a sentence; with an ellipsis or a bracket it is a stand-in.
        return elided || bare.starts_with("rest") || bare.starts_with("the rest") || bare.starts_with("remain");
    }
    // A heading may well be about what exists, or the rest of something.
    let begins = ["existing ", "rest of ", "the rest of "].iter().any(|words| bare.starts_with(words));
    if begins && elided && words <= 6 && (bracketed || only_means_text(bare)) {
        return true;
    }
    // Alone in brackets these are said of nothing but a text.
    if bracketed && ["truncated", "omitted", "snip", "snipped", "elided", "abridged"].contains(&bare) {
        return true;
    }
    bracketed && words <= 8 && STATES.iter().any(|state| bare.strip_suffix(state).is_some_and(only_means_text))
}

/// Whether words say nothing but which text is meant: "the other sections are", "content".
fn only_means_text(words: &str) -> bool {
    const TEXTS: [&str; 20] = [
        "content",
        "contents",
        "text",
        "code",
        "section",
        "sections",
        "chapter",
        "chapters",
        "paragraph",
        "paragraphs",
        "part",
        "parts",
        "line",
        "lines",
        "body",
        "file",
        "document",
        "details",
        "rest",
        "remainder",
    ];
    const AROUND: [&str; 24] = [
        "the",
        "of",
        "this",
        "that",
        "these",
        "all",
        "other",
        "existing",
        "previous",
        "original",
        "remaining",
        "above",
        "below",
        "earlier",
        "later",
        "following",
        "is",
        "are",
        "left",
        "kept",
        "remains",
        "remain",
        "and",
        "to",
    ];
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    let mut words = words.split_whitespace().peekable();
    let mut meant = false;
    words.all(|word| {
        meant |= TEXTS.contains(&word);
        TEXTS.contains(&word) || AROUND.contains(&word) || is_number(word)
    }) && meant
}

/// The longest line that is taken for a Chinese stand-in, in characters.
const LONGEST_CHINESE: usize = 16;
/// How much may stand before what is meant (`第三章其余不变`) or behind what was left out (`此处省略三百字`).
const LONGEST_BESIDE: usize = 6;

fn is_chinese(bare: &str, bracketed: bool) -> bool {
    /// What is left over, and can hardly mean anything but text.
    const REST: [&str; 9] = ["其余", "其他", "其它", "剩余", "剩下", "余下", "以下", "后文", "此处"];
    /// In brackets they need not say what they mean.
    const ALONE: [&str; 10] =
        ["保持原样", "保持不变", "维持原样", "维持不变", "原样保留", "已省略", "已截断", "以下省略", "中间省略", "后续省略"];
    /// What prose speaks of as well.
    const TEXTS: [&str; 13] = ["前文", "上文", "下文", "以上", "原文", "正文", "全文", "内容", "章节", "段落", "部分", "前面", "后面"];
    if bare.chars().count() > LONGEST_CHINESE + bare.matches(' ').count() {
        return false;
    }
    let text = bare.replace(' ', "");
    if bracketed && ALONE.contains(&text.as_str()) {
        return true;
    }
    let says = |subject: &&str, is_rest: bool| {
        text.match_indices(*subject).any(|(at, _)| {
            text[..at].chars().count() <= LONGEST_BESIDE && is_left(&text[at + subject.len()..], is_rest || bracketed, bracketed)
        })
    };
    REST.iter().any(|subject| says(subject, true)) || TEXTS.iter().any(|subject| says(subject, false))
}

/// Whether the rest of a line says that the text which is meant is as it was, or left out.
fn is_left(rest: &str, is_meant: bool, bracketed: bool) -> bool {
    const BETWEEN: [&str; 20] = [
        "的", "部分", "内容", "章节", "段落", "文字", "文本", "正文", "代码", "各章", "各节", "所有", "全部", "均", "都", "仍", "保持",
        "维持", "与", "原文",
    ];
    const AS_IT_WAS: [&str; 8] = ["不变", "未变", "没有变化", "未改动", "不作修改", "不做修改", "无变化", "未修改"];
    const LEFT_OUT: [&str; 2] = ["省略", "略去"];
    /// Said in prose as well.
    const IN_BRACKETS: [&str; 8] = ["略", "从略", "照旧", "同前", "如前", "一致", "相同", "原样"];
    let mut rest = rest;
    while let Some(behind) = BETWEEN.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = behind;
    }
    let left_out = |word: &&str| rest.strip_prefix(*word).is_some_and(|behind| behind.chars().count() <= LONGEST_BESIDE);
    rest == "同上" || is_meant && (AS_IT_WAS.contains(&rest) || LEFT_OUT.iter().any(left_out)) || bracketed && IN_BRACKETS.contains(&rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_ins_for_text_are_found_with_their_line() {
        for text in [
            "# A\n\n... rest unchanged ...\n",
            "a\n\n(rest of the file remains the same)",
            "a\n\n<!-- existing content -->... existing content",
            "a\n\n// ... existing code ...",
            "a\n\n[The remaining sections are unchanged]",
            "a\n\n[... content omitted ...]",
            "a\n\n(sections 2 to 4 omitted)",
            "a\n\n- [the original text remains unchanged]",
            "一\n\n（其余不变）",
            "a\n\n……此处省略……",
            "一\n\n其余部分保持不变",
            "一\n\n（其余章节不变）",
            "一\n\n（前文不变）",
            "一\n\n[内容保持不变]",
            "一\n\n- （第三节的内容与原文一致）",
            "一\n\n此处省略三百字",
            "一\n\n剩下的内容都没有变化",
            "a\n\n[remaining sections omitted for brevity]",
            "a\n\n[... truncated ...]",
            "a\n\n# existing code",
            "a\n\n(lines 12 to 90 not shown)",
            "a\n\n# ... (previous content) ...",
            "a\n\n<!-- … the other chapters are left out for brevity … -->",
            "一\n\n（此处内容与原文相同）",
            "一\n\n[保持原样]",
            "一\n\n【……已省略……】",
            "一\n\n（第二章的正文保持原样）",
        ] {
            assert_eq!(find_placeholder(text).map(|f| f.line), Some(3), "{text}");
        }
    }

    #[test]
    fn prose_about_rest_is_left_alone() {
        for text in [
            "The rest of the crew slept.",
            "Everything was the same as before.",
            "Existing users keep their settings; all other users are asked, and the price stays the same for a year in every region.",
            "She took the rest.",
            "- [x] rest",
            "- [x] tests unchanged",
            "(the price is unchanged)",
            "(The captain omitted to say why.)",
            "## Contents",
            "The text was unchanged.",
            "[Chapter 3](ch03.md)",
            "其余的人都睡了。",
            "内容保持不变的是第三章。",
            "气温保持不变。",
            "（价格不变）",
            "其他都不变，只有价格涨了。",
            "她把其他部分都改了。",
            "前面的路没有变化。",
            "（下文会说到）",
            "内容不变，形式变了。",
            "The previous chapter...",
            "## Existing implementations",
            "## The rest of the crew",
            "[Previous chapter]",
            "... and the previous day",
            "The list was truncated.",
            "(the captain was left out)",
            "保持原样的只有屋顶。",
            "（两人的口味相同）",
            "（价格与去年相同）",
            "[x] 保持原样的检查",
        ] {
            assert_eq!(find_placeholder(text), None, "{text}");
        }
    }
}
