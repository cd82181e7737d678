//! Judges dates of birth, death and events.
//!
//! Dates may be partial and are compared only in the components that both have. Sentences with
//! several dates are ignored. `find_dates` also serves other judges.

use std::ops::Range;

use super::{Finding, Sentence};
use crate::words::{
    find_all, has_han, is_quoted, is_unreal, near_after, near_before, numbers, says_any, words,
};

/// A date, possibly partial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Date {
    pub year: Option<u64>,
    pub month: Option<u64>,
    pub day: Option<u64>,
    pub range: Range<usize>,
}

const MONTHS: [&str; 12] = [
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
];

impl Date {
    /// Returns true if a component that both dates have differs. Returns `None` if they share no
    /// component.
    pub fn differs(&self, other: &Date) -> Option<bool> {
        let pairs = [
            (self.year, other.year),
            (self.month, other.month),
            (self.day, other.day),
        ];
        let shared: Vec<bool> = pairs
            .into_iter()
            .filter_map(|(a, b)| Some(a? != b?))
            .collect();
        (!shared.is_empty()).then(|| shared.into_iter().any(|differs| differs))
    }

    /// Returns a sort key, if the year is known.
    pub fn key(&self) -> Option<(u64, u64, u64)> {
        Some((self.year?, self.month.unwrap_or(0), self.day.unwrap_or(0)))
    }
}

/// Finds the dates in a text: `14 November 1911`, `November 1911`, `in 1911`, `1911-11-14`,
/// `1911年11月14日`.
pub fn find_dates(text: &str) -> Vec<Date> {
    let mut found = chinese_dates(text);
    found.extend(english_dates(text));
    found.sort_by_key(|date| date.range.start);
    found
}

fn chinese_dates(text: &str) -> Vec<Date> {
    let mut found: Vec<Date> = Vec::new();
    for number in numbers(text) {
        let after = &text[number.range.end..];
        let unit = after.trim_start().chars().next().unwrap_or(' ');
        let blank = after.len() - after.trim_start().len();
        let end = number.range.end + blank + unit.len_utf8();
        let joins = found.last().is_some_and(|last: &Date| {
            text[last.range.end.min(number.range.start)..number.range.start]
                .trim()
                .is_empty()
        });
        match unit {
            // Only a number of at least three digits is a calendar year. Smaller ones are
            // durations.
            '年' if (100..3000).contains(&number.value) => found.push(Date {
                year: Some(number.value),
                range: number.range.start..end,
                ..Date::default()
            }),
            '月' if number.value <= 12 => match found
                .last_mut()
                .filter(|last| joins && last.month.is_none())
            {
                Some(last) => (last.month, last.range.end) = (Some(number.value), end),
                None => found.push(Date {
                    month: Some(number.value),
                    range: number.range.start..end,
                    ..Date::default()
                }),
            },
            '日' | '号' if number.value <= 31 => {
                if let Some(last) = found
                    .last_mut()
                    .filter(|last| joins && last.day.is_none() && last.month.is_some())
                {
                    (last.day, last.range.end) = (Some(number.value), end);
                }
            }
            _ => {}
        }
    }
    found
}

fn english_dates(text: &str) -> Vec<Date> {
    let words = words(text);
    let number = |nth: usize| {
        words.get(nth).and_then(|word| {
            word.lower
                .trim_end_matches(['s', 't', 'n', 'd', 'r', 'h'])
                .parse::<u64>()
                .ok()
        })
    };
    // Only spaces and punctuation separate the words of one date. Chinese text between them is not
    // part of a date.
    let beside = |nth: usize, next: usize| {
        words
            .get(nth)
            .zip(words.get(next))
            .is_some_and(|(word, next)| {
                text[word.range.end..next.range.start]
                    .chars()
                    .all(|c| c.is_whitespace() || matches!(c, ',' | '.' | '-' | '/'))
            })
    };
    let mut found = Vec::new();
    let mut used = 0;
    for (nth, word) in words.iter().enumerate() {
        if let Some(month) = MONTHS
            .iter()
            .position(|month| *month == word.lower)
            .filter(|_| word.capital)
        {
            let day_before = nth
                .checked_sub(1)
                .filter(|at| *at >= used && beside(*at, nth))
                .and_then(number)
                .filter(|day| (1..=31).contains(day));
            let day_after = number(nth + 1).filter(|day| {
                day_before.is_none() && beside(nth, nth + 1) && (1..=31).contains(day)
            });
            let year_at = nth + 1 + usize::from(day_after.is_some());
            let year = number(year_at)
                .filter(|year| beside(year_at - 1, year_at) && (1000..2200).contains(year));
            let (first, last) = (
                nth - usize::from(day_before.is_some()),
                if year.is_some() {
                    year_at
                } else {
                    nth + usize::from(day_after.is_some())
                },
            );
            used = last + 1;
            found.push(Date {
                year,
                month: Some(month as u64 + 1),
                day: day_before.or(day_after),
                range: words[first].range.start..words[last].range.end,
            });
        } else if nth >= used
            && let Some(year) = word
                .lower
                .parse::<u64>()
                .ok()
                .filter(|year| (1000..2200).contains(year) && word.lower.len() == 4)
        {
            let dashed = text[word.range.end..].starts_with('-');
            let (month, day) = if dashed {
                let month = number(nth + 1).filter(|_| beside(nth, nth + 1));
                (
                    month,
                    number(nth + 2).filter(|_| month.is_some() && beside(nth + 1, nth + 2)),
                )
            } else {
                (None, None)
            };
            let before = nth
                .checked_sub(1)
                .and_then(|at| words.get(at))
                .map(|word| word.lower.as_str())
                .unwrap_or_default();
            let alone = word.range.len() == text.trim().len();
            let chinese = text[word.range.end..].trim_start().starts_with('年');
            if !chinese
                && (dashed && month.is_some_and(|m| m <= 12)
                    || alone
                    || [
                        "in", "of", "year", "since", "by", "until", "from", "spring", "summer",
                        "autumn", "winter", "fall",
                    ]
                    .contains(&before))
            {
                used = nth + 1 + 2 * usize::from(dashed);
                found.push(Date {
                    year: Some(year),
                    month,
                    day,
                    range: word.range.clone(),
                });
            }
        }
    }
    found
}

const BORN_KEYS: &[&str] = &[
    "born",
    "birth",
    "date of birth",
    "birthday",
    "出生",
    "生于",
    "生日",
    "出生日期",
];
const DIED_KEYS: &[&str] = &[
    "died",
    "death",
    "date of death",
    "死于",
    "卒于",
    "去世",
    "死亡日期",
];
pub const EVENT_KEYS: &[&str] = &[
    "when",
    "date",
    "year",
    "took place",
    "founded",
    "built",
    "时间",
    "日期",
    "年份",
    "建于",
    "发生于",
];
const BORN: &[&str] = &["born", "birthday", "出生", "生于", "生日"];
const DIED: &[&str] = &[
    "died", "dead", "killed", "drowned", "死于", "去世", "死在", "卒于", "溺亡", "病故",
];
const HAPPENED: &[&str] = &[
    "took place",
    "happened",
    "began",
    "occurred",
    "broke out",
    "came in",
    "was in",
    "was held",
    "founded",
    "built",
    "burned",
    "fell",
    "signed",
    "of",
    "发生",
    "是在",
    "始于",
    "爆发",
    "建于",
    "落成",
    "签订",
    "就在",
    "发生在",
    "起于",
    "于",
];
const BESIDE: &[&str] = &[
    "before",
    "after",
    "since",
    "until",
    "anniversary",
    "remember",
    "remembered",
    "later",
    "rebuilt",
    "again",
    "之前",
    "之后",
    "以来",
    "年后",
    "周年",
    "记得",
    "想起",
    "重建",
    "直到",
    "后来",
];

pub fn judge(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let text = sentence.text;
    let dates = find_dates(text);
    // With two dates in one sentence, their assignment would be a guess.
    let [date] = dates.as_slice() else { return };
    if is_unreal(&sentence.bare)
        || is_quoted(text, date.range.start)
        || says_any(&sentence.bare, BESIDE)
    {
        return;
    }
    for (keys, signs) in [(BORN_KEYS, BORN), (DIED_KEYS, DIED)] {
        let at = signs.iter().find_map(|sign| {
            if has_han(sign) {
                text.find(sign)
            } else {
                find_all(text, sign, true).first().map(|r| r.start)
            }
        });
        if let Some((facts, sure)) =
            at.and_then(|at| sentence.facts_at(at.max(first_end(sentence))))
        {
            compare(sentence, &facts, keys, date, sure, findings);
        }
    }
    // 奥托是1880年生的
    let born = ["生的", "生人"]
        .iter()
        .any(|sign| text[date.range.end..].starts_with(sign));
    if let Some((facts, sure)) = born.then(|| sentence.facts_at(date.range.start)).flatten() {
        compare(sentence, &facts, BORN_KEYS, date, sure, findings);
    }
    for mention in sentence
        .mentions
        .iter()
        .filter(|mention| !mention.possessive)
    {
        if happened(text, mention.start, mention.end, date) {
            let facts: Vec<_> = sentence.memory.facts_of(mention.entity).collect();
            compare(sentence, &facts, EVENT_KEYS, date, 1.0, findings);
        }
    }
}

/// Returns true if a date belongs to the event at a position: `broke out in 1912`, `of 1912`,
/// `It was in 1912 that …`, `1912年的那场大火`.
fn happened(text: &str, start: usize, end: usize, date: &Date) -> bool {
    let last = words(near_before(text, start))
        .into_iter()
        .rev()
        .find(|word| word.lower != "the")
        .map(|word| word.lower)
        .unwrap_or_default();
    if ["of", "about", "after", "before", "since"].contains(&last.as_str()) {
        return false;
    }
    if date.range.start >= end {
        let between = text[end..date.range.start].trim();
        let near = between.len() <= near_after(text, end).len();
        let near = near
            && if has_han(between) {
                between.chars().count() <= 10
            } else {
                words(between).len() <= 8
            };
        return between == "of"
            || near
                && says_any(
                    between,
                    &HAPPENED
                        .iter()
                        .filter(|sign| **sign != "of")
                        .copied()
                        .collect::<Vec<_>>(),
                );
    }
    // A name inside the date (`May`) is not an event.
    let Some(between) = text.get(date.range.end..start).map(str::trim) else {
        return false;
    };
    [
        "that",
        "that the",
        "的",
        "的那场",
        "的这场",
        "那场",
        "的那次",
    ]
    .contains(&between)
        && !says_any(&text[..date.range.start], &["not"])
}

/// Returns the end of the first name. A birth mentioned before the name is ignored
/// (`Born in 1880, Otto …`).
fn first_end(sentence: &Sentence<'_>) -> usize {
    sentence
        .mentions
        .first()
        .filter(|mention| !mention.possessive)
        .map_or(0, |mention| mention.end)
}

fn compare(
    sentence: &Sentence<'_>,
    facts: &[&crate::memory::Fact],
    keys: &[&str],
    date: &Date,
    sure: f32,
    findings: &mut Vec<Finding>,
) {
    for fact in facts
        .iter()
        .filter(|fact| keys.contains(&fact.key.as_str()))
    {
        if let [stated] = find_dates(&fact.value).as_slice()
            && let Some(differs) = stated.differs(date)
        {
            let (known, said) = (&fact.value, &sentence.text[date.range.clone()]);
            let why = sentence.why(
                format!("memory says {known}, the text {said}"),
                format!("记忆写的是{known}，文中是{said}"),
            );
            findings.push(sentence.found("date", differs, 0.85 * sure, why, fact));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judges::bench::expect;

    #[test]
    fn dates_are_read() {
        let told = |text: &str| {
            find_dates(text)
                .iter()
                .map(|d| (d.year, d.month, d.day))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            told("on 14 November 1911, night"),
            [(Some(1911), Some(11), Some(14))]
        );
        assert_eq!(told("November 3rd"), [(None, Some(11), Some(3))]);
        assert_eq!(
            told("in 1911 and 1911-11-14"),
            [(Some(1911), None, None), (Some(1911), Some(11), Some(14))]
        );
        assert_eq!(
            told("1911 年 11 月 14 日夜；一九一二年"),
            [(Some(1911), Some(11), Some(14)), (Some(1912), None, None)]
        );
        assert_eq!(
            told("14 November奥托9，1911-奥托-9"),
            [(None, Some(11), Some(14))]
        );
        assert_eq!(told("三年后，she may have 1500 ducks"), []);
    }

    #[test]
    fn births_and_events_are_compared() {
        let memory = "# C\n\n## Otto\n- born: 3 March 1880\n\n## The Great Fire\n- when: 14 November 1911\n\n## 沈砚\n- 出生：1880年\n\n## 大火\n- 时间：1911 年 11 月 14 日\n";
        expect(
            memory,
            &[
                ("Otto was born in 1882.", &["date!"]),
                ("Otto was born in March 1880.", &["date="]),
                ("Otto came home in 1882.", &[]),
                ("The Great Fire broke out in 1912.", &["date!"]),
                ("The Great Fire of 1911 took the roof.", &["date="]),
                ("After The Great Fire, in 1912, they rebuilt.", &[]),
                ("沈砚生于1882年。", &["date!"]),
                ("大火发生在1912年。", &["date!"]),
                ("大火之后，1912年，镇子重建。", &[]),
            ],
        );
    }
}
