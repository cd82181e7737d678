//! The deterministic judges. Each finds one kind of contradiction and reports its confidence.
//!
//! A judge sees one sentence and memory. False alarms cost more trust than misses, so a judge
//! reports nothing in doubt. By default judges ignore statements that are denied, hypothetical,
//! dreamt, remembered or spoken by a character.

mod attribute;
mod colour;
mod date;
mod metaphor;
mod number;
mod order;
mod presence;
mod relation;
mod rule;
mod term;
mod thread;

pub(crate) use presence::{judge as judge_presence, says_dead};
use std::collections::BTreeSet;

use quipu_text::Level;
use serde::Serialize;

use crate::memory::{Fact, Memory, Mention};
use crate::page::Place;
use crate::words::{has_han, says_any, words};

/// A sentence of a draft, with the entities it mentions.
pub struct Sentence<'m> {
    pub memory: &'m Memory,
    pub text: &'m str,
    pub mentions: Vec<Mention>,
    /// The entity that `he` or `她` refers to, if the preceding sentences leave only one candidate.
    pub carried: Option<usize>,
    /// The entities that the scene has named so far, this sentence included.
    pub named: BTreeSet<usize>,
    /// The chapter of the draft.
    pub chapter: Option<u64>,
    /// The text with every name masked, at the same byte offsets, so that a keyword inside a name
    /// does not match.
    pub bare: String,
}

/// Relatives: a statement about `Otto's brother` does not apply to Otto.
const KIN: &[&str] = &[
    "brother",
    "sister",
    "mother",
    "father",
    "son",
    "daughter",
    "uncle",
    "aunt",
    "cousin",
    "nephew",
    "niece",
    "grandfather",
    "grandmother",
    "wife",
    "husband",
    "friend",
    "neighbour",
    "neighbor",
    "master",
    "servant",
    "child",
    "twin",
    "哥",
    "弟",
    "姐",
    "妹",
    "父",
    "母",
    "爹",
    "娘",
    "儿子",
    "女儿",
    "叔",
    "伯",
    "舅",
    "姑",
    "姨",
    "祖",
    "妻",
    "丈夫",
    "朋友",
    "邻居",
    "师父",
    "徒弟",
    "孩子",
    "仆人",
];

/// Masks the mentions in a text. They must be sorted and must not overlap.
pub fn blot(text: &str, mentions: &[Mention]) -> String {
    let mut next = mentions.iter().peekable();
    text.char_indices()
        .map(|(at, c)| {
            while next.next_if(|mention| mention.end <= at).is_some() {}
            let inside = next.peek().is_some_and(|mention| mention.start <= at);
            match c.len_utf8() {
                1 if inside && c.is_alphabetic() => 'x',
                3 if inside => '○',
                _ => c,
            }
        })
        .collect()
}

/// The result of a judge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub judge: &'static str,
    /// True for a contradiction, false for agreement with memory.
    pub conflict: bool,
    pub confidence: f32,
    pub why: String,
    /// The line of memory that decides.
    pub at: Place,
    pub evidence: String,
    #[serde(serialize_with = "level_name")]
    pub level: Option<Level>,
}

pub(crate) fn level_name<S: serde::Serializer>(
    level: &Option<Level>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match level {
        Some(level) => serializer.serialize_some(level.name()),
        None => serializer.serialize_none(),
    }
}

type Judge = fn(&Sentence<'_>, &mut Vec<Finding>);

pub const JUDGES: &[(&str, Judge)] = &[
    ("hand", attribute::judge_hand),
    ("colour", colour::judge),
    ("trade", attribute::judge_trade),
    ("relation", relation::judge),
    ("age", number::judge_age),
    ("count", number::judge_count),
    ("date", date::judge),
    ("order", order::judge),
    ("presence", presence::judge),
    ("thread", thread::judge),
    ("rule", rule::judge),
    ("term", term::judge),
    ("metaphor", metaphor::judge),
];

pub fn judge(sentence: &Sentence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, judge) in JUDGES {
        judge(sentence, &mut findings);
    }
    findings
}

const PRONOUNS: &[&str] = &["he", "she", "his", "her", "they", "their"];

impl<'m> Sentence<'m> {
    /// Returns the entity that the text at `at` belongs to, and the confidence: the nearest entity
    /// named before it, or the one that a pronoun refers to. An entity named only as owner of
    /// something else (`Otto's brother`) owns nothing beyond that.
    pub fn owner(&self, at: usize) -> Option<(usize, f32)> {
        if let Some(mention) = self.mentions.iter().rfind(|mention| mention.end <= at) {
            let between = &self.text[mention.end..at];
            let near = if has_han(between) {
                between.chars().count() <= 5
            } else {
                words(between).len() <= 3
            };
            if mention.possessive && (!near || says_any(between, KIN)) {
                return None;
            }
            // A pronoun between the name and `at` (`Otto said that she …`) is not considered.
            return Some((mention.entity, 1.0));
        }
        let carried = self.carried?;
        let opens = match self.text.chars().find(|c| c.is_alphabetic()) {
            Some('他' | '她') => true,
            _ => words(self.text)
                .iter()
                .take(3)
                .any(|word| PRONOUNS.contains(&word.lower.as_str())),
        };
        opens.then_some((carried, 0.9))
    }

    /// Returns the entity named right after `end`, perhaps after a comma: `At forty, Otto …`,
    /// `身为铁匠，奥托……`.
    pub fn named_after(&self, end: usize) -> Option<usize> {
        let mention = self
            .mentions
            .get(self.mentions.partition_point(|mention| mention.start < end))?;
        let between = self.text[end..mention.start].trim();
        (!mention.possessive && ["", ",", "，", "的"].contains(&between)).then_some(mention.entity)
    }

    /// Returns the facts of the entity at `at`, and the confidence.
    pub fn facts_at(&self, at: usize) -> Option<(Vec<&'m Fact>, f32)> {
        let (entity, sure) = self.owner(at)?;
        Some((self.memory.facts_of(entity).collect(), sure))
    }

    /// Returns a reason in the language of the sentence.
    pub fn why(&self, english: String, chinese: String) -> String {
        if has_han(self.text) { chinese } else { english }
    }

    pub fn found(
        &self,
        judge: &'static str,
        conflict: bool,
        confidence: f32,
        why: String,
        fact: &Fact,
    ) -> Finding {
        Finding {
            judge,
            conflict,
            confidence,
            why,
            at: fact.at.clone(),
            evidence: fact.text.clone(),
            level: fact.level,
        }
    }
}

#[cfg(test)]
pub(crate) mod bench {
    //! Test helpers: a memory of a few lines, and the judges' results for a sentence.

    use super::*;
    use crate::page::Page;
    use crate::query::sentences;
    use crate::scene::cut_scenes;
    use quipu_contract::Form;
    use quipu_recall::Tier;

    pub fn memory(text: &str) -> Memory {
        let form = text
            .contains("closed:")
            .then_some(Form::Threads)
            .or_else(|| text.contains("收于：").then_some(Form::Threads));
        Memory::of(&[Page {
            path: "m.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form,
            text: text.into(),
        }])
    }

    /// Returns `judge!` for a conflict and `judge=` for agreement.
    pub fn says(memory: &Memory, draft: &str) -> Vec<String> {
        let claims = crate::claim::cut_claims(draft);
        let scenes = cut_scenes(draft, &claims);
        let found = sentences(memory, &claims, &scenes, Some(9))
            .iter()
            .flat_map(judge)
            .collect::<Vec<_>>();
        found
            .iter()
            .map(|f| format!("{}{}", f.judge, if f.conflict { "!" } else { "=" }))
            .collect()
    }

    /// Checks a table of sentences against one memory.
    pub fn expect(text: &str, table: &[(&str, &[&str])]) {
        let memory = memory(text);
        for (draft, expected) in table {
            assert_eq!(says(&memory, draft), *expected, "{draft}");
        }
    }
}
