//! All lines that a claim can be judged by: entries of memory and sentences of the manuscripts.
//!
//! Each line knows its owner: the person, place or object that it is about. Empty labels, plans and
//! work in progress are no evidence.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use quipu_recall::Tier;
use quipu_text::{Document, Level};

use crate::claim::cut_claims;
use crate::facts_in_prose::factual;
use crate::keys::canonical;
use crate::memory::{Fact, Memory, plain};
use crate::page::{Page, Place};
use crate::period::{Period, Point};
use crate::relevance::{Bag, bag};
use crate::roster::{Roster, first_of_name, short_name};
use crate::state::leaves_off;
use crate::words::has_han;

/// A longer entry of memory is divided into sentences.
const LONG_ENTRY: usize = 240;

/// One line of evidence.
#[derive(Debug, Clone)]
pub struct Unit {
    pub at: Place,
    pub tier: Tier,
    pub level: Option<Level>,
    /// The entities that it is about.
    pub subjects: Vec<usize>,
    /// The name of its owner or of its section; empty if the owner is not certain.
    pub about: String,
    pub text: String,
    /// The part of the story in which it holds, if that is limited.
    pub holds: Option<String>,
    /// True for a hard rule of the world.
    pub is_rule: bool,
    /// True for an entry with a key.
    pub is_keyed: bool,
    /// The conventional name of its key. Empty for a sentence, an event and an entry without a key.
    pub key: String,
    /// True for state that changes and holds in the chapter: whether its owner lives, where they are,
    /// what they hold, how they are hurt, what they know, and everything with a period.
    pub is_state: bool,
    /// True if it has ended before the chapter.
    pub is_over: bool,
    /// The position of its page among the manuscripts, from 0 (first) to 1 (last).
    pub recency: f32,
    /// How much the text looks like the statement of a fact, from 0 to 1.
    pub factual: f32,
    pub bag: Bag,
}

/// The lines, with the rarity of their words.
pub struct Pool {
    pub units: Vec<Unit>,
    pub roster: Roster,
    /// The lines that contain a term.
    postings: HashMap<String, Vec<u32>>,
    /// The facts of an owner and a key that hold in the chapter.
    current: HashMap<(usize, String), Vec<usize>>,
}

/// Words in a heading above rules of the world.
const RULE_HEADINGS: &[&str] = &[
    "rule", "rules", "law", "laws", "规则", "铁律", "规矩", "法则", "禁忌", "戒律", "律",
];
/// Signs of a rule outside such a section.
const RULE_SIGNS: &[&str] = &[
    "must not",
    "must never",
    "never",
    "no one may",
    "nobody may",
    "no one can",
    "nobody can",
    "cannot",
    "forbidden",
    "always",
    "only",
    "不得",
    "不可",
    "绝不",
    "从不",
    "禁止",
    "只能",
    "必须",
    "不能",
    "一律",
    "永远",
    "任何人",
];

impl Pool {
    /// Gathers the lines for a text of a chapter. What begins later in the story is left out.
    pub fn of(memory: &Memory, pages: &[Page], chapter: Option<u64>) -> Pool {
        let roster = Roster::of(memory);
        let mut units = memory_units(memory, pages, chapter);
        let manuscripts: Vec<&Page> = pages.iter().filter(|page| page.tier == Tier::L2).collect();
        for (nth, page) in manuscripts.iter().enumerate() {
            let recency = (nth + 1) as f32 / manuscripts.len() as f32;
            units.extend(manuscript_units(memory, &roster, page, recency));
        }
        let mut postings: HashMap<String, Vec<u32>> = HashMap::new();
        for (nth, unit) in units.iter_mut().enumerate() {
            unit.bag = bag(&format!("{} {}", unit.about, unit.text), &roster);
            for term in unit.bag.terms.keys() {
                let nth = u32::try_from(nth).unwrap_or(u32::MAX);
                postings.entry(term.clone()).or_default().push(nth);
            }
        }
        let mut current: HashMap<(usize, String), Vec<usize>> = HashMap::new();
        for (nth, unit) in units.iter().enumerate() {
            if let (Some(owner), false, false) =
                (unit.subjects.first(), unit.key.is_empty(), unit.is_over)
            {
                let of_key = current.entry((*owner, unit.key.clone())).or_default();
                of_key.push(nth);
            }
        }
        Pool {
            units,
            roster,
            postings,
            current,
        }
    }

    /// Returns the facts that hold now, of the owner and the key of a fact that has ended. None for
    /// any other line.
    pub fn followers(&self, nth: usize) -> &[usize] {
        let unit = &self.units[nth];
        let owner = unit.subjects.first().filter(|_| unit.is_over);
        let current = owner.and_then(|owner| self.current.get(&(*owner, unit.key.clone())));
        current.map_or(&[], Vec::as_slice)
    }

    /// Returns the lines that contain a term.
    pub fn with_term(&self, term: &str) -> &[u32] {
        self.postings.get(term).map_or(&[], Vec::as_slice)
    }

    /// Returns how much a term says: rare ones say more.
    pub fn rarity(&self, term: &str) -> f32 {
        let known = self.with_term(term).len() as f32;
        ((self.units.len() as f32 + 1.0) / (known + 0.5))
            .ln()
            .max(0.05)
    }
}

fn memory_units(memory: &Memory, pages: &[Page], chapter: Option<u64>) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut seen: BTreeSet<Place> = BTreeSet::new();
    let headings = headings_of_rules(memory);
    let left_off = last_left_off(memory, chapter);
    for fact in &memory.facts {
        if leaves_off(fact)
            && fact
                .period
                .from
                .is_some_and(|at| Some(at.chapter) != left_off)
        {
            continue;
        }
        let begins_later = match (fact.period.from, chapter) {
            (Some(from), Some(chapter)) => Point::chapter(chapter).is_before(from),
            _ => false,
        };
        if !seen.insert(fact.at.clone()) || begins_later || !is_evidence(fact) {
            continue;
        }
        let owner = fact.entity.map(|entity| first_of_name(memory, entity));
        let is_over = fact.period.until.is_some_and(|until| match chapter {
            Some(chapter) => until.is_before(Point::chapter(chapter)),
            None => true,
        });
        let is_keyed = !fact.key.is_empty();
        let changes = fact.kind().is_some() || is_keyed && fact.period != Period::default();
        let key = if fact.is_event {
            ""
        } else {
            canonical(&fact.key)
        };
        let is_banned = memory.rules.iter().any(|rule| rule.at == fact.at);
        let is_rule = is_banned || fact.entity.is_some_and(|entity| headings.contains(&entity));
        let about = owner
            .map(|nth| memory.entities[nth].name.clone())
            .unwrap_or_default();
        for text in entry_parts(&fact.text) {
            units.push(Unit {
                at: fact.at.clone(),
                tier: Tier::L1,
                level: fact.level,
                subjects: owner.into_iter().collect(),
                about: about.clone(),
                is_rule: is_rule || is_world_rule(memory, fact, &text),
                is_keyed,
                key: key.to_owned(),
                is_state: changes && !is_over && !fact.is_event,
                is_over,
                text,
                holds: limits(fact, &about),
                recency: 0.0,
                factual: 1.0,
                bag: Bag::default(),
            });
        }
    }
    for page in pages.iter().filter(|page| page.states_facts()) {
        units.extend(rows(page, &seen));
    }
    units
}

/// Returns the last chapter before this one that the chronicle says how everyone was left in.
fn last_left_off(memory: &Memory, chapter: Option<u64>) -> Option<u64> {
    let facts = memory.facts.iter().filter(|fact| leaves_off(fact));
    let chapters = facts.filter_map(|fact| Some(fact.period.from?.chapter));
    let before = |at: &u64| chapter.is_none_or(|chapter| *at < chapter);
    chapters.filter(before).max()
}

/// Returns the period of an entry, unless its text or its heading names it.
fn limits(fact: &Fact, about: &str) -> Option<String> {
    let limits = [fact.period.from, fact.period.until];
    let mut unnamed = limits.into_iter().flatten().filter(|point| {
        let point = point.to_string();
        !fact.text.contains(&point) && !about.contains(&point)
    });
    unnamed.next().map(|point| match fact.is_event {
        true => point.to_string(),
        false => fact.period.to_string(),
    })
}

/// Returns true if the entry states something that holds.
fn is_evidence(fact: &Fact) -> bool {
    let is_label = fact.value.trim().is_empty() || fact.text.ends_with([':', '：']);
    let has_words = fact.text.chars().any(char::is_alphanumeric);
    has_words && !is_label
}

fn headings_of_rules(memory: &Memory) -> BTreeSet<usize> {
    let is_rules = |name: &str| {
        let lower = name.to_lowercase();
        RULE_HEADINGS.iter().any(|word| match has_han(word) {
            true => name.contains(word),
            false => lower
                .split(|c: char| !c.is_alphanumeric())
                .any(|part| part == *word),
        })
    };
    let all = memory.entities.iter().enumerate();
    all.filter(|(_, entity)| is_rules(&entity.name))
        .map(|(nth, _)| nth)
        .collect()
}

/// Returns true for a sentence like "No one may …" that belongs to no person: an entry on a page
/// that describes no people.
fn is_world_rule(memory: &Memory, fact: &Fact, text: &str) -> bool {
    let has_traits = |entity: usize| {
        memory
            .facts_of(entity)
            .any(|fact| PERSON_KEYS.contains(&fact.key.as_str()))
    };
    let of_person = memory
        .entities
        .iter()
        .enumerate()
        .filter(|(_, entity)| entity.at.path == fact.at.path)
        .any(|(nth, _)| has_traits(nth));
    !of_person && crate::words::says_any(text, RULE_SIGNS)
}

/// Keys that only people have.
pub const PERSON_KEYS: &[&str] = &[
    "age",
    "born",
    "eyes",
    "hair",
    "hand",
    "handed",
    "hands",
    "scar",
    "status",
    "trade",
    "aliases",
    "alias",
    "年龄",
    "岁数",
    "出生",
    "生年",
    "眼睛",
    "头发",
    "惯用手",
    "疤",
    "伤疤",
    "状态",
    "别名",
    "职业",
    "身份",
];

/// Returns an entry as lines of evidence: a long one in sentences.
pub(crate) fn entry_parts(text: &str) -> Vec<String> {
    if text.chars().count()
        <= if has_han(text) {
            LONG_ENTRY / 3
        } else {
            LONG_ENTRY
        }
    {
        return vec![text.to_owned()];
    }
    let parts = cut_claims(text).into_iter().map(|claim| claim.text);
    Some(parts.collect::<Vec<_>>())
        .filter(|parts| !parts.is_empty())
        .unwrap_or_else(|| vec![text.to_owned()])
}

/// Returns the table rows that memory did not read as facts.
fn rows(page: &Page, seen: &BTreeSet<Place>) -> Vec<Unit> {
    let clean = quipu_text::blank_comments(&page.text, quipu_text::Comments::All);
    let document = Document::parse(&clean);
    let mut units = Vec::new();
    for row in document.rows_in(&(0..clean.len())) {
        let at = Place::new(&page.path, row.line);
        let record = document.record(row);
        let cells: Vec<String> = record
            .map(|(header, cell)| (header.trim().to_owned(), plain(cell.text.trim())))
            .filter(|(_, cell)| cell.chars().any(char::is_alphanumeric))
            .map(|(header, cell)| format!("{header}: {cell}"))
            .collect();
        if cells.is_empty() || seen.contains(&at) {
            continue;
        }
        let offset = document.lines().range(row.line, clean.len());
        let section = document.section_at(offset.map_or(0, |range| range.start));
        units.push(Unit {
            at,
            tier: page.tier,
            level: None,
            subjects: Vec::new(),
            about: section.title.clone(),
            text: cells.join("; "),
            is_rule: false,
            is_keyed: true,
            key: String::new(),
            is_state: false,
            is_over: false,
            holds: None,
            recency: 0.0,
            factual: 1.0,
            bag: Bag::default(),
        });
    }
    units
}

fn strongest(subjects: &BTreeMap<usize, f32>) -> Option<usize> {
    let best = subjects
        .iter()
        .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
    best.map(|(entity, _)| *entity)
}

fn manuscript_units(memory: &Memory, roster: &Roster, page: &Page, recency: f32) -> Vec<Unit> {
    let claims = cut_claims(&page.text);
    let texts: Vec<&str> = claims.iter().map(|claim| claim.text.as_str()).collect();
    let (subjects, owners) = (roster.subjects(&[], &texts), roster.owners(&claims));
    let all = claims.iter().zip(subjects).zip(owners);
    let units = all.map(|((claim, subjects), owner)| Unit {
        at: Place::new(&page.path, claim.line),
        tier: Tier::L2,
        level: None,
        subjects: strongest(&subjects).into_iter().collect(),
        about: owner
            .map(|nth| short_name(&memory.entities[nth].name))
            .unwrap_or_default(),
        text: claim.text.clone(),
        is_rule: false,
        is_keyed: false,
        key: String::new(),
        is_state: false,
        is_over: false,
        holds: None,
        recency,
        factual: factual(&claim.text),
        bag: Bag::default(),
    });
    units.collect()
}
