//! Puts a fact into a section of memory, and closes the fact that it follows.
//!
//! The old fact stays as history, with its end: `(until ch08)`. An entry names the old fact with
//! `supersedes: "…"`, has the same key and a later start, says who holds an object now, or says that
//! its owner now knows something. The old fact may be in another section or file. An entry whose old
//! fact cannot be found changes nothing: a person decides.

use std::collections::BTreeMap;
use std::ops::Range;

use quipu_recall::Tier;
use quipu_text::{Document, SpliceError};
use serde::Serialize;
use thiserror::Error;

use crate::holdings::{held_objects, is_one_object, things_of};
use crate::injury::{heals, is_healed, is_whole};
use crate::keys::{excludes, gist, is_fixed, is_list, is_same_key};
use crate::learn::with_entry;
use crate::memory::{Memory, plain, split_key};
use crate::page::Page;
use crate::period::{Period, Point, Scenes, find_period, with_from, with_until};
use crate::state::{Kind, kind_of};
use crate::threads::chapter_number;
use crate::words::has_han;

#[derive(Debug, Error)]
pub enum PlaceError {
    #[error("it supersedes “{0}”, which is no open fact of memory")]
    NoSuchFact(String),
    #[error("it supersedes “{0}”, but names no chapter from which it holds")]
    NoChapter(String),
    #[error("it does not say what it supersedes: write supersedes: \"OLD FACT\"")]
    Unclear,
    #[error(transparent)]
    Splice(#[from] SpliceError),
}

/// The pages that a new fact changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacedFact {
    /// Each path with its new text.
    pub texts: BTreeMap<String, String>,
    pub closed: Vec<ClosedFact>,
}

/// An entry that a new fact closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClosedFact {
    /// Its section, if that is not the section of the new fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// As it reads now.
    pub text: String,
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

/// Returns the chapter from which an entry holds, stated or implied by its source.
pub(crate) fn start_of(entry: &str) -> Option<Point> {
    Entry::read(entry, &Scenes::default()).period.from
}

/// Returns true if an entry has ended at a point or before it.
pub(crate) fn is_over_before(entry: &str, point: Option<Point>) -> bool {
    let until = Entry::read(entry, &Scenes::default()).period.until;
    until
        .zip(point)
        .is_some_and(|(until, point)| !point.is_before(until))
}

/// An open entry of memory as a fact.
struct Entry {
    path: String,
    line: usize,
    /// The first entity of its owner.
    owner: Option<usize>,
    /// The heading above it.
    section: String,
    text: String,
    /// Without Markdown and period.
    bare: String,
    /// As stated, with the start that its source implies.
    period: Period,
    /// The scene of its source, if its chapter has several.
    scene: Option<Point>,
}

impl Entry {
    fn read(text: &str, scenes: &Scenes) -> Entry {
        let said = plain(text);
        let (bare, stated) = match find_period(&said, scenes) {
            Some((range, period)) => (
                format!("{}{}", said[..range.start].trim_end(), &said[range.end..]),
                period,
            ),
            None => (said, Period::default()),
        };
        let source = source_of(text);
        let chapter = source.and_then(chapter_number).map(Point::chapter);
        Entry {
            path: String::new(),
            line: 0,
            owner: None,
            section: String::new(),
            text: text.to_owned(),
            bare,
            period: Period {
                from: stated.from.or(chapter),
                ..stated
            },
            scene: source
                .and_then(|source| scenes.point_of(source))
                .filter(|point| scenes.divide(point.chapter)),
        }
    }

    fn key(&self) -> String {
        split_key(&self.bare).map_or(String::new(), |(key, _)| key.to_lowercase())
    }

    fn value(&self) -> &str {
        split_key(&self.bare).map_or(self.bare.as_str(), |(_, value)| value)
    }

    fn kind(&self) -> Option<Kind> {
        kind_of(&self.key())
    }

    /// Returns the most precise start that is known.
    fn start(&self) -> Option<Point> {
        let from = self.period.from?;
        let is_inside = |scene: &Point| from.scene.is_none() && scene.chapter == from.chapter;
        Some(self.scene.filter(is_inside).unwrap_or(from))
    }

    /// Returns the point at which an earlier entry ends because this one begins. None if this one
    /// has no start or is not certainly later.
    fn ends(&self, earlier: &Entry) -> Option<Point> {
        let start = self.start()?;
        match earlier.start() {
            Some(before) => before.is_before(start).then_some(start),
            None => Some(start),
        }
    }
}

/// The memory that a fact is placed in.
struct Shelf<'p> {
    memory: Memory,
    /// The open entries of all pages.
    open: Vec<Entry>,
    /// The section of the new fact.
    own: Option<(&'p Page, Range<usize>)>,
    /// The owner of that section.
    owner: Option<usize>,
}

impl<'p> Shelf<'p> {
    fn of(pages: &'p [Page], path: &str, section: Option<&str>) -> Shelf<'p> {
        let memory = Memory::of(pages);
        let lines = memory.facts.iter().filter_map(|fact| {
            let owner = memory.first_of(fact.entity?);
            Some(((fact.at.path.as_str(), fact.at.line), owner))
        });
        let owners: BTreeMap<(&str, usize), usize> = lines.collect();
        let mut open = Vec::new();
        for page in pages.iter().filter(|page| page.tier == Tier::L1) {
            open.extend(entries_of(page, &memory.scenes, &owners));
        }
        let own = pages.iter().find(|page| page.path == path);
        let own = own.and_then(|page| {
            let range = match section {
                Some(name) => Document::parse(&page.text).find(name).ok()?.range.clone(),
                None => 0..page.text.len(),
            };
            Some((page, range))
        });
        let owner = section
            .and_then(|name| memory.find_owner(name))
            .map(|owner| memory.first_of(owner));
        Shelf {
            memory,
            open,
            own,
            owner,
        }
    }

    fn is_own(&self, entry: &Entry) -> bool {
        self.own.as_ref().is_some_and(|(page, range)| {
            let start: usize = page
                .text
                .split_inclusive('\n')
                .take(entry.line - 1)
                .map(str::len)
                .sum();
            page.path == entry.path && range.contains(&start)
        })
    }

    /// The open entries of the section, and those of the same owner in other sections and files.
    fn kin(&self) -> Vec<&Entry> {
        let is_kin = |entry: &&Entry| {
            self.is_own(entry) || self.owner.is_some() && entry.owner == self.owner
        };
        self.open.iter().filter(is_kin).collect()
    }

    /// Finds the entry that a fact quotes: of the section, of its owner, or, if it is quoted in its
    /// own words, of anyone.
    fn named(&self, quoted: &str) -> Option<&Entry> {
        let own: Vec<&Entry> = self
            .open
            .iter()
            .filter(|entry| self.is_own(entry))
            .collect();
        let all: Vec<&Entry> = self.open.iter().collect();
        find_named(&own, quoted, true)
            .or_else(|| find_named(&self.kin(), quoted, true))
            .or_else(|| find_named(&all, quoted, false))
    }

    /// The entries that a fact closes without quoting them, each with its end.
    fn followed(&self, fact: &Entry, is_dated: bool) -> Vec<(&Entry, Point)> {
        let kin = self.kin();
        let by_key = kin.into_iter().filter(|entry| {
            let kinds = (fact.kind(), entry.kind());
            follows(fact, entry, is_dated)
                || kinds == (Some(Kind::Knows), Some(Kind::DoesNotKnow))
                    && gist(entry.value()) == gist(fact.value())
                || kinds == (Some(Kind::Injury), Some(Kind::Injury))
                    && ends_injury(fact.value(), entry.value())
        });
        by_key
            .filter_map(|entry| Some((entry, fact.ends(entry)?)))
            .collect()
    }

    /// The entries that say that somebody else holds an object, each with its end: one object has
    /// one holder.
    fn handed_over(&self, fact: &Entry, section: Option<&str>) -> Vec<(&Entry, Point)> {
        let held = |entry: &Entry, owner: &str| -> Vec<(String, String)> {
            held_objects(&self.memory, entry.kind(), owner, entry.value())
        };
        let taken = held(fact, section.unwrap_or_default());
        let is_taken = |entry: &&Entry| {
            let owned = held(entry, &entry.section);
            owned.iter().any(|(object, holder)| {
                let mut taken = taken.iter();
                taken.any(|(other, taker)| other == object && taker != holder)
            })
        };
        let open = self.open.iter().filter(is_taken);
        open.filter_map(|entry| Some((entry, fact.ends(entry)?)))
            .collect()
    }

    /// What an entry still says when its owner has given objects away: `holds: a knife`.
    fn kept(&self, entry: &Entry, fact: &Entry, end: Point) -> Option<String> {
        if entry.kind() != Some(Kind::Holds) {
            return None;
        }
        let given: Vec<String> = things_of(fact.value())
            .iter()
            .map(|text| gist(text))
            .collect();
        let all = things_of(entry.value());
        let is_left = |text: &&String| {
            let is_thing = is_one_object(&self.memory, text)
                || text.starts_with(['一', '几'])
                || ["a ", "an ", "his ", "her ", "their "]
                    .iter()
                    .any(|sign| text.starts_with(sign));
            is_thing && !given.contains(&gist(text))
        };
        let left: Vec<&str> = all.iter().filter(is_left).map(String::as_str).collect();
        let (key, _) = split_key(&entry.bare).filter(|_| !left.is_empty())?;
        let (colon, comma) = if has_han(key) {
            ("：", "、")
        } else {
            (": ", ", ")
        };
        let marks = entry
            .text
            .find("[→")
            .map_or("", |at| entry.text[at..].trim());
        let said = format!("{key}{colon}{} {marks}", left.join(comma));
        Some(with_from(said.trim_end(), end, &self.memory.scenes))
    }
}

/// Adds an entry to a section of a page and closes what it follows, in any page. Creates the section
/// if it does not exist. The pages are those of memory, and the final chapters for their scenes.
pub fn place_fact(
    pages: &[Page],
    path: &str,
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
    let shelf = Shelf::of(pages, path, section);
    let scenes = &shelf.memory.scenes;
    let fact = Entry::read(&new, scenes);
    let is_dated =
        find_period(&plain(&new), scenes).is_some_and(|(_, stated)| stated.from.is_some());
    let mut closing = match old {
        Some(old) => {
            let found = shelf.named(&old);
            let found = found.ok_or_else(|| PlaceError::NoSuchFact(old.clone()))?;
            let end = fact.ends(found).or(fact.period.from);
            vec![(found, end.ok_or(PlaceError::NoChapter(old))?)]
        }
        None => shelf.followed(&fact, is_dated),
    };
    closing.extend(shelf.handed_over(&fact, section));
    closing.sort_by(|(a, _), (b, _)| (&a.path, a.line).cmp(&(&b.path, b.line)));
    closing.dedup_by(|(a, _), (b, _)| (&a.path, a.line) == (&b.path, b.line));
    let mut placed = PlacedFact::default();
    let start = closing.iter().map(|(_, end)| *end).max();
    let new = start.map_or(new.clone(), |start| with_from(&new, start, scenes));
    // From the last line up, because a line may be added below another.
    for (entry, end) in closing.iter().rev() {
        let now = with_until(&entry.text, *end, scenes);
        let kept = shelf.kept(entry, &fact, *end);
        let page = pages.iter().find(|page| page.path == entry.path);
        let text = page.map_or("", |page| page.text.as_str());
        let text = placed
            .texts
            .entry(entry.path.clone())
            .or_insert(text.to_owned());
        *text = with_line(text, entry, &now, kept.as_deref());
        let is_elsewhere = !shelf.is_own(entry);
        placed.closed.insert(
            0,
            ClosedFact {
                of: is_elsewhere.then(|| format!("{}#{}", entry.path, entry.section)),
                text: now,
            },
        );
    }
    let page = pages.iter().find(|page| page.path == path);
    let fresh = || format!("# {}\n", path.trim_end_matches(".md"));
    let text = placed.texts.remove(path);
    let text = text.unwrap_or_else(|| page.map_or_else(fresh, |page| page.text.clone()));
    let text = with_entry(&text, section, &new)?;
    placed.texts.insert(path.to_owned(), text);
    Ok(placed)
}

/// Replaces the text of an entry, and adds a line below it.
fn with_line(text: &str, entry: &Entry, now: &str, below: Option<&str>) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(line) = lines.get_mut(entry.line - 1) {
        *line = line.replacen(&entry.text, now, 1);
        if let Some(below) = below {
            *line = format!("{}\n- {below}\n", line.trim_end_matches('\n'));
        }
    }
    lines.concat()
}

/// The open entries of a page, without their list markers.
fn entries_of(page: &Page, scenes: &Scenes, owners: &BTreeMap<(&str, usize), usize>) -> Vec<Entry> {
    let document = Document::parse(&page.text);
    let items = document.items_in(&(0..page.text.len())).iter();
    items
        .filter_map(|item| {
            let line = document.lines().range(item.line, page.text.len())?;
            let raw = page.text[line.clone()].trim();
            let text = raw.strip_prefix(['-', '*', '+'])?.trim_start();
            Some(Entry {
                path: page.path.clone(),
                line: item.line,
                owner: owners.get(&(page.path.as_str(), item.line)).copied(),
                section: document.section_at(line.start).title.clone(),
                ..Entry::read(text, scenes)
            })
        })
        .filter(|entry| entry.period.is_open())
        .collect()
}

/// Returns true if a fact gives another value to the key of an entry.
fn follows(fact: &Entry, entry: &Entry, is_dated: bool) -> bool {
    let key = fact.key();
    // Without a date, only values that exclude each other: `the smith:` may head several facts.
    let changes = is_dated || !is_fixed(&key) && excludes(&key, entry.value(), fact.value());
    !is_list(&key)
        && is_same_key(&entry.key(), &key)
        && !entry.value().is_empty()
        && gist(entry.value()) != gist(fact.value())
        && changes
}

/// Returns true if a later value ends an earlier one: it says that the injury is healed, or that
/// somebody who was whole is hurt again.
fn ends_injury(later: &str, earlier: &str) -> bool {
    match is_healed(later) {
        true => !is_healed(earlier) && heals(later, earlier),
        false => is_whole(earlier),
    }
}

/// The target of the first link of an entry to a chapter.
fn source_of(entry: &str) -> Option<&str> {
    entry
        .split("[→")
        .skip(1)
        .filter_map(|rest| rest.split(']').next())
        .map(str::trim)
        .find(|target| chapter_number(target).is_some())
}

/// Finds the entry that is quoted: the same words or its beginning; `loosely` also the only one with
/// that value or key.
fn find_named<'e>(entries: &[&'e Entry], quoted: &str, loosely: bool) -> Option<&'e Entry> {
    let quoted = Entry::read(quoted.trim_start_matches("- "), &Scenes::default());
    let folded = |text: &str| {
        let text = text.to_lowercase();
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .collect::<String>()
    };
    let wanted = folded(&quoted.bare);
    let only = |test: &dyn Fn(&Entry) -> bool| {
        let mut found = entries.iter().filter(|entry| test(entry));
        found.next().filter(|_| found.next().is_none()).copied()
    };
    let by_text = |entry: &Entry| folded(&entry.bare) == wanted;
    let by_start = |entry: &Entry| {
        let is = folded(&entry.bare);
        !wanted.is_empty() && (is.starts_with(&wanted) || wanted.starts_with(&is) && !is.is_empty())
    };
    let by_value = |entry: &Entry| loosely && folded(entry.value()) == wanted;
    let by_key = |entry: &Entry| loosely && folded(&entry.key()) == wanted;
    only(&by_text)
        .or_else(|| only(&by_start))
        .or_else(|| only(&by_value))
        .or_else(|| only(&by_key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Page {
        Page {
            path: path.into(),
            tier: if path.starts_with("manuscripts") {
                Tier::L2
            } else {
                Tier::L1
            },
            is_memory: true,
            form: None,
            text: text.into(),
        }
    }

    fn placed(text: &str, section: &str, entry: &str) -> String {
        let pages = [page("c.md", text)];
        let placed = place_fact(&pages, "c.md", Some(section), entry).unwrap();
        placed.texts["c.md"].clone()
    }

    #[test]
    fn an_object_has_one_holder_wherever_it_was_noted() {
        let ines = "# C\n\n## Ines\n- holds: the brass key, a lamp [→ manuscripts/ch01.md#gate]\n\n## Dov\n";
        let dov = "holds: the brass key, from Ines [→ manuscripts/ch02.md#pans]";
        assert_eq!(
            placed(ines, "Dov", dov),
            "# C\n\n## Ines\n- holds: the brass key, a lamp (until ch02) [→ manuscripts/ch01.md#gate]\n- holds: a lamp (from ch02) [→ manuscripts/ch01.md#gate]\n\n## Dov\n\n- holds: the brass key, from Ines (from ch02) [→ manuscripts/ch02.md#pans]\n"
        );
        let pages = [
            page(
                "characters/qiu.md",
                "# 裘\n\n## 裘望\n- 持有：铜钥匙（自 ch01）\n",
            ),
            page("c.md", "# C\n\n## 佩尔\n"),
        ];
        let entry = "持有：铜钥匙 [→ manuscripts/ch03.md#渡口]";
        let placed = place_fact(&pages, "c.md", Some("佩尔"), entry).unwrap();
        assert_eq!(
            placed.texts["characters/qiu.md"],
            "# 裘\n\n## 裘望\n- 持有：铜钥匙（自 ch01，至 ch03）\n"
        );
        assert_eq!(
            placed.closed[0].of.as_deref(),
            Some("characters/qiu.md#裘望")
        );
        // Twice in one chapter: the scenes decide, if they are known.
        let pages = [
            page(
                "c.md",
                "# C\n\n## Ines\n- holds: the brass key [→ manuscripts/ch02.md#a]\n\n## Dov\n",
            ),
            page("manuscripts/ch02.md", "# Two\n\n## A\n\nx\n\n## B\n\ny\n"),
        ];
        let entry = "holds: the brass key [→ manuscripts/ch02.md#b]";
        let placed = place_fact(&pages, "c.md", Some("Dov"), entry).unwrap();
        assert!(placed.texts["c.md"].contains("the brass key (until ch02.2)"));
        assert!(placed.texts["c.md"].contains("the brass key (from ch02.2)"));
        // In another chapter too: in its first scene the old holder still has it.
        let pages = [
            page(
                "c.md",
                "# C\n\n## Ines\n- holds: the brass key (from ch01)\n\n## Dov\n",
            ),
            page("manuscripts/ch02.md", "# Two\n\n## A\n\nx\n\n## B\n\ny\n"),
        ];
        let placed = place_fact(&pages, "c.md", Some("Dov"), entry).unwrap();
        assert!(placed.texts["c.md"].contains("(from ch01, until ch02.2)"));
    }

    /// Words about an object, from whom or why, are not left when the object is given away.
    #[test]
    fn whence_an_object_came_is_nothing_that_is_left() {
        let chinese =
            "# C\n\n## 阿鲤\n- 持有：铜钥匙，得自沈砚（自 ch02.2）\n\n## 陆承\n\n## 沈砚\n";
        let after = placed(chinese, "陆承", "持有：铜钥匙，得自阿鲤（自 ch03.2）");
        assert_eq!(
            after,
            "# C\n\n## 阿鲤\n- 持有：铜钥匙，得自沈砚（自 ch02.2，至 ch03.2）\n\n## 陆承\n\n- 持有：铜钥匙，得自阿鲤（自 ch03.2）\n\n## 沈砚\n"
        );
        let english = "# C\n\n## Ines\n- holds: the brass key, from the warden's office, a lamp (from ch01)\n\n## Dov\n";
        let after = placed(
            english,
            "Dov",
            "holds: the brass key, from Ines (from ch03)",
        );
        assert!(after.contains("\n- holds: a lamp (from ch03)\n"), "{after}");
        assert_eq!(after.matches("office").count(), 1, "{after}");
    }

    #[test]
    fn what_is_healed_ends_the_injury_that_it_names() {
        let joss = "# C\n\n## Joss\n- injury: left wrist broken (from ch01)\n- wound: right hand burnt [→ manuscripts/ch02.md#x]\n";
        assert_eq!(
            placed(
                joss,
                "Joss",
                "injury: left wrist healed [→ manuscripts/ch03.md#x]"
            ),
            "# C\n\n## Joss\n- injury: left wrist broken (from ch01, until ch03)\n- wound: right hand burnt [→ manuscripts/ch02.md#x]\n- injury: left wrist healed (from ch03) [→ manuscripts/ch03.md#x]\n"
        );
        let whole = placed(joss, "Joss", "injury: none (from ch05)");
        assert_eq!(whole.matches("until ch05").count(), 2, "{whole}");
        // Another injury ends none, but it ends the state of being whole.
        let hurt = placed(joss, "Joss", "injury: cut lip (from ch05)");
        assert!(!hurt.contains("until"), "{hurt}");
        let again = placed(
            "# C\n\n## 裘望\n- 伤势：无（自 ch03）\n",
            "裘望",
            "伤势：左肩中箭（自 ch06）",
        );
        assert!(again.contains("无（自 ch03，至 ch06）"), "{again}");
        // A fact of the same chapter without scenes, or of an earlier one, ends nothing.
        let early = placed(joss, "Joss", "injury: none (from ch01)");
        assert!(!early.contains("until"), "{early}");
    }

    #[test]
    fn a_quoted_fact_may_be_in_another_section() {
        let text = "# C\n\n## Ines\n- fears the gate, because her brother died there\n- eyes: grey\n\n## Dov\n- eyes: grey\n";
        let entry =
            "nobody fears the gate; supersedes: \"fears the gate\" [→ manuscripts/ch04.md#x]";
        let after = placed(text, "Dov", entry);
        assert!(after.contains("died there (until ch04)"), "{after}");
        // A value or a key of somebody else is not a quotation, and two equal lines are ambiguous.
        let fails =
            |entry: &str| place_fact(&[page("c.md", text)], "c.md", Some("Tam"), entry).is_err();
        assert!(fails(
            "eyes: blue; supersedes: \"eyes: grey\" [→ manuscripts/ch04.md#x]"
        ));
        let knows = "# C\n\n## 裘望\n- 不知道：谁割断了绳\n";
        assert!(
            placed(knows, "裘望", "知道：谁割断了绳 [→ manuscripts/ch04.md#x]")
                .contains("谁割断了绳（至 ch04）")
        );
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
            place_fact(&[page("c.md", text)], "c.md", Some("Joss"), entry)
                .unwrap_err()
                .to_string()
        };
        assert!(fails("a: b; supersedes: \"handed: left\" [→ m/ch02.md]").contains("handed: left"));
        assert!(fails("age: 42; supersedes: \"age: 41\"").contains("no chapter"));
        assert!(fails("supersedes: \"age: 41\" [→ m/ch02.md]").contains("what it supersedes"));
    }
}
