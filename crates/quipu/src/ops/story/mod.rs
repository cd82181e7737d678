//! The `story` commands: what memory and manuscripts say about people, things and time.
//!
//! Each reads the pages that the actor may see. The claims crate computes; these files format.

mod knows;
mod met;
mod progression;
mod relations;
mod report;
mod sheet;
mod timeline;
mod wording;

pub use knows::StoryKnows;
pub use met::StoryMet;
pub use progression::StoryProgression;
pub use relations::StoryRelations;
pub use report::StoryReport;
pub use sheet::StorySheet;
pub use timeline::StoryTimeline;

use quipu_claims::{Fact, Memory, Page, Point, appearances, cut_scenes, facts_about};
use quipu_contract::{Language, nearest};
use quipu_protocol::gather;

use crate::answer::{Failure, exit};
use crate::session::Session;

/// The pages that an actor may see, and the memory in them.
struct Book {
    pages: Vec<Page>,
    memory: Memory,
    language: Language,
}

impl Book {
    fn open(session: &Session) -> Result<Book, Failure> {
        let project = session.project()?;
        let pages = gather(&project, &session.actor)?.pages;
        let memory = Memory::of(&pages);
        let language = project.contract.language;
        Ok(Book {
            pages,
            memory,
            language,
        })
    }

    /// Resolves a name or an alias.
    fn owner(&self, name: &str) -> Result<usize, Failure> {
        if let Some(owner) = self.memory.find_owner(name) {
            return Ok(self.memory.first_of(owner));
        }
        let entities = self.memory.entities.iter();
        let known = entities.flat_map(|entity| entity.names.iter().map(String::as_str));
        let near = nearest(name, known);
        let (what, remedy) = match (self.language, near) {
            (Language::En, Some(near)) => (
                format!("memory has no `{name}`"),
                format!("did you mean `{near}`?"),
            ),
            (Language::En, None) => (
                format!("memory has no `{name}`"),
                "use the name of a section of memory, or an alias from its line `aliases:`"
                    .to_owned(),
            ),
            (Language::Zh, Some(near)) => {
                (format!("记忆里没有 `{name}`"), format!("是 `{near}` 吗？"))
            }
            (Language::Zh, None) => (
                format!("记忆里没有 `{name}`"),
                "写记忆中某一节的名字，或该节 `别名：` 一行里的别名".to_owned(),
            ),
        };
        Err(Failure::new(exit::NOT_FOUND, what, remedy))
    }

    /// Resolves a name, an alias, or a thing without a section that somebody holds, where somebody
    /// is, or that a final chapter names.
    fn owner_or_thing(&mut self, name: &str) -> Result<usize, Failure> {
        let unknown = match self.owner(name) {
            Ok(owner) => return Ok(owner),
            Err(unknown) => unknown,
        };
        let thing = self.memory.add_thing(name);
        let is_known = !facts_about(&self.memory, &self.memory.entities[thing]).is_empty() || {
            let scenes = cut_scenes(&self.pages, &self.memory);
            appearances(&self.memory, &scenes, thing).first.is_some()
        };
        if is_known { Ok(thing) } else { Err(unknown) }
    }

    fn name(&self, owner: usize) -> &str {
        &self.memory.entities[owner].name
    }

    fn owner_of(&self, fact: &Fact) -> &str {
        fact.entity
            .map_or("", |entity| self.name(self.memory.first_of(entity)))
    }

    /// Parses a point of the story.
    fn point(&self, text: &str) -> Result<Point, Failure> {
        self.memory.point(text).ok_or_else(|| {
            let (what, remedy) = match self.language {
                Language::En => (
                    format!("`{text}` is not a chapter or a scene"),
                    "write 9, ch09, ch09.2 or 第九章",
                ),
                Language::Zh => (
                    format!("`{text}` 不是章或场景"),
                    "写成 9、ch09、ch09.2 或第九章",
                ),
            };
            Failure::usage(what, remedy)
        })
    }
}
