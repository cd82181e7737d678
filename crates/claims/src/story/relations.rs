//! Relations between people, as memory states them, at a point of the story.
//!
//! A relation is an entry that names the other person: as its key (`Karen: guilt`, `→ 卡莲：愧疚`),
//! or in the value of a key that is a relation (`wife: Ada`, `关系：卡莲，旧识`).

use serde::Serialize;

use crate::memory::{Fact, Memory};
use crate::page::Place;
use crate::period::{Period, Point};

/// One relation, from its owner to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Relation {
    pub from: String,
    pub to: String,
    pub label: String,
    #[serde(flatten)]
    pub period: RelationPeriod,
    pub at: Place,
}

/// The period, under names that do not collide with the persons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RelationPeriod {
    pub since: Option<Point>,
    pub until: Option<Point>,
}

impl From<Period> for RelationPeriod {
    fn from(period: Period) -> RelationPeriod {
        RelationPeriod {
            since: period.from,
            until: period.until,
        }
    }
}

const PLAIN: &[&str] = &["relation", "relations", "关系"];
const KEYS: &[&str] = &[
    "mother",
    "father",
    "parent",
    "son",
    "daughter",
    "child",
    "brother",
    "sister",
    "sibling",
    "wife",
    "husband",
    "spouse",
    "lover",
    "friend",
    "enemy",
    "rival",
    "master",
    "servant",
    "teacher",
    "pupil",
    "ally",
    "betrothed",
    "loves",
    "hates",
    "trusts",
    "fears",
    "serves",
    "母亲",
    "父亲",
    "儿子",
    "女儿",
    "哥哥",
    "弟弟",
    "姐姐",
    "妹妹",
    "妻子",
    "丈夫",
    "恋人",
    "朋友",
    "敌人",
    "对手",
    "师父",
    "徒弟",
    "主人",
    "仆人",
    "盟友",
    "爱",
    "恨",
    "信任",
];

/// Returns the relations that hold when a point ends; without a point, all of them, with their
/// history.
pub fn read_relations(memory: &Memory, at: Option<Point>) -> Vec<Relation> {
    let facts = memory.facts.iter().filter(|fact| !fact.is_event);
    let dated = facts.map(|fact| (fact, period_of(memory, fact)));
    dated
        .filter(|(_, period)| at.is_none_or(|at| period.stands_after(at)))
        .flat_map(|(fact, period)| read_fact(memory, fact, period))
        .collect()
}

/// Returns when a relation holds. What one person is to another changes, so a relation without a
/// start begins in the chapter of its link; kinship holds from the beginning.
fn period_of(memory: &Memory, fact: &Fact) -> Period {
    let key = fact.key.trim_start_matches(['→', ' ']);
    let is_kin = KEYS.contains(&key);
    let source = fact.source.as_deref().filter(|_| !is_kin);
    let implied = source.and_then(|source| memory.scenes.point_of(source));
    Period {
        from: fact.period.from.or(implied),
        ..fact.period
    }
}

fn read_fact(memory: &Memory, fact: &Fact, period: Period) -> Vec<Relation> {
    let Some(owner) = fact.entity.map(|entity| memory.first_of(entity)) else {
        return Vec::new();
    };
    let relation = |to: usize, label: String| Relation {
        from: memory.entities[owner].name.clone(),
        to: memory.entities[memory.first_of(to)].name.clone(),
        label,
        period: period.into(),
        at: fact.at.clone(),
    };
    let key = fact.key.trim_start_matches(['→', ' ']);
    if let Some(to) = memory
        .find_owner(key)
        .filter(|to| memory.first_of(*to) != owner)
    {
        return vec![relation(to, clause(&fact.value))];
    }
    let is_plain = PLAIN.contains(&key);
    if !is_plain && !KEYS.contains(&key) {
        return Vec::new();
    }
    let mut mentions = memory.mentions(&fact.value);
    mentions.retain(|mention| memory.first_of(mention.entity) != owner);
    mentions.truncate(if is_plain { 1 } else { usize::MAX });
    let label = |end: usize| match is_plain {
        true => {
            let rest = fact.value[end..].trim_start_matches([' ', ',', '，', ':', '：', '-', '—']);
            clause(rest)
        }
        false => key.to_owned(),
    };
    mentions
        .iter()
        .map(|mention| relation(mention.entity, label(mention.end)))
        .collect()
}

/// Returns the first clause of a value.
fn clause(value: &str) -> String {
    let first = value.split([',', '，', ';', '；', '。']).next();
    first.unwrap_or_default().trim().to_owned()
}

/// Formats relations as a Mermaid graph.
pub fn render_relations_mermaid(relations: &[Relation]) -> String {
    let names = names_of(relations);
    let id = |name: &str| {
        names
            .iter()
            .position(|one| *one == name)
            .unwrap_or_default()
    };
    let quoted = |text: &str| text.replace('"', "#quot;").replace(['\n', '|'], " ");
    let mut text = "graph LR\n".to_owned();
    for (nth, name) in names.iter().enumerate() {
        text.push_str(&format!("  n{nth}[\"{}\"]\n", quoted(name)));
    }
    for one in relations {
        text.push_str(&format!(
            "  n{} -->|\"{}\"| n{}\n",
            id(&one.from),
            quoted(&shown(one)),
            id(&one.to)
        ));
    }
    text
}

/// Formats relations as a Graphviz graph.
pub fn render_relations_dot(relations: &[Relation]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = "digraph relations {\n".to_owned();
    for one in relations {
        text.push_str(&format!(
            "  {} -> {} [label={}];\n",
            quoted(&one.from),
            quoted(&one.to),
            quoted(&shown(one))
        ));
    }
    text + "}\n"
}

fn names_of(relations: &[Relation]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in relations
        .iter()
        .flat_map(|one| [one.from.as_str(), one.to.as_str()])
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The label with its period.
fn shown(relation: &Relation) -> String {
    let period = Period {
        from: relation.period.since,
        until: relation.period.until,
    };
    match period.to_string() {
        period if period.is_empty() => relation.label.clone(),
        period => format!("{} ({period})", relation.label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;
    use quipu_recall::Tier;

    #[test]
    fn relations_are_read_in_every_form_and_over_time() {
        let text = "## 奥托\n- 关系:\n- → 卡莲: 愧疚的对象 [→ c.md#卡莲]\n- 朋友：李素裳（至 ch05）\n- 关系：李素裳，被工具化（自 ch05）\n\n## 卡莲\n\n## 李素裳\n\n## Joss\n- wife: Ada, the smith (from ch02)\n- Ada: a debt (until ch02)\n\n## Ada\n";
        let page = Page {
            path: "c.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let memory = Memory::of(&[page]);
        let at = |chapter| {
            let relations = read_relations(&memory, Some(Point::chapter(chapter)));
            let told = relations
                .iter()
                .map(|r| format!("{} {} {}", r.from, r.to, r.label));
            told.collect::<Vec<_>>()
        };
        assert_eq!(
            at(1),
            [
                "奥托 卡莲 愧疚的对象",
                "奥托 李素裳 朋友",
                "Joss Ada a debt"
            ]
        );
        assert_eq!(
            at(5),
            [
                "奥托 卡莲 愧疚的对象",
                "奥托 李素裳 被工具化",
                "Joss Ada wife"
            ]
        );
        let text = "## Joss\n- Ada: a debt [→ manuscripts/ch03.md#x]\n- sister: Ada [→ manuscripts/ch03.md]\n\n## Ada\n";
        let page = Page {
            path: "c.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let later = Memory::of(&[page]);
        let at = |chapter| read_relations(&later, Some(Point::chapter(chapter))).len();
        assert_eq!([at(2), at(3)], [1, 2], "the debt begins where it is told");

        let all = read_relations(&memory, None);
        assert!(render_relations_mermaid(&all).contains("n0 -->|\"朋友 (until ch05)\"| n2"));
        assert!(
            render_relations_dot(&all)
                .contains("\"Joss\" -> \"Ada\" [label=\"wife (from ch02)\"];")
        );
    }
}
