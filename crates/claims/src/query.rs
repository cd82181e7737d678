//! The constraint query: checks each claim of a draft against memory.
//!
//! The deterministic judges run first. An external judge may decide the claims that they leave
//! open. Evidence is limited and ranked: facts of the named entities, facts of entities linked from
//! them, hard rules, then passages of the manuscripts.

use std::collections::BTreeSet;

use quipu_text::recall::Tier;
use quipu_text::{Level, slug};
use serde::Serialize;

use crate::claim::Claim;
use crate::judges::{Finding, Sentence, blot, judge, level_name};
use crate::memory::{Fact, Memory, content, is_alias};
use crate::page::Place;
use crate::passages::Passages;
use crate::waiver::finding_id;

/// The maximum length of a piece of evidence. It serves the judges, not readers.
const EVIDENCE_CHARS: usize = 700;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Conflict,
    Consistent,
    Unknown,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Conflict => "conflict",
            Verdict::Consistent => "consistent",
            Verdict::Unknown => "unknown",
        }
    }
}

/// A line that a claim can be judged by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    pub at: Place,
    #[serde(serialize_with = "tier_name")]
    pub tier: Tier,
    #[serde(serialize_with = "level_name")]
    pub level: Option<Level>,
    pub text: String,
    /// `fact`, `neighbour`, `rule`, `term` or `passage`.
    pub kind: &'static str,
}

pub fn tier_name<S: serde::Serializer>(tier: &Tier, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match tier {
        Tier::L0 => "L0",
        Tier::L1 => "L1",
        Tier::L2 => "L2",
    })
}

/// The result of searching a tier. `No` means that it was not searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    Hit,
    Miss,
    No,
}

/// The result for one claim.
#[derive(Debug, Clone, Serialize)]
pub struct Checked {
    pub claim: Claim,
    pub verdict: Verdict,
    pub findings: Vec<Judged>,
    pub evidence: Vec<Evidence>,
    pub l1: Asked,
    pub l2: Asked,
}

/// A finding with the ID for waiving it.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    pub id: String,
    #[serde(flatten)]
    pub finding: Finding,
    /// The tier of the evidence.
    #[serde(serialize_with = "tier_name")]
    pub tier: Tier,
}

/// Resolves the entities of each claim. A pronoun refers to the only entity that the preceding
/// sentences of the paragraph name.
pub fn sentences<'m>(
    memory: &'m Memory,
    claims: &'m [Claim],
    chapter: Option<u64>,
) -> Vec<Sentence<'m>> {
    let mut carried: Option<usize> = None;
    let mut found = Vec::new();
    for claim in claims {
        if claim.opens {
            carried = None;
        }
        let mentions = memory.mentions(&claim.text);
        let people: BTreeSet<usize> = mentions.iter().map(|mention| mention.entity).collect();
        let bare = blot(&claim.text, &mentions);
        found.push(Sentence {
            memory,
            text: &claim.text,
            mentions,
            carried,
            chapter,
            bare,
        });
        match people.len() {
            0 => {}
            1 => carried = people.first().copied(),
            _ => carried = None,
        }
    }
    found
}

/// The limits of a query, and the chapter of the draft.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The maximum number of pieces of evidence per claim.
    pub k: usize,
    pub chapter: Option<u64>,
    /// The minimum confidence of a reported finding.
    pub least: f32,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            k: 6,
            chapter: None,
            least: 0.6,
        }
    }
}

pub fn check(
    memory: &Memory,
    passages: &Passages,
    claims: &[Claim],
    bounds: &Bounds,
) -> Vec<Checked> {
    let sentences = sentences(memory, claims, bounds.chapter);
    claims
        .iter()
        .zip(&sentences)
        .map(|(claim, sentence)| check_one(sentence, claim, passages, bounds))
        .collect()
}

fn check_one(
    sentence: &Sentence<'_>,
    claim: &Claim,
    passages: &Passages,
    bounds: &Bounds,
) -> Checked {
    let findings: Vec<Judged> = judge(sentence)
        .into_iter()
        .filter(|finding| finding.confidence >= bounds.least)
        .map(|finding| Judged {
            id: finding_id(&claim.text, &finding.evidence),
            finding,
            tier: Tier::L1,
        })
        .collect();
    let mut evidence = from_memory(sentence, bounds.k);
    let l1 = if evidence.is_empty() && findings.is_empty() {
        Asked::Miss
    } else {
        Asked::Hit
    };
    // Search the manuscripts if memory has no evidence. Otherwise use them to fill the remaining
    // places.
    let room = if l1 == Asked::Miss {
        bounds.k
    } else {
        bounds.k.saturating_sub(evidence.len())
    };
    let mut l2 = Asked::No;
    if room > 0 && !passages.is_empty() {
        let found = passages.nearest(&claim.text, room).unwrap_or_default();
        l2 = if found.is_empty() {
            Asked::Miss
        } else {
            Asked::Hit
        };
        evidence.extend(found.into_iter().map(|(passage, _)| Evidence {
            at: passage.at.clone(),
            tier: passage.tier,
            level: None,
            text: shortened(&passage.text),
            kind: "passage",
        }));
    }
    let verdict = match () {
        () if findings.iter().any(|judged| judged.finding.conflict) => Verdict::Conflict,
        () if !findings.is_empty() => Verdict::Consistent,
        () => Verdict::Unknown,
    };
    Checked {
        claim: claim.clone(),
        verdict,
        findings,
        evidence,
        l1,
        l2,
    }
}

/// Returns the facts, neighbours and rules that match a sentence, best first.
fn from_memory(sentence: &Sentence<'_>, k: usize) -> Vec<Evidence> {
    let memory = sentence.memory;
    let said: BTreeSet<String> = content(sentence.text).into_iter().collect();
    let shared = |text: &str| {
        content(text)
            .iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .filter(|word| said.contains(*word))
            .count()
    };
    // Prefer short keyed facts: they are more decisive and cost less.
    let short = |fact: &Fact| {
        if !fact.key.is_empty() && fact.value.chars().count() <= 12 {
            0.5
        } else {
            0.0
        }
    };
    let weight = |fact: &Fact| {
        shared(&fact.text) as f32
            + short(fact)
            + fact
                .level
                .map_or(0.0, |level| 0.4 - 0.1 * level as usize as f32)
    };
    let mut ranked: Vec<(f32, Evidence)> = Vec::new();
    let mut push = |score: f32, fact: &Fact, kind: &'static str| {
        ranked.push((
            score,
            Evidence {
                at: fact.at.clone(),
                tier: Tier::L1,
                level: fact.level,
                text: shortened(&fact.text),
                kind,
            },
        ));
    };
    let mut named: BTreeSet<usize> = sentence
        .mentions
        .iter()
        .map(|mention| mention.entity)
        .collect();
    named.extend(sentence.carried.filter(|_| named.is_empty()));
    let mut neighbours = BTreeSet::new();
    for entity in &named {
        for fact in memory.facts_of(*entity).filter(|fact| !is_alias(fact)) {
            push(2.0 + weight(fact), fact, "fact");
            for anchor in &fact.links {
                neighbours.extend(
                    memory
                        .entities
                        .iter()
                        .enumerate()
                        .filter(|(_, e)| e.name == *anchor || slug(&e.name) == *anchor)
                        .map(|(nth, _)| nth),
                );
            }
        }
    }
    for entity in neighbours.difference(&named) {
        for fact in memory
            .facts_of(*entity)
            .filter(|fact| shared(&fact.text) > 0)
        {
            push(1.0 + weight(fact), fact, "neighbour");
        }
    }
    for rule in memory.rules.iter().filter(|rule| shared(&rule.text) > 1) {
        let evidence = Evidence {
            at: rule.at.clone(),
            tier: Tier::L1,
            level: rule.level,
            text: shortened(&rule.text),
            kind: "rule",
        };
        ranked.push((1.5 + shared(&rule.text) as f32, evidence));
    }
    for fact in memory.facts.iter().filter(|fact| {
        fact.entity.is_none_or(|entity| !named.contains(&entity)) && shared(&fact.text) >= 3
    }) {
        ranked.push((
            0.5 + weight(fact),
            Evidence {
                at: fact.at.clone(),
                tier: Tier::L1,
                level: fact.level,
                text: shortened(&fact.text),
                kind: "fact",
            },
        ));
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.at.cmp(&b.1.at)));
    let mut seen = BTreeSet::new();
    ranked.retain(|(_, evidence)| seen.insert(evidence.at.clone()));
    ranked
        .into_iter()
        .take(k)
        .map(|(_, evidence)| evidence)
        .collect()
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= EVIDENCE_CHARS {
        return text.to_owned();
    }
    text.chars().take(EVIDENCE_CHARS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::cut_claims;
    use crate::page::Page;
    use proptest::prelude::*;

    fn page(path: &str, tier: Tier, text: &str) -> Page {
        Page {
            path: path.into(),
            tier,
            is_memory: true,
            form: None,
            text: text.into(),
        }
    }

    #[test]
    fn a_draft_meets_memory_and_then_the_manuscripts() {
        let pages = [
            page(
                "characters.md",
                Tier::L1,
                "# C\n\n## 奥托\n- 惯用手：左\n- [弧] 卡莲：愧疚的对象 [→ characters.md#卡莲]\n\n## 卡莲\n- 状态：已死\n",
            ),
            page(
                "manuscripts/ch01.md",
                Tier::L2,
                "# 一\n\n## 集市\n\n市集上卖红绳的老人姓周。\n",
            ),
        ];
        let memory = Memory::of(&pages);
        let passages = Passages::of(pages.iter().filter(|p| p.tier == Tier::L2)).unwrap();
        let claims = cut_claims("奥托用右手签了名。\n\n卖红绳的老人走了。\n");
        let checked = check(&memory, &passages, &claims, &Bounds::default());
        assert_eq!(
            (checked[0].verdict, checked[0].l1),
            (Verdict::Conflict, Asked::Hit)
        );
        assert_eq!(
            checked[0].findings[0].finding.at,
            Place::new("characters.md", 4)
        );
        assert_eq!(
            (checked[1].verdict, checked[1].l1, checked[1].l2),
            (Verdict::Unknown, Asked::Miss, Asked::Hit)
        );
        assert_eq!(
            checked[1].evidence[0].at,
            Place::new("manuscripts/ch01.md", 5)
        );
    }

    /// Repeats one name, with and without conjunctions, verbs and numbers.
    #[test]
    fn a_sentence_full_of_one_name_says_a_thing_once() {
        let pages = [page(
            "c.md",
            Tier::L1,
            "# C\n\n## Otto\n- status: dead\n- rooms: 4\n- when: 1904\n\n## 奥托\n- 状态：已死\n",
        )];
        let (memory, passages) = (Memory::of(&pages), Passages::of([]).unwrap());
        for sentence in [
            "Otto ",
            "Otto and ",
            "Otto smiled and ",
            "奥托和",
            "奥托说，",
        ] {
            let claims = cut_claims(&format!(
                "{} nine rooms in 1911.",
                sentence.repeat(3_900 / sentence.len())
            ));
            assert_eq!(claims.len(), 1);
            let checked = check(
                &memory,
                &passages,
                &claims,
                &Bounds {
                    chapter: Some(3),
                    ..Bounds::default()
                },
            );
            assert!(
                checked[0].findings.len() < 10,
                "{sentence}: {} findings",
                checked[0].findings.len()
            );
        }
    }

    /// Text fragments that are likely to break judges, parsers and slicing.
    fn soup() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "Otto",
            "奥托",
            "'s ",
            "的",
            " right hand",
            "用右手写",
            "İ",
            "ß",
            "\u{feff}",
            "\n",
            "\n\n## ",
            "- ",
            "- handed: left\n",
            "- 年龄：三十一岁\n",
            "- must not: ",
            "must not：",
            "[→ ",
            "]",
            "[⊣ #",
            "| term | avoid |\n|---|---|\n| a | b |\n",
            "“",
            "”",
            "\"",
            "1911年",
            "14 November",
            " was 34.",
            "之前",
            " before ",
            "eyes",
            "蓝",
            "眼睛",
            ", ",
            "。",
            ". ",
            "<!-- ",
            "-->",
            "第",
            "章",
            "ch",
            "9",
            "🦀",
            "é",
            " mother ",
            "母亲",
            " born in ",
            "生于",
            "大",
            "—",
            "：",
            ": ",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail(memory in soup(), draft in soup()) {
            let pages = [page("a.md", Tier::L1, &format!("## Otto\n- handed: left\n- age: 31\n\n## 奥托\n{memory}")), page("m.md", Tier::L2, &memory)];
            let passages = Passages::of(pages.iter().filter(|p| p.tier == Tier::L2)).unwrap();
            let claims = cut_claims(&draft);
            let checked = check(&Memory::of(&pages), &passages, &claims, &Bounds { chapter: Some(3), ..Bounds::default() });
            prop_assert_eq!(checked.len(), claims.len());
            let lines = draft.lines().count().max(1);
            prop_assert!(claims.iter().all(|claim| (1..=lines).contains(&claim.line)));
            crate::lint::lint(&pages, 5);
            crate::tension::read_tension(&pages);
            crate::split::plan_split(&pages, "a.md");
            crate::rename::plan_rename(&pages, "a.md", "b/c.md", &|path| path == "m.md");
        }
    }
}
