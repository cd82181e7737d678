//! Cited keys against the bibliography, and cited numbers against a numbered list of references.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use quipu_text::Document;
use regex::Regex;

use crate::bibliography::{Entry, entries};
use crate::plain::{is_references, ranges_apart};
use crate::{Bibliography, Finder, Gravity, finding};

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// `[see @doe2020, p. 3; -@roe2021]`
static GROUP: LazyLock<Regex> = LazyLock::new(|| pattern(r"\[([^\[\]\n]*@[^\[\]]*)\]"));
/// `@doe2020` in a group, or with a year in the text.
static KEY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|[\s;,\[(\-])@\{?(\w[\w:.#$%&+?<>~/-]*)"));
static LATEX: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\\(?:[Nn]o|[Pp]aren|[Tt]ext|[Aa]uto|[Ss]mart|[Ff]oot)?[Cc]ite(?:p|t|alt|alp|author|year)?\*?(?:\[[^\]]*\]){0,2}\{([^}]+)\}",
    )
});
/// Keys of figures and equations, which are no citations.
const CROSS: [&str; 7] = ["fig:", "tbl:", "tab:", "eq:", "sec:", "lst:", "eqn:"];
/// `[12]`, `[3, 7–9]`
static NUMBERS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|[^\w\]\)])\[(\d{1,3}(?:\s*[,，;；–-]\s*\d{1,3})*)\]"));
/// The number of an entry in a list of references.
static ENTRY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^\s*(?:[-*]\s+)?\\?\[(\d{1,3})\\?\]\s*\S"));

pub(crate) fn check(
    document: &Document<'_>,
    bibliographies: &[Bibliography<'_>],
    found: &mut Finder<'_>,
) {
    check_keys(document, bibliographies, found);
    check_numbers(document, found);
}

fn check_keys(
    document: &Document<'_>,
    bibliographies: &[Bibliography<'_>],
    found: &mut Finder<'_>,
) {
    let cited = cited_keys(document);
    let mut known: Vec<Entry<'_>> = Vec::new();
    let mut unread = Vec::new();
    for bibliography in bibliographies {
        let Some(entries) = entries(bibliography) else {
            unread.push(bibliography.path);
            continue;
        };
        find_doubled(bibliography, &entries, found);
        known.extend(entries);
    }
    let keys: BTreeSet<&str> = known.iter().map(|entry| entry.key).collect();
    if !unread.is_empty() {
        let paths = unread.join(", ");
        found.covered(
            format!("{paths} could not be parsed: its keys are not checked"),
            format!("{paths} 无法解析：未核对其条目"),
        );
        return;
    }
    if bibliographies.is_empty() {
        return;
    }
    let mut reported = BTreeSet::new();
    for (key, at) in &cited {
        if !keys.contains(key.as_str()) && reported.insert(key) {
            let near = nearest(key, &keys);
            let text = found.say(
                format!("`{key}` is cited, but the bibliography has no such entry{near}; add it or correct the key."),
                format!("引用了 `{key}`，但参考文献库中没有这一条{near}；请补上或改正。"),
            );
            found.source(at.clone(), Gravity::Important, text);
        }
    }
    let used: BTreeSet<&str> = cited.iter().map(|(key, _)| key.as_str()).collect();
    let unused: Vec<&str> = keys.difference(&used).copied().collect();
    let (en, zh) = match unused.as_slice() {
        [] => (String::new(), String::new()),
        keys => (
            format!("; never cited: {}", keys.join(", ")),
            format!("；从未引用：{}", keys.join("、")),
        ),
    };
    found.covered(
        format!("cited keys: {}, entries: {}{en}", used.len(), keys.len()),
        format!(
            "引用的条目：{}，参考文献库条目：{}{zh}",
            used.len(),
            keys.len()
        ),
    );
}

/// The keys that a text cites, with their places.
fn cited_keys(document: &Document<'_>) -> Vec<(String, Range<usize>)> {
    let text = document.text();
    let apart = ranges_apart(document);
    let is_apart = |at: usize| apart.iter().any(|r| r.contains(&at)) || document.in_code_block(at);
    let mut found = Vec::new();
    let mut groups = Vec::new();
    for group in GROUP.captures_iter(text).filter_map(|c| c.get(1)) {
        if is_apart(group.start()) {
            continue;
        }
        groups.push(group.range());
        for key in KEY.captures_iter(group.as_str()).filter_map(|c| c.get(1)) {
            let start = group.start() + key.start();
            found.extend(trimmed(key.as_str(), start));
        }
    }
    for key in KEY.captures_iter(text).filter_map(|c| c.get(1)) {
        let is_grouped = groups.iter().any(|group| group.contains(&key.start()));
        // A name of a person on a website has no year.
        let digits = key.as_str().chars().filter(char::is_ascii_digit).count();
        if !is_grouped && digits >= 2 && !is_apart(key.start()) {
            found.extend(trimmed(key.as_str(), key.start()));
        }
    }
    for keys in LATEX.captures_iter(text).filter_map(|c| c.get(1)) {
        if is_apart(keys.start()) {
            continue;
        }
        let mut at = keys.start();
        for key in keys.as_str().split(',') {
            let start = at + (key.len() - key.trim_start().len());
            let name = key.trim();
            if !name.is_empty() && name != "*" {
                found.push((name.to_owned(), start..start + name.len()));
            }
            at += key.len() + 1;
        }
    }
    found.sort_by_key(|(_, range)| range.start);
    found
}

/// A key without the punctuation after it. None if it names a figure or an equation.
fn trimmed(key: &str, start: usize) -> Option<(String, Range<usize>)> {
    let key = key.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let is_cross = CROSS.iter().any(|prefix| key.starts_with(prefix));
    (!is_cross && !key.is_empty()).then(|| (key.to_owned(), start..start + key.len()))
}

/// An entry whose key differs only in case, signs or one character.
fn nearest(key: &str, keys: &BTreeSet<&str>) -> String {
    let bare = |key: &str| -> String {
        let letters = key.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let wanted = bare(key);
    let near = keys.iter().find(|known| bare(known) == wanted);
    near.map(|near| format!(" (`{near}`?)")).unwrap_or_default()
}

fn find_doubled(bibliography: &Bibliography<'_>, entries: &[Entry<'_>], found: &mut Finder<'_>) {
    let mut seen = BTreeSet::new();
    for entry in entries {
        if !seen.insert(entry.key) {
            let text = found.say(
                format!(
                    "`{}` is the key of two entries; a citation reaches only one.",
                    entry.key
                ),
                format!("两个条目都用 `{}`；引用只能指向其中一条。", entry.key),
            );
            let (path, at) = (Some(bibliography.path), entry.at.clone());
            let doubled = finding(path, bibliography.text, at, Gravity::Minor, text);
            found.checked.findings.push(doubled);
        }
    }
}

/// Checks `[12]` against a list of references whose entries begin with `[1]`, `[2]`…
fn check_numbers(document: &Document<'_>, found: &mut Finder<'_>) {
    let text = document.text();
    let Some(list) = document.sections().iter().find(|s| is_references(&s.title)) else {
        return;
    };
    let entries: Vec<(usize, Range<usize>)> = ENTRY
        .captures_iter(&text[list.range.clone()])
        .filter_map(|c| {
            let number = c.get(1)?;
            let start = list.range.start + number.start();
            Some((number.as_str().parse().ok()?, start..start + number.len()))
        })
        .collect();
    let last = entries.len();
    let is_counted = entries.iter().map(|(n, _)| *n).eq(1..=last);
    if last < 3 || !is_counted {
        return;
    }
    let apart = ranges_apart(document);
    let is_apart = |at: usize| {
        list.range.contains(&at)
            || apart.iter().any(|r| r.contains(&at))
            || document.in_code_block(at)
    };
    let mut cited = BTreeSet::new();
    let mut beyond = Vec::new();
    for group in NUMBERS.captures_iter(text).filter_map(|c| c.get(1)) {
        if is_apart(group.start()) {
            continue;
        }
        let numbers = numbers_of(group.as_str());
        // `[0, 100]` is an interval, and so may be any pair.
        let is_pair = group.as_str().contains([',', '，']) && numbers.len() == 2;
        if numbers.contains(&0) || is_pair && numbers.iter().any(|n| *n > last) {
            continue;
        }
        if let Some(most) = numbers.iter().max().filter(|most| **most > last) {
            beyond.push((*most, group.start() - 1..group.end() + 1));
        }
        cited.extend(numbers);
    }
    // Without most of its entries cited so, the brackets mean something else.
    if cited.iter().filter(|n| **n <= last).count() * 2 < last {
        return;
    }
    for (number, at) in beyond {
        let what = found.say(
            format!("[{number}] is cited, but the list of references ends at [{last}]."),
            format!("引用了 [{number}]，但参考文献只到 [{last}]。"),
        );
        found.source(at, Gravity::Important, what);
    }
    let unused = entries.into_iter().filter(|(n, _)| !cited.contains(n));
    for (number, at) in unused.collect::<Vec<_>>() {
        let what = found.say(
            format!("Reference [{number}] is never cited; cite it or remove it."),
            format!("参考文献 [{number}] 从未被引用；请引用或删去。"),
        );
        found.source(line_around(text, &at), Gravity::Minor, what);
    }
    found.covered(
        format!(
            "numbered references: {last}, cited: {}",
            cited.range(..=last).count()
        ),
        format!(
            "编号的参考文献：{last}，其中被引用：{}",
            cited.range(..=last).count()
        ),
    );
}

/// The numbers of `3, 7–9`.
fn numbers_of(group: &str) -> Vec<usize> {
    let parts = group.split([',', '，', ';', '；']);
    let numbers = parts.flat_map(|part| {
        let mut ends = part.split(['–', '-']).filter_map(|n| n.trim().parse().ok());
        let first: usize = ends.next().unwrap_or(0);
        first..=ends.next().unwrap_or(first)
    });
    numbers.collect()
}

/// The line around a range.
fn line_around(text: &str, at: &Range<usize>) -> Range<usize> {
    let start = text[..at.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at.end..]
        .find('\n')
        .map_or(text.len(), |end| at.end + end);
    start..end
}
