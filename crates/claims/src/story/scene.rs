//! Scenes of the final chapters, and who is named in them.
//!
//! A scene is a section of a manuscript, or the part of one between two breaks (`***`). A name is
//! not a presence: people are also spoken of, remembered, awaited and dead (`presence`).

use std::collections::BTreeMap;

use quipu_recall::Tier;
use quipu_text::Document;
use serde::Serialize;

use super::presence::{find_speech, is_there};
use crate::claim::{Claim, cut_claims};
use crate::memory::Memory;
use crate::page::{Page, Place};
use crate::period::Point;
use crate::state::is_dead;
use crate::threads::chapter_number;

/// A scene with its sentences.
#[derive(Debug, Clone)]
pub struct Scene {
    pub point: Point,
    /// The first line.
    pub at: Place,
    pub title: String,
    pub sentences: Vec<Claim>,
    named: Vec<Named>,
}

/// A name in a sentence, outside quotation marks.
#[derive(Debug, Clone)]
struct Named {
    /// The first entity of this person or thing.
    entity: usize,
    sentence: usize,
    name: String,
    /// True if the sentence shows it in the scene.
    is_there: bool,
}

/// Cuts the final chapters into scenes, in the order of the story.
pub fn cut_scenes(pages: &[Page], memory: &Memory) -> Vec<Scene> {
    let mut scenes = Vec::new();
    let firsts: Vec<usize> = (0..memory.entities.len())
        .map(|entity| memory.first_of(entity))
        .collect();
    for page in pages.iter().filter(|page| page.tier == Tier::L2) {
        if let Some(chapter) = chapter_number(&page.path) {
            scenes.extend(scenes_of(page, chapter));
        }
    }
    for scene in &mut scenes {
        let speech = find_speech(&scene.sentences);
        for (sentence, (claim, spoken)) in scene.sentences.iter().zip(&speech).enumerate() {
            let mentions = memory.mentions(&claim.text).into_iter();
            let is_spoken = |at: usize| spoken.iter().any(|range| range.contains(&at));
            let outside = mentions.filter(|mention| !is_spoken(mention.start));
            scene.named.extend(outside.map(|mention| Named {
                entity: firsts[mention.entity],
                sentence,
                name: claim.text[mention.start..mention.end].to_owned(),
                is_there: is_there(&claim.text, &mention),
            }));
        }
    }
    scenes.sort_by(|a, b| (a.point.chapter, &a.at).cmp(&(b.point.chapter, &b.at)));
    scenes
}

fn scenes_of(page: &Page, chapter: u64) -> Vec<Scene> {
    let document = Document::parse(&page.text);
    let headings: Vec<(usize, &str)> = document
        .sections()
        .iter()
        .filter(|section| section.level >= 2)
        .map(|section| (section.line, section.title.as_str()))
        .collect();
    let is_break = |line: &str| {
        let bare: String = line.split_whitespace().collect();
        bare.len() >= 3
            && ["*", "-", "_"]
                .iter()
                .any(|sign| bare.replace(sign, "").is_empty())
    };
    let breaks = page
        .text
        .lines()
        .zip(1..)
        .filter(|(line, _)| is_break(line));
    let mut starts: Vec<usize> = breaks.map(|(_, line)| line).collect();
    starts.extend(headings.iter().map(|(line, _)| *line));
    starts.push(0);
    starts.sort_unstable();
    let mut scenes: Vec<Scene> = Vec::new();
    for claim in cut_claims(&page.text) {
        let start = starts[starts.partition_point(|start| *start <= claim.line) - 1];
        match scenes
            .last_mut()
            .filter(|scene| scene.at.line == start.max(1))
        {
            Some(scene) => scene.sentences.push(claim),
            None => {
                let heading = headings.partition_point(|(line, _)| *line <= claim.line);
                let named = heading.checked_sub(1).map(|nth| headings[nth].1);
                scenes.push(Scene {
                    point: Point {
                        chapter,
                        scene: (heading > 0).then_some(heading as u64),
                    },
                    at: Place::new(&page.path, start.max(1)),
                    title: named.unwrap_or_default().to_owned(),
                    sentences: vec![claim],
                    named: Vec::new(),
                });
            }
        }
    }
    scenes
}

impl Scene {
    /// Returns the sentences that name an entity, with the name used.
    fn naming(&self, entity: usize) -> impl Iterator<Item = (&Claim, &str)> {
        let of_entity = move |named: &&Named| named.entity == entity;
        self.named
            .iter()
            .filter(of_entity)
            .map(|named| (&self.sentences[named.sentence], named.name.as_str()))
    }
}

impl Scene {
    /// Returns the sentences that show an entity in the scene. None for the dead.
    fn showing(&self, memory: &Memory, entity: usize) -> Vec<&Claim> {
        let mut facts = memory.facts_of(entity);
        if facts.any(|fact| is_dead(fact) && fact.period.covers(self.point)) {
            return Vec::new();
        }
        let shown = self
            .named
            .iter()
            .filter(|named| named.entity == entity && named.is_there);
        shown.map(|named| &self.sentences[named.sentence]).collect()
    }
}

/// Where an entity is named in the final chapters.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Appearances {
    pub first: Option<Place>,
    pub last: Option<Place>,
    pub by_name: BTreeMap<String, usize>,
    pub by_chapter: BTreeMap<u64, usize>,
}

pub fn appearances(memory: &Memory, scenes: &[Scene], entity: usize) -> Appearances {
    let mut all = Appearances::default();
    let entity = memory.first_of(entity);
    // `The ferryman` at the start of a sentence is the alias `the ferryman`.
    let as_written = |name: &str| {
        let mut names = memory.entities[entity].names.iter();
        let known = names.find(|one| one.to_lowercase() == name.to_lowercase());
        known.map_or_else(|| name.to_owned(), Clone::clone)
    };
    for scene in scenes {
        for (claim, name) in scene.naming(entity) {
            let at = Place::new(&scene.at.path, claim.line);
            all.first.get_or_insert_with(|| at.clone());
            all.last = Some(at);
            *all.by_name.entry(as_written(name)).or_default() += 1;
            *all.by_chapter.entry(scene.point.chapter).or_default() += 1;
        }
    }
    all
}

/// Returns the last scene that shows both, with a sentence for each.
pub fn last_met<'s>(
    memory: &Memory,
    scenes: &'s [Scene],
    a: usize,
    b: usize,
) -> Option<(&'s Scene, &'s Claim, &'s Claim)> {
    let (a, b) = (memory.first_of(a), memory.first_of(b));
    scenes.iter().rev().find_map(|scene| {
        let (of_a, of_b) = (scene.showing(memory, a), scene.showing(memory, b));
        // Prefer a sentence that shows both.
        if let Some(claim) = of_a.iter().find(|claim| of_b.contains(claim)) {
            return Some((scene, *claim, *claim));
        }
        Some((scene, of_a.last().copied()?, of_b.last().copied()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, tier: Tier, text: &str) -> Page {
        Page {
            path: path.into(),
            tier,
            is_memory: true,
            form: None,
            text: text.into(),
        }
    }

    #[test]
    fn the_last_meeting_is_a_scene_with_both() {
        let pages = [
            page(
                "characters.md",
                Tier::L1,
                "## Joss Arden\n- aliases: the ferryman, 老裘\n\n## Pell\n",
            ),
            page(
                "manuscripts/ch01.md",
                Tier::L2,
                "# One\n\n## Landing\n\nJoss saw Pell.\n\n***\n\nPell slept.\n",
            ),
            page(
                "manuscripts/ch02.md",
                Tier::L2,
                "# Two\n\n## River\n\nThe ferryman rowed.\n\nPell waited.\n\n## 渡口\n\n老裘回来了。\n",
            ),
            page(
                "manuscripts/ch03.md",
                Tier::L2,
                "# Three\n\nPell said, “Joss is gone.”\n",
            ),
        ];
        let memory = Memory::of(&pages);
        let scenes = cut_scenes(&pages, &memory);
        let titles: Vec<_> = scenes
            .iter()
            .map(|s| (s.point.to_string(), s.at.line))
            .collect();
        assert_eq!(
            titles,
            [
                ("ch01.1".into(), 3),
                ("ch01.1".into(), 7),
                ("ch02.1".into(), 3),
                ("ch02.2".into(), 9),
                ("ch03".to_string(), 1)
            ]
        );
        let joss = memory.find_owner("joss arden").unwrap();
        let pell = memory.find_owner("Pell").unwrap();
        let (scene, a, b) = last_met(&memory, &scenes, joss, pell).unwrap();
        assert_eq!(
            (scene.at.to_string(), a.line, b.line),
            ("manuscripts/ch02.md:3".into(), 5, 7)
        );
        let all = appearances(&memory, &scenes, joss);
        assert_eq!(all.by_name.get("the ferryman"), Some(&1));
        assert_eq!(all.last.unwrap().to_string(), "manuscripts/ch02.md:11");
    }
}
