//! What memory says of an object or a place under the names of others: who holds it, who is there.

use serde::Serialize;

use crate::keys::gist;
use crate::memory::{Entity, Fact, Memory, listed};
use crate::state::Kind;

/// A fact of somebody else about a thing.
#[derive(Debug, Clone, Serialize)]
pub struct About<'m> {
    /// `held by` or `here`.
    pub what: &'static str,
    pub who: &'m str,
    #[serde(skip)]
    pub fact: &'m Fact,
}

/// Returns who holds an object and who is at a place, over the whole story.
pub fn facts_about<'m>(memory: &'m Memory, thing: &Entity) -> Vec<About<'m>> {
    let names: Vec<String> = thing.names.iter().map(|name| gist(name)).collect();
    let is_named = |text: &str| names.contains(&gist(text));
    let about = |fact: &'m Fact| {
        let who = memory.entities[memory.first_of(fact.entity?)].name.as_str();
        let what = match fact.kind()? {
            Kind::Holds if listed(&fact.value).iter().any(|text| is_named(text)) => "held by",
            Kind::Where if is_named(&fact.value) => "here",
            _ => return None,
        };
        Some(About { what, who, fact })
    };
    let facts = memory.facts.iter().filter(|fact| !fact.is_event);
    facts.filter_map(about).collect()
}

impl Memory {
    /// Adds a thing that has no section of its own, so that it can be looked up and found in the
    /// manuscripts. Returns its number.
    pub fn add_thing(&mut self, name: &str) -> usize {
        let name = name.trim();
        let mut names = vec![name.to_owned()];
        let bare = gist(name);
        if bare != name.to_lowercase() {
            names.push(bare);
        }
        self.entities.push(Entity {
            name: name.to_owned(),
            names,
            at: crate::page::Place::new("", 0),
        });
        self.entities.len() - 1
    }
}
