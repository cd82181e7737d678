//! Detects lines that replace text instead of containing it: "… rest unchanged", 「其余不变」.
//!
//! Such a line is short and has two parts: the text it refers to (the rest, the sections before)
//! and its state (unchanged, left out). Words that are common in ordinary prose count only in
//! brackets or beside an ellipsis.

use crate::guard::Finding;

/// Finds the first line that replaces text.
pub fn find_placeholder(text: &str) -> Option<Finding> {
    for (index, line) in text.lines().enumerate() {
        // A long line is prose that mentions such words, not a placeholder.
        if line.len() <= 160 && may_be_placeholder(line) && is_placeholder(line) {
            return Some(Finding {
                line: index + 1,
                what: format!(
                    "`{}` looks like a placeholder for missing text",
                    line.trim()
                ),
            });
        }
    }
    None
}

/// Quick check whether a line can be a placeholder; rejects most lines.
fn may_be_placeholder(line: &str) -> bool {
    let Some(at) = line.find(|c: char| c.is_alphanumeric()) else {
        return false;
    };
    let (lead, bare) = line.split_at(at);
    let begins = |word: &str| {
        bare.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    lead.contains([
        '[', '(', '<', '（', '【', '［', '〔', '「', '/', '#', '.', '…',
    ]) || begins("re")
        || begins("the re")
        || line.contains("...")
        || !line.is_ascii() && (line.len() <= LONGEST_CHINESE * 6 || line.contains('…'))
}

fn is_placeholder(line: &str) -> bool {
    let bare: String = line
        .chars()
        .map(|c| {
            if c.is_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                ' '
            }
        })
        .collect::<String>()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if bare.is_empty() {
        return false;
    }
    let start = line.trim_start_matches([' ', '\t', '-', '*', '>']);
    let comment = start.starts_with("//") || start.starts_with('#') && !start.starts_with("##");
    let inner = start.trim_start_matches([' ', '/', '#']);
    let dotted = line.contains("...") || line.contains('…');
    let bracketed = dotted || inner.starts_with(['[', '(', '<', '（', '【', '［', '〔', '「']);
    // The reason for leaving text out does not matter here.
    let bare = REASONS
        .iter()
        .find_map(|why| bare.strip_suffix(why))
        .unwrap_or(&bare);
    let sort = if bracketed {
        Sort::Bracketed
    } else if comment {
        Sort::Comment
    } else {
        Sort::Prose
    };
    is_english(bare, sort, dotted) || (!bare.is_ascii() && is_chinese(&simplified(bare), bracketed))
}

/// The appearance of a line. The more it looks like a note, the fewer words it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// In brackets, or with an ellipsis.
    Bracketed,
    Comment,
    Prose,
}

const REASONS: [&str; 5] = [
    " for brevity",
    " for space",
    " for length",
    " to save space",
    " for now",
];

/// States of the text that a line refers to.
const STATES: [&str; 22] = [
    "unchanged",
    "unmodified",
    "unaltered",
    "remains the same",
    "remain the same",
    "stays the same",
    "stay the same",
    "same as before",
    "as before",
    "as in the previous version",
    "as in the original",
    "identical",
    "continues",
    "omitted",
    "goes here",
    "truncated",
    "abridged",
    "snipped",
    "elided",
    "left out",
    "not shown",
    "no changes",
];

fn is_english(bare: &str, sort: Sort, dotted: bool) -> bool {
    /// In brackets, these words can only describe text.
    const ALONE: [&str; 9] = [
        "truncated",
        "omitted",
        "snip",
        "snipped",
        "elided",
        "abridged",
        "unchanged",
        "same as before",
        "same as above",
    ];
    /// Words that almost always refer to text and need no brackets.
    const REST: [&str; 5] = [
        "rest ",
        "the rest ",
        "remaining ",
        "the remaining ",
        "remainder ",
    ];
    /// References used in a comment or a bracketed note.
    const OTHER: [&str; 8] = [
        "existing ",
        "previous ",
        "original ",
        "other ",
        "all other ",
        "the other ",
        "everything else ",
        "keep ",
    ];
    let words = bare.split(' ').count();
    let begins = |those: &[&str]| those.iter().any(|those| bare.starts_with(those));
    if sort == Sort::Bracketed && ALONE.contains(&bare) {
        return true;
    }
    let means = |state: &&str| bare.strip_suffix(*state).is_some_and(only_means_text);
    if words <= 11 && STATES.iter().any(means) {
        return sort == Sort::Bracketed || begins(&REST) || sort == Sort::Comment && begins(&OTHER);
    }
    // A bracketed reference needs an ellipsis or one of these nouns: a heading may be about
    // existing things, and a link about the chapter before.
    let generic = [
        "content",
        "contents",
        "text",
        "code",
        "body",
        "implementation",
    ]
    .iter()
    .any(|noun| bare.split(' ').any(|word| word == *noun));
    let whole = bare.starts_with("rest of ") || bare.starts_with("the rest of ");
    match sort {
        Sort::Prose => false,
        _ if words > 6 || !only_means_text(bare) => false,
        Sort::Comment => whole || bare.starts_with("existing "),
        Sort::Bracketed => {
            whole || begins(&OTHER) && (dotted || generic) || begins(&REST) && dotted
        }
    }
}

/// Whether words only name a text: "the other sections are", "content".
fn only_means_text(words: &str) -> bool {
    const TEXTS: [&str; 36] = [
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
        "implementation",
        "function",
        "functions",
        "method",
        "methods",
        "class",
        "page",
        "pages",
        "list",
        "table",
        "rows",
        "entries",
        "items",
        "everything",
        "else",
        "script",
    ];
    const AROUND: [&str; 31] = [
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
        "here",
        "keep",
        "stays",
        "stay",
        "continues",
        "has",
        "have",
    ];
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    let mut meant = false;
    words.split_whitespace().all(|word| {
        meant |= TEXTS.contains(&word);
        TEXTS.contains(&word) || AROUND.contains(&word) || is_number(word)
    }) && meant
}

/// Converts the traditional characters used in placeholders to simplified ones.
fn simplified(text: &str) -> String {
    const PAIRS: [(char, char); 18] = [
        ('餘', '余'),
        ('變', '变'),
        ('內', '内'),
        ('節', '节'),
        ('與', '与'),
        ('維', '维'),
        ('後', '后'),
        ('續', '续'),
        ('無', '无'),
        ('動', '动'),
        ('舊', '旧'),
        ('樣', '样'),
        ('斷', '断'),
        ('間', '间'),
        ('碼', '码'),
        ('處', '处'),
        ('沒', '没'),
        ('這', '这'),
    ];
    text.chars()
        .map(|c| {
            PAIRS
                .iter()
                .find(|(traditional, _)| *traditional == c)
                .map_or(c, |(_, simple)| *simple)
        })
        .collect()
}

/// Longest Chinese placeholder, in characters.
const LONGEST_CHINESE: usize = 16;
/// Longest text before the reference (`第三章其余不变`) or after the omission (`此处省略三百字`).
const LONGEST_BESIDE: usize = 6;

fn is_chinese(bare: &str, bracketed: bool) -> bool {
    /// Words for the remainder, which almost always refer to text.
    const REST: [&str; 9] = [
        "其余", "其他", "其它", "剩余", "剩下", "余下", "以下", "后文", "此处",
    ];
    /// In brackets, these words need no reference.
    const ALONE: [&str; 18] = [
        "保持原样",
        "保持不变",
        "维持原样",
        "维持不变",
        "原样保留",
        "已省略",
        "已截断",
        "以下省略",
        "中间省略",
        "后续省略",
        "略",
        "下略",
        "上略",
        "中略",
        "后略",
        "同上",
        "同前",
        "此处略",
    ];
    const KEPT: [&str; 4] = ["内容保留", "原文保留", "正文保留", "其余保留"];
    /// Words that prose uses as well.
    const TEXTS: [&str; 13] = [
        "前文", "上文", "下文", "以上", "原文", "正文", "全文", "内容", "章节", "段落", "部分",
        "前面", "后面",
    ];
    if bare.chars().count() > LONGEST_CHINESE + bare.matches(' ').count() {
        return false;
    }
    let text = bare.replace(' ', "");
    if bracketed && (ALONE.contains(&text.as_str()) || KEPT.iter().any(|kept| text.ends_with(kept)))
    {
        return true;
    }
    let says = |subject: &&str, is_rest: bool| {
        text.match_indices(*subject).any(|(at, _)| {
            text[..at].chars().count() <= LONGEST_BESIDE
                && is_left(&text[at + subject.len()..], is_rest || bracketed, bracketed)
        })
    };
    REST.iter().any(|subject| says(subject, true))
        || TEXTS.iter().any(|subject| says(subject, false))
}

/// Whether the rest of a line states that the text is unchanged or left out.
fn is_left(rest: &str, is_meant: bool, bracketed: bool) -> bool {
    const BETWEEN: [&str; 25] = [
        "的",
        "部分",
        "内容",
        "章节",
        "段落",
        "文字",
        "文本",
        "正文",
        "代码",
        "各章",
        "各节",
        "所有",
        "全部",
        "均",
        "都",
        "仍",
        "保持",
        "维持",
        "与",
        "原文",
        "之前",
        "以前",
        "先前",
        "上一版",
        "原来",
    ];
    const AS_IT_WAS: [&str; 8] = [
        "不变",
        "未变",
        "没有变化",
        "未改动",
        "不作修改",
        "不做修改",
        "无变化",
        "未修改",
    ];
    const LEFT_OUT: [&str; 2] = ["省略", "略去"];
    /// Words that prose uses as well; they count only in brackets.
    const IN_BRACKETS: [&str; 11] = [
        "略",
        "从略",
        "照旧",
        "同前",
        "如前",
        "一致",
        "相同",
        "原样",
        "同原文",
        "同之前",
        "不动",
    ];
    let mut rest = rest;
    while let Some(behind) = BETWEEN.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = behind;
    }
    // 省略号 means the punctuation mark, and 省略 also has other meanings in ordinary prose.
    let left_out = |word: &&str| {
        rest.strip_prefix(*word).is_some_and(|behind| {
            behind.chars().count() <= LONGEST_BESIDE
                && !behind.starts_with(['号', '写', '词', '法', '主'])
        })
    };
    rest == "同上"
        || is_meant && (AS_IT_WAS.contains(&rest) || LEFT_OUT.iter().any(left_out))
        || bracketed && IN_BRACKETS.contains(&rest)
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
            "a\n\n// rest of implementation",
            "a\n\n[keep existing content]",
            "a\n\n[previous content here]",
            "a\n\n# (other functions remain unchanged)",
            "a\n\n[Sections 3-7 remain identical]",
            "a\n\n[The rest of the document continues as in the previous version]",
            "一\n\n（略）",
            "一\n\n（以下同原文）",
            "一\n\n[以下内容与之前相同]",
            "一\n\n（原有内容保留）",
            "一\n\n［其餘不變］",
            "一\n\n（其餘部分保持不變）",
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
            "Resting heart rate unchanged",
            "Restaurant menu: unchanged",
            "Remaining crew: unchanged",
            "## Existing code",
            "\"The rest,\" he said, \"unchanged.\"",
            "    # unchanged",
            "此处省略号表示停顿。",
            "以下省略写法：a.b",
            "（部分保留）",
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
