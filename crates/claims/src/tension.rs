//! Tension: what presses on each high fact, chapter by chapter, against what it takes to overturn it.
//!
//! An entry with `[⊣ path#anchor]` presses on that section, in the chapter that its source or its heading names. An entry
//! weighs by its own level; a section stands as firm as its highest level.

use std::collections::BTreeMap;

use quipu_text::{Document, Level, LinkKind};
use serde::Serialize;

use crate::memory::plain;
use crate::page::{Page, Place};
use crate::threads::chapter_number;

/// One entry that presses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Press {
    pub chapter: u64,
    pub weight: u64,
    pub at: Place,
    pub text: String,
}

/// A fact under pressure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pressed {
    /// `path#anchor`.
    pub target: String,
    pub title: String,
    #[serde(serialize_with = "named")]
    pub level: Level,
    pub threshold: u64,
    /// In the order of the chapters.
    pub presses: Vec<Press>,
}

fn named<S: serde::Serializer>(level: &Level, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(level.name())
}

/// How much it takes to overturn a fact of a level, in weights of entries: a premise needs a book of pressure, a scene
/// one sentence.
pub const fn threshold(level: Level) -> u64 {
    match level {
        Level::Premise => 12,
        Level::Arc => 6,
        Level::Chapter => 3,
        Level::Scene => 1,
    }
}

/// How much an entry of a level adds.
pub const fn weight(level: Level) -> u64 {
    match level {
        Level::Premise => 6,
        Level::Arc => 4,
        Level::Chapter => 2,
        Level::Scene => 1,
    }
}

impl Pressed {
    /// What has added up by the end of a chapter.
    pub fn at(&self, chapter: u64) -> u64 {
        self.presses.iter().filter(|press| press.chapter <= chapter).map(|press| press.weight).sum()
    }

    /// The first chapter in which the pressure reaches the threshold.
    pub fn breaks(&self) -> Option<u64> {
        self.presses.iter().map(|press| press.chapter).find(|chapter| self.at(*chapter) >= self.threshold)
    }
}

/// Everything that is pressed on, the most strained first.
pub fn read_tension(pages: &[Page]) -> Vec<Pressed> {
    let memory: Vec<&Page> = pages.iter().filter(|page| page.is_memory).collect();
    let clean: Vec<String> = memory.iter().map(|page| quipu_text::blank_comments(&page.text, quipu_text::Comments::All)).collect();
    let documents: Vec<Document<'_>> = clean.iter().map(|text| Document::parse(text)).collect();
    let mut found: BTreeMap<String, Pressed> = BTreeMap::new();
    for (page, document) in memory.iter().zip(&documents) {
        for link in document.links().iter().filter(|link| link.kind == LinkKind::Press) {
            let path = if link.path.is_empty() { &page.path } else { &link.path };
            let Some(nth) = memory.iter().position(|page| page.path == *path) else { continue };
            let anchor = link.anchor.clone().unwrap_or_default();
            let Ok(section) = documents[nth].find(&anchor) else { continue };
            let Some(line) = document.lines().range(link.line, document.text().len()) else { continue };
            let level = document.level_tags_in(&line).first().map_or(Level::Scene, |tag| tag.level);
            let source =
                document.links_in(&line).iter().filter(|other| other.kind != LinkKind::Press).find_map(|other| chapter_number(&other.path));
            let heading = || document.heading_path(document.section_at(link.range.start)).into_iter().rev().find_map(chapter_number);
            let Some(chapter) = source.or_else(heading).or_else(|| chapter_number(&page.path)) else { continue };
            let target = format!("{path}#{}", documents[nth].anchor_of(section));
            let tags = documents[nth].level_tags_in(&section.range);
            let firm = tags.iter().map(|tag| tag.level).min().unwrap_or(Level::Arc);
            let pressed = found.entry(target.clone()).or_insert_with(|| Pressed {
                target,
                title: section.title.clone(),
                level: firm,
                threshold: threshold(firm),
                presses: Vec::new(),
            });
            let text = plain(document.slice(&line).trim());
            pressed.presses.push(Press { chapter, weight: weight(level), at: Place::new(&page.path, link.line), text });
        }
    }
    let mut all: Vec<Pressed> = found.into_values().collect();
    for pressed in &mut all {
        pressed.presses.sort_by(|a, b| (a.chapter, &a.at).cmp(&(b.chapter, &b.at)));
    }
    let strain = |pressed: &Pressed| pressed.at(u64::MAX) * 1000 / pressed.threshold;
    all.sort_by(|a, b| strain(b).cmp(&strain(a)).then_with(|| a.target.cmp(&b.target)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_text::recall::Tier;

    #[test]
    fn pressure_adds_up_by_chapter() {
        let text = "# C\n\n## 奥托 [弧]\n- [弧] 守护者\n- [章] 研究禁忌 [⊣ #奥托] [→ manuscripts/ch02.md#夜]\n- [场景] 隐瞒 [⊣ #奥托] [→ manuscripts/ch03.md]\n\n## 编年\n\n### ch05\n- [弧] 默许牺牲 [⊣ c.md#奥托]\n";
        let page = Page { path: "c.md".into(), tier: Tier::L1, is_memory: true, form: None, text: text.into() };
        let tension = read_tension(&[page]);
        let one = &tension[0];
        assert_eq!((one.target.as_str(), one.level, one.threshold), ("c.md#奥托", Level::Arc, 6));
        assert_eq!([one.at(1), one.at(2), one.at(3), one.at(5)], [0, 2, 3, 7]);
        assert_eq!(one.breaks(), Some(5));
    }
}
