//! Points of a story and the periods in which a fact holds: `(from ch03, until ch08)`,
//! `（自 ch03，至 ch08）`.
//!
//! A point is a chapter, or a scene of it (`ch03.2`, `ch03#the-landing`, `第三章第二场`). A fact
//! changes inside the chapter or scene that its period names, so two facts may meet there. The text
//! of an entry is parsed and edited here; which facts hold is decided in `state`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use quipu_recall::Tier;
use quipu_text::{Document, slug};
use serde::Serialize;

use crate::page::Page;
use crate::threads::chapter_number;
use crate::words::{has_han, lowered, numbers};

/// A chapter, or a scene of it, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    pub chapter: u64,
    pub scene: Option<u64>,
}

impl Point {
    pub fn chapter(chapter: u64) -> Point {
        Point {
            chapter,
            scene: None,
        }
    }

    /// Parses a whole text: `9`, `ch09`, `ch09.2`, `第九章第二场`, `ch09#the-landing`.
    pub fn parse(text: &str, scenes: &Scenes) -> Option<Point> {
        let text = text.trim();
        if let Ok(chapter) = text.parse() {
            return Some(Point::chapter(chapter));
        }
        let (point, length) = point_at(text, scenes)?;
        (length == text.len()).then_some(point)
    }

    /// Returns true if this point is certainly earlier. A chapter without a scene is neither
    /// earlier nor later than its own scenes.
    pub fn is_before(self, other: Point) -> bool {
        match (self.scene, other.scene) {
            (Some(a), Some(b)) if self.chapter == other.chapter => a < b,
            _ => self.chapter < other.chapter,
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ch{:02}", self.chapter)?;
        self.scene.map_or(Ok(()), |scene| write!(f, ".{scene}"))
    }
}

impl Serialize for Point {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The scenes of the final chapters: their headings, in order.
#[derive(Debug, Clone, Default)]
pub struct Scenes(BTreeMap<(u64, String), u64>);

impl Scenes {
    pub fn of(pages: &[Page]) -> Scenes {
        let mut scenes = BTreeMap::new();
        for page in pages.iter().filter(|page| page.tier == Tier::L2) {
            let Some(chapter) = chapter_number(&page.path) else {
                continue;
            };
            let document = Document::parse(&page.text);
            let headings = document.sections().iter().filter(|s| s.level >= 2);
            for (section, nth) in headings.zip(1..) {
                scenes.insert((chapter, document.anchor_of(section).to_owned()), nth);
                scenes.entry((chapter, slug(&section.title))).or_insert(nth);
            }
        }
        Scenes(scenes)
    }

    fn find(&self, chapter: u64, anchor: &str) -> Option<u64> {
        self.0
            .get(&(chapter, anchor.to_owned()))
            .or_else(|| self.0.get(&(chapter, slug(anchor))))
            .copied()
    }

    /// Returns true if a chapter has more than one scene, so that a scene says more than its chapter.
    pub fn divide(&self, chapter: u64) -> bool {
        let mut scenes = self.0.iter();
        scenes.any(|((of, _), nth)| *of == chapter && *nth > 1)
    }

    /// Returns the point of a link such as `manuscripts/ch03.md#the-landing`.
    pub fn point_of(&self, link: &str) -> Option<Point> {
        let chapter = chapter_number(link)?;
        let scene = link
            .split_once('#')
            .and_then(|(_, anchor)| self.find(chapter, anchor));
        Some(Point { chapter, scene })
    }
}

/// The part of the story in which a fact holds. No limit means that it holds from the beginning, or
/// to the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Period {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Point>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Point>,
}

impl Period {
    /// Returns true if the fact holds in some part of a chapter or scene.
    pub fn touches(&self, point: Point) -> bool {
        !self.from.is_some_and(|from| point.is_before(from))
            && !self.until.is_some_and(|until| until.is_before(point))
    }

    /// Returns true if the fact holds in every part of a chapter or scene.
    pub fn covers(&self, point: Point) -> bool {
        self.from.is_none_or(|from| from.is_before(point))
            && self.until.is_none_or(|until| point.is_before(until))
    }

    /// Returns true if the fact holds when a chapter or scene ends.
    pub fn stands_after(&self, point: Point) -> bool {
        !self.from.is_some_and(|from| point.is_before(from))
            && self.until.is_none_or(|until| point.is_before(until))
    }

    /// Returns true if two facts hold together for longer than the place where one follows the
    /// other.
    pub fn overlaps(&self, other: &Period) -> bool {
        let ends_first = |a: &Period, b: &Period| match (a.until, b.from) {
            (Some(until), Some(from)) => !from.is_before(until),
            _ => false,
        };
        !ends_first(self, other) && !ends_first(other, self)
    }

    /// Returns true if it ends before it begins.
    pub fn is_inverted(&self) -> bool {
        matches!((self.from, self.until), (Some(from), Some(until)) if until.is_before(from))
    }

    pub fn is_open(&self) -> bool {
        self.until.is_none()
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.from, self.until) {
            (Some(from), Some(until)) => write!(f, "from {from}, until {until}"),
            (Some(from), None) => write!(f, "from {from}"),
            (None, Some(until)) => write!(f, "until {until}"),
            (None, None) => Ok(()),
        }
    }
}

const FROM: &[&str] = &["from", "since", "as of", "自从", "始于", "自", "从"];
const UNTIL: &[&str] = &[
    "until", "till", "up to", "through", "to", "直到", "直至", "截至", "至", "到",
];
const AFTER_FROM: &[&str] = &["onwards", "onward", "on", "开始", "以来", "起"];
const AFTER_UNTIL: &[&str] = &["为止", "止", "末"];
const DASHES: &[&str] = &["–", "—", "-", "~", "to", "至", "到"];

/// Finds the period of an entry: the bytes of its parentheses, and what they say.
pub fn find_period(text: &str, scenes: &Scenes) -> Option<(Range<usize>, Period)> {
    let mut found = None;
    for (open, sign) in text.char_indices().filter(|(_, c)| matches!(c, '(' | '（')) {
        let inner = open + sign.len_utf8();
        let Some((length, close)) = text[inner..]
            .char_indices()
            .find(|(_, c)| matches!(c, ')' | '）' | '(' | '（'))
        else {
            break;
        };
        if matches!(close, ')' | '）')
            && let Some(period) = parse_period(&text[inner..inner + length], scenes)
        {
            found = Some((open..inner + length + close.len_utf8(), period));
        }
    }
    found
}

/// Returns true if an entry states its end.
pub fn has_ended(text: &str) -> bool {
    find_period(text, &Scenes::default()).is_some_and(|(_, period)| period.until.is_some())
}

/// Returns an entry without its period: an entry that has ended says what it said before.
pub fn without_period(text: &str) -> String {
    match find_period(text, &Scenes::default()) {
        Some((range, _)) => format!("{}{}", text[..range.start].trim_end(), &text[range.end..]),
        None => text.to_owned(),
    }
}

/// Parses the inside of the parentheses: only limits, nothing else.
fn parse_period(inner: &str, scenes: &Scenes) -> Option<Period> {
    let mut period = Period::default();
    let mut rest = inner.trim_matches(SPACE);
    if rest.len() > 200 {
        return None;
    }
    while !rest.is_empty() {
        if let Some(after) = after_word(rest, FROM) {
            let (point, length) = point_at(after, scenes)?;
            period.from = Some(point);
            rest = skip(&after[length..], AFTER_FROM);
        } else if let Some(after) = after_word(rest, UNTIL) {
            let (point, length) = point_at(after, scenes)?;
            period.until = Some(point);
            rest = skip(&after[length..], AFTER_UNTIL);
        } else {
            let (point, length) = point_at(rest, scenes)?;
            let after = rest[length..].trim_start();
            period.from = Some(point);
            rest = after_word(after, AFTER_FROM).or_else(|| {
                DASHES
                    .iter()
                    .any(|dash| after.starts_with(dash))
                    .then_some(after)
            })?;
            if let Some(last) = after_word(rest, DASHES) {
                let (until, length) = point_at(last, scenes)?;
                period.until = Some(until);
                rest = skip(&last[length..], AFTER_UNTIL);
            }
        }
        rest = rest.trim_matches(SPACE);
    }
    (period != Period::default()).then_some(period)
}

const SPACE: [char; 6] = [' ', ',', '，', ';', '；', '、'];

/// Returns the text after one of the words. An English word ends where the next one begins.
fn after_word<'t>(text: &'t str, list: &[&str]) -> Option<&'t str> {
    let lower = lowered(text);
    list.iter().find_map(|word| {
        lower.strip_prefix(word).filter(|after| {
            !(word.ends_with(|c: char| c.is_ascii_alphabetic())
                && after.starts_with(|c: char| c.is_ascii_alphanumeric()))
        })?;
        Some(text[word.len()..].trim_start())
    })
}

fn skip<'t>(text: &'t str, list: &[&str]) -> &'t str {
    let text = text.trim_start();
    after_word(text, list).unwrap_or(text)
}

/// Parses a point at the start of a text. Returns it with its length in bytes.
fn point_at(text: &str, scenes: &Scenes) -> Option<(Point, usize)> {
    let (chapter, mut end) = chapter_at(text)?;
    let rest = &text[end..];
    let number = |text: &str| {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        Some((text[..digits].parse::<u64>().ok()?, digits))
    };
    let mut scene = None;
    if let Some((nth, digits)) = rest.strip_prefix('.').and_then(number) {
        (scene, end) = (Some(nth), end + 1 + digits);
    } else if let Some(anchor) = rest.strip_prefix('#') {
        let stop = |c: char| c.is_whitespace() || SPACE.contains(&c) || ")）".contains(c);
        let length = anchor.find(stop).unwrap_or(anchor.len());
        (scene, end) = (scenes.find(chapter, &anchor[..length]), end + 1 + length);
    } else if let Some(after) = after_word(rest.trim_start(), &["scene"]) {
        let (nth, digits) = number(after)?;
        (scene, end) = (Some(nth), text.len() - after.len() + digits);
    } else if let Some((nth, length)) = counted(rest, ['场', '幕']) {
        (scene, end) = (Some(nth), end + length);
    }
    Some((Point { chapter, scene }, end))
}

fn chapter_at(text: &str) -> Option<(u64, usize)> {
    if let Some(found) = counted(text, ['章', '回']) {
        return Some(found);
    }
    let lower = lowered(text);
    let after = lower
        .strip_prefix("chapter")
        .or_else(|| lower.strip_prefix("ch"))?;
    let after = after.trim_start_matches(['.', ' ']);
    let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let chapter = after[..digits].parse().ok()?;
    Some((chapter, text.len() - after.len() + digits))
}

/// Parses `第三章` at the start of a text.
fn counted(text: &str, signs: [char; 2]) -> Option<(u64, usize)> {
    let after = text.strip_prefix('第')?;
    let (at, sign) = after.char_indices().find(|(_, c)| signs.contains(c))?;
    let number = numbers(&after[..at]).first()?.value;
    (at <= 24).then_some((number, '第'.len_utf8() + at + sign.len_utf8()))
}

/// Returns the point of a limit that is not a period, because it is outside parentheses or beside
/// other words: `left palm, from ch03`.
pub(crate) fn stray_limit(text: &str, scenes: &Scenes) -> Option<Point> {
    if find_period(text, scenes).is_some() {
        return None;
    }
    let lower = lowered(text);
    let words = FROM.iter().chain(UNTIL).filter(|word| **word != "to");
    words.into_iter().find_map(|word| {
        lower.match_indices(word).find_map(|(at, _)| {
            let is_inside =
                word.is_ascii() && lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
            let after = after_word(&text[at..], &[word]).filter(|_| !is_inside)?;
            Some(point_at(after, scenes)?.0)
        })
    })
}

/// Returns an entry with the end of its period set. An entry that already has an end is unchanged.
pub fn with_until(entry: &str, until: Point, scenes: &Scenes) -> String {
    with_limit(entry, until, scenes, false)
}

/// Returns an entry with the start of its period set. An entry that already has a start is
/// unchanged.
pub fn with_from(entry: &str, from: Point, scenes: &Scenes) -> String {
    with_limit(entry, from, scenes, true)
}

fn with_limit(entry: &str, point: Point, scenes: &Scenes, is_from: bool) -> String {
    let body = &entry[..marks_at(entry)];
    let han = has_han(body);
    let word = match (is_from, han) {
        (true, true) => "自 ",
        (true, false) => "from ",
        (false, true) => "至 ",
        (false, false) => "until ",
    };
    let comma = if han { "，" } else { ", " };
    if let Some((range, period)) = find_period(body, scenes) {
        let (set, other) = if is_from {
            (period.from, period.until)
        } else {
            (period.until, period.from)
        };
        if set.is_some() || other.is_none() {
            return entry.to_owned();
        }
        let close = entry[..range.end].char_indices().next_back();
        let open = entry[range.start..]
            .chars()
            .next()
            .map_or(1, char::len_utf8);
        let (at, text) = match (is_from, close) {
            (true, _) => (range.start + open, format!("{word}{point}{comma}")),
            (false, Some((close, _))) => (close, format!("{comma}{word}{point}")),
            (false, None) => return entry.to_owned(),
        };
        return format!("{}{text}{}", &entry[..at], &entry[at..]);
    }
    let body = body.trim_end();
    let group = if han {
        format!("（{word}{point}）")
    } else {
        format!(" ({word}{point})")
    };
    let marks = entry[marks_at(entry)..].trim();
    let space = if marks.is_empty() { "" } else { " " };
    format!("{body}{group}{space}{marks}")
}

/// Returns the offset of the links and marks that end an entry.
fn marks_at(entry: &str) -> usize {
    let mut end = entry.trim_end().len();
    while entry[..end].ends_with(']') {
        let Some(open) = entry[..end].rfind('[') else {
            break;
        };
        if !entry[open + 1..].starts_with(['→', '⊣']) {
            break;
        }
        end = entry[..open].trim_end().len();
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(text: &str) -> Option<String> {
        find_period(text, &Scenes::default()).map(|(_, period)| period.to_string())
    }

    #[test]
    fn periods_are_read_in_both_languages() {
        for (text, said) in [
            (
                "scar: left palm (from ch03, until ch08)",
                "from ch03, until ch08",
            ),
            ("scar (since chapter 3)", "from ch03"),
            ("scar (until ch08.2)", "until ch08.2"),
            ("scar (ch03–ch08)", "from ch03, until ch08"),
            ("scar (from ch03 to ch08)", "from ch03, until ch08"),
            ("scar (ch03 onward)", "from ch03"),
            ("伤疤：左掌（自 ch03，至 ch08）", "from ch03, until ch08"),
            (
                "伤疤：左掌（第三章起，到第八章为止）",
                "from ch03, until ch08",
            ),
            ("伤疤：左掌（从第十二章第二场开始）", "from ch12.2"),
            ("伤疤：左掌（自ch03至ch08）", "from ch03, until ch08"),
            ("伤疤：左掌（第三章至第八章）", "from ch03, until ch08"),
            (
                "伤疤：left palm（from ch03，至 ch08）",
                "from ch03, until ch08",
            ),
        ] {
            assert_eq!(period(text).as_deref(), Some(said), "{text}");
        }
        for text in [
            "age: 41 (from memory)",
            "said so (ch03)",
            "left (to Chapel, from chance)",
            "走了（从那以后）",
            "from ch03",
            "(",
        ] {
            assert_eq!(period(text), None, "{text}");
        }
    }

    #[test]
    fn a_period_covers_what_is_between_its_chapters() {
        let (_, period) = find_period("x (from ch03, until ch08)", &Scenes::default()).unwrap();
        let at = |chapter| {
            let point = Point::chapter(chapter);
            (
                period.touches(point),
                period.covers(point),
                period.stands_after(point),
            )
        };
        assert_eq!(at(2), (false, false, false));
        assert_eq!(at(3), (true, false, true));
        assert_eq!(at(5), (true, true, true));
        assert_eq!(at(8), (true, false, false));
        assert_eq!(at(9), (false, false, false));
    }

    #[test]
    fn limits_are_added_where_a_person_would_write_them() {
        let none = Scenes::default();
        let until = |entry: &str| with_until(entry, Point::chapter(8), &none);
        assert_eq!(
            until("scar: left palm [→ m.md#x]"),
            "scar: left palm (until ch08) [→ m.md#x]"
        );
        assert_eq!(
            until("scar: left (from ch03)"),
            "scar: left (from ch03, until ch08)"
        );
        assert_eq!(
            until("伤疤：左掌（自 ch03）"),
            "伤疤：左掌（自 ch03，至 ch08）"
        );
        assert_eq!(
            until("伤疤：左掌 [→ m.md]"),
            "伤疤：左掌（至 ch08） [→ m.md]"
        );
        assert_eq!(until("a (until ch05)"), "a (until ch05)");
        let from = with_from("a (until ch05) [→ m.md]", Point::chapter(2), &none);
        assert_eq!(from, "a (from ch02, until ch05) [→ m.md]");
    }

    #[test]
    fn scenes_are_found_by_their_headings() {
        let page = Page {
            path: "manuscripts/ch03.md".into(),
            tier: Tier::L2,
            is_memory: true,
            form: None,
            text: "# Three\n\n## The landing\n\nx\n\n## 集市\n\ny\n".into(),
        };
        let scenes = Scenes::of(&[page]);
        let (_, period) =
            find_period("x (from ch03#the-landing, until ch03#集市)", &scenes).unwrap();
        assert_eq!(period.to_string(), "from ch03.1, until ch03.2");
        assert_eq!(
            scenes.point_of("manuscripts/ch03.md#集市").map(|p| p.scene),
            Some(Some(2))
        );
    }
}
