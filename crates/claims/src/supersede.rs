//! Puts a fact into a section of memory, and closes the fact that it follows.
//!
//! The old fact stays as history, with its end: `(until ch08)`. An entry names the old fact with
//! `supersedes: "…"`, or it has the same key and a later start. An entry whose old fact cannot be
//! found changes nothing: a person decides.

use quipu_text::{Document, SpliceError};
use thiserror::Error;

use crate::keys::{excludes, gist, is_fixed, is_list};
use crate::learn::with_entry;
use crate::memory::{plain, split_key};
use crate::period::{Period, Point, Scenes, find_period, with_from, with_until};
use crate::threads::chapter_number;

#[derive(Debug, Error)]
pub enum PlaceError {
    #[error("it supersedes “{0}”, which is not in that section")]
    NoSuchFact(String),
    #[error("it supersedes “{0}”, but names no chapter from which it holds")]
    NoChapter(String),
    #[error("it does not say what it supersedes: write supersedes: \"OLD FACT\"")]
    Unclear,
    #[error(transparent)]
    Splice(#[from] SpliceError),
}

/// A page with the new fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedFact {
    pub text: String,
    /// The entries that it closed, as they read now.
    pub closed: Vec<String>,
}

const SIGNS: [&str; 4] = ["supersedes:", "supersedes：", "取代：", "取代:"];
const QUOTES: [(char, char); 5] = [
    ('"', '"'),
    ('“', '”'),
    ('「', '」'),
    ('『', '』'),
    ('`', '`'),
];
const JOINTS: [&str; 8] = ["→ ", "->", "=>", "⇒", ";", "；", "，", ","];

/// Splits an entry into the new fact and the quoted old one.
pub fn split_superseded(entry: &str) -> Option<(String, String)> {
    let (at, sign) = SIGNS
        .iter()
        .filter_map(|sign| Some((entry.find(sign)?, *sign)))
        .min()?;
    let before = entry[..at].trim_end();
    let is_group = before.ends_with(['(', '（']);
    let before = before.trim_end_matches(['(', '（', ' ', ';', '；', ',', '，', '。']);
    let after = entry[at + sign.len()..].trim_start();
    let marks = after
        .char_indices()
        .find(|(at, _)| after[*at..].starts_with("[→") || after[*at..].starts_with("[⊣"));
    let (after, marks) = after.split_at(marks.map_or(after.len(), |(at, _)| at));
    let quoted = QUOTES.iter().find_map(|(open, close)| {
        let inner = after.strip_prefix(*open)?;
        let end = inner.find(*close)?;
        Some((&inner[..end], &inner[end + close.len_utf8()..]))
    });
    let group = || {
        let end = after.rfind([')', '）']).filter(|_| is_group)?;
        Some((&after[..end], after[end..].trim_start_matches([')', '）'])))
    };
    // Unquoted at the end of an entry, everything after the sign is the old fact.
    let opens = plain(before).is_empty();
    let joint = || {
        let cuts = JOINTS
            .iter()
            .filter_map(|joint| Some((after.find(joint)?, joint)));
        let (cut, joint) = cuts.min().filter(|_| opens)?;
        Some((&after[..cut], &after[cut + joint.len()..]))
    };
    let (old, rest) = quoted.or_else(group).or_else(joint).unwrap_or((after, ""));
    let rest = JOINTS.iter().fold(rest.trim(), |rest, joint| {
        rest.trim_start_matches(joint).trim()
    });
    let rest = rest.trim_start_matches([')', '）', '。', '.']).trim();
    let parts = [before, rest, marks.trim()];
    let new = parts
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(" ");
    Some((new, old.trim().to_owned()))
}

/// Returns an entry without its period and the fact that it supersedes, to recognise it later.
pub(crate) fn identity(entry: &str) -> String {
    let entry = split_superseded(entry).map_or_else(|| entry.to_owned(), |(new, _)| new);
    let bare = match find_period(&entry, &Scenes::default()) {
        Some((range, _)) => format!("{} {}", &entry[..range.start], &entry[range.end..]),
        None => entry,
    };
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An entry of a section as a fact.
struct Entry<'t> {
    line: usize,
    text: &'t str,
    /// Without Markdown and period.
    bare: String,
    period: Period,
}

impl Entry<'_> {
    fn key(&self) -> String {
        split_key(&self.bare).map_or(String::new(), |(key, _)| key.to_lowercase())
    }

    fn value(&self) -> &str {
        split_key(&self.bare).map_or(self.bare.as_str(), |(_, value)| value)
    }
}

fn read_entry(line: usize, text: &str) -> Entry<'_> {
    let said = plain(text);
    let (bare, period) = match find_period(&said, &Scenes::default()) {
        Some((range, period)) => (
            format!("{}{}", said[..range.start].trim_end(), &said[range.end..]),
            period,
        ),
        None => (said, Period::default()),
    };
    Entry {
        line,
        text,
        bare,
        period,
    }
}

/// Adds an entry to a section of a page and closes what it follows. Creates the section if it does
/// not exist.
pub fn place_fact(
    text: &str,
    section: Option<&str>,
    entry: &str,
) -> Result<PlacedFact, PlaceError> {
    let (new, old) = match split_superseded(entry) {
        Some((new, old)) if plain(&new).is_empty() || old.is_empty() => {
            return Err(PlaceError::Unclear);
        }
        Some((new, old)) => (new, Some(old)),
        None => (entry.to_owned(), None),
    };
    let fact = read_entry(0, &new);
    let start = fact
        .period
        .from
        .or_else(|| source_chapter(&new).map(Point::chapter));
    let open = entries_of(text, section);
    let closing: Vec<&Entry<'_>> = match &old {
        Some(old) => vec![named(&open, old).ok_or_else(|| PlaceError::NoSuchFact(old.clone()))?],
        None => open
            .iter()
            .filter(|entry| follows(&fact, entry, start))
            .collect(),
    };
    let Some(start) = start else {
        return match old {
            Some(old) => Err(PlaceError::NoChapter(old)),
            None => plainly(text, section, &new),
        };
    };
    if closing.is_empty() {
        return plainly(text, section, &new);
    }
    let mut closed = Vec::new();
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for entry in closing {
        let now = with_until(entry.text, start, &Scenes::default());
        if let Some(line) = lines.get_mut(entry.line - 1) {
            *line = line.replacen(entry.text, &now, 1);
        }
        closed.push(now);
    }
    let new = with_from(&new, start, &Scenes::default());
    let text = with_entry(&lines.concat(), section, &new)?;
    Ok(PlacedFact { text, closed })
}

fn plainly(text: &str, section: Option<&str>, entry: &str) -> Result<PlacedFact, PlaceError> {
    Ok(PlacedFact {
        text: with_entry(text, section, entry)?,
        closed: Vec::new(),
    })
}

/// The open entries of a section, without their list markers.
fn entries_of<'t>(text: &'t str, section: Option<&str>) -> Vec<Entry<'t>> {
    let document = Document::parse(text);
    let range = match section {
        Some(name) => match document.find(name) {
            Ok(section) => section.range.clone(),
            Err(_) => return Vec::new(),
        },
        None => 0..text.len(),
    };
    let items = document.items_in(&range).iter();
    items
        .filter_map(|item| {
            let line = document.lines().range(item.line, text.len())?;
            let raw = text[line].trim();
            let entry = raw.strip_prefix(['-', '*', '+'])?.trim_start();
            Some(read_entry(item.line, entry))
        })
        .filter(|entry| entry.period.is_open())
        .collect()
}

/// Returns true if a fact follows an entry: the same key, another value, a later start.
fn follows(fact: &Entry<'_>, entry: &Entry<'_>, start: Option<Point>) -> bool {
    let key = fact.key();
    let is_later = match (start, entry.period.from.or_else(|| implied(entry))) {
        (Some(start), Some(before)) => before.is_before(start),
        (start, None) => start.is_some(),
        (None, _) => false,
    };
    let is_dated = fact.period.from.is_some();
    // Without a date, only values that exclude each other: `the smith:` may head several facts.
    let changes = is_dated || !is_fixed(&key) && excludes(&key, entry.value(), fact.value());
    !is_list(&key)
        && entry.key() == key
        && !entry.value().is_empty()
        && gist(entry.value()) != gist(fact.value())
        && is_later
        && changes
}

fn implied(entry: &Entry<'_>) -> Option<Point> {
    source_chapter(entry.text).map(Point::chapter)
}

/// The chapter of the first link of an entry to a chapter.
fn source_chapter(entry: &str) -> Option<u64> {
    entry.split("[→").skip(1).find_map(|rest| {
        let target = rest.split(']').next()?.trim();
        chapter_number(target)
    })
}

/// Finds the entry that is quoted: the same words, its beginning, or the only one with its key.
fn named<'e, 't>(entries: &'e [Entry<'t>], quoted: &str) -> Option<&'e Entry<'t>> {
    let quoted = read_entry(0, quoted.trim_start_matches("- "));
    let folded = |text: &str| {
        let text = text.to_lowercase();
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .collect::<String>()
    };
    let wanted = folded(&quoted.bare);
    let only = |test: &dyn Fn(&Entry<'t>) -> bool| {
        let mut found = entries.iter().filter(|entry| test(entry));
        found.next().filter(|_| found.next().is_none())
    };
    let by_text = |entry: &Entry<'t>| folded(&entry.bare) == wanted;
    let by_start = |entry: &Entry<'t>| {
        let is = folded(&entry.bare);
        !wanted.is_empty() && (is.starts_with(&wanted) || wanted.starts_with(&is) && !is.is_empty())
    };
    let by_value = |entry: &Entry<'t>| folded(entry.value()) == wanted;
    let by_key = |entry: &Entry<'t>| folded(&entry.key()) == wanted;
    only(&by_text)
        .or_else(|| only(&by_start))
        .or_else(|| only(&by_value))
        .or_else(|| only(&by_key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(text: &str, section: &str, entry: &str) -> String {
        place_fact(text, Some(section), entry).unwrap().text
    }

    #[test]
    fn a_quoted_fact_is_closed_and_kept() {
        let text = "# C\n\n## Joss\n- handed: left [→ manuscripts/ch01.md#x]\n- age: 41\n";
        let after = "# C\n\n## Joss\n- handed: left (until ch06) [→ manuscripts/ch01.md#x]\n- age: 41\n- [chapter] handed: right, because the mill took the other (from ch06) [→ manuscripts/ch06.md#mill]\n";
        for entry in [
            "[chapter] handed: right, because the mill took the other; supersedes: \"handed: left\" [→ manuscripts/ch06.md#mill]",
            "[chapter] supersedes: \"handed: left\" handed: right, because the mill took the other [→ manuscripts/ch06.md#mill]",
            "[chapter] supersedes: handed: left → handed: right, because the mill took the other [→ manuscripts/ch06.md#mill]",
            "[chapter] handed: right, because the mill took the other (supersedes: handed: left) [→ manuscripts/ch06.md#mill]",
            "[chapter] handed: right, because the mill took the other [→ manuscripts/ch06.md#mill]",
        ] {
            assert_eq!(placed(text, "Joss", entry), after, "{entry}");
            assert_eq!(
                identity(entry),
                identity(after.lines().last().unwrap().trim_start_matches("- "))
            );
        }
    }

    #[test]
    fn chinese_facts_follow_each_other() {
        let text = "# C\n\n## 裘望\n- 惯用手：左（自 ch02）\n";
        let after = "# C\n\n## 裘望\n- 惯用手：左（自 ch02，至 ch06）\n- 惯用手：右，左手被机器轧断（自 ch06） [→ manuscripts/ch06.md#磨坊]\n";
        for entry in [
            "惯用手：右，左手被机器轧断；取代：“惯用手：左” [→ manuscripts/ch06.md#磨坊]",
            "取代：“惯用手：左”，惯用手：右，左手被机器轧断 [→ manuscripts/ch06.md#磨坊]",
            "惯用手：右，左手被机器轧断 [→ manuscripts/ch06.md#磨坊]",
        ] {
            assert_eq!(placed(text, "裘望", entry), after, "{entry}");
        }
    }

    #[test]
    fn what_may_be_true_together_stays_open() {
        let text = "# C\n\n## Joss\n- knows: the truth (from ch02)\n- eyes: grey\n- scar: left palm\n- bell: rung at dawn\n- post: keeper\n";
        for entry in [
            "knows: who cut the rope (from ch04)",
            "eyes: blue [→ manuscripts/ch04.md#x]",
            "scar: right cheek [→ manuscripts/ch04.md#x]",
            "post: prisoner",
            "bell: cast in Lyme [→ manuscripts/ch04.md#x]",
            "post: keeper [→ manuscripts/ch04.md#x]",
        ] {
            assert_eq!(
                placed(text, "Joss", entry),
                format!("{text}- {entry}\n"),
                "{entry}"
            );
        }
        let dated = placed(text, "Joss", "eyes: blue (from ch04)");
        assert!(dated.contains("- eyes: grey (until ch04)"), "{dated}");
    }

    #[test]
    fn an_old_fact_that_is_not_there_changes_nothing() {
        let text = "# C\n\n## Joss\n- age: 41\n";
        let fails = |entry: &str| {
            place_fact(text, Some("Joss"), entry)
                .unwrap_err()
                .to_string()
        };
        assert!(fails("a: b; supersedes: \"handed: left\" [→ m/ch02.md]").contains("handed: left"));
        assert!(fails("age: 42; supersedes: \"age: 41\"").contains("no chapter"));
        assert!(fails("supersedes: \"age: 41\" [→ m/ch02.md]").contains("what it supersedes"));
    }
}
