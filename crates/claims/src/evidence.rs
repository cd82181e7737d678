//! Selects the evidence for a scene within a budget of tokens.
//!
//! Hard rules come first, then the state of everyone in the scene, then entries of memory, then
//! sentences of the manuscripts. In each part lines are taken by their relevance to the claims. A claim that has lines already yields to
//! others, so that the evidence is spread over subjects. The result is in file order, numbered from 1.

use std::collections::{BTreeMap, BTreeSet};

use quipu_recall::Tier;
use quipu_text::{Counter, Level};
use serde::Serialize;

use crate::claim::Claim;
use crate::judges::level_name;
use crate::page::Place;
use crate::pool::{Pool, Unit};
use crate::prompt::render_evidence;
use crate::query::tier_name;
use crate::relevance::{Scores, Vectors, score};
use crate::scene::Scene;
use crate::state::{Kind, kind_of};

/// A line that a claim can be judged by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    pub at: Place,
    #[serde(serialize_with = "tier_name")]
    pub tier: Tier,
    #[serde(serialize_with = "level_name")]
    pub level: Option<Level>,
    /// The person, place or object that the line is about, or its section.
    pub about: String,
    pub text: String,
    /// The part of the story in which it holds, if that is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// `fact`, `rule` or `passage`.
    pub kind: &'static str,
}

/// A scene with its evidence.
#[derive(Debug, Clone, Serialize)]
pub struct SceneEvidence {
    pub scene: Scene,
    /// Numbered from 1 in this order.
    pub evidence: Vec<Evidence>,
    /// The tokens of the evidence, with places.
    pub tokens: u64,
}

/// The share of a scene's budget that hard rules may take.
const RULES_SHARE: f32 = 0.35;
/// The share that the state of everyone in the scene may take.
const STATE_SHARE: f32 = 0.4;
/// The share that hard rules and entries of memory may take before sentences get the rest.
const MEMORY_SHARE: f32 = 0.5;
/// What a sentence inherits from the one before and the one after it: prose names its subject once.
const FROM_BEFORE: f32 = 0.7;
const FROM_AFTER: f32 = 0.5;
/// What each line for a claim leaves of the claim's pull on further lines.
const YIELD: f32 = 0.93;
/// What an entry of memory gains over a sentence: it is shorter and states a fact.
const ENTRY: f32 = 0.1;
/// What a sentence gains that states facts.
const FACTUAL: f32 = 2.0;
/// What the latest manuscript gains over the first.
const RECENT: f32 = 0.05;
/// Longer lines must be more relevant, by this power of their length.
const COST: f32 = 0.1;
/// The most tokens of a line's number, its owner and its share of headings.
const OVERHEAD: u64 = 9;
/// A rest of the budget that is too small for another line.
const LEFT: u64 = 12;

/// The evidence for the claims of one scene.
pub struct Selection<'p> {
    pool: &'p Pool,
    scores: Scores,
    /// The entities that the scene names or means.
    present: BTreeSet<usize>,
}

impl<'p> Selection<'p> {
    /// `before` are the claims of the scene before.
    pub fn of(
        pool: &'p Pool,
        before: &[Claim],
        claims: &[Claim],
        vectors: &mut Vectors,
    ) -> Selection<'p> {
        let texts: Vec<&str> = claims.iter().map(|claim| claim.text.as_str()).collect();
        let before: Vec<&str> = before.iter().map(|claim| claim.text.as_str()).collect();
        let subjects = pool.roster.subjects(&before, &texts);
        let mut scores = score(pool, &texts, &subjects, vectors);
        spread(pool, &mut scores);
        let present = subjects.iter().flat_map(BTreeMap::keys).copied().collect();
        Selection {
            pool,
            scores,
            present,
        }
    }

    /// Returns the best lines for one claim, best first.
    pub fn for_claim(&self, nth: usize, k: usize) -> Vec<(f32, Evidence)> {
        let scores = &self.scores.of_claim[nth];
        let mut ranked: Vec<(f32, usize)> = self
            .scores
            .candidates
            .iter()
            .zip(scores)
            .map(|(unit, score)| (self.value(*unit, *score), *unit))
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.truncate(k);
        ranked
            .into_iter()
            .map(|(score, unit)| (score, render(&self.pool.units[unit])))
            .collect()
    }

    /// Returns the lines for the whole scene within a budget.
    pub fn for_scene(&self, budget: u64) -> (Vec<Evidence>, u64) {
        let costs: Vec<u64> = self
            .scores
            .candidates
            .iter()
            .map(|nth| self.cost(*nth))
            .collect();
        let mut taken = vec![false; costs.len()];
        let mut spent = self.take_rules(&costs, &mut taken, budget);
        spent = self.take_state(&costs, &mut taken, spent, budget);
        let most = (budget as f32 * MEMORY_SHARE) as u64;
        spent = self.fill(Some(Tier::L1), &costs, &mut taken, spent, most);
        loop {
            self.fill(None, &costs, &mut taken, spent, budget);
            let chosen = (0..taken.len()).filter(|at| taken[*at]);
            let nth = chosen.map(|at| self.scores.candidates[at]);
            let evidence: Vec<Evidence> = nth.map(|nth| render(&self.pool.units[nth])).collect();
            let shown = Counter::O200k.count(&render_evidence(&evidence)).0;
            let has_grown = std::mem::replace(&mut spent, shown) != shown;
            if !has_grown || budget.saturating_sub(shown) < LEFT {
                return (evidence, shown);
            }
        }
    }

    /// Takes the lines with the highest gain until the budget is spent.
    fn fill(
        &self,
        tier: Option<Tier>,
        costs: &[u64],
        taken: &mut [bool],
        mut spent: u64,
        budget: u64,
    ) -> u64 {
        let of = |at: usize| &self.pool.units[self.scores.candidates[at]];
        let mut pull = vec![1.0f32; self.scores.of_claim.len()];
        let mut barred = vec![false; taken.len()];
        loop {
            let best = (0..taken.len())
                .filter(|at| !taken[*at] && !barred[*at] && spent + costs[*at] <= budget)
                .filter(|at| tier.is_none_or(|tier| of(*at).tier == tier))
                .filter_map(|at| Some((self.gain(at, &pull, costs[at])?, at)))
                .max_by(|a, b| a.0.1.total_cmp(&b.0.1).then(b.1.cmp(&a.1)));
            let Some(((claim, _), best)) = best else {
                return spent;
            };
            // A fact that has ended would pose as the present without the one that holds now.
            let missing = self.followers(best).find(|at| !taken[*at]);
            let at = missing.unwrap_or(best);
            if spent + costs[at] > budget {
                barred[best] = true;
                continue;
            }
            taken[at] = true;
            spent += costs[at];
            pull[claim] *= YIELD;
        }
    }

    /// Returns the candidates that hold now, of the owner and the key of one that has ended.
    fn followers(&self, at: usize) -> impl Iterator<Item = usize> {
        let candidates = &self.scores.candidates;
        let followers = self.pool.followers(candidates[at]).iter();
        followers.filter_map(|nth| candidates.binary_search(nth).ok())
    }

    /// Takes the hard rules, the most relevant first.
    fn take_rules(&self, costs: &[u64], taken: &mut [bool], budget: u64) -> u64 {
        let most = (budget as f32 * RULES_SHARE) as u64;
        let rules = self.ranked(&|unit| unit.is_rule);
        take(&rules, costs, taken, 0, most)
    }

    /// Takes the state of everyone and everything in the scene: the most relevant line of each key,
    /// then further ones. What somebody knows comes after what anybody can see. Injuries and deaths
    /// come first, because the words of a scene rarely give away that it forgets them.
    fn take_state(&self, costs: &[u64], taken: &mut [bool], spent: u64, budget: u64) -> u64 {
        let most = spent + (budget as f32 * STATE_SHARE) as u64;
        let ranked = self.ranked(&|unit| {
            let mut subjects = unit.subjects.iter();
            unit.is_state && subjects.any(|subject| self.present.contains(subject))
        });
        let mut of_key: BTreeMap<(Option<usize>, &str), usize> = BTreeMap::new();
        let mut state: Vec<((bool, usize, bool), usize)> = Vec::new();
        for at in ranked {
            let unit = &self.pool.units[self.scores.candidates[at]];
            let owner = unit.subjects.first().copied();
            let nth = of_key.entry((owner, unit.key.as_str())).or_default();
            let kind = kind_of(&unit.key);
            let is_mind = kind.is_some_and(Kind::is_mind);
            let is_body = matches!(kind, Some(Kind::Injury | Kind::Alive));
            state.push(((is_mind, *nth, !is_body), at));
            *nth += 1;
        }
        state.sort_by_key(|(order, _)| *order);
        let state: Vec<usize> = state.into_iter().map(|(_, at)| at).collect();
        take(&state, costs, taken, spent, most)
    }

    /// Returns the candidates of a sort, the most relevant first.
    fn ranked(&self, is_wanted: &dyn Fn(&Unit) -> bool) -> Vec<usize> {
        let candidates = self.scores.candidates.iter().enumerate();
        let mut wanted: Vec<(f32, usize)> = candidates
            .filter(|(_, nth)| is_wanted(&self.pool.units[**nth]))
            .map(|(at, _)| (self.best_for(at), at))
            .collect();
        wanted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        wanted.into_iter().map(|(_, at)| at).collect()
    }

    fn best_for(&self, at: usize) -> f32 {
        self.scores
            .of_claim
            .iter()
            .map(|scores| scores[at])
            .fold(0.0, f32::max)
    }

    /// Returns the claim that wants a line most, and how much.
    fn gain(&self, at: usize, pull: &[f32], cost: u64) -> Option<(usize, f32)> {
        let wanted = self
            .scores
            .of_claim
            .iter()
            .zip(pull)
            .map(|(scores, pull)| scores[at] * pull);
        let (claim, best) = wanted.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let value = self.value(self.scores.candidates[at], best);
        Some((claim, value / (cost as f32).powf(COST)))
    }

    /// Returns the worth of a line with a score: a statement of a fact is worth more than a movement.
    fn value(&self, nth: usize, score: f32) -> f32 {
        let unit = &self.pool.units[nth];
        match unit.tier {
            Tier::L2 => score * (1.0 + FACTUAL * unit.factual) + RECENT * unit.recency,
            _ => score * (1.0 + FACTUAL) + ENTRY,
        }
    }

    fn cost(&self, nth: usize) -> u64 {
        Counter::O200k.count(&self.pool.units[nth].text).0 + OVERHEAD
    }
}

/// Takes lines in their order, as far as they fit. Returns the tokens spent.
fn take(order: &[usize], costs: &[u64], taken: &mut [bool], mut spent: u64, most: u64) -> u64 {
    for at in order {
        if !taken[*at] && spent + costs[*at] <= most {
            taken[*at] = true;
            spent += costs[*at];
        }
    }
    spent
}

/// Lets sentences inherit a share of their neighbours' scores.
fn spread(pool: &Pool, scores: &mut Scores) {
    let candidates = &scores.candidates;
    let is_beside = |a: usize, b: usize| {
        let (one, other) = (&pool.units[candidates[a]], &pool.units[candidates[b]]);
        candidates[a] + 1 == candidates[b] && one.tier == Tier::L2 && one.at.path == other.at.path
    };
    for of_units in &mut scores.of_claim {
        let own = of_units.clone();
        for at in 1..own.len() {
            if is_beside(at - 1, at) {
                of_units[at] = of_units[at].max(own[at - 1] * FROM_BEFORE);
                of_units[at - 1] = of_units[at - 1].max(own[at] * FROM_AFTER);
            }
        }
    }
}

fn render(unit: &Unit) -> Evidence {
    Evidence {
        at: unit.at.clone(),
        tier: unit.tier,
        level: unit.level,
        about: unit.about.clone(),
        text: unit.text.clone(),
        holds: unit.holds.clone(),
        kind: match (unit.is_rule, unit.tier) {
            (true, _) => "rule",
            (_, Tier::L2) => "passage",
            _ => "fact",
        },
    }
}

#[cfg(test)]
mod tests {
    use quipu_contract::Form;
    use quipu_recall::Tier;

    use crate::claim::cut_claims;
    use crate::page::Page;
    use crate::query::{Bounds, Corpus, check};

    /// Returns the evidence for each scene of a draft of chapter five.
    fn shown(characters: &str, chronicle: &str, draft: &str, tokens: u64) -> Vec<Vec<String>> {
        let page = |path: &str, tier, form, text: &str| Page {
            path: path.into(),
            tier,
            is_memory: true,
            form,
            text: text.into(),
        };
        let pages = [
            page("characters.md", Tier::L1, None, characters),
            page("chronicle.md", Tier::L1, Some(Form::Chronicle), chronicle),
            page(
                "manuscripts/ch04.md",
                Tier::L2,
                None,
                "# Four\n\nIt rained.\n",
            ),
        ];
        let claims = cut_claims(draft);
        let bounds = Bounds {
            chapter: Some(5),
            tokens: Some(tokens),
            ..Bounds::default()
        };
        let (_, scenes) = check(&Corpus::of(&pages, Some(5)), draft, &claims, &bounds);
        let texts = scenes.into_iter().map(|scene| scene.evidence.into_iter());
        texts.map(|all| all.map(|one| one.text).collect()).collect()
    }

    const CHINESE: &str = "# 角色\n\n## 沈砚\n- 惯用手：左\n- 职务：灯塔守（至 ch03.1）\n- 所在：鹤嘴灯塔（至 ch03.1）\n- 持有：铜钥匙（至 ch02.2）\n- 伤势：左腕烧伤，手指合不拢（至 ch04.1）\n- 职务：无，因失职被免（自 ch03.1）\n- 所在：渔棚（自 ch03.1）\n- 持有：裴伯的账本（自 ch04.1）\n- 伤势：左手废了，手指再也伸不直（自 ch04.1）\n- 知道：陆承的兄长是船上的大副（自 ch03.1）\n- 知道：阿鲤的父亲死在船上（自 ch01）\n- 知道：裴伯撕了那一页（自 ch04.1）\n\n## 阿鲤\n- 所在：鹤嘴灯塔（自 ch03.1）\n- 知道：沈砚熄了灯（自 ch03.1）\n- 知道：沈砚收钱熄灯（自 ch04.1）\n";
    const ENGLISH: &str = "# People\n\n## Joss\n- handed: left\n- post: keeper of the light (until ch03)\n- where: the lighthouse (until ch03)\n- holds: the brass key (until ch02)\n- injury: left wrist burnt, the fingers do not close (until ch04)\n- post: none, dismissed (from ch03)\n- where: the fishing hut (from ch03)\n- holds: the ledger (from ch04)\n- injury: the left hand is ruined, the fingers never straighten (from ch04)\n- knows: the inspector's brother was the mate (from ch03)\n- knows: Mara's father died on that ship (from ch01)\n- knows: the bell maker cut the page out (from ch04)\n\n## Mara\n- where: the lighthouse (from ch03)\n- knows: Joss put out the light (from ch03)\n- knows: Joss was paid for it (from ch04)\n";

    /// The open facts of everyone come first, those that can be seen before what somebody knows.
    #[test]
    fn everyones_present_state_comes_before_what_has_ended() {
        for (memory, draft, wanted, tokens) in [
            (
                CHINESE,
                "阿鲤推开门。沈砚左手提起水桶，把灯点上。\n",
                ["左手废了", "渔棚", "裴伯的账本", "无，因失职被免"],
                300,
            ),
            (
                ENGLISH,
                "Mara opened the door. Joss lifted the bucket with his left hand and lit the lamp.\n",
                [
                    "left hand is ruined",
                    "fishing hut",
                    "the ledger",
                    "none, dismissed",
                ],
                300,
            ),
        ] {
            let first = shown(memory, "", draft, 120).concat().join("\n");
            assert!(first.contains(wanted[0]), "{first}");
            for tokens in [tokens, 600, 1200] {
                let shown = shown(memory, "", draft, tokens).concat().join("\n");
                for text in wanted {
                    assert!(shown.contains(text), "{tokens}: {text}\n{shown}");
                }
            }
        }
    }

    /// A fact that has ended never stands where what holds now is missing.
    #[test]
    fn what_has_ended_is_not_shown_alone() {
        for (memory, draft, pairs) in [
            (
                CHINESE,
                "“灯塔守呢？”来人问，“铜钥匙在灯塔吗？”\n",
                [
                    ("职务：灯塔守", "职务：无"),
                    ("铜钥匙", "裴伯的账本"),
                    ("鹤嘴灯塔（至", "渔棚"),
                ],
            ),
            (
                ENGLISH,
                "“Where is the keeper of the light?” said the man. “Is the brass key in the lighthouse?”\n",
                [
                    ("post: keeper", "post: none"),
                    ("brass key", "the ledger"),
                    ("lighthouse (until", "fishing hut"),
                ],
            ),
        ] {
            for tokens in (40..400).step_by(20) {
                let shown = shown(memory, "", draft, tokens).concat().join("\n");
                for (ended, current) in pairs {
                    let alone = shown.contains(ended) && !shown.contains(current);
                    assert!(!alone, "{tokens}: {ended} without {current}\n{shown}");
                }
            }
        }
    }

    #[test]
    fn a_scene_that_opens_with_a_pronoun_goes_on_about_the_one_before() {
        for (memory, draft, injury) in [
            (
                CHINESE,
                "沈砚出了门。\n\n***\n\n天黑以后他上了钟楼。\n",
                "左手废了",
            ),
            (
                ENGLISH,
                "Joss went out.\n\n***\n\nAfter dark he climbed the tower.\n",
                "left hand is ruined",
            ),
        ] {
            let scenes = shown(memory, "", draft, 800);
            assert!(scenes[1].concat().contains(injury), "{:?}", scenes[1]);
        }
    }

    #[test]
    fn only_the_newest_line_says_where_everyone_was_left() {
        let chronicle = "# C\n\n## 旧案\n- 他认了 [→ manuscripts/ch03.md#渔棚]\n- 停在：沈砚住渔棚，钥匙在陆承身上\n- 他敲钟 [→ manuscripts/ch04.md#敲钟]\n- 停在：沈砚回灯塔，案子结了\n\n## ch05\n- leaves off: everyone sleeps\n";
        let shown = shown(CHINESE, chronicle, "沈砚住在渔棚，钥匙在陆承身上。\n", 2000).concat();
        let left: Vec<&String> = shown
            .iter()
            .filter(|text| text.starts_with("停在") || text.starts_with("leaves"))
            .collect();
        assert_eq!(left, ["停在：沈砚回灯塔，案子结了"]);
    }
}
