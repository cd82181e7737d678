//! The story in order: what happens in each chapter, and which facts begin and end there.

use serde::Serialize;

use crate::memory::{Fact, Memory};
use crate::page::Place;
use crate::period::Point;
use crate::self_check::is_date;

/// A fact that begins or ends at a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub owner: String,
    pub text: String,
    pub at: Place,
    /// True if it begins here, false if it ends here.
    pub begins: bool,
}

/// A chapter, or a scene of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moment {
    pub point: Point,
    /// The date inside the story, as the chronicle has it.
    pub when: Option<String>,
    /// Entries of the chronicle, with their places.
    pub events: Vec<(String, Place)>,
    pub changes: Vec<Change>,
}

/// Returns the moments at which something happens or changes, in the order of the story.
pub fn read_timeline(memory: &Memory) -> Vec<Moment> {
    let mut moments: Vec<Moment> = Vec::new();
    let mut at = |point: Point| -> usize {
        let nth = moments.iter().position(|moment| moment.point == point);
        nth.unwrap_or_else(|| {
            moments.push(Moment {
                point,
                when: None,
                events: Vec::new(),
                changes: Vec::new(),
            });
            moments.len() - 1
        })
    };
    let mut events = Vec::new();
    let mut changes = Vec::new();
    for fact in &memory.facts {
        let period = fact.period;
        if let (true, Some(from)) = (fact.is_event, period.from) {
            events.push((at(from), fact));
            continue;
        }
        for (point, begins) in [(period.from, true), (period.until, false)] {
            if let Some(point) = point {
                changes.push((at(point), fact, begins));
            }
        }
    }
    for (nth, fact) in events {
        if is_date(&fact.key) && moments[nth].when.is_none() {
            moments[nth].when = Some(fact.value.clone());
        } else {
            moments[nth]
                .events
                .push((fact.text.clone(), fact.at.clone()));
        }
    }
    for (nth, fact, begins) in changes {
        moments[nth].changes.push(change(memory, fact, begins));
    }
    moments.sort_by_key(|moment| moment.point);
    for moment in &mut moments {
        // What ends comes before what follows it.
        moment
            .changes
            .sort_by(|a, b| (&a.owner, a.begins, &a.at).cmp(&(&b.owner, b.begins, &b.at)));
    }
    moments
}

fn change(memory: &Memory, fact: &Fact, begins: bool) -> Change {
    let owner = fact
        .entity
        .map(|entity| &memory.entities[memory.first_of(entity)]);
    Change {
        owner: owner.map(|owner| owner.name.clone()).unwrap_or_default(),
        text: fact.said(),
        at: fact.at.clone(),
        begins,
    }
}

impl Fact {
    /// Returns `key: value`, without the period.
    pub fn said(&self) -> String {
        match self.key.as_str() {
            "" => self.value.clone(),
            key => format!("{key}: {}", self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;
    use quipu_contract::Form;
    use quipu_recall::Tier;

    fn events(chronicle: &str) -> Vec<String> {
        let memory = Memory::of(&[Page {
            path: "chronicle.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: Some(Form::Chronicle),
            text: chronicle.into(),
        }]);
        let moments = read_timeline(&memory);
        let of = |moment: &Moment| {
            let texts = moment.events.iter().map(|(text, _)| text.as_str());
            format!(
                "{}: {}",
                moment.point,
                texts.collect::<Vec<_>>().join(" | ")
            )
        };
        moments.iter().map(of).collect()
    }

    #[test]
    fn an_event_below_an_arc_is_of_the_chapter_that_it_links_to() {
        assert_eq!(
            events(
                "# C\n\n## 旧案\n- 裴伯死了 [→ manuscripts/ch02.md#钟楼]\n- 停在：钥匙在阿鲤身上\n- 他认了 [⊣ characters.md#沈砚] [→ manuscripts/ch03.md#渔棚]\n- 停在：沈砚住渔棚\n\n### ch04\n- 他敲响潮钟 [→ manuscripts/ch03.md#渔棚]\n"
            ),
            [
                "ch02: 裴伯死了 | 停在：钥匙在阿鲤身上",
                "ch03: 他认了 | 停在：沈砚住渔棚",
                "ch04: 他敲响潮钟"
            ]
        );
        assert_eq!(
            events(
                "# C\n\n## The old case\n- The bell fell [→ manuscripts/ch02.md#tower]\n- leaves off: Ines holds the key\n\n## Another arc\n- when: 1911\n- no chapter at all\n"
            ),
            ["ch02: The bell fell | leaves off: Ines holds the key"]
        );
    }
}
