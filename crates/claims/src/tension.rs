//! Tension: the pressure on each section of memory, chapter by chapter, compared with its
//! threshold.
//!
//! An entry with `[⊣ path#anchor]` puts pressure on that section, in the chapter that its source or
//! its heading names. The weight of an entry depends on its level. The threshold of a section
//! depends on the highest level in it.

use std::collections::BTreeMap;

use quipu_text::{Document, Level, LinkKind};
use serde::Serialize;

use crate::memory::plain;
use crate::page::{Page, Place};
use crate::threads::chapter_number;

/// The maximum length of an entry's text. Every press of the entry repeats it.
const TEXT_CHARS: usize = 700;

/// One entry that adds pressure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Press {
    pub chapter: u64,
    pub weight: u64,
    pub at: Place,
    pub text: String,
}

/// A section under pressure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pressed {
    /// `path#anchor`.
    pub target: String,
    pub title: String,
    #[serde(serialize_with = "named")]
    pub level: Level,
    pub threshold: u64,
    /// In chapter order.
    pub presses: Vec<Press>,
}

fn named<S: serde::Serializer>(level: &Level, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(level.name())
}

/// Returns the total weight that overturns a fact of a level: a premise needs a book of pressure, a
/// scene one sentence.
pub const fn threshold(level: Level) -> u64 {
    match level {
        Level::Premise => 12,
        Level::Arc => 6,
        Level::Chapter => 3,
        Level::Scene => 1,
    }
}

/// Returns the weight of an entry of a level.
pub const fn weight(level: Level) -> u64 {
    match level {
        Level::Premise => 6,
        Level::Arc => 4,
        Level::Chapter => 2,
        Level::Scene => 1,
    }
}

impl Pressed {
    /// Returns the total pressure at the end of a chapter.
    pub fn at(&self, chapter: u64) -> u64 {
        self.presses
            .iter()
            .filter(|press| press.chapter <= chapter)
            .map(|press| press.weight)
            .sum()
    }

    /// Returns the first chapter in which the pressure reaches the threshold.
    pub fn breaks(&self) -> Option<u64> {
        let mut sum = 0;
        let reaches = |press: &&Press| {
            sum += press.weight;
            sum >= self.threshold
        };
        self.presses.iter().find(reaches).map(|press| press.chapter)
    }
}

/// A line with press links, parsed once for all of them.
struct PressingLine {
    line: usize,
    level: Level,
    /// The chapter that it links to.
    source: Option<u64>,
    text: String,
}

impl PressingLine {
    fn read(document: &Document<'_>, line: usize) -> Option<PressingLine> {
        let range = document.lines().range(line, document.text().len())?;
        let level = document
            .level_tags_in(&range)
            .first()
            .map_or(Level::Scene, |tag| tag.level);
        let mut links = document
            .links_in(&range)
            .iter()
            .filter(|link| link.kind != LinkKind::Press);
        let source = links.find_map(|link| chapter_number(&link.path));
        let text = plain(document.slice(&range).trim());
        let text = match text.char_indices().nth(TEXT_CHARS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        };
        Some(PressingLine {
            line,
            level,
            source,
            text,
        })
    }
}

/// Returns all sections under pressure, the most strained first.
pub fn read_tension(pages: &[Page]) -> Vec<Pressed> {
    let memory: Vec<&Page> = pages.iter().filter(|page| page.is_memory).collect();
    let clean: Vec<String> = memory
        .iter()
        .map(|page| quipu_text::blank_comments(&page.text, quipu_text::Comments::All))
        .collect();
    let documents: Vec<Document<'_>> = clean.iter().map(|text| Document::parse(text)).collect();
    let places: BTreeMap<&str, usize> = memory
        .iter()
        .enumerate()
        .map(|(nth, page)| (page.path.as_str(), nth))
        .collect();
    let mut found: BTreeMap<String, Pressed> = BTreeMap::new();
    for (page, document) in memory.iter().zip(&documents) {
        let mut entry: Option<PressingLine> = None;
        for link in document
            .links()
            .iter()
            .filter(|link| link.kind == LinkKind::Press)
        {
            let path = if link.path.is_empty() {
                &page.path
            } else {
                &link.path
            };
            let Some(&nth) = places.get(path.as_str()) else {
                continue;
            };
            let Some(section) = documents[nth].lookup(link.anchor.as_deref().unwrap_or_default())
            else {
                continue;
            };
            if entry.as_ref().is_none_or(|entry| entry.line != link.line) {
                entry = PressingLine::read(document, link.line);
            }
            let Some(entry) = &entry else { continue };
            let heading = || {
                document
                    .heading_path(document.section_at(link.range.start))
                    .into_iter()
                    .rev()
                    .find_map(chapter_number)
            };
            let Some(chapter) = entry
                .source
                .or_else(heading)
                .or_else(|| chapter_number(&page.path))
            else {
                continue;
            };
            let target = format!("{path}#{}", documents[nth].anchor_of(section));
            let pressed = found.entry(target.clone()).or_insert_with(|| {
                let tags = documents[nth].level_tags_in(&section.range);
                let firm = tags.iter().map(|tag| tag.level).min().unwrap_or(Level::Arc);
                Pressed {
                    target,
                    title: section.title.clone(),
                    level: firm,
                    threshold: threshold(firm),
                    presses: Vec::new(),
                }
            });
            let at = Place::new(&page.path, link.line);
            pressed.presses.push(Press {
                chapter,
                weight: weight(entry.level),
                at,
                text: entry.text.clone(),
            });
        }
    }
    let mut all: Vec<Pressed> = found.into_values().collect();
    for pressed in &mut all {
        pressed
            .presses
            .sort_by(|a, b| (a.chapter, &a.at).cmp(&(b.chapter, &b.at)));
    }
    let strain = |pressed: &Pressed| pressed.at(u64::MAX) * 1000 / pressed.threshold;
    all.sort_by(|a, b| {
        strain(b)
            .cmp(&strain(a))
            .then_with(|| a.target.cmp(&b.target))
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each case would take minutes if every link scanned all others on its line, or all facts of
    /// its target.
    #[test]
    fn many_marks_are_read_in_linear_time() {
        const MANY: usize = 20_000;
        let page = |text: String| Page {
            path: "ch01.md".into(),
            tier: quipu_recall::Tier::L1,
            is_memory: true,
            form: None,
            text: format!("# ch01\n\n## Target\n\n{text}\n"),
        };
        let one_line = page(format!("- {}", "[arc] [⊣ ch01.md#target] ".repeat(MANY)));
        assert_eq!(read_tension(&[one_line])[0].presses.len(), MANY);
        let lines = page("- [arc] x [⊣ ch01.md#target] [⊣ ch01.md#gone]\n".repeat(MANY));
        let found = read_tension(&[lines]);
        assert_eq!((found[0].presses.len(), found[0].breaks()), (MANY, Some(1)));
    }
    use quipu_recall::Tier;

    #[test]
    fn pressure_adds_up_by_chapter() {
        let text = "# C\n\n## 奥托 [弧]\n- [弧] 守护者\n- [章] 研究禁忌 [⊣ #奥托] [→ manuscripts/ch02.md#夜]\n- [场景] 隐瞒 [⊣ #奥托] [→ manuscripts/ch03.md]\n\n## 编年\n\n### ch05\n- [弧] 默许牺牲 [⊣ c.md#奥托]\n";
        let page = Page {
            path: "c.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let tension = read_tension(&[page]);
        let one = &tension[0];
        assert_eq!(
            (one.target.as_str(), one.level, one.threshold),
            ("c.md#奥托", Level::Arc, 6)
        );
        assert_eq!([one.at(1), one.at(2), one.at(3), one.at(5)], [0, 2, 3, 7]);
        assert_eq!(one.breaks(), Some(5));
    }
}
