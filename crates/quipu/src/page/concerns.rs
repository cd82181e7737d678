//! What is wrong with the content of the files: broken links, overdue threads, premises that gave
//! way.

use quipu_claims::{Fate, Memory, Pressed, Standing, Thread, read_tension};
use quipu_contract::Actor;
use quipu_protocol::{Project, gather, last_chapter};
use quipu_text::Level;
use quipu_web::axum::extract::State;
use quipu_web::axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::reply::reply;
use crate::answer::Failure;

/// Maximum number listed per kind; the rest is counted.
const MOST: usize = 20;

/// The promises and premises of a story that need attention.
pub struct StoryConcerns {
    /// Everything that memory has a section about.
    names: Vec<String>,
    overdue: Vec<Thread>,
    premises: Vec<Pressed>,
}

impl StoryConcerns {
    pub fn read(project: &Project) -> Result<StoryConcerns, Failure> {
        let pages = gather(project, &Actor::Person)?.pages;
        let at = last_chapter(&pages);
        let memory = Memory::of(&pages);
        let names = memory.entities.iter().map(|entity| entity.name.clone());
        let names = names.collect();
        let mut overdue = memory.threads;
        overdue.retain(|thread| thread.standing(at) == Standing::Overdue);
        let mut premises = read_tension(&pages);
        premises.retain(|one| one.level == Level::Premise && one.breaks().is_some());
        Ok(StoryConcerns {
            names,
            overdue,
            premises,
        })
    }
}

pub async fn concerns(State(page): Shared) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let (map, links_left) = page.kept.links_lately(&project)?;
        let (story, story_left) = page.kept.story_lately(&project)?;
        let broken: Vec<Value> = map
            .graph
            .broken()
            .take(MOST)
            .map(|edge| {
                let near = match &edge.fate {
                    Fate::NoFile(near) | Fate::NoSection(near) => near.as_ref(),
                    Fate::Fine | Fate::Unread(_) => None,
                };
                json!({"at": edge.from, "to": edge.named(), "near": near})
            })
            .collect();
        let premises = story.premises.iter().take(MOST);
        let premises: Vec<Value> = premises
            .map(|one| json!({"target": one.target, "title": one.title, "chapter": one.breaks()}))
            .collect();
        Ok::<Value, Failure>(json!({
            "broken": {"all": map.graph.broken().count(), "shown": broken},
            // Milliseconds until a newer answer is worth asking for; 0 if this one is current.
            "again": u64::try_from(links_left.max(story_left).as_millis()).unwrap_or(u64::MAX),
            "overdue": {"all": story.overdue.len(), "shown": story.overdue.iter().take(MOST).collect::<Vec<_>>()},
            "premises": {"all": story.premises.len(), "shown": premises},
        }))
    })
    .await
}

pub async fn names(State(page): Shared) -> Response {
    reply(move || {
        let project = page.session().project()?;
        let (story, _) = page.kept.story_lately(&project)?;
        Ok::<Value, Failure>(json!({"names": story.names}))
    })
    .await
}
