//! The deterministic judges: each knows one kind of contradiction, says how sure it is, and is
//! silent when unsure.
//!
//! A judge sees one sentence and memory. False alarms cost more trust than silences, so whatever is
//! denied, supposed, dreamt, remembered or said by a character is left alone unless the judge says
//! otherwise.

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

use quipu_text::Level;
use serde::Serialize;

use crate::memory::{Fact, Memory, Mention};
use crate::page::Place;
use crate::words::{has_han, says_any, words};

/// A sentence of a draft, with who it is about.
pub struct Sentence<'m> {
    pub memory: &'m Memory,
    pub text: &'m str,
    pub mentions: Vec<Mention>,
    /// Who `he` or `她` must be, if the sentences before it leave no choice.
    pub carried: Option<usize>,
    /// The chapter that the draft is of.
    pub chapter: Option<u64>,
    /// The text with every name blotted out, byte for byte in the same places: a sign inside a name
    /// is no sign.
    pub bare: String,
}

/// Someone of someone's: what is said of `Otto's brother` is not said of Otto.
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

/// The text with the mentions blotted out, which stand in their order and apart.
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

/// What a judge found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub judge: &'static str,
    /// Whether it contradicts; otherwise it says the same as memory.
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

/// Every judge, with its name.
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

/// Asks every judge.
pub fn judge(sentence: &Sentence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, judge) in JUDGES {
        judge(sentence, &mut findings);
    }
    findings
}

const PRONOUNS: &[&str] = &["he", "she", "his", "her", "they", "their"];

impl<'m> Sentence<'m> {
    /// Whom what stands at `at` belongs to, and how sure that is: the nearest one named before it,
    /// or the one a pronoun must mean. Someone named only as owner of something else (`Otto's
    /// brother`) owns nothing further off.
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
            // `Otto said that she …`: another person came in by a pronoun of other number; only one
            // is certain.
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

    /// Who is named right behind `end`, after a comma or nothing: `At forty, Otto …`,
    /// `身为铁匠，奥托……`.
    pub fn named_after(&self, end: usize) -> Option<usize> {
        let mention = self
            .mentions
            .get(self.mentions.partition_point(|mention| mention.start < end))?;
        let between = self.text[end..mention.start].trim();
        (!mention.possessive && ["", ",", "，", "的"].contains(&between)).then_some(mention.entity)
    }

    /// The facts of whom stands at `at`, with how sure that is.
    pub fn facts_at(&self, at: usize) -> Option<(Vec<&'m Fact>, f32)> {
        let (entity, sure) = self.owner(at)?;
        Some((self.memory.facts_of(entity).collect(), sure))
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
    //! A memory of a few lines, and what the judges say of a sentence.

    use super::*;
    use crate::page::Page;
    use crate::query::sentences;
    use quipu_contract::Form;
    use quipu_text::recall::Tier;

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

    /// `judge!` for a conflict, `judge=` for agreement.
    pub fn says(memory: &Memory, draft: &str) -> Vec<String> {
        let claims = crate::claim::cut_claims(draft);
        let found = sentences(memory, &claims, Some(9))
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
