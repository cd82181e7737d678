//! The size of memory beside the chapters that it was taken from.
//!
//! Memory is a cache of the manuscripts: if it outgrows them, extraction copies instead of
//! distilling.

use std::collections::{BTreeMap, BTreeSet};

use quipu_claims::chapter_number;
use quipu_contract::{Actor, ProjectPath};
use quipu_recall::Tier;
use quipu_text::Counter;
use serde::Serialize;

use crate::files::read::ReadError;
use crate::flow::job::fill;
use crate::project::open::Project;
use crate::recall::without_template;
use crate::view::pages::gather;

/// Tokens of memory and of the chapters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemorySize {
    pub memory: u64,
    pub manuscripts: u64,
    pub chapters: usize,
    /// The tokens of the lines that link to each final chapter.
    pub by_chapter: BTreeMap<u64, u64>,
}

/// Measures the files that the flow adds facts to, and the final chapters. None if the contract
/// remembers no facts or no chapter is final.
pub fn memory_size(project: &Project, actor: &Actor) -> Result<Option<MemorySize>, ReadError> {
    let binding = project.contract.binding();
    let remembers = project.contract.steps.iter().filter(|step| {
        step.remember
            .as_ref()
            .is_some_and(|remember| remember.entries)
    });
    let files: Vec<_> = remembers
        .flat_map(|step| &step.writes)
        .filter_map(|path| fill(path, &binding))
        .collect();
    if files.is_empty() {
        return Ok(None);
    }
    let counter = Counter::default();
    let mut size = MemorySize {
        memory: 0,
        manuscripts: 0,
        chapters: 0,
        by_chapter: BTreeMap::new(),
    };
    let mut finals = BTreeSet::new();
    for page in gather(project, actor)?.pages {
        let Ok(path) = ProjectPath::parse(&page.path) else {
            continue;
        };
        let tokens = || {
            let own = without_template(project, &path, page.text.clone());
            counter.count(&own).0
        };
        if page.tier == Tier::L2 {
            size.manuscripts += tokens();
            size.chapters += 1;
            finals.extend(chapter_number(&page.path));
        } else if files
            .iter()
            .any(|file| file.matches(path.as_str()).is_some())
        {
            size.memory += tokens();
            for line in page.text.lines() {
                if let Some(chapter) = source_chapter(line) {
                    *size.by_chapter.entry(chapter).or_default() += counter.count(line).0;
                }
            }
        }
    }
    // A thread may name the chapter in which it will be planted.
    size.by_chapter
        .retain(|chapter, _| finals.contains(chapter));
    Ok((size.chapters > 0).then_some(size))
}

/// The chapter of the first link of a line to one.
fn source_chapter(line: &str) -> Option<u64> {
    let links = line.split("[→").skip(1);
    links
        .filter_map(|rest| rest.split(']').next())
        .find_map(|target| chapter_number(target.trim()))
}
