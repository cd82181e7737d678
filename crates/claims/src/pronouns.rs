//! Whom a pronoun means, across the paragraphs of a scene.
//!
//! Memory says of most people whether they are he or she. A pronoun means the only such person whom
//! the scene has named so far. With two candidates it means nobody: a judge says nothing in doubt.

use std::collections::BTreeSet;

use crate::memory::{Fact, Memory};
use crate::pool::PERSON_KEYS;
use crate::words::words;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gender {
    He,
    She,
}

const HE: &[&str] = &["he", "him", "his", "himself"];
const SHE: &[&str] = &["she", "her", "hers", "herself"];
/// One gender must be named this many times as often as the other.
const CLEAR: usize = 2;
/// The gender of each entity, as memory gives it, and whether it may be a person.
pub struct People {
    genders: Vec<Option<Gender>>,
    /// Whether the entity may be a person.
    may_be: Vec<bool>,
}

impl People {
    pub fn of(memory: &Memory) -> People {
        let mut genders = Vec::new();
        let mut is_person = Vec::new();
        for entity in 0..memory.entities.len() {
            let (mut he, mut she, mut has_key) = (0, 0, false);
            for fact in memory.facts_of(entity) {
                let (more_he, more_she) = pronouns(fact);
                (he, she) = (he + more_he, she + more_she);
                has_key |= PERSON_KEYS.contains(&fact.key.as_str());
            }
            let gender = match (he, she) {
                (0, 0) => None,
                (he, she) if he >= she * CLEAR => Some(Gender::He),
                (he, she) if she >= he * CLEAR => Some(Gender::She),
                _ => None,
            };
            genders.push(gender);
            is_person.push(has_key || gender.is_some());
        }
        // A heading without a word about it stands among people or among things.
        let of_people: BTreeSet<&str> = (0..memory.entities.len())
            .filter(|nth| is_person[*nth])
            .map(|nth| memory.entities[nth].at.path.as_str())
            .collect();
        let may_be = (0..memory.entities.len())
            .map(|nth| is_person[nth] || of_people.contains(memory.entities[nth].at.path.as_str()));
        People {
            may_be: may_be.collect(),
            genders,
        }
    }

    /// Returns the only one of the named whom the sentence's first pronoun can mean.
    pub fn meant(&self, memory: &Memory, named: &BTreeSet<usize>, text: &str) -> Option<usize> {
        let gender = first_pronoun(text)?;
        let fits =
            |nth: &&usize| self.may_be[**nth] && self.genders[**nth].is_none_or(|g| g == gender);
        let found: BTreeSet<usize> = named
            .iter()
            .filter(fits)
            .map(|nth| memory.first_of(*nth))
            .collect();
        match found.len() {
            1 => found.first().copied(),
            _ => None,
        }
    }
}

fn pronouns(fact: &Fact) -> (usize, usize) {
    let words = words(&fact.text);
    let of = |list: &[&str]| {
        let said = words
            .iter()
            .filter(|word| list.contains(&word.lower.as_str()));
        said.count()
    };
    let han = |sign: char| fact.text.matches(sign).count();
    (of(HE) + han('他'), of(SHE) + han('她'))
}

/// The pronoun that opens a sentence.
fn first_pronoun(text: &str) -> Option<Gender> {
    match text.chars().find(|c| c.is_alphabetic()) {
        Some('他') => return Some(Gender::He),
        Some('她') => return Some(Gender::She),
        _ => {}
    }
    words(text).iter().take(3).find_map(|word| {
        let is = |list: &[&str]| list.contains(&word.lower.as_str());
        match (is(HE), is(SHE)) {
            (true, _) => Some(Gender::He),
            (_, true) => Some(Gender::She),
            _ => None,
        }
    })
}
