//! Surface features of a text: dates, times and questions.
//!
//! Questions about conversations and diaries ask for a time more often than for a topic, but words
//! of time ("yesterday", "8 May") never match the words of the question ("when"). The parser
//! handles dates in English, Chinese and digits. Missing components are zero.

use jiff::civil::Date;

use super::when::{self, Days};

/// A day, month or year. Zero components are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Day(pub u32);

impl Day {
    pub const NONE: Self = Self(0);

    pub(super) fn new(year: u32, month: u32, day: u32) -> Self {
        Self(year << 9 | month << 5 | day)
    }

    pub(super) fn parts(self) -> (u32, u32, u32) {
        (self.0 >> 9, self.0 >> 5 & 15, self.0 & 31)
    }

    fn known(self) -> u32 {
        let (year, month, day) = self.parts();
        u32::from(year > 0) + u32::from(month > 0) + u32::from(day > 0)
    }

    /// Returns the most precise date in the headings, innermost first, or else in the path.
    pub fn of_place(heading_path: &[String], path: &str) -> Self {
        let places = heading_path.iter().rev().map(String::as_str).chain([path]);
        let mut best = Self::NONE;
        for day in places.flat_map(dates) {
            if day.known() > best.known() {
                best = day;
            }
        }
        best
    }

    /// Returns the similarity of two dates, from 0 to 1: by distance if both have days, else by
    /// month.
    #[must_use]
    pub fn nearness(self, other: Self) -> f32 {
        let ((year, month, day), (year2, month2, day2)) = (self.parts(), other.parts());
        if year > 0 && year2 > 0 && year != year2 {
            return 0.0;
        }
        if month > 0 && month2 > 0 {
            if day > 0 && day2 > 0 {
                let apart = (month as f32 - month2 as f32) * 30.4 + day as f32 - day2 as f32;
                return (-apart.abs() / 7.0).exp();
            }
            return if month == month2 { 0.7 } else { 0.0 };
        }
        if year > 0 && year2 > 0 && month == 0 {
            0.3
        } else {
            0.0
        }
    }
}

/// Flags that are computed once, when a section is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signs(pub u8);

impl Signs {
    /// It ends with a question mark.
    pub const ASKS: u8 = 1;
    /// It names a time.
    pub const TIME: u8 = 2;
    /// It is a turn of a dialogue: its neighbours count.
    pub const TURN: u8 = 4;
    /// It contains a number, in figures or words.
    pub const COUNT: u8 = 8;

    /// Returns true if a flag is set.
    #[must_use]
    pub fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

#[rustfmt::skip]
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
#[rustfmt::skip]
const LONG_MONTHS: [&str; 12] = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
];
#[rustfmt::skip]
const TIME_WORDS: &[&str] = &[
    "ago", "april", "august", "december", "february", "friday", "january", "july", "june",
    "last", "march", "monday", "month", "months", "morning", "next", "november", "october",
    "recently", "saturday", "september", "since", "soon", "sunday", "thursday", "today",
    "tomorrow", "tonight", "tuesday", "wednesday", "week", "weekend", "weeks", "year", "years",
    "yesterday",
];
#[rustfmt::skip]
const CHINESE_TIMES: &[&str] = &[
    "昨天", "今天", "明天", "前天", "后天", "去年", "今年", "明年", "上周", "下周", "本周", "上个月", "下个月", "最近", "年",
    "月", "星期", "日期", "小时",
];

pub(super) fn month(word: &str) -> Option<u32> {
    let found = LONG_MONTHS
        .iter()
        .position(|name| *name == word)
        .or_else(|| MONTHS.iter().position(|name| *name == word))
        .or_else(|| (word == "sept").then_some(8));
    found.map(|index| index as u32 + 1)
}

/// Computes the flags of a section's text, which may be a turn of a dialogue.
#[must_use]
pub fn read(text: &str, is_turn: bool) -> Signs {
    let mut bits = if is_turn { Signs::TURN } else { 0 };
    if text.trim_end().ends_with(['?', '？']) {
        bits |= Signs::ASKS;
    }
    let word_of_time = |word: &str| {
        let lower = word.to_ascii_lowercase();
        TIME_WORDS.binary_search(&lower.as_str()).is_ok()
            || word == "May"
            || is_ordinal_or_year(&lower)
    };
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() > 2);
    if words.into_iter().any(word_of_time) || CHINESE_TIMES.iter().any(|word| text.contains(word)) {
        bits |= Signs::TIME;
    }
    if has_count(text) {
        bits |= Signs::COUNT;
    }
    Signs(bits)
}

/// Number words that are rarely anything else. "One" is mostly a pronoun.
const NUMBER_WORDS: &[&str] = &[
    "billion", "couple", "dozen", "eight", "eleven", "fifteen", "fifty", "five", "forty", "four",
    "half", "hundred", "million", "nine", "once", "seven", "six", "ten", "thirty", "thousand",
    "three", "twelve", "twenty", "twice", "two",
];
const CHINESE_NUMBERS: [char; 13] = [
    '两', '三', '四', '五', '六', '七', '八', '九', '十', '百', '千', '万', '亿',
];

fn has_count(text: &str) -> bool {
    let is_number = |word: &str| {
        NUMBER_WORDS
            .binary_search(&word.to_ascii_lowercase().as_str())
            .is_ok()
    };
    text.contains(|c: char| c.is_numeric() || CHINESE_NUMBERS.contains(&c))
        || text
            .split(|c: char| !c.is_ascii_alphabetic())
            .any(is_number)
}

/// Returns the day that a text itself names, written out or in relation to the date of its
/// section.
#[must_use]
pub fn told(text: &str, day: Day) -> Day {
    let today = Days::of(day).and_then(Days::single);
    let relative = today.and_then(|today| when::named(text, today).first().copied());
    match relative {
        Some(days) => days.middle(),
        None => dates(text).first().copied().unwrap_or(Day::NONE),
    }
}

/// Returns the first date in a text that has a year, a month and a day.
#[must_use]
pub fn date_of(text: &str) -> Option<Date> {
    let days = dates(text).into_iter().filter_map(Days::of);
    days.into_iter().find_map(Days::single)
}

/// Returns true if a question asks for a number.
#[must_use]
pub fn asks_count(question: &str) -> bool {
    const ENGLISH: [&str; 11] = [
        "how many",
        "how much",
        "how often",
        "how old",
        "how far",
        "how tall",
        "how high",
        "how big",
        "how large",
        "how long",
        "how deep",
    ];
    const CHINESE: [&str; 12] = [
        "多少", "几个", "几次", "几岁", "几名", "几人", "多大", "多高", "多远", "多长", "多久",
        "第几",
    ];
    let lower = question.to_lowercase();
    let mut phrases = ENGLISH.iter().chain(&CHINESE);
    phrases.any(|phrase| lower.contains(phrase))
}

fn is_ordinal_or_year(word: &str) -> bool {
    let figures = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ending = &word[figures.len()..];
    !figures.is_empty()
        && figures.bytes().all(|byte| byte.is_ascii_digit())
        && (matches!(ending, "st" | "nd" | "rd" | "th") || ending.is_empty() && figures.len() == 4)
}

/// Returns true if a question asks for a time.
#[must_use]
pub fn asks_when(question: &str) -> bool {
    let lower = question.to_lowercase();
    let first = lower
        .split(|c: char| !c.is_alphanumeric())
        .find(|word| !word.is_empty());
    first == Some("when")
        || [
            "what date",
            "which date",
            "what day",
            "what year",
            "which year",
            "what month",
            "what time",
            "how long",
            "什么时候",
            "何时",
            "哪年",
            "哪一年",
            "几月",
            "哪天",
            "多久",
        ]
        .iter()
        .any(|phrase| lower.contains(phrase))
}

/// Returns true if a question asks for several things: a list or a count.
#[must_use]
pub fn asks_several(question: &str) -> bool {
    const PHRASES: [&str; 13] = [
        "how many",
        "how often",
        "list ",
        "all the ",
        "what are",
        "which are",
        "哪些",
        "几个",
        "几次",
        "多少次",
        "所有",
        "列出",
        "都有什么",
    ];
    let lower = question.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let asks_plural = words.windows(2).any(|two| {
        let is_plural = two[1].len() > 3 && two[1].ends_with('s') && !two[1].ends_with("ss");
        matches!(two[0], "what" | "which") && is_plural && two[1] != "does"
    });
    asks_plural || PHRASES.iter().any(|phrase| lower.contains(phrase))
}

#[derive(Debug, PartialEq)]
enum Piece<'t> {
    Number(u32, usize),
    Word(&'t str),
    Mark(char),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end_of = |test: fn(char) -> bool| rest.find(|c| !test(c)).unwrap_or(rest.len());
        let len = if c.is_ascii_digit() {
            let len = end_of(|c| c.is_ascii_digit());
            out.push(Piece::Number(rest[..len].parse().unwrap_or(u32::MAX), len));
            let after = &rest[len..];
            let ordinal = ["st", "nd", "rd", "th"].iter().any(|end| {
                after.starts_with(end) && !after[2..].starts_with(|c: char| c.is_alphanumeric())
            });
            if ordinal { len + 2 } else { len }
        } else if c.is_ascii_alphabetic() {
            let len = end_of(|c| c.is_ascii_alphabetic());
            if &rest[..len] != "of" {
                out.push(Piece::Word(&rest[..len]));
            }
            len
        } else {
            if !c.is_whitespace() && c != ',' {
                out.push(Piece::Mark(c));
            }
            c.len_utf8()
        };
        rest = &rest[len..];
    }
    out
}

/// Returns every date in a text.
#[must_use]
pub fn dates(text: &str) -> Vec<Day> {
    use Piece::{Mark, Number, Word};
    let pieces = pieces(text);
    let at = |index: Option<usize>| index.and_then(|index| pieces.get(index));
    let year_of = |piece: Option<&Piece>| match piece {
        Some(Number(year @ 1000..=2999, 4)) => Some(*year),
        _ => None,
    };
    let day_of = |piece: Option<&Piece>| match piece {
        Some(Number(day @ 1..=31, 1 | 2)) => Some(*day),
        _ => None,
    };
    let month_of = |piece: Option<&Piece>| day_of(piece).filter(|month| *month <= 12);
    let mut out = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let next = |step: usize| at(Some(index + step));
        match piece {
            Number(year @ 1000..=2999, 4) => match (next(1), month_of(next(2))) {
                (Some(Mark(mark @ ('-' | '/' | '.'))), Some(month)) => {
                    let day = day_of(next(4)).filter(|_| next(3) == Some(&Mark(*mark)));
                    out.push(Day::new(*year, month, day.unwrap_or(0)));
                }
                (Some(Mark('年')), Some(month)) if next(3) == Some(&Mark('月')) => {
                    out.push(Day::new(*year, month, day_of(next(4)).unwrap_or(0)));
                }
                _ => {
                    let named = [1, 2].iter().any(|back| {
                        matches!(at(index.checked_sub(*back)), Some(Word(word))
                            if month(&word.to_ascii_lowercase()).is_some())
                    });
                    if !named {
                        out.push(Day::new(*year, 0, 0));
                    }
                }
            },
            Number(month @ 1..=12, _)
                if next(1) == Some(&Mark('月'))
                    && at(index.checked_sub(1)) != Some(&Mark('年')) =>
            {
                out.push(Day::new(0, *month, day_of(next(2)).unwrap_or(0)));
            }
            Word(word) => {
                let Some(month) = month(&word.to_ascii_lowercase()) else {
                    continue;
                };
                let before = day_of(at(index.checked_sub(1)));
                let after = day_of(next(1)).filter(|_| before.is_none());
                let year = year_of(next(if after.is_some() { 2 } else { 1 }));
                let day = before.or(after);
                // "may", "march" and "mar" alone are more often words than months.
                let bare = day.is_none() && year.is_none();
                if !(bare && matches!(month, 3 | 5)) {
                    out.push(Day::new(year.unwrap_or(0), month, day.unwrap_or(0)));
                }
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_dates_in_many_forms() {
        let day = vec![Day::new(2023, 5, 8)];
        for text in [
            "1:56 pm on 8 May, 2023",
            "May 8th, 2023",
            "8th of May 2023",
            "2023/05/08 (Mon) 02:21",
            "sessions/2023-05-08.md",
            "2023年5月8日",
        ] {
            assert_eq!(dates(text), day, "{text}");
        }
        assert_eq!(dates("in August 2023"), vec![Day::new(2023, 8, 0)]);
        assert_eq!(dates("in 2022"), vec![Day::new(2022, 0, 0)]);
        assert_eq!(dates("You may march"), vec![]);
    }

    #[test]
    fn nearness_falls_with_days() {
        let day = Day::new(2023, 5, 8);
        assert!(day.nearness(Day::new(0, 5, 8)) > day.nearness(Day::new(2023, 5, 20)));
        assert_eq!(day.nearness(Day::new(2022, 5, 8)), 0.0);
        assert_eq!(Day::new(2023, 5, 0).nearness(day), 0.7);
    }

    #[test]
    fn tells_times_and_questions() {
        assert!(read("I saw it last week.", false).has(Signs::TIME));
        assert!(read("他昨天来过", false).has(Signs::TIME));
        assert!(!read("A quiet place", false).has(Signs::TIME));
        assert!(read("Did you? ", false).has(Signs::ASKS));
        assert!(asks_when("When did she go?") && asks_when("他什么时候来的"));
        assert!(TIME_WORDS.is_sorted() && NUMBER_WORDS.is_sorted());
    }

    #[test]
    fn tells_counts() {
        for text in ["I have two cats", "On 8 May", "他养了三只猫", "Twice"] {
            assert!(read(text, false).has(Signs::COUNT), "{text}");
        }
        assert!(!read("No one knows", false).has(Signs::COUNT));
        assert!(asks_count("How many cats?") && asks_count("他有多少猫"));
        assert!(asks_several("What books has she read?") && asks_several("他去过哪些城市"));
        assert!(!asks_several("What does she read?") && !asks_several("What is the boss like?"));
    }

    #[test]
    fn a_text_tells_its_day() {
        let session = Day::new(2024, 3, 20);
        assert_eq!(told("I saw it yesterday.", session), Day::new(2024, 3, 19));
        assert_eq!(told("上个月去的", session), Day::new(2024, 2, 15));
        assert_eq!(told("It was on 8 May 2023.", session), Day::new(2023, 5, 8));
        assert_eq!(told("I saw it yesterday.", Day::NONE), Day::NONE);
        assert_eq!(date_of("2026-01-31").map(|date| date.day()), Some(31));
        assert_eq!(date_of("January 2026"), None);
    }
}
