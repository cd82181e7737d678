//! The constraint query: checks each claim of a draft against memory.
//!
//! The deterministic judges see one sentence and memory. For everything else each claim and each
//! scene gets evidence, by which a reader or an external judge decides.

use std::collections::BTreeSet;

use quipu_recall::Tier;
use serde::Serialize;

use crate::claim::Claim;
use crate::evidence::{Evidence, SceneEvidence, Selection};
use crate::judges::{Finding, Sentence, blot, judge};
use crate::memory::Memory;
use crate::page::Page;
use crate::pool::Pool;
use crate::prompt::evidence_budget;
use crate::pronouns::People;
use crate::relevance::Vectors;
use crate::scene::{Scene, cut_scenes};
use crate::waiver::conflict_id;

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
/// sentences of the paragraph name, else to the only person whom it fits and whom the scene has
/// named.
pub fn sentences<'m>(
    memory: &'m Memory,
    claims: &'m [Claim],
    scenes: &[Scene],
    chapter: Option<u64>,
) -> Vec<Sentence<'m>> {
    let mut carried: Option<usize> = None;
    let mut found = Vec::new();
    let people = std::cell::LazyCell::new(|| People::of(memory));
    let mut named: BTreeSet<usize> = BTreeSet::new();
    for (nth, claim) in claims.iter().enumerate() {
        if claim.opens {
            carried = None;
        }
        if scenes.iter().any(|scene| scene.claims.start == nth) {
            named.clear();
        }
        let mentions = memory.mentions(&claim.text);
        let is_open = mentions.is_empty() && !named.is_empty();
        let meant = || people.meant(memory, &named, &claim.text);
        let whom = carried.or_else(|| is_open.then(meant).flatten());
        named.extend(mentions.iter().map(|mention| mention.entity));
        let people: BTreeSet<usize> = mentions.iter().map(|mention| mention.entity).collect();
        let bare = blot(&claim.text, &mentions);
        found.push(Sentence {
            memory,
            text: &claim.text,
            mentions,
            carried: whom,
            named: named.clone(),
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
    /// The maximum number of tokens of evidence for all scenes together. By default the evidence
    /// of a scene follows from its length.
    pub tokens: Option<u64>,
}

impl Bounds {
    /// Returns the tokens of evidence for one of the scenes.
    fn scene_budget(&self, scene: &Scene, scenes: &[Scene], claims: &[Claim]) -> u64 {
        let words: usize = scenes.iter().map(|scene| scene.words).sum();
        match self.tokens {
            Some(tokens) => tokens * scene.words as u64 / words.max(1) as u64,
            None => evidence_budget(scene, &claims[scene.claims.clone()]),
        }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            k: 6,
            chapter: None,
            least: 0.6,
            tokens: None,
        }
    }
}

/// Everything that a draft is compared with.
pub struct Corpus {
    pub memory: Memory,
    pub pool: Pool,
}

impl Corpus {
    /// Reads memory and manuscripts, for a draft of a chapter.
    pub fn of(pages: &[Page], chapter: Option<u64>) -> Corpus {
        Corpus::with(Memory::of(pages), pages, chapter)
    }

    /// Like `of`, with the memory of these pages.
    pub fn with(memory: Memory, pages: &[Page], chapter: Option<u64>) -> Corpus {
        let pool = Pool::of(&memory, pages, chapter);
        Corpus { memory, pool }
    }
}

/// Judges each claim. Only the deterministic judges run; no evidence is gathered.
pub fn judge_claims(
    memory: &Memory,
    draft: &str,
    claims: &[Claim],
    bounds: &Bounds,
) -> Vec<Checked> {
    let memory = memory.certain_in(bounds.chapter);
    let scenes = cut_scenes(draft, claims);
    let sentences = sentences(&memory, claims, &scenes, bounds.chapter);
    claims
        .iter()
        .zip(&sentences)
        .map(|(claim, sentence)| judge_one(sentence, claim, bounds))
        .collect()
}

/// Judges each claim and gathers its evidence. Also returns the evidence of each scene.
pub fn check(
    corpus: &Corpus,
    draft: &str,
    claims: &[Claim],
    bounds: &Bounds,
) -> (Vec<Checked>, Vec<SceneEvidence>) {
    let mut checked = judge_claims(&corpus.memory, draft, claims, bounds);
    let mut vectors = Vectors::default();
    let cut = cut_scenes(draft, claims);
    let mut scenes = Vec::new();
    let mut before = 0..0;
    for scene in &cut {
        let range = scene.claims.clone();
        let (pool, last) = (
            &corpus.pool,
            &claims[std::mem::replace(&mut before, range.clone())],
        );
        let selection = Selection::of(pool, last, &claims[range.clone()], &mut vectors);
        for (nth, one) in checked[range].iter_mut().enumerate() {
            add_evidence(one, selection.for_claim(nth, bounds.k));
        }
        let (evidence, tokens) = selection.for_scene(bounds.scene_budget(scene, &cut, claims));
        scenes.push(SceneEvidence {
            scene: scene.clone(),
            evidence,
            tokens,
        });
    }
    (checked, scenes)
}

/// A line with a lower score has nothing to do with the claim.
const RELATED: f32 = 0.27;
/// A line with this score speaks of what the claim says.
const SPEAKS: f32 = 0.6;

fn add_evidence(checked: &mut Checked, found: Vec<(f32, Evidence)>) {
    let speaks = |tier: Tier| {
        let of_tier = |(score, one): &(f32, Evidence)| *score >= SPEAKS && one.tier == tier;
        found.iter().any(of_tier)
    };
    let asked = |hit: bool| if hit { Asked::Hit } else { Asked::Miss };
    checked.l1 = asked(speaks(Tier::L1) || !checked.findings.is_empty());
    checked.l2 = asked(speaks(Tier::L2));
    let related = found.into_iter().filter(|(score, _)| *score >= RELATED);
    checked.evidence = related.map(|(_, evidence)| evidence).collect();
}

fn judge_one(sentence: &Sentence<'_>, claim: &Claim, bounds: &Bounds) -> Checked {
    let findings: Vec<Judged> = judge(sentence)
        .into_iter()
        .filter(|finding| finding.confidence >= bounds.least)
        .map(|finding| Judged {
            id: conflict_id(&claim.text, &finding.evidence),
            finding,
            tier: Tier::L1,
        })
        .collect();
    let verdict = if findings.iter().any(|judged| judged.finding.conflict) {
        Verdict::Conflict
    } else if findings.is_empty() {
        Verdict::Unknown
    } else {
        Verdict::Consistent
    };
    Checked {
        claim: claim.clone(),
        verdict,
        findings,
        evidence: Vec::new(),
        l1: Asked::No,
        l2: Asked::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::cut_claims;
    use crate::page::Place;
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
        let draft = "奥托用右手签了名。\n\n卖红绳的老人走了。\n";
        let claims = cut_claims(draft);
        let (checked, scenes) = check(
            &Corpus::of(&pages, None),
            draft,
            &claims,
            &Bounds::default(),
        );
        assert_eq!(
            (checked[0].verdict, checked[0].l1),
            (Verdict::Conflict, Asked::Hit)
        );
        assert_eq!(
            checked[0].findings[0].finding.at,
            Place::new("characters.md", 4)
        );
        assert_eq!(
            (checked[1].verdict, checked[1].l2),
            (Verdict::Unknown, Asked::Hit)
        );
        let passage = Place::new("manuscripts/ch01.md", 5);
        assert_eq!(checked[1].evidence[0].at, passage);
        assert!(scenes[0].evidence.iter().any(|one| one.at == passage));
    }

    /// Repeats one name, with and without conjunctions, verbs and numbers.
    #[test]
    fn a_sentence_full_of_one_name_says_a_thing_once() {
        let pages = [page(
            "c.md",
            Tier::L1,
            "# C\n\n## Otto\n- status: dead\n- rooms: 4\n- when: 1904\n\n## 奥托\n- 状态：已死\n",
        )];
        let memory = Memory::of(&pages);
        for sentence in [
            "Otto ",
            "Otto and ",
            "Otto smiled and ",
            "奥托和",
            "奥托说，",
        ] {
            let draft = format!(
                "{} nine rooms in 1911.",
                sentence.repeat(3_900 / sentence.len())
            );
            let claims = cut_claims(&draft);
            assert_eq!(claims.len(), 1);
            let checked = judge_claims(
                &memory,
                &draft,
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
            " (from ch03",
            "，至第八章）",
            "（自 ch02#x",
            ", until ch0",
            ")",
            "supersedes: \"",
            "取代：“",
            "- where: a [→ m/ch03.md]\n",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail(memory in soup(), draft in soup()) {
            let pages = [page("a.md", Tier::L1, &format!("## Otto\n- handed: left\n- age: 31\n\n## 奥托\n{memory}")), page("m.md", Tier::L2, &memory)];
            let claims = cut_claims(&draft);
            let bounds = Bounds { chapter: Some(3), ..Bounds::default() };
            let (checked, scenes) = check(&Corpus::of(&pages, None), &draft, &claims, &bounds);
            let covered: Vec<usize> = scenes.iter().flat_map(|one| one.scene.claims.clone()).collect();
            prop_assert_eq!(covered, (0..claims.len()).collect::<Vec<_>>());
            prop_assert_eq!(checked.len(), claims.len());
            let lines = draft.lines().count().max(1);
            prop_assert!(claims.iter().all(|claim| (1..=lines).contains(&claim.line)));
            crate::lint::lint(&pages, 5);
            crate::tension::read_tension(&pages);
            let known = Memory::of(&pages).certain_in(Some(3));
            crate::self_check::check_memory(&known);
            crate::story::read_timeline(&known);
            crate::story::read_relations(&known, None);
            crate::story::cut_scenes(&pages, &known);
            for line in memory.lines() {
                let _ = crate::supersede::place_fact(&pages, &pages[0].path, Some("Otto"), line);
            }
            crate::split::plan_split(&pages, "a.md");
            crate::rename::plan_rename(&pages, "a.md", "b/c.md", &|path| path == "m.md");
        }
    }
}
