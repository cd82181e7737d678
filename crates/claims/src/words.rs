//! Finds words, numbers and quotations in English and Chinese text, for the judges.
//!
//! Offsets are byte offsets in the given text. Chinese is matched by characters, English by whole
//! words in lower case. A possessive `'s` is stripped and recorded.

use std::ops::Range;

/// A word of a script with spaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub range: Range<usize>,
    pub lower: String,
    pub capital: bool,
    pub possessive: bool,
}

pub fn is_han(c: char) -> bool {
    matches!(c as u32, 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0x3005..=0x3007 | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

pub fn has_han(text: &str) -> bool {
    text.chars().any(is_han)
}

pub fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if !c.is_alphanumeric() || is_han(c) {
            continue;
        }
        let mut end = start + c.len_utf8();
        while let Some((at, next)) = chars.peek().copied() {
            let inside = matches!(next, '\'' | '’')
                && text[at + next.len_utf8()..]
                    .starts_with(|c: char| c.is_alphabetic() && !is_han(c));
            let digits = next == ','
                && text[..end].ends_with(|c: char| c.is_ascii_digit())
                && text[at + 1..].starts_with(|c: char| c.is_ascii_digit());
            if !(inside || digits || next.is_alphanumeric() && !is_han(next)) {
                break;
            }
            end = at + next.len_utf8();
            chars.next();
        }
        let whole = &text[start..end];
        let stem = whole
            .strip_suffix("'s")
            .or_else(|| whole.strip_suffix("’s"));
        words.push(Word {
            range: start..start + stem.unwrap_or(whole).len(),
            lower: stem.unwrap_or(whole).to_lowercase().replace('’', "'"),
            capital: c.is_uppercase(),
            possessive: stem.is_some(),
        });
    }
    words
}

/// The size of the context around a position, in bytes. It exceeds the few words that a judge
/// examines.
const NEAR: usize = 400;

/// Returns the text shortly before a position, from the start of a word.
pub fn near_before(text: &str, at: usize) -> &str {
    let from = text.floor_char_boundary(at.saturating_sub(NEAR));
    if from == 0 {
        return &text[..at];
    }
    let near = &text[from..at];
    &near[near.find(parts_words).unwrap_or(0)..]
}

/// Returns the text shortly after a position, up to the end of a word.
pub fn near_after(text: &str, at: usize) -> &str {
    let to = text.ceil_char_boundary(at.saturating_add(NEAR).min(text.len()));
    if to == text.len() {
        return &text[at..];
    }
    let near = &text[at..to];
    &near[..near.rfind(parts_words).unwrap_or(near.len())]
}

/// Returns true if the character cannot be inside a word.
fn parts_words(c: char) -> bool {
    is_han(c) || !(c.is_alphanumeric() || matches!(c, '\'' | '’' | ','))
}

/// Converts to lower case without changing byte offsets. Letters with a lower case of another
/// length stay unchanged.
pub fn lowered(text: &str) -> String {
    let small = |c: char| {
        let mut lower = c.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(one), None) if one.len_utf8() == c.len_utf8() => one,
            _ => c,
        }
    };
    text.chars().map(small).collect()
}

/// Finds all occurrences of a name or term: whole words in English, characters in Chinese.
pub fn find_all(text: &str, term: &str, any_case: bool) -> Vec<Range<usize>> {
    if term.is_empty() {
        return Vec::new();
    }
    let (haystack, needle) = if any_case {
        (lowered(text), lowered(term))
    } else {
        (text.to_owned(), term.to_owned())
    };
    let spaced = |c: char| c.is_alphanumeric() && !is_han(c);
    let bounded = |range: &Range<usize>| {
        let before = haystack[..range.start].chars().next_back();
        let after = haystack[range.end..].chars().next();
        !(needle.starts_with(spaced) && before.is_some_and(spaced)
            || needle.ends_with(spaced) && after.is_some_and(spaced))
    };
    haystack
        .match_indices(&needle)
        .map(|(at, found)| at..at + found.len())
        .filter(bounded)
        .collect()
}

/// Returns true if the text contains any of these words or phrases.
pub fn says_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| {
        if has_han(phrase) {
            text.contains(phrase)
        } else {
            !find_all(text, phrase, true).is_empty()
        }
    })
}

/// Returns the parts of a text between quotation marks.
pub fn quotations(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, char)> = None;
    for (at, c) in text.char_indices() {
        match (open, c) {
            (None, '“' | '「' | '『' | '"') => open = Some((at, c)),
            (Some((start, sign)), c)
                if matches!(
                    (sign, c),
                    ('“', '”') | ('「', '」') | ('『', '』') | ('"', '"')
                ) =>
            {
                found.push(start..at + c.len_utf8());
                open = None;
            }
            _ => {}
        }
    }
    if let Some((start, _)) = open {
        found.push(start..text.len());
    }
    found
}

pub fn is_quoted(text: &str, at: usize) -> bool {
    quotations(text).iter().any(|range| range.contains(&at))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    pub range: Range<usize>,
    pub value: u64,
}

const UNITS: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] = [
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];

/// Finds every number of a text, in digits or in words.
pub fn numbers(text: &str) -> Vec<Number> {
    let mut found = english_numbers(text);
    found.extend(chinese_numbers(text));
    found.sort_by_key(|number| number.range.start);
    found
}

fn english_numbers(text: &str) -> Vec<Number> {
    let words = words(text);
    let mut found: Vec<Number> = Vec::new();
    let mut nth = 0;
    while nth < words.len() {
        let start = nth;
        if let Ok(value) = words[nth].lower.replace(',', "").parse::<u64>() {
            found.push(Number {
                range: words[nth].range.clone(),
                value,
            });
            nth += 1;
            continue;
        }
        let (mut total, mut part, mut any) = (0u64, 0u64, false);
        while nth < words.len() {
            let word = words[nth].lower.as_str();
            // Spaces or hyphens join the words of a number. Commas and full stops do not.
            if nth > start
                && text[words[nth - 1].range.end..words[nth].range.start]
                    .contains([',', '.', ';', ':', '，', '。', '\n', '—'])
            {
                break;
            }
            let unit = UNITS.iter().position(|u| *u == word).map(|u| u as u64);
            let ten = TENS
                .iter()
                .position(|t| *t == word)
                .map(|t| (t as u64 + 2) * 10);
            match (unit, ten, word) {
                (Some(unit), _, _) if part % 10 == 0 && (part % 100 == 0 || unit < 10) => {
                    part = part.saturating_add(unit)
                }
                (_, Some(ten), _) if part % 100 == 0 => part = part.saturating_add(ten),
                (_, _, "hundred") if any => part = part.max(1).saturating_mul(100),
                (_, _, "thousand") if any => {
                    (total, part) = (total.saturating_add(part.max(1).saturating_mul(1000)), 0)
                }
                (_, _, "and")
                    if any
                        && part >= 100
                        && words.get(nth + 1).is_some_and(|w| is_small(&w.lower)) => {}
                _ => break,
            }
            any = true;
            nth += 1;
        }
        if any {
            found.push(Number {
                range: words[start].range.start..words[nth - 1].range.end,
                value: total.saturating_add(part),
            });
        } else {
            nth += 1;
        }
    }
    found
}

fn is_small(word: &str) -> bool {
    UNITS.contains(&word) || TENS.contains(&word)
}

fn chinese_numbers(text: &str) -> Vec<Number> {
    let digit = |c: char| {
        "〇一二三四五六七八九"
            .chars()
            .position(|d| d == c)
            .map(|d| d as u64)
            .or(match c {
                '零' => Some(0),
                '两' => Some(2),
                _ => None,
            })
    };
    let power = |c: char| match c {
        '十' => Some(10),
        '百' => Some(100),
        '千' => Some(1000),
        _ => None,
    };
    let mut found = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.peek().copied() {
        if digit(c).is_none() && power(c).is_none() {
            chars.next();
            continue;
        }
        let (mut total, mut last, mut plain, mut end, mut scaled) =
            (0u64, None::<u64>, String::new(), start, false);
        while let Some((at, c)) = chars.peek().copied() {
            if let Some(value) = digit(c) {
                last = Some(value);
                plain.push_str(&value.to_string());
            } else if let Some(power) = power(c) {
                total += last.unwrap_or(1) * power;
                (last, scaled) = (None, true);
            } else {
                break;
            }
            end = at + c.len_utf8();
            chars.next();
        }
        let value = if scaled {
            total + last.unwrap_or(0)
        } else {
            plain.parse().unwrap_or(0)
        };
        found.push(Number {
            range: start..end,
            value,
        });
    }
    found
}

/// Returns the part of the clause before `at`.
pub fn clause_before(text: &str, at: usize) -> &str {
    let before = &text[..at];
    let start = before
        .rfind(['，', ',', '；', ';', '。', '—', '：', ':'])
        .map_or(0, |cut| {
            cut + before[cut..].chars().next().map_or(1, char::len_utf8)
        });
    &before[start..]
}

const NEGATIONS: &[&str] = &[
    "not",
    "no",
    "never",
    "nobody",
    "none",
    "nor",
    "neither",
    "without",
    "cannot",
    "no one",
    "nothing",
    "hardly",
    "unable",
    "impossible",
    "refused",
    "forbidden",
    "不",
    "没",
    "无",
    "未",
    "从不",
    "绝不",
    "禁止",
    "勿",
    "别",
];

/// Returns true if the clause negates the text at `at`.
pub fn is_negated(text: &str, at: usize) -> bool {
    let clause = clause_before(text, at);
    let tail: String = clause
        .chars()
        .rev()
        .take(if has_han(clause) { 8 } else { 60 })
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    says_any(&tail, NEGATIONS)
        || tail.to_lowercase().contains("n't")
        || tail.to_lowercase().contains("n’t")
}

const UNREAL: &[&str] = &[
    "if",
    "would",
    "could",
    "might",
    "as though",
    "as if",
    "pretend",
    "pretended",
    "imagine",
    "imagined",
    "dream",
    "dreamed",
    "dreamt",
    "unlike",
    "instead of",
    "no longer",
    "wished",
    "used to",
    "had once",
    "lie",
    "lied",
    "claimed",
    "rumour",
    "rumor",
    "perhaps",
    "maybe",
    "supposed",
    "如果",
    "假如",
    "要是",
    "仿佛",
    "好像",
    "假装",
    "梦见",
    "梦里",
    "梦中",
    "并非",
    "不是",
    "不再",
    "倘若",
    "若是",
    "曾经",
    "本来",
    "据说",
    "也许",
    "或许",
    "谎称",
    "以为",
    "想象",
];

/// Returns true if a sentence is hypothetical or not about the present, so that it contradicts
/// nothing.
pub fn is_unreal(text: &str) -> bool {
    says_any(text, UNREAL)
}

/// Strips plural, past and present endings. Good enough to compare two forms of a word.
pub fn stem(word: &str) -> &str {
    for ending in ["ing", "ies", "ed", "es", "s"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() >= 3
            && !(ending == "s" && stem.ends_with('s'))
        {
            return stem.trim_end_matches('e');
        }
    }
    word.trim_end_matches('e')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_digits_and_words() {
        let value = |text: &str| numbers(text).iter().map(|n| n.value).collect::<Vec<_>>();
        assert_eq!(
            value("thirty-four steps, two hundred and fourteen, 1,912 and nine"),
            [34, 214, 1912, 9]
        );
        assert_eq!(
            value("三十四岁，二百一十四级，一九一二年，两百，十"),
            [34, 214, 1912, 200, 10]
        );
        assert_eq!(value("one thousand two hundred"), [1200]);
        assert_eq!(value("hundreds of birds"), [0u64; 0]);
        assert_eq!(value(&format!("one {}", "hundred ".repeat(40))), [u64::MAX]);
        assert_eq!(
            value(&format!("one {}", "hundred ".repeat(40) + "thousand five")),
            [u64::MAX]
        );
    }

    #[test]
    fn names_are_found_as_whole_words() {
        assert_eq!(find_all("Ann met Anna. ann", "Ann", false).len(), 1);
        assert_eq!(find_all("奥托走了，奥托没回头", "奥托", false).len(), 2);
        assert!(
            words("Otto’s left")
                .first()
                .is_some_and(|w| w.possessive && w.lower == "otto")
        );
    }

    #[test]
    fn denial_and_quotation_are_seen() {
        let text = "Nobody ever radioed the shore";
        assert!(is_negated(text, text.find("radioed").unwrap()));
        let text = "他没有发电报";
        assert!(is_negated(text, text.find("发电报").unwrap()));
        assert!(is_quoted("他说：“我来。”然后走了", 12));
        assert!(!is_quoted("“我来。”然后走了", 18));
    }
}
