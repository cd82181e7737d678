//! What memory says of an object or a place under the names of others: who holds it, who is there.

use serde::Serialize;

use crate::holdings::things_of;
use crate::keys::gist;
use crate::memory::{Entity, Fact, Memory};
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
    let is_named = |text: &str| {
        let said = gist(text);
        names.iter().any(|name| is_called(&said, name))
    };
    let about = |fact: &'m Fact| {
        let who = memory.entities[memory.first_of(fact.entity?)].name.as_str();
        let what = match fact.kind()? {
            Kind::Holds if things_of(&fact.value).iter().any(|text| is_named(text)) => "held by",
            Kind::Where if is_named(&fact.value) => "here",
            _ => return None,
        };
        Some(About { what, who, fact })
    };
    let facts = memory.facts.iter().filter(|fact| !fact.is_event);
    facts.filter_map(about).collect()
}

/// Returns whether a description is about the thing of this name: `cut page of the log` is about the
/// `cut page`, 航海日志的残页 about the 残页.
fn is_called(said: &str, name: &str) -> bool {
    const BEFORE_DETAILS: &[&str] = &["of", "from", "with", "on", "in", "for", "under"];
    said == name
        || said.strip_prefix(name).is_some_and(|rest| {
            let next = rest
                .strip_prefix(' ')
                .and_then(|rest| rest.split(' ').next());
            next.is_some_and(|word| BEFORE_DETAILS.contains(&word))
        })
        || said
            .strip_suffix(name)
            .is_some_and(|rest| rest.ends_with('的'))
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

#[cfg(test)]
mod tests {
    use super::is_called;

    #[test]
    fn a_thing_is_found_under_its_name_without_its_details() {
        assert!(is_called("cut page of the log", "cut page"));
        assert!(is_called("brass key on a cord", "brass key"));
        assert!(is_called("航海日志的残页", "残页"));
        assert!(!is_called("cut page holder", "cut page"));
        assert!(!is_called("keyring", "key"));
        assert!(!is_called("brass key", "key"));
    }
}
