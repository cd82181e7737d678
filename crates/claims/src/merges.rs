//! Lines of memory that could be dropped: duplicates, and closed facts that nothing mentions.
//!
//! Nothing is dropped here. A person accepts each proposal; the journal keeps the dropped lines.

use std::collections::BTreeSet;

use quipu_text::Level;
use serde::Serialize;

use crate::keys::{canonical, gist};
use crate::memory::{Fact, Memory, is_alias};
use crate::page::Place;
use crate::period::Period;
use crate::state::Kind;
use crate::waiver::finding_id;
use crate::words::has_han;

/// A line that could be dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Merge {
    pub id: String,
    pub owner: String,
    pub at: Place,
    pub text: String,
    /// The line that says the same. None for a closed fact.
    pub same_as: Option<Place>,
    pub why: String,
}

/// Chapters after its end in which a closed fact is kept anyway.
const RECENT: u64 = 2;
/// A shorter value would be mentioned by chance.
const SHORTEST: usize = 3;

/// Finds lines that could be dropped. `last` is the number of the last final chapter.
pub fn find_merges(memory: &Memory, last: Option<u64>) -> Vec<Merge> {
    let owned = |fact: &&Fact| {
        fact.entity.is_some() && !fact.is_event && !is_alias(fact) && !fact.value.is_empty()
    };
    let facts: Vec<&Fact> = memory.facts.iter().filter(owned).collect();
    let mut found = Vec::new();
    let mut dropped: BTreeSet<&Place> = BTreeSet::new();
    for a in &facts {
        let is_kept = |b: &&&Fact| {
            !dropped.contains(&b.at) && a.at != b.at && is_same_owner(memory, a, b) && repeats(a, b)
        };
        // Of two lines that repeat each other, the later one goes.
        let keeper = facts
            .iter()
            .filter(is_kept)
            .find(|b| !repeats(b, a) || b.at < a.at);
        if let Some(keeper) = keeper {
            dropped.insert(&a.at);
            let why = format!("{} says the same", keeper.at);
            found.push(merge(memory, a, Some(keeper), why));
        }
    }
    for fact in facts.iter().filter(|fact| !dropped.contains(&fact.at)) {
        let Some(until) = fact.period.until else {
            continue;
        };
        let is_old = last.is_some_and(|last| until.chapter + RECENT <= last);
        if !is_old || !is_light(fact) {
            continue;
        }
        if is_learnt(memory, &facts, fact) {
            let why = format!("it ended in {until}, and a line says since when it is known");
            found.push(merge(memory, fact, None, why));
        } else if is_followed(memory, &facts, fact) && !is_cited(memory, fact) {
            let why = format!(
                "it ended in {until}, a later line follows it, and nothing else mentions it"
            );
            found.push(merge(memory, fact, None, why));
        }
    }
    found.sort_by(|a, b| a.at.cmp(&b.at));
    found
}

fn merge(memory: &Memory, fact: &Fact, keeper: Option<&Fact>, why: String) -> Merge {
    let kept = keeper.map_or("", |keeper| keeper.text.as_str());
    let owner = fact.entity.map(|owner| memory.first_of(owner));
    Merge {
        id: finding_id(&fact.text, kept).replacen('w', "m", 1),
        owner: owner.map_or(String::new(), |owner| memory.entities[owner].name.clone()),
        at: fact.at.clone(),
        text: fact.text.clone(),
        same_as: keeper.map(|keeper| keeper.at.clone()),
        why,
    }
}

fn is_same_owner(memory: &Memory, a: &Fact, b: &Fact) -> bool {
    let first = |fact: &Fact| fact.entity.map(|owner| memory.first_of(owner));
    first(a) == first(b)
}

/// Returns true if a line says nothing that another one does not say, for all of its period.
fn repeats(a: &Fact, b: &Fact) -> bool {
    let (of_a, of_b) = (folded(&a.value), folded(&b.value));
    canonical(&a.key) == canonical(&b.key)
        && !of_a.is_empty()
        && (of_b == of_a
            || !a.key.is_empty() && gist(&a.value) == gist(&b.value) && of_b.starts_with(&of_a))
        && contains(&b.period, &a.period)
        && a.level
            .is_none_or(|level| b.level.is_some_and(|other| weight(other) >= weight(level)))
}

fn contains(outer: &Period, inner: &Period) -> bool {
    let begins = match (outer.from, inner.from) {
        (None, _) => true,
        (Some(outer), Some(inner)) => !inner.is_before(outer),
        (Some(_), None) => false,
    };
    let ends = match (outer.until, inner.until) {
        (None, _) => true,
        (Some(outer), Some(inner)) => !outer.is_before(inner),
        (Some(_), None) => false,
    };
    begins && ends
}

fn weight(level: Level) -> u8 {
    match level {
        Level::Premise => 3,
        Level::Arc => 2,
        Level::Chapter => 1,
        Level::Scene => 0,
    }
}

/// Returns true if a fact is no turn of the book or of an arc, which a reader may ask about later.
fn is_light(fact: &Fact) -> bool {
    fact.level.is_none_or(|level| weight(level) < 2)
}

/// Returns true if a later line gives the owner another value, or another owner the same one.
fn is_followed(memory: &Memory, facts: &[&Fact], fact: &Fact) -> bool {
    let begins = |other: &&&Fact| {
        let is_later = match (other.period.from, fact.period.until) {
            (Some(from), Some(until)) => !from.is_before(until),
            _ => false,
        };
        is_later && canonical(&other.key) == canonical(&fact.key) && !fact.key.is_empty()
    };
    let mut later = facts.iter().filter(begins);
    later.any(|other| is_same_owner(memory, other, fact) || gist(&other.value) == gist(&fact.value))
}

/// Returns true if a fact says that its owner does not know something, and a later one that they do.
fn is_learnt(memory: &Memory, facts: &[&Fact], fact: &Fact) -> bool {
    let knows = |other: &&&Fact| {
        other.kind() == Some(Kind::Knows)
            && is_same_owner(memory, other, fact)
            && gist(&other.value) == gist(&fact.value)
            && other.period.from >= fact.period.until
    };
    fact.kind() == Some(Kind::DoesNotKnow) && facts.iter().any(|other| knows(&other))
}

/// Returns true if a line of another key or owner mentions the value of a fact.
fn is_cited(memory: &Memory, fact: &Fact) -> bool {
    let said = gist(&fact.value);
    let shortest = if has_han(&said) { 2 } else { SHORTEST };
    if said.chars().count() < shortest {
        return true;
    }
    let is_other =
        |other: &&Fact| other.at != fact.at && canonical(&other.key) != canonical(&fact.key);
    let mut lines = memory.facts.iter().filter(is_other);
    lines.any(|other| other.text.to_lowercase().contains(&said))
}

fn folded(text: &str) -> String {
    let lower = text.to_lowercase();
    lower.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;
    use quipu_recall::Tier;

    fn found(text: &str) -> Vec<(usize, Option<usize>)> {
        let page = Page {
            path: "c.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let merges = find_merges(&Memory::of(&[page]), Some(6));
        let line = |place: &Place| place.line;
        merges
            .iter()
            .map(|merge| (merge.at.line, merge.same_as.as_ref().map(line)))
            .collect()
    }

    #[test]
    fn a_repeated_line_goes_and_the_fuller_one_stays() {
        let text = "## Ines\n- post: warden (from ch02)\n- post: warden, because Dov left (from ch02)\n- guards the gate\n- Guards the gate.\n- holds: the key (from ch01)\n- holds: the key (from ch03)\n";
        assert_eq!(found(text), [(2, Some(3)), (5, Some(4)), (7, Some(6))]);
        let chinese = "## 裘望\n- 职务：守门人\n- 职务：守门人，因为没有别人\n";
        assert_eq!(found(chinese), [(2, Some(3))]);
        for apart in [
            "## Ines\n- post: warden\n\n## Dov\n- post: warden\n",
            "## Ines\n- holds: the key (from ch01, until ch05)\n- holds: the key (from ch06)\n",
            "## Ines\n- [premise] guards the gate\n- [scene] guards the gate, then sleeps\n",
        ] {
            assert_eq!(found(apart), [], "{apart}");
        }
    }

    #[test]
    fn a_closed_fact_goes_if_nothing_mentions_it() {
        let ines =
            "## Ines\n- where: the mill (from ch01, until ch02)\n- where: the pans (from ch02)\n";
        assert_eq!(found(ines), [(2, None)]);
        assert_eq!(found(&format!("{ines}- left her coat at the mill\n")), []);
        assert_eq!(
            found(&ines.replace("- where: the mill", "- [arc] where: the mill")),
            []
        );
        assert_eq!(found(&ines.replace("until ch02", "until ch05")), []);
        let chinese = "## 裘望\n- 所在：磨坊（自 ch01，至 ch02）\n- 所在：盐田（自 ch02）\n";
        assert_eq!(found(chinese), [(2, None)]);
    }

    #[test]
    fn what_was_learnt_long_ago_is_no_longer_unknown() {
        let text = "## Hale\n- does not know: the light stood dark (until ch02)\n- knows: the light stood dark (from ch02)\n- does not know: who cut the page\n\n## 沈砚\n- 不知道：灯灭过（至 ch03）\n- 知道：灯灭过（自 ch03）\n";
        assert_eq!(found(text), [(2, None), (7, None)]);
        let recent = text.replace("ch02", "ch05").replace("ch03", "ch05");
        assert_eq!(found(&recent), []);
    }
}
