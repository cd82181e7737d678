//! Checks memory against itself: two values for one key at one time, ages that do not fit dates, the
//! dead who act, an object in two hands, something known and not known.
//!
//! Each finding names two lines of memory. Facts that hold at different times do not conflict.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::claim::cut_claims;
use crate::holdings::held_objects;
use crate::injury::{heals, is_healed};
use crate::judges::judge_presence;
use crate::keys::{canonical, excludes, gist};
use crate::memory::{Fact, Memory};
use crate::page::Place;
use crate::query::sentences;
use crate::state::{Kind, is_dead};
use crate::waiver::finding_id;
use crate::words::{has_han, numbers};

/// Two lines of memory that cannot both be true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inconsistency {
    /// The ID for waiving it.
    pub id: String,
    /// `value`, `period`, `age`, `dead`, `holder`, `mind` or `injury`.
    pub kind: &'static str,
    pub at: Place,
    pub text: String,
    pub against: Place,
    pub against_text: String,
    pub why: String,
}

fn found(kind: &'static str, a: &Fact, b: &Fact, why: String) -> Inconsistency {
    let (a, b) = if a.at <= b.at { (a, b) } else { (b, a) };
    Inconsistency {
        id: finding_id(&a.text, &b.text),
        kind,
        at: a.at.clone(),
        text: a.text.clone(),
        against: b.at.clone(),
        against_text: b.text.clone(),
        why,
    }
}

/// The reason in the language of a line of memory.
fn why(of: &Fact, en: String, zh: String) -> String {
    if has_han(&of.text) { zh } else { en }
}

/// Finds what cannot be true together in memory, in the order of the files.
pub fn check_memory(memory: &Memory) -> Vec<Inconsistency> {
    let mut all = Vec::new();
    let mut owned: BTreeMap<usize, Vec<&Fact>> = BTreeMap::new();
    for fact in memory.facts.iter().filter(|fact| !fact.is_event) {
        if fact.period.is_inverted() {
            let why = why(
                fact,
                format!("it ends before it begins: {}", fact.period),
                format!("结束早于开始：{}", fact.period),
            );
            all.push(found("period", fact, fact, why));
        }
        if let Some(owner) = fact.entity {
            owned.entry(memory.first_of(owner)).or_default().push(fact);
        }
    }
    for (owner, facts) in &owned {
        let name = &memory.entities[*owner].name;
        check_values(name, facts, &mut all);
        check_ages(memory, name, facts, &mut all);
        check_dead(name, facts, &mut all);
        check_mind(name, facts, &mut all);
        check_injuries(name, facts, &mut all);
    }
    check_holders(memory, &mut all);
    check_events(memory, &mut all);
    all.sort_by(|a, b| (&a.at, &a.against, a.kind).cmp(&(&b.at, &b.against, b.kind)));
    all.dedup_by(|a, b| a.at == b.at && a.against == b.against);
    all
}

fn pairs<'f, 'm>(facts: &'f [&'m Fact]) -> impl Iterator<Item = (&'m Fact, &'m Fact)> + 'f {
    facts
        .iter()
        .enumerate()
        .flat_map(|(nth, a)| facts[nth + 1..].iter().map(|b| (*a, *b)))
}

fn check_values(name: &str, facts: &[&Fact], all: &mut Vec<Inconsistency>) {
    let mut by_key: BTreeMap<&str, Vec<&Fact>> = BTreeMap::new();
    for fact in facts.iter().filter(|fact| !fact.key.is_empty()) {
        by_key.entry(canonical(&fact.key)).or_default().push(fact);
    }
    for (key, facts) in by_key {
        for (a, b) in pairs(&facts) {
            if excludes(key, &a.value, &b.value) && a.period.overlaps(&b.period) {
                let why = why(
                    b,
                    format!("{name}: two values of `{}` at one time", b.key),
                    format!("{name}：同一时间 `{}` 有两个值", b.key),
                );
                all.push(found("value", a, b, why));
            }
        }
    }
}

/// Compares ages with the year of birth, with the years of the chapters, and with each other.
fn check_ages(memory: &Memory, name: &str, facts: &[&Fact], all: &mut Vec<Inconsistency>) {
    let years = memory.years();
    let of = |key: &'static str| {
        let facts = facts.iter().filter(move |fact| canonical(&fact.key) == key);
        facts.filter_map(|fact| Some((*fact, numbers(&fact.value).first()?.value)))
    };
    let born = of("born").find(|(_, year)| (1000..=9999).contains(year));
    let year_of = |fact: &Fact| years.get(&fact.period.from?.chapter).copied();
    let ages: Vec<(&Fact, u64)> = of("age").filter(|(_, age)| *age < 200).collect();
    for (fact, age) in &ages {
        let Some((birth, year)) = born else { break };
        // An age without a start may be that of any chapter.
        let fits = |now: u64| {
            now.checked_sub(year)
                .is_some_and(|is| is.abs_diff(*age) <= 1)
        };
        let stated = year_of(fact);
        let wrong = match stated {
            Some(now) => !fits(now),
            None => !years.is_empty() && !years.values().any(|now| fits(*now)),
        };
        if wrong && let Some(now) = stated.or_else(|| years.values().next().copied()) {
            let is = now.saturating_sub(year);
            let why = why(
                fact,
                format!("{name}: born in {year} is {is} in {now}, not {age}"),
                format!("{name}：生于 {year}，在 {now} 应为 {is} 岁，而非 {age}"),
            );
            all.push(found("age", birth, fact, why));
        }
    }
    for ((a, young), (b, old)) in ages.iter().zip(ages.iter().skip(1)) {
        let (Some(from), Some(to)) = (a.period.from, b.period.from) else {
            continue;
        };
        let passed = year_of(a).zip(year_of(b)).map(|(a, b)| b.abs_diff(a));
        let (first, last) = if to.is_before(from) {
            (old, young)
        } else {
            (young, old)
        };
        let why = match passed {
            _ if last < first => why(
                b,
                format!("{name}: grows younger, {first} and then {last}"),
                format!("{name}：变年轻了，先 {first} 岁，后 {last} 岁"),
            ),
            Some(passed) if (last - first).abs_diff(passed) > 1 => why(
                b,
                format!("{name}: {first} and then {last}, but {passed} years pass"),
                format!("{name}：先 {first} 岁，后 {last} 岁，其间只过了 {passed} 年"),
            ),
            _ => continue,
        };
        all.push(found("age", a, b, why));
    }
}

/// Finds state of the dead that begins after the death.
fn check_dead(name: &str, facts: &[&Fact], all: &mut Vec<Inconsistency>) {
    for dead in facts.iter().filter(|fact| is_dead(fact)) {
        for later in facts.iter().filter(|fact| {
            let acts =
                |kind: Kind| kind.is_mind() && kind != Kind::DoesNotKnow || kind == Kind::Holds;
            fact.kind().is_some_and(acts)
        }) {
            let is_after = match (dead.period.from, later.period.from) {
                (Some(death), Some(start)) => death.is_before(start),
                _ => false,
            };
            if is_after && dead.period.overlaps(&later.period) {
                let why = why(
                    later,
                    format!("{name} is dead, and `{}` begins later", later.key),
                    format!("{name} 已死，`{}` 却开始得更晚", later.key),
                );
                all.push(found("dead", dead, later, why));
            }
        }
    }
}

fn check_mind(name: &str, facts: &[&Fact], all: &mut Vec<Inconsistency>) {
    for (a, b) in pairs(facts) {
        let kinds = (a.kind(), b.kind());
        let is_both = matches!(
            kinds,
            (Some(Kind::Knows), Some(Kind::DoesNotKnow))
                | (Some(Kind::DoesNotKnow), Some(Kind::Knows))
        );
        if is_both && gist(&a.value) == gist(&b.value) && a.period.overlaps(&b.period) {
            let why = why(
                b,
                format!("{name} knows it and does not know it at one time"),
                format!("{name} 同一时间既知道又不知道"),
            );
            all.push(found("mind", a, b, why));
        }
    }
}

/// Finds an injury that lasts although it is healed.
fn check_injuries(name: &str, facts: &[&Fact], all: &mut Vec<Inconsistency>) {
    let of_kind = facts
        .iter()
        .filter(|fact| fact.kind() == Some(Kind::Injury));
    let (over, open): (Vec<&Fact>, Vec<&Fact>) = of_kind.partition(|fact| is_healed(&fact.value));
    for over in over {
        for hurt in open.iter().filter(|hurt| heals(&over.value, &hurt.value)) {
            let is_later = match (hurt.period.from, over.period.from) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(hurt), Some(over)) => hurt.is_before(over),
            };
            if is_later && over.period.overlaps(&hurt.period) {
                let why = why(
                    over,
                    format!("{name}: the injury is healed and lasts at one time"),
                    format!("{name}：伤同一时间既已痊愈又未痊愈"),
                );
                all.push(found("injury", over, hurt, why));
            }
        }
    }
}

/// Finds one object in the hands of two owners.
fn check_holders(memory: &Memory, all: &mut Vec<Inconsistency>) {
    let mut held: BTreeMap<String, Vec<(String, &Fact)>> = BTreeMap::new();
    for fact in memory.facts.iter().filter(|fact| !fact.is_event) {
        let Some(owner) = fact.entity else { continue };
        let owner = &memory.entities[owner].name;
        for (object, holder) in held_objects(memory, fact.kind(), owner, &fact.value) {
            held.entry(object).or_default().push((holder, fact));
        }
    }
    for (object, holders) in held {
        for (nth, (who, a)) in holders.iter().enumerate() {
            for (other, b) in &holders[nth + 1..] {
                if who != other && a.period.overlaps(&b.period) {
                    let why = why(
                        b,
                        format!("`{object}` is held by {who} and by {other} at one time"),
                        format!("`{object}` 同一时间由 {who} 和 {other} 持有"),
                    );
                    all.push(found("holder", a, b, why));
                }
            }
        }
    }
}

/// Finds the dead who act in a later entry of the chronicle.
fn check_events(memory: &Memory, all: &mut Vec<Inconsistency>) {
    let mut certain: BTreeMap<u64, Memory> = BTreeMap::new();
    if !memory.facts.iter().any(is_dead) {
        return;
    }
    for event in memory.facts.iter().filter(|fact| fact.is_event) {
        let Some(start) = event.period.from else {
            continue;
        };
        let then = certain
            .entry(start.chapter)
            .or_insert_with(|| memory.certain_in(Some(start.chapter)));
        let claims = cut_claims(&event.text);
        let mut findings = Vec::new();
        for sentence in sentences(then, &claims, &[], Some(start.chapter)) {
            judge_presence(&sentence, &mut findings);
        }
        for finding in findings.iter().filter(|finding| finding.conflict) {
            let Some(fact) = memory.facts.iter().find(|fact| fact.at == finding.at) else {
                continue;
            };
            all.push(found("dead", fact, event, finding.why.clone()));
        }
    }
}

impl Memory {
    /// Returns the first entity that is the same person or thing: the same name, or an alias.
    pub fn first_of(&self, entity: usize) -> usize {
        let name = &self.entities[entity].name;
        let names = &self.entities[entity].names;
        let is_same = |other: &crate::memory::Entity| {
            other.name == *name || other.names.contains(name) || names.contains(&other.name)
        };
        self.entities.iter().position(is_same).unwrap_or(entity)
    }

    /// Returns the year of each chapter that the chronicle dates.
    pub fn years(&self) -> BTreeMap<u64, u64> {
        let dated = self
            .facts
            .iter()
            .filter(|fact| fact.is_event && is_date(&fact.key));
        dated
            .filter_map(|fact| {
                let years = numbers(&fact.value);
                let year = years.iter().find(|n| (1000..=9999).contains(&n.value))?;
                Some((fact.period.from?.chapter, year.value))
            })
            .collect()
    }
}

/// Returns true if a key of the chronicle says when something happens.
pub(crate) fn is_date(key: &str) -> bool {
    ["when", "date", "day", "time", "时间", "日期"].contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;
    use quipu_contract::Form;
    use quipu_recall::Tier;

    fn findings(characters: &str, chronicle: &str) -> Vec<(&'static str, String, String)> {
        let page = |path: &str, form, text: &str| Page {
            path: path.into(),
            tier: Tier::L1,
            is_memory: true,
            form,
            text: text.into(),
        };
        let pages = [
            page("c.md", None, characters),
            page("h.md", Some(Form::Chronicle), chronicle),
        ];
        check_memory(&Memory::of(&pages))
            .into_iter()
            .map(|f| (f.kind, f.at.to_string(), f.against.to_string()))
            .collect()
    }

    fn kinds(characters: &str, chronicle: &str) -> Vec<&'static str> {
        findings(characters, chronicle)
            .into_iter()
            .map(|f| f.0)
            .collect()
    }

    #[test]
    fn two_values_at_one_time_are_found_with_both_lines() {
        assert_eq!(
            findings(
                "## Joss\n- handed: left\n\n## 裘望\n- 惯用手：左\n- 惯用手：右（自 ch03）\n\n## Joss\n- handed: right\n",
                ""
            ),
            [
                ("value", "c.md:2".to_owned(), "c.md:9".to_owned()),
                ("value", "c.md:5".to_owned(), "c.md:6".to_owned())
            ]
        );
        for apart in [
            "## Joss\n- handed: left (until ch03)\n- handed: right (from ch03)\n",
            "## Joss\n- handed: left\n\n## Pell\n- handed: right\n",
            "## Joss\n- where: the mill (from ch01, until ch02)\n- where: prison (from ch04)\n",
            "## 裘望\n- 所在：磨坊（至 ch03）\n- 所在：牢里（自 ch03）\n",
            "## Joss\n- scar: left palm\n- scar: right cheek\n- knows: a\n- knows: b\n",
        ] {
            assert_eq!(kinds(apart, ""), [""; 0], "{apart}");
        }
        let overlap = "## Joss\n- where: the mill (from ch01, until ch05)\n- where: prison (from ch04)\n- post: keeper (from ch05, until ch02)\n";
        assert_eq!(kinds(overlap, ""), ["value", "period"]);
    }

    #[test]
    fn ages_fit_dates() {
        let chronicle = "## One\n\n### ch01\n- when: 3 May 1911\n\n### ch05\n- when: June 1913\n";
        let joss = |entries: &str| kinds(&format!("## Joss\n{entries}"), chronicle);
        assert_eq!(joss("- born: 1870\n- age: 41\n"), [""; 0]);
        assert_eq!(
            joss("- born: 1870\n- age: 43 (from ch05)\n- age: 41 (until ch05)\n"),
            [""; 0]
        );
        assert_eq!(joss("- born: 1870\n- age: 51\n"), ["age"]);
        assert_eq!(
            joss("- 生于：1870年\n- 年龄：四十七岁（自第五章）\n"),
            ["age"]
        );
        assert_eq!(
            joss("- age: 41 (from ch01, until ch05)\n- age: 39 (from ch05)\n"),
            ["age"]
        );
        assert_eq!(
            joss("- age: 41 (from ch01, until ch05)\n- age: 52 (from ch05)\n"),
            ["age"]
        );
    }

    #[test]
    fn the_dead_stay_dead() {
        let tam = "## Tam\n- status: dead, drowned (from ch02)\n";
        let told = |entry: &str| kinds(tam, &format!("## A\n\n### ch03\n- {entry}\n"));
        assert_eq!(told("Tam opened the door"), ["dead"]);
        assert_eq!(told("Joss remembered Tam"), [""; 0]);
        assert_eq!(
            kinds(tam, "## A\n\n### ch01\n- Tam opened the door\n"),
            [""; 0]
        );
        assert_eq!(
            kinds(
                "## Tam\n- 状态：已死（自 ch02）\n- knows: the truth (from ch04)\n",
                ""
            ),
            ["dead"]
        );
        assert_eq!(
            kinds(
                "## 谭\n- 状态：已死（自 ch02）\n",
                "## 甲\n\n### ch03\n- 谭打开了门\n"
            ),
            ["dead"]
        );
    }

    #[test]
    fn one_object_has_one_holder() {
        let both = "## Joss\n- holds: the brass key (from ch01)\n\n## 裘望\n- 持有：铜钥匙，一把刀（自 ch02）\n\n## Pell\n- holds: a knife, the brass key (from ch03)\n";
        assert_eq!(kinds(both, ""), ["holder"]);
        let passed = "## Joss\n- holds: the brass key (until ch03)\n\n## Pell\n- holds: the brass key (from ch03)\n";
        assert_eq!(kinds(passed, ""), [""; 0]);
        let object = "## 铜钥匙\n- 持有者：裘望（自 ch02）\n\n## 裘望\n\n## 佩尔\n- 持有：铜钥匙（自 ch03）\n";
        assert_eq!(kinds(object, ""), ["holder"]);
        let mind =
            "## Joss\n- does not know: who cut the rope\n- knows: who cut the rope (from ch04)\n";
        assert_eq!(kinds(mind, ""), ["mind"]);
    }
}
