//! Days that a text names in relation to a day: "last week", "in March", 上个月, 三天前.
//!
//! A question is read against the day on which it is asked, the text of a section against the date
//! in its headings. `signs` reads dates that are written out. Weeks begin on Monday.

use std::ops::RangeInclusive;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::signs::{Day, month};

/// How many days away still count as near.
const NEAR: f32 = 7.0;

/// A range of days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days {
    pub first: Date,
    pub last: Date,
}

impl Days {
    fn one(day: Date) -> Self {
        Self {
            first: day,
            last: day,
        }
    }

    /// Returns the days that a date can mean. A date without a year can mean anything.
    pub fn of(day: Day) -> Option<Self> {
        let (year, month, of_month) = day.parts();
        let date = |month: u32, day: u32| {
            Date::new(i16::try_from(year).ok()?, month as i8, day as i8).ok()
        };
        match (year, month, of_month) {
            (0, ..) => None,
            (_, 0, _) => Some(Self {
                first: date(1, 1)?,
                last: date(12, 31)?,
            }),
            (_, _, 0) => Some(month_of(date(month, 1)?)),
            _ => Some(Self::one(date(month, of_month)?)),
        }
    }

    /// Returns the date of a range of one day.
    pub fn single(self) -> Option<Date> {
        (self.first == self.last).then_some(self.first)
    }

    /// Returns 1 if two ranges share a day, and less the more days are between them.
    pub fn nearness(self, other: Self) -> f32 {
        let between = |from: Date, to: Date| (to - from).get_days();
        let apart = between(self.last, other.first).max(between(other.last, self.first));
        (-(apart.max(0) as f32) / NEAR).exp()
    }

    /// Returns the day in the middle.
    pub fn middle(self) -> Day {
        let half = (self.last - self.first).get_days() / 2;
        let day = self.first.saturating_add(half.days());
        Day::new(day.year() as u32, day.month() as u32, day.day() as u32)
    }
}

/// A unit of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Day,
    Week,
    Weekend,
    Month,
    Year,
    On(Weekday),
    /// January is 1.
    In(u32),
}

/// Returns the days that a text names in relation to `today`.
#[must_use]
pub fn named(text: &str, today: Date) -> Vec<Days> {
    let mut out = in_english(text, today);
    out.extend(in_chinese(text, today));
    out
}

fn week_of(day: Date) -> Days {
    let first = day.saturating_sub(i64::from(day.weekday().to_monday_zero_offset()).days());
    Days {
        first,
        last: first.saturating_add(6.days()),
    }
}

fn month_of(day: Date) -> Days {
    Days {
        first: day.first_of_month(),
        last: day.last_of_month(),
    }
}

fn year_of(day: Date) -> Days {
    Days {
        first: day.first_of_year(),
        last: day.last_of_year(),
    }
}

/// Returns a unit some steps after (before, if negative) the one that contains `today`.
fn step(unit: Unit, by: i64, today: Date) -> Days {
    match unit {
        Unit::Day => Days::one(today.saturating_add(by.days())),
        Unit::Week => week_of(today.saturating_add(by.weeks())),
        Unit::Weekend => {
            let week = week_of(today.saturating_add(by.weeks()));
            Days {
                first: week.last.saturating_sub(1.day()),
                ..week
            }
        }
        Unit::Month => month_of(today.first_of_month().saturating_add(by.months())),
        Unit::Year => year_of(today.first_of_year().saturating_add(by.years())),
        Unit::On(weekday) => {
            let monday = week_of(today.saturating_add(by.weeks())).first;
            let away = i64::from(weekday.to_monday_zero_offset());
            Days::one(monday.saturating_add(away.days()))
        }
        Unit::In(month) => {
            let year = year_of(today.first_of_year().saturating_add(by.years()));
            month_of(year.first.saturating_add(i64::from(month - 1).months()))
        }
    }
}

/// Returns the latest one that begins before `today`.
fn latest(unit: Unit, today: Date) -> Days {
    let this = step(unit, 0, today);
    if this.first < today {
        this
    } else {
        step(unit, -1, today)
    }
}

/// Returns the days about `count` units ago.
fn ago(unit: Unit, count: i64, today: Date) -> Days {
    match unit {
        Unit::Week => {
            let day = today.saturating_sub(count.weeks());
            Days {
                first: day.saturating_sub(3.days()),
                last: day.saturating_add(3.days()),
            }
        }
        _ => step(unit, -count, today),
    }
}

/// Returns the `count` units that end today.
fn past(unit: Unit, count: i64, today: Date) -> Days {
    let first = match unit {
        Unit::Day => today.saturating_sub(count.days()),
        Unit::Month => today.saturating_sub(count.months()),
        Unit::Year => today.saturating_sub(count.years()),
        _ => today.saturating_sub(count.weeks()),
    };
    Days { first, last: today }
}

fn unit_of(word: &str) -> Option<Unit> {
    let unit = match word {
        "day" | "days" | "night" => Unit::Day,
        "week" | "weeks" => Unit::Week,
        "weekend" | "weekends" => Unit::Weekend,
        "month" | "months" => Unit::Month,
        "year" | "years" => Unit::Year,
        "monday" => Unit::On(Weekday::Monday),
        "tuesday" => Unit::On(Weekday::Tuesday),
        "wednesday" => Unit::On(Weekday::Wednesday),
        "thursday" => Unit::On(Weekday::Thursday),
        "friday" => Unit::On(Weekday::Friday),
        "saturday" => Unit::On(Weekday::Saturday),
        "sunday" => Unit::On(Weekday::Sunday),
        _ => Unit::In(month(word)?),
    };
    Some(unit)
}

const NUMBERS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];
/// The largest number that is read as a count of days, weeks, months or years.
const MOST: RangeInclusive<i64> = 1..=999;

fn number_of(word: &str) -> Option<i64> {
    let place = NUMBERS.iter().position(|name| *name == word);
    match word {
        "a" | "an" => Some(1),
        "couple" => Some(2),
        "few" | "several" => Some(3),
        _ => place
            .map(|place| place as i64 + 1)
            .or_else(|| word.parse().ok())
            .filter(|number| MOST.contains(number)),
    }
}

fn in_english(text: &str, today: Date) -> Vec<Days> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !matches!(*word, "" | "of" | "the"))
        .collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let found = english_at(&words[at..], today);
        out.extend(found.map(|(days, _)| days));
        at += found.map_or(1, |(_, length)| length);
    }
    out
}

/// Reads an expression at the start of some words. Returns its days and its number of words.
fn english_at(words: &[&str], today: Date) -> Option<(Days, usize)> {
    let word = |index: usize| words.get(index).copied().unwrap_or_default();
    let unit = |index: usize| unit_of(word(index));
    let day = |by: i64| step(Unit::Day, by, today);
    match word(0) {
        "today" | "tonight" => return Some((day(0), 1)),
        "yesterday" => return Some((day(-1), 1)),
        "tomorrow" => return Some((day(1), 1)),
        "day" if (word(1), word(2)) == ("before", "yesterday") => return Some((day(-2), 3)),
        "day" if (word(1), word(2)) == ("after", "tomorrow") => return Some((day(2), 3)),
        "last" | "past" | "previous" => {
            if let (Some(count), Some(unit)) = (number_of(word(1)), unit(2)) {
                return Some((past(unit, count, today), 3));
            }
            let unit = unit(1)?;
            let days = match unit {
                Unit::In(_) | Unit::Weekend => latest(unit, today),
                Unit::On(_) => latest(unit, today),
                _ if word(0) == "past" => past(unit, 1, today),
                _ => step(unit, -1, today),
            };
            return Some((days, 2));
        }
        "this" | "next" => {
            if matches!(word(1), "morning" | "afternoon" | "evening") && word(0) == "this" {
                return Some((day(0), 2));
            }
            let by = i64::from(word(0) == "next");
            return Some((step(unit(1)?, by, today), 2));
        }
        "in" | "on" | "during" | "since" => {
            let unit = unit(1).filter(|unit| matches!(unit, Unit::On(_) | Unit::In(_)))?;
            // "In March 2024" and "on May 8" are dates.
            let is_date = word(2).starts_with(|c: char| c.is_ascii_digit());
            return (!is_date).then(|| (latest(unit, today), 2));
        }
        _ => {}
    }
    let (count, unit) = (number_of(word(0))?, unit(1)?);
    (word(2) == "ago").then(|| (ago(unit, count, today), 3))
}

/// Chinese words for a day, and its distance from today. Longer ones first.
const CHINESE_DAYS: [(&str, i64); 12] = [
    ("大前天", -3),
    ("大后天", 3),
    ("前天", -2),
    ("昨天", -1),
    ("昨日", -1),
    ("昨晚", -1),
    ("今天", 0),
    ("今日", 0),
    ("今晚", 0),
    ("明天", 1),
    ("明日", 1),
    ("后天", 2),
];
const CHINESE_YEARS: [(&str, i64); 4] = [("去年", -1), ("前年", -2), ("今年", 0), ("明年", 1)];
const CHINESE_STEPS: [(&str, i64); 6] = [
    ("上上", -2),
    ("上", -1),
    ("这", 0),
    ("本", 0),
    ("下下", 2),
    ("下", 1),
];
const CHINESE_UNITS: [(&str, Unit); 10] = [
    ("周末", Unit::Weekend),
    ("週末", Unit::Weekend),
    ("周", Unit::Week),
    ("星期", Unit::Week),
    ("礼拜", Unit::Week),
    ("月", Unit::Month),
    ("天", Unit::Day),
    ("日", Unit::Day),
    ("年", Unit::Year),
    ("週", Unit::Week),
];
const CHINESE_WEEKDAYS: [(&str, Weekday); 8] = [
    ("一", Weekday::Monday),
    ("二", Weekday::Tuesday),
    ("三", Weekday::Wednesday),
    ("四", Weekday::Thursday),
    ("五", Weekday::Friday),
    ("六", Weekday::Saturday),
    ("日", Weekday::Sunday),
    ("天", Weekday::Sunday),
];

/// Removes one of some words from the start of a text. Returns its value and the rest.
fn strip<'t, V: Copy>(text: &'t str, words: &[(&str, V)]) -> Option<(V, &'t str)> {
    let found = |(word, value): &(&str, V)| Some((*value, text.strip_prefix(word)?));
    words.iter().find_map(found)
}

/// The first characters of all expressions.
const CHINESE_BEGINS: [char; 26] = [
    '大', '前', '昨', '今', '明', '后', '去', '上', '这', '本', '下', '最', '过', '近', '一', '二',
    '两', '三', '四', '五', '六', '七', '八', '九', '十', '几',
];

fn in_chinese(text: &str, today: Date) -> Vec<Days> {
    let mut out = Vec::new();
    let mut rest = text;
    let mut after_year = false;
    while let Some(c) = rest.chars().next() {
        // A month after a year is a date.
        let begins = c.is_ascii_digit() || CHINESE_BEGINS.contains(&c);
        let found = (begins && !after_year)
            .then(|| chinese_at(rest, today))
            .flatten();
        after_year = c == '年';
        match found {
            Some((days, after)) => {
                out.push(days);
                rest = after;
            }
            // The digits of a number belong together.
            None if c.is_ascii_digit() => {
                rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
                after_year = false;
                if let Some(after) = rest.strip_prefix('年') {
                    (rest, after_year) = (after, true);
                }
            }
            None => rest = &rest[c.len_utf8()..],
        }
    }
    out
}

/// Reads an expression at the start of a text. Returns its days and the text after it.
fn chinese_at(text: &str, today: Date) -> Option<(Days, &str)> {
    if let Some((by, rest)) = strip(text, &CHINESE_DAYS) {
        return Some((step(Unit::Day, by, today), rest));
    }
    if let Some((by, rest)) = strip(text, &CHINESE_YEARS) {
        let month = chinese_number(rest)
            .and_then(|(month, rest)| Some((month, rest.strip_prefix('月')?)))
            .filter(|(month, _)| (1..=12).contains(month));
        return Some(match month {
            Some((month, rest)) => (step(Unit::In(month as u32), by, today), rest),
            None => (step(Unit::Year, by, today), rest),
        });
    }
    if let Some((by, rest)) = strip(text, &CHINESE_STEPS) {
        let (unit, rest) = strip(
            rest.strip_prefix(['个', '個']).unwrap_or(rest),
            &CHINESE_UNITS,
        )?;
        if matches!(unit, Unit::Day | Unit::Year) {
            return None;
        }
        if let (Unit::Week, Some((weekday, rest))) = (unit, strip(rest, &CHINESE_WEEKDAYS)) {
            return Some((step(Unit::On(weekday), by, today), rest));
        }
        return Some((step(unit, by, today), rest));
    }
    let recent = [("最近", ()), ("过去", ()), ("近", ())];
    if let Some(((), rest)) = strip(text, &recent) {
        let (count, unit, rest) = chinese_count(rest)?;
        return Some((past(unit, count, today), rest));
    }
    let (count, unit, rest) = chinese_count(text)?;
    let before = [("以前", ()), ("之前", ()), ("前", ())];
    if let Some(((), rest)) = strip(rest, &before) {
        return Some((ago(unit, count, today), rest));
    }
    // "三月" is a month, "三个月" is not, and "3月8日" is a date.
    let month = &text[..text.len() - rest.len()];
    let is_month = unit == Unit::Month
        && (1..=12).contains(&count)
        && !month.contains(['个', '個'])
        && chinese_number(rest).is_none();
    is_month.then(|| (latest(Unit::In(count as u32), today), rest))
}

/// Reads "三天", "2个月".
fn chinese_count(text: &str) -> Option<(i64, Unit, &str)> {
    let (count, rest) = chinese_number(text)?;
    let (unit, rest) = strip(
        rest.strip_prefix(['个', '個']).unwrap_or(rest),
        &CHINESE_UNITS,
    )?;
    Some((count, unit, rest))
}

/// Reads a number up to ninety-nine in Chinese, or in digits.
fn chinese_number(text: &str) -> Option<(i64, &str)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() < text.len() {
        let number = text[..text.len() - rest.len()].parse().ok()?;
        return MOST.contains(&number).then_some((number, rest));
    }
    const DIGITS: [(&str, i64); 11] = [
        ("一", 1),
        ("二", 2),
        ("两", 2),
        ("三", 3),
        ("四", 4),
        ("五", 5),
        ("六", 6),
        ("七", 7),
        ("八", 8),
        ("九", 9),
        ("几", 3),
    ];
    let tens = strip(text, &DIGITS);
    let (first, rest) = tens.unwrap_or((1, text));
    let Some(rest) = rest.strip_prefix('十') else {
        return tens;
    };
    let (ones, rest) = strip(rest, &DIGITS).unwrap_or((0, rest));
    Some((10 * first + ones, rest))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// Asserts what a text names on Wednesday, 20 March 2024.
    fn check(text: &str, first: (i8, i8), last: (i8, i8)) {
        let found = named(text, date(2024, 3, 20));
        let year = if first.0 > 10 { 2023 } else { 2024 };
        let days = Days {
            first: date(year, first.0, first.1),
            last: date(year, last.0, last.1),
        };
        assert_eq!(found, [days], "{text}");
    }

    #[test]
    fn english_expressions_are_resolved() {
        check("What happened yesterday?", (3, 19), (3, 19));
        check("the day before yesterday", (3, 18), (3, 18));
        check("last week", (3, 11), (3, 17));
        check("Who called last weekend?", (3, 16), (3, 17));
        check("the last three days", (3, 17), (3, 20));
        check("in the past two weeks", (3, 6), (3, 20));
        check("this month", (3, 1), (3, 31));
        check("last month", (2, 1), (2, 29));
        check("last Friday", (3, 15), (3, 15));
        check("on Monday", (3, 18), (3, 18));
        check("What did she read in February?", (2, 1), (2, 29));
        check("in December", (12, 1), (12, 31));
        check("two weeks ago", (3, 3), (3, 9));
        check("a few days ago", (3, 17), (3, 17));
        check("two months ago", (1, 1), (1, 31));
        check("next week", (3, 25), (3, 31));
    }

    #[test]
    fn chinese_expressions_are_resolved() {
        check("昨天发生了什么？", (3, 19), (3, 19));
        check("上个月谁来过", (2, 1), (2, 29));
        check("上周五开的会", (3, 15), (3, 15));
        check("上周末", (3, 16), (3, 17));
        check("这周", (3, 18), (3, 24));
        check("三天前", (3, 17), (3, 17));
        check("两个月以前", (1, 1), (1, 31));
        check("最近十天", (3, 10), (3, 20));
        check("二月读了什么书", (2, 1), (2, 29));
        check("今年1月", (1, 1), (1, 31));
        check("去年十二月", (12, 1), (12, 31));
    }

    #[test]
    fn other_texts_name_nothing() {
        for text in [
            "You may march",
            "in March 2024",
            "on May 8",
            "the last one",
            "这个问题",
            "上面写了",
            "三个人",
            "2024",
            "近代史",
            "2024年3月",
            "3月8日",
            "用了三个月",
        ] {
            assert_eq!(named(text, date(2024, 3, 20)), [], "{text}");
        }
    }

    #[test]
    fn nearness_is_one_within_and_falls_outside() {
        let week = step(Unit::Week, -1, date(2024, 3, 20));
        let near = |day: u32| week.nearness(Days::of(Day::new(2024, 3, day)).unwrap());
        assert_eq!(near(11), 1.0);
        assert_eq!(near(17), 1.0);
        assert!(near(18) < 1.0 && near(20) < near(18));
        assert_eq!(week.nearness(Days::of(Day::new(2024, 3, 0)).unwrap()), 1.0);
        assert_eq!(Days::of(Day::new(0, 3, 1)), None);
    }
}
