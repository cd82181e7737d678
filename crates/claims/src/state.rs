//! State over the story: which facts hold at a point, and which keys record state that changes.
//!
//! State is written as ordinary keyed facts: `knows: …`, `where: …`, `holds: …`, `status: dead`.
//! A fact of such a key without a start holds from the chapter of its source on. Any other fact
//! without a start holds from the beginning, wherever it was said first.

use quipu_contract::Form;
use serde::Serialize;

use crate::memory::{Entity, Fact, Memory, is_alias};
use crate::page::Page;
use crate::period::{Period, Point, Scenes};
use crate::threads::chapter_number;
use crate::titles::without_title;

/// A kind of state that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Alive, dead, missing.
    Alive,
    /// Where someone or something is.
    Where,
    /// What someone holds.
    Holds,
    /// Who holds an object.
    HeldBy,
    Injury,
    Knows,
    Believes,
    DoesNotKnow,
}

impl Kind {
    /// Returns true if one owner may have several values at one time.
    pub fn is_list(self) -> bool {
        !matches!(self, Kind::Alive | Kind::Where | Kind::HeldBy)
    }

    /// Returns true for knowledge, belief and ignorance.
    pub fn is_mind(self) -> bool {
        matches!(self, Kind::Knows | Kind::Believes | Kind::DoesNotKnow)
    }

    /// Returns the conventional English key.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Alive => "status",
            Kind::Where => "where",
            Kind::Holds => "holds",
            Kind::HeldBy => "held by",
            Kind::Injury => "injury",
            Kind::Knows => "knows",
            Kind::Believes => "believes",
            Kind::DoesNotKnow => "does not know",
        }
    }
}

/// The keys of each kind, in lower case.
const KEYS: [(Kind, &[&str]); 8] = [
    (
        Kind::Alive,
        &["status", "state", "fate", "状态", "生死", "结局"],
    ),
    (
        Kind::Where,
        &[
            "where",
            "location",
            "is at",
            "is in",
            "whereabouts",
            "所在",
            "位置",
            "身在",
            "下落",
            "地点",
        ],
    ),
    (
        Kind::Holds,
        &[
            "holds",
            "has",
            "carries",
            "possesses",
            "持有",
            "携带",
            "身上有",
            "手里有",
        ],
    ),
    (
        Kind::HeldBy,
        &[
            "held by",
            "holder",
            "carried by",
            "持有者",
            "持有人",
            "在谁手里",
            "在谁手中",
        ],
    ),
    (
        Kind::Injury,
        &[
            "injury", "injuries", "injured", "wound", "wounds", "wounded", "伤", "伤势", "受伤",
            "伤情",
        ],
    ),
    (
        Kind::Knows,
        &[
            "knows",
            "knows that",
            "learned",
            "learnt",
            "知道",
            "得知",
            "已知",
            "获知",
        ],
    ),
    (
        Kind::Believes,
        &[
            "believes", "thinks", "suspects", "相信", "以为", "认为", "怀疑",
        ],
    ),
    (
        Kind::DoesNotKnow,
        &[
            "does not know",
            "doesn't know",
            "does not know yet",
            "not yet known",
            "unaware of",
            "不知道",
            "尚不知",
            "尚不知道",
            "还不知道",
            "不知",
        ],
    ),
];

/// Returns the kind of state that a key records. `None` for any other key.
pub fn kind_of(key: &str) -> Option<Kind> {
    let key = key.trim().to_lowercase();
    let of = |(kind, keys): &(Kind, &[&str])| keys.contains(&key.as_str()).then_some(*kind);
    KEYS.iter().find_map(of)
}

/// Returns the start of a fact that states none: the point of its source if its key records state.
/// In a chronicle, the chapter of its heading; below the heading of an arc, that of its source.
pub(crate) fn implied_start(
    page: &Page,
    key: &str,
    headings: &[&str],
    source: Option<&str>,
    scenes: &Scenes,
) -> Option<Point> {
    if page.form == Some(Form::Chronicle) {
        let chapter = headings
            .iter()
            .rev()
            .find_map(|title| chapter_number(title));
        let chapter = chapter.or_else(|| source.and_then(chapter_number));
        return chapter.map(Point::chapter);
    }
    kind_of(key)?;
    source.and_then(|source| scenes.point_of(source))
}

/// Returns true for the line of a chronicle that says where everyone was left at the end of a chapter.
pub(crate) fn leaves_off(fact: &Fact) -> bool {
    fact.is_event && ["leaves off", "停在"].contains(&fact.key.as_str())
}

/// Returns true if a fact says that its owner is dead.
pub fn is_dead(fact: &Fact) -> bool {
    !fact.is_event && crate::judges::says_dead(&fact.key, &fact.value)
}

impl Fact {
    /// Returns the kind of state that it records.
    pub fn kind(&self) -> Option<Kind> {
        kind_of(&self.key)
    }
}

impl Memory {
    /// Parses a point of this story: `9`, `ch09`, `ch09.2`, `ch09#the-landing`, `第九章`.
    pub fn point(&self, text: &str) -> Option<Point> {
        Point::parse(text, &self.scenes)
    }

    /// Returns the facts that hold in some part of a chapter or scene.
    pub fn holding_at(&self, point: Point) -> impl Iterator<Item = &Fact> {
        self.facts
            .iter()
            .filter(move |fact| fact.period.touches(point))
    }

    /// Returns the memory that a text of a chapter can be judged by: what holds in every part of
    /// the chapter. Without a chapter, what holds at the end of the story.
    pub fn certain_in(&self, chapter: Option<u64>) -> Memory {
        let is_certain = |period: &Period| match chapter {
            Some(chapter) => period.covers(Point::chapter(chapter)),
            None => period.is_open(),
        };
        // An injury explains what somebody does from the chapter in which it happens.
        let explains = |fact: &Fact| {
            let chapter = chapter.map(Point::chapter);
            fact.kind() == Some(Kind::Injury)
                && chapter.is_some_and(|chapter| fact.period.touches(chapter))
        };
        let mut memory = self.clone();
        let facts = &mut memory.facts;
        facts.retain(|fact| is_certain(&fact.period) || explains(fact));
        memory.rules.retain(|rule| is_certain(&rule.period));
        memory
    }

    /// The entries that the deterministic judges can compare with a text: facts of somebody with a
    /// key and a value, bans, words to avoid, closed threads.
    pub fn decides(&self) -> usize {
        let is_keyed = |fact: &&Fact| {
            let is_stated = !fact.key.is_empty() && !fact.value.is_empty();
            fact.entity.is_some() && is_stated && !is_alias(fact)
        };
        let avoided = self.terms.iter().filter(|term| !term.avoid.is_empty());
        let closed = self.threads.iter().filter(|thread| thread.closed.is_some());
        let keyed = self.facts.iter().filter(is_keyed).count();
        keyed + self.rules.len() + self.metaphors.len() + avoided.count() + closed.count()
    }

    /// Returns the entity with this name or alias, in any case, with or without a title.
    pub fn find_owner(&self, name: &str) -> Option<usize> {
        let wanted = name.trim().to_lowercase();
        let is_named = |entity: &Entity| entity.name.to_lowercase() == wanted;
        let is_called = |entity: &Entity| {
            let mut names = entity.names.iter();
            names.any(|name| name.to_lowercase() == wanted)
        };
        let first = |test: &dyn Fn(&Entity) -> bool| self.entities.iter().position(test);
        let found = first(&is_named).or_else(|| first(&is_called));
        found.or_else(|| self.find_owner(without_title(name)?))
    }

    /// Returns the facts of an owner that hold when a chapter or scene ends, in the order of the
    /// files. Aliases are left out.
    pub fn state_at(&self, owner: usize, point: Point) -> Vec<&Fact> {
        self.facts_of(owner)
            .filter(|fact| fact.period.stands_after(point) && !is_alias(fact))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_recall::Tier;

    fn memory(text: &str) -> Memory {
        Memory::of(&[Page {
            path: "characters.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        }])
    }

    fn values(memory: &Memory, chapter: u64) -> Vec<&str> {
        let owner = memory
            .find_owner("裘老")
            .or_else(|| memory.find_owner("joss"));
        memory
            .state_at(owner.unwrap(), Point::chapter(chapter))
            .iter()
            .map(|fact| fact.value.as_str())
            .collect()
    }

    #[test]
    fn state_is_replayed_by_chapter() {
        let english = memory(
            "## Joss Arden\n- eyes: grey [→ manuscripts/ch02.md]\n- where: the mill (from ch01, until ch03)\n- where: prison [→ manuscripts/ch03.md#the-arrest]\n- knows: who cut the rope (from ch04)\n",
        );
        assert_eq!(values(&english, 1), ["grey", "the mill"]);
        assert_eq!(values(&english, 3), ["grey", "prison"]);
        assert_eq!(values(&english, 4), ["grey", "prison", "who cut the rope"]);
        let chinese = memory(
            "## 裘望\n- 别名：裘老\n- 所在：磨坊（至第三章）\n- 所在：牢里 [→ manuscripts/ch03.md#入狱]\n- 不知道：谁割断了绳（到 ch04）\n",
        );
        assert_eq!(values(&chinese, 2), ["磨坊", "谁割断了绳"]);
        assert_eq!(values(&chinese, 4), ["牢里"]);
    }

    #[test]
    fn judges_see_what_holds_in_the_whole_chapter() {
        let memory = memory(
            "## Joss\n- handed: left (until ch05)\n- handed: right (from ch05)\n- age: 41\n- injury: left wrist burnt (from ch05, until ch06)\n",
        );
        let values = |chapter| {
            let certain = memory.certain_in(chapter);
            certain
                .facts
                .into_iter()
                .map(|fact| fact.value)
                .collect::<Vec<_>>()
        };
        assert_eq!(values(Some(4)), ["left", "41"]);
        // An injury explains what somebody does in the chapter in which it happens.
        assert_eq!(values(Some(5)), ["41", "left wrist burnt"]);
        assert_eq!(values(Some(6)), ["right", "41", "left wrist burnt"]);
        assert_eq!(values(Some(7)), ["right", "41"]);
        assert_eq!(values(None), ["right", "41"]);
    }
}
