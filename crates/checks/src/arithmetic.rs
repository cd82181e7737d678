//! Shares that are stated with their numbers, sums of tables, and numbers that only the abstract
//! has.

use std::sync::LazyLock;

use quipu_text::{Cell, Document, Row, Section};
use regex::Regex;

use crate::length::is_abstract;
use crate::number::Written;
use crate::plain::Plain;
use crate::{Finder, Gravity};

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// `12 of 48 participants (25%)`, `12/48 (25%)`
static PART_FIRST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|[^\w.,/-])(?P<part>\d{1,6})\s*(?:/|of|out of)\s*(?:the\s+|all\s+)?(?P<whole>\d{1,6})(?:\s+[a-z][a-z-]*){0,3}\s*\(\s*(?P<share>\d{1,3}(?:\.\d+)?)\s?%\s*[),;]",
    )
});
/// `25% (12/48)`, `25% (12 of 48)`
static SHARE_FIRST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|[^\w.,/-])(?P<share>\d{1,3}(?:\.\d+)?)\s?%\s*\(\s*(?:n\s*=\s*)?(?P<part>\d{1,6})\s*(?:/|of|out of)\s*(?P<whole>\d{1,6})\s*[),;]",
    )
});
/// `48 名受试者中 12 名（25%）`
static CHINESE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|[^\d.])(?P<whole>\d{1,6})\s*[名例个位人份项篇][^,。;\d(]{0,8}中[^。;\d]{0,6}?(?P<part>\d{1,6})\s*[名例个位人份项篇][^,。;\d(]{0,6}\(\s*占?\s*(?P<share>\d{1,3}(?:\.\d+)?)%\s*[),;]",
    )
});
/// A number with decimals, and a sign that makes it part of something else.
static DECIMAL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|[^A-Za-z\d._])(?P<number>\d+\.\d+)(?P<after>\.\d|[A-Za-z_])?"));

pub(crate) fn check(document: &Document<'_>, found: &mut Finder<'_>) {
    check_shares(found);
    check_abstract(document, found);
    check_totals(document, found);
}

fn check_shares(found: &mut Finder<'_>) {
    let plain = found.plain;
    let mut count = 0;
    for (offset, paragraph) in plain.paragraphs() {
        for stated in [&*PART_FIRST, &*SHARE_FIRST, &*CHINESE] {
            for share in stated.captures_iter(paragraph) {
                let number = |name: &str| Written::parse(&share[name]);
                let numbers = (number("part"), number("whole"), number("share"));
                let (Some(part), Some(whole), Some(said)) = numbers else {
                    continue;
                };
                if whole.value == 0.0 || part.value > whole.value {
                    continue;
                }
                count += 1;
                let computed = 100.0 * part.value / whole.value;
                if said.covers(computed) {
                    continue;
                }
                let shown = format!("{computed:.*}", said.decimals.max(1));
                let text = found.say(
                    format!(
                        "{} of {} is {shown} %, not {} %; correct one of them.",
                        &share["part"], &share["whole"], &share["share"]
                    ),
                    format!(
                        "{} 占 {} 的 {shown}%，不是 {}%；请改正其一。",
                        &share["part"], &share["whole"], &share["share"]
                    ),
                );
                let (first, last) = ends(&share);
                found.plain(offset + first..offset + last, Gravity::Minor, text);
            }
        }
    }
    if count > 0 {
        found.covered(
            format!("shares recomputed: {count}"),
            format!("重算的比例：{count}"),
        );
    }
}

/// The range of the named groups of a match.
fn ends(share: &regex::Captures<'_>) -> (usize, usize) {
    let groups =
        ["part", "whole", "share"].map(|name| share.name(name).map_or(0..0, |m| m.range()));
    let first = groups.iter().map(|range| range.start).min();
    let last = groups.iter().map(|range| range.end).max();
    (first.unwrap_or_default(), last.unwrap_or_default())
}

/// The decimal numbers of a text with their offsets, without versions and names.
pub(crate) fn decimals(text: &str) -> Vec<(std::ops::Range<usize>, Written)> {
    let numbers = DECIMAL.captures_iter(text).filter_map(|c| {
        let number = c.name("number")?;
        c.name("after")
            .is_none()
            .then_some((number.range(), Written::parse(number.as_str())?))
    });
    numbers.collect()
}

/// Every decimal number of the abstract is somewhere else in the text, too.
fn check_abstract(document: &Document<'_>, found: &mut Finder<'_>) {
    let Some(summary) = document.sections().iter().find(|s| is_abstract(&s.title)) else {
        return;
    };
    let plain = found.plain;
    let at = range_in_plain(plain, summary);
    let body: Vec<Written> = decimals(&plain.text[at.end..])
        .into_iter()
        .map(|(_, n)| n)
        .collect();
    let whole: Vec<f64> = integers(&plain.text[at.end..]);
    let stated = decimals(&plain.text[at.clone()]);
    let count = stated.len();
    for (range, number) in stated {
        let same = |n: &Written| number.rounds(*n) || n.rounds(number);
        let percent =
            |n: &Written| number.covers(n.value * 100.0) || number.covers(n.value / 100.0);
        let is_whole = whole
            .iter()
            .any(|n| number.covers(n / 100.0) || number.covers(*n));
        if body.iter().any(|n| same(n) || percent(n)) || is_whole || body.is_empty() {
            continue;
        }
        let shown = &plain.text[at.start + range.start..at.start + range.end];
        let text = found.say(
            format!("The abstract states {shown}, which no other part of the text has; report it there or correct it."),
            format!("摘要中的 {shown} 在正文其他地方没有出现；请在正文中报告或改正。"),
        );
        let range = at.start + range.start..at.start + range.end;
        found.plain(range, Gravity::Minor, text);
    }
    if count > 0 {
        found.covered(
            format!("decimal numbers of the abstract looked up in the text: {count}"),
            format!("在正文中查对的摘要小数：{count}"),
        );
    }
}

fn integers(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != ',');
    words
        .filter_map(|word| word.replace(',', "").parse().ok())
        .collect()
}

/// The range of a section's body in the plain text.
fn range_in_plain(plain: &Plain, section: &Section) -> std::ops::Range<usize> {
    plain.after_source(section.body.start)..plain.after_source(section.range.end)
}

/// The last row of a table of whole numbers, if it is a total, is the sum of the others.
fn check_totals(document: &Document<'_>, found: &mut Finder<'_>) {
    let mut count = 0;
    for table in document.tables() {
        let rows = document.rows_in(&table.range);
        let Some((last, rows)) = rows.split_last() else {
            continue;
        };
        let name = last
            .cells
            .first()
            .map(|cell| cell.text.trim().to_lowercase());
        let is_total = matches!(
            name.as_deref(),
            Some("total" | "sum" | "合计" | "总计" | "总和")
        );
        if !is_total || rows.len() < 2 || rows.iter().any(is_part) {
            continue;
        }
        for column in 1..last.cells.len() {
            let header = table.header.get(column).map_or("", |cell| &cell.text);
            if header.contains(['%', '％']) {
                continue;
            }
            let values: Option<Vec<i64>> = rows
                .iter()
                .map(|row| whole(row.cells.get(column)?))
                .collect();
            let (Some(values), Some(total)) = (values, whole(&last.cells[column])) else {
                continue;
            };
            count += 1;
            let sum: i64 = values.iter().sum();
            // Groups that are listed twice, once in parts.
            if sum == total || sum == 2 * total {
                continue;
            }
            let text = found.say(
                format!(
                    "The rows of the column \"{}\" add up to {sum}, the total says {total}.",
                    header.trim().replace('"', "'")
                ),
                format!(
                    "“{}”一列各行之和为 {sum}，合计写的是 {total}。",
                    header.trim()
                ),
            );
            found.source(
                last.cells[column].range.clone(),
                Gravity::Minor,
                text.replace('“', "「").replace('”', "」"),
            );
        }
    }
    if count > 0 {
        found.covered(
            format!("totals of tables added up: {count}"),
            format!("重算的表格合计：{count}"),
        );
    }
}

/// Whether a row is a part or a subtotal of others.
fn is_part(row: &Row) -> bool {
    let name = row
        .cells
        .first()
        .map_or("", |cell| cell.text.trim())
        .to_lowercase();
    let parts = [
        "subtotal",
        "of which",
        "thereof",
        "including",
        "小计",
        "其中",
        "-",
        "–",
        "—",
        "all",
    ];
    name.is_empty() || parts.iter().any(|part| name.starts_with(part))
}

fn whole(cell: &Cell) -> Option<i64> {
    cell.text.trim().replace(',', "").parse().ok()
}
