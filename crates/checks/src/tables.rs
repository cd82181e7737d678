//! Numbers that a sentence takes from a table and that differ from the table like a slip of the
//! pen: two digits exchanged, or one digit wrong.
//!
//! A sentence may also compute with the numbers of a table. So a number is reported only if the
//! table has its near twin, and no sum, difference, mean or ratio of the table's numbers gives it.

use std::ops::Range;
use std::sync::LazyLock;

use quipu_text::Document;
use regex::Regex;

use crate::arithmetic::decimals;
use crate::number::Written;
use crate::{Finder, Gravity};

static CAPTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^[\W_]*(?:table|表)\s*(\d{1,2})(?-u:\b)").expect("a valid pattern")
});
static CITED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:(?-u:\b)(?P<kind>tables?|figures?|figs?)(?-u:\b)\.?|(?P<zh>[表图]))\s*(?P<number>\d{1,2})")
        .expect("a valid pattern")
});
/// Lines between a table and its caption.
const NEAR: usize = 3;
/// One wrong digit is a slip only in a number that has enough digits to be recognised.
const FOR_ONE_DIGIT: usize = 4;
const FOR_EXCHANGE: usize = 3;

pub(crate) fn check(document: &Document<'_>, found: &mut Finder<'_>) {
    let numbers = numbers_of_tables(document);
    if numbers.is_empty() {
        return;
    }
    let plain = found.plain;
    let mut count = 0;
    for (offset, paragraph) in plain.paragraphs() {
        if paragraph.trim_start().starts_with('|') {
            continue;
        }
        for sentence in sentences(paragraph) {
            let text = &paragraph[sentence.clone()];
            let mut cited = CITED.captures_iter(text);
            let (Some(first), None) = (cited.next(), cited.next()) else {
                continue;
            };
            let is_table = first.name("kind").map_or_else(
                || first.name("zh").is_some_and(|zh| zh.as_str() == "表"),
                |kind| kind.as_str().to_lowercase().starts_with("table"),
            );
            let number: usize = first["number"].parse().unwrap_or_default();
            let table = numbers.iter().find(|(n, _)| *n == number);
            let Some((_, values)) = table.filter(|_| is_table) else {
                continue;
            };
            for (range, said) in decimals(text) {
                count += 1;
                let Some(twin) = slip(said, values) else {
                    continue;
                };
                let (said, twin) = (&text[range.clone()], shown(twin));
                let message = found.say(
                    format!(
                        "The sentence says {said}, table {number} has {twin}; correct one of them."
                    ),
                    format!("此句写 {said}，表 {number} 中是 {twin}；请改正其一。"),
                );
                let start = offset + sentence.start;
                found.plain(
                    start + range.start..start + range.end,
                    Gravity::Minor,
                    message,
                );
            }
        }
    }
    if count > 0 {
        found.covered(
            format!("numbers compared with the table that their sentence cites: {count}"),
            format!("与所引表格比对的数字：{count}"),
        );
    }
}

/// The decimal numbers of each table, by the number in its caption or, without captions, by order.
fn numbers_of_tables(document: &Document<'_>) -> Vec<(usize, Vec<Written>)> {
    let text = document.text();
    let captions: Vec<Option<usize>> = document
        .tables()
        .iter()
        .map(|table| caption(text, &table.range))
        .collect();
    let is_captioned = captions.iter().any(Option::is_some);
    // A line such as "Table 2 shows" above another table is no caption of it.
    let is_clear = |number: usize| captions.iter().filter(|c| **c == Some(number)).count() < 2;
    let tables = document.tables().iter().zip(&captions).enumerate();
    let numbered = tables.filter_map(|(at, (table, caption))| {
        let number = caption.or((!is_captioned).then_some(at + 1))?;
        if !is_clear(number) {
            return None;
        }
        let values = decimals(&text[table.range.clone()].replace(['*', '_', '$'], " "));
        Some((number, values.into_iter().map(|(_, n)| n).collect()))
    });
    numbered.collect()
}

fn caption(text: &str, table: &Range<usize>) -> Option<usize> {
    let number = |line: &str| CAPTION.captures(line)?[1].parse().ok();
    let above = text[..table.start]
        .lines()
        .rev()
        .take(NEAR)
        .find_map(number);
    above.or_else(|| text[table.end..].lines().take(NEAR).find_map(number))
}

/// The sentences of a paragraph. A point within a number ends none.
fn sentences(paragraph: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = paragraph.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let ends = matches!(c, '。' | '！' | '？')
            || matches!(c, '.' | '!' | '?') && next.is_none_or(char::is_whitespace);
        if ends {
            found.push(start..at + c.len_utf8());
            start = at + c.len_utf8();
        }
    }
    found.push(start..paragraph.len());
    found
}

fn shown(number: Written) -> String {
    format!("{:.*}", number.decimals, number.value)
}

/// The number of a table from which another number differs like a slip.
fn slip(said: Written, table: &[Written]) -> Option<Written> {
    if table.iter().any(|n| said.rounds(*n)) || is_computed(said, table) {
        return None;
    }
    let mut twins = table.iter().filter(|n| n.decimals == said.decimals);
    twins
        .find(|twin| is_slip(&shown(said), &shown(**twin)))
        .copied()
}

/// Whether two numbers differ by two neighbouring digits exchanged, or by one digit.
fn is_slip(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let digits = one.iter().filter(|c| c.is_ascii_digit()).count();
    if one.len() != other.len() {
        return false;
    }
    let apart: Vec<usize> = (0..one.len()).filter(|at| one[*at] != other[*at]).collect();
    match apart.as_slice() {
        [_] => digits >= FOR_ONE_DIGIT,
        [a, b] => {
            let between = one[*a + 1..*b].iter().all(|c| *c == '.');
            digits >= FOR_EXCHANGE && between && one[*a] == other[*b] && one[*b] == other[*a]
        }
        _ => false,
    }
}

/// Whether two numbers of the table give it.
fn is_computed(said: Written, table: &[Written]) -> bool {
    let pairs = table
        .iter()
        .flat_map(|a| table.iter().map(move |b| (a.value, b.value)));
    let mut results = pairs.flat_map(|(a, b)| {
        let ratio = if b == 0.0 { f64::NAN } else { a / b };
        [
            a + b,
            a - b,
            (a + b) / 2.0,
            ratio,
            100.0 * ratio,
            100.0 * (ratio - 1.0),
            100.0 * (1.0 - ratio),
        ]
    });
    results.any(|result| said.covers(result))
}
