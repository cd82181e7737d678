//! Finds out which persons, places and objects of memory a sentence is about.
//!
//! Besides the names that memory states, the roster knows the names in a heading's parentheses, the
//! names after "known as", trades and titles (`trade: harbour master`), and Chinese forms of
//! address (老裘, 裘师傅). Such names may be shared, so they only select evidence. No deterministic
//! judge uses them.

use std::collections::{BTreeMap, BTreeSet};

use crate::claim::Claim;
use crate::memory::{Memory, listed};
use crate::words::{find_all, has_han, is_han, lowered, quotations, words};

/// A name and the entity that it may stand for.
struct Alias {
    name: String,
    entity: usize,
    any_case: bool,
}

pub struct Roster {
    aliases: Vec<Alias>,
    /// The person who says "I" outside of speech.
    narrator: Option<usize>,
}

/// The keys whose value is a trade or a title.
const TITLE_KEYS: &[&str] = &[
    "role",
    "job",
    "trade",
    "title",
    "occupation",
    "profession",
    "rank",
    "office",
    "work",
    "职业",
    "身份",
    "职务",
    "职位",
    "行当",
    "官职",
    "头衔",
    "职责",
    "工作",
];
/// Phrases before another name.
const KNOWN_AS: &[&str] = &[
    "known as",
    "nicknamed",
    "called",
    "goes by",
    "answers to",
    "人称",
    "外号",
    "绰号",
    "诨名",
    "小名",
    "乳名",
    "原名",
    "本名",
    "唤作",
];
const BEFORE_SURNAME: &[char] = &['老', '小', '阿', '大'];
const AFTER_SURNAME: &[&str] = &[
    "师傅",
    "师父",
    "叔",
    "伯",
    "婶",
    "姨",
    "爷",
    "婆",
    "哥",
    "姐",
    "嫂",
    "妈",
    "先生",
    "太太",
    "小姐",
    "医生",
    "大夫",
    "老师",
    "老板",
    "老板娘",
    "掌柜",
    "队长",
    "站长",
    "馆长",
    "校长",
    "主任",
    "警官",
    "县令",
    "大人",
    "将军",
    "道长",
    "姑娘",
    "家的",
    "某",
    "氏",
    "工",
    "总",
    "局",
    "队",
    "老",
    "公",
    "翁",
];

impl Roster {
    pub fn of(memory: &Memory) -> Roster {
        let mut names: BTreeSet<(String, usize)> = BTreeSet::new();
        for (nth, entity) in memory.entities.iter().enumerate() {
            let owner = first_of_name(memory, nth);
            let heading = heading_names(&entity.name);
            names.extend(
                heading
                    .iter()
                    .chain(&entity.names)
                    .map(|name| (name.clone(), owner)),
            );
        }
        for fact in &memory.facts {
            let Some(owner) = fact.entity.map(|entity| first_of_name(memory, entity)) else {
                continue;
            };
            if TITLE_KEYS.contains(&fact.key.as_str())
                && let Some(title) = listed(&fact.value).first().filter(|title| is_short(title))
            {
                names.insert((title.clone(), owner));
            }
            names.extend(names_after(&fact.text).map(|name| (name, owner)));
        }
        let (unique, shared) = parts(&names);
        let is_heading = |name: &str| memory.entities.iter().any(|entity| entity.name == name);
        names.retain(|(name, _)| !shared.contains(name) || is_heading(name));
        names.extend(unique);
        let aliases = names.into_iter().filter(|(name, _)| is_usable(name));
        Roster {
            narrator: narrator(memory),
            aliases: aliases
                .map(|(name, entity)| {
                    let any_case = !name.starts_with(char::is_uppercase) && !has_han(&name);
                    Alias {
                        name: if any_case { lowered(&name) } else { name },
                        entity,
                        any_case,
                    }
                })
                .collect(),
        }
    }

    /// Returns the entities that a text names, with the position of the last mention of each.
    pub fn named(&self, text: &str) -> BTreeMap<usize, usize> {
        let mut found: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, end, entity) in self.mentions(text) {
            let last = found.entry(entity).or_default();
            *last = (*last).max(end);
        }
        found
    }

    /// Returns a text with every name blank, and the entities that it names.
    pub fn without_names(&self, text: &str) -> (String, BTreeSet<usize>) {
        let mentions = self.mentions(text);
        let is_name = |at: usize| {
            mentions
                .iter()
                .any(|(start, end, _)| (*start..*end).contains(&at))
        };
        let rest = text
            .char_indices()
            .map(|(at, c)| if is_name(at) { ' ' } else { c })
            .collect();
        (rest, mentions.iter().map(|(.., entity)| *entity).collect())
    }

    /// Returns start, end and entity of each name. A longer name hides a shorter one inside it.
    fn mentions(&self, text: &str) -> Vec<(usize, usize, usize)> {
        let lower = lowered(text);
        let mut found: Vec<(usize, usize, usize)> = Vec::new();
        for alias in &self.aliases {
            let text = if alias.any_case { &lower } else { text };
            if text.contains(&alias.name) {
                let ranges = find_all(text, &alias.name, false);
                found.extend(
                    ranges
                        .into_iter()
                        .map(|at| (at.start, at.end, alias.entity)),
                );
            }
        }
        let all = found.clone();
        found.retain(|(start, end, entity)| {
            !all.iter().any(|(from, to, other)| {
                other != entity && from <= start && end <= to && to - from > end - start
            })
        });
        found
    }

    /// Returns the subjects of each sentence of a scene: the entities it names and, for a pronoun,
    /// the persons named last before it. A scene that opens with a pronoun goes on about the persons
    /// of the one before.
    pub fn subjects(&self, before: &[&str], sentences: &[&str]) -> Vec<BTreeMap<usize, f32>> {
        let named: Vec<BTreeMap<usize, usize>> =
            sentences.iter().map(|text| self.named(text)).collect();
        let viewpoint = viewpoint(&named);
        let is_named = |at: usize| named[..at].iter().any(|names| !names.is_empty());
        let opens = |text: &&str| has_pronoun(&without_speech(text));
        let first = sentences.iter().position(opens);
        let carried = match first {
            Some(at) if !is_named(at) && named[at].is_empty() => self.last_persons(before),
            _ => BTreeSet::new(),
        };
        let mut recent: Vec<usize> = Vec::new();
        let mut all = Vec::new();
        for (sentence, named) in sentences.iter().zip(&named) {
            let mut subjects: BTreeMap<usize, f32> =
                named.keys().map(|entity| (*entity, 1.0)).collect();
            let told = without_speech(sentence);
            if let Some(narrator) = self.narrator.filter(|_| says_i(&told)) {
                subjects.insert(narrator, 1.0);
            }
            if has_pronoun(sentence) {
                for entity in recent.iter().rev().take(2).chain(&viewpoint) {
                    subjects.entry(*entity).or_insert(0.7);
                }
                for entity in carried.iter().filter(|_| recent.is_empty()) {
                    subjects.entry(*entity).or_insert(0.7);
                }
            }
            all.push(subjects);
            let mut order: Vec<(usize, usize)> =
                named.iter().map(|(entity, at)| (*at, *entity)).collect();
            order.sort_unstable();
            for (_, entity) in order {
                recent.retain(|known| *known != entity);
                recent.push(entity);
            }
        }
        all
    }

    /// Returns whom the sentences of a scene name last and most often.
    fn last_persons(&self, sentences: &[&str]) -> BTreeSet<usize> {
        let named: Vec<BTreeMap<usize, usize>> =
            sentences.iter().map(|text| self.named(text)).collect();
        let last = named.iter().rev().find(|names| !names.is_empty());
        let last = last.and_then(|names| names.iter().max_by_key(|(_, at)| **at));
        let last = last.map(|(entity, _)| *entity);
        last.into_iter().chain(viewpoint(&named)).collect()
    }

    /// Returns the owner of each sentence where it is certain: the only entity it names or, for a
    /// pronoun, the only one that its paragraph has named so far.
    pub fn owners(&self, claims: &[Claim]) -> Vec<Option<usize>> {
        let mut so_far: BTreeSet<usize> = BTreeSet::new();
        let mut owners = Vec::new();
        for claim in claims {
            if claim.opens {
                so_far.clear();
            }
            let named = self.named(&claim.text);
            so_far.extend(named.keys());
            let only = match so_far.len() {
                1 if !named.is_empty() || has_pronoun(&claim.text) => so_far.first().copied(),
                _ if named.len() == 1 => named.keys().next().copied(),
                _ => None,
            };
            owners.push(only);
        }
        owners
    }
}

/// Returns the entity that a scene names most often: with close third person, its viewpoint.
fn viewpoint(named: &[BTreeMap<usize, usize>]) -> Option<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    named
        .iter()
        .flat_map(BTreeMap::keys)
        .for_each(|entity| *counts.entry(*entity).or_default() += 1);
    counts
        .into_iter()
        .max_by_key(|(entity, count)| (*count, std::cmp::Reverse(*entity)))
        .map(|(entity, _)| entity)
}

/// One name may head sections in several files. Returns the first of these entities.
pub fn first_of_name(memory: &Memory, entity: usize) -> usize {
    let name = &memory.entities[entity].name;
    memory
        .entities
        .iter()
        .position(|other| other.name == *name)
        .unwrap_or(entity)
}

/// Returns the person whom memory calls the narrator.
fn narrator(memory: &Memory) -> Option<usize> {
    const SIGNS: &[&str] = &[
        "narrator",
        "first person",
        "first-person",
        "叙述者",
        "第一人称",
        "“我”",
    ];
    let says = |text: &str| SIGNS.iter().any(|sign| text.to_lowercase().contains(sign));
    let by_heading = memory.entities.iter().position(|entity| says(&entity.name));
    let by_fact = || {
        memory
            .facts
            .iter()
            .find(|fact| says(&fact.text))
            .and_then(|fact| fact.entity)
    };
    by_heading
        .or_else(by_fact)
        .map(|entity| first_of_name(memory, entity))
}

/// Returns a sentence without what it quotes.
fn without_speech(text: &str) -> String {
    let mut told = text.to_owned();
    for range in quotations(text).into_iter().rev() {
        told.replace_range(range, " ");
    }
    told
}

fn says_i(text: &str) -> bool {
    let is_i = |word: &str| ["i", "me", "my", "mine", "myself"].contains(&word);
    text.contains('我')
        || words(text)
            .iter()
            .any(|word| is_i(word.lower.split('\'').next().unwrap_or("")))
}

fn has_pronoun(text: &str) -> bool {
    const PRONOUNS: &[&str] = &[
        "he", "she", "him", "her", "his", "hers", "i", "me", "my", "mine", "they", "their", "them",
    ];
    text.contains(['他', '她', '我'])
        || words(text)
            .iter()
            .any(|word| PRONOUNS.contains(&word.lower.as_str()))
}

/// Returns a heading without what its parentheses add.
pub fn short_name(heading: &str) -> String {
    heading_names(heading)
        .into_iter()
        .next()
        .unwrap_or_else(|| heading.to_owned())
}

/// Returns the names in a heading: `Otto Brandt (the harbour master)`, `老裘（裘伯年）`,
/// `Mara Dunn, keeper of the light`.
fn heading_names(heading: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut outer, mut inner) = (String::new(), String::new());
    let mut depth = 0usize;
    for c in heading.chars() {
        match c {
            '(' | '（' | '“' | '「' | '"' if depth == 0 => depth = 1,
            ')' | '）' | '”' | '」' | '"' => {
                depth = 0;
                inner.push(',');
            }
            _ if depth > 0 => inner.push(c),
            _ => outer.push(c),
        }
    }
    let outer = [" — ", " – ", " - ", "——", "：", ": "]
        .iter()
        .fold(outer, |text, dash| text.replace(dash, ","));
    names.extend(listed(&outer).into_iter().filter(|name| is_short(name)));
    names.extend(listed(&inner).into_iter().filter(|name| is_short(name)));
    names
}

fn is_short(name: &str) -> bool {
    if has_han(name) {
        name.chars().count() <= 6
    } else {
        name.split_whitespace().count() <= 4
    }
}

fn is_usable(name: &str) -> bool {
    let letters = name.chars().filter(|c| c.is_alphabetic()).count();
    let is_small = [
        "the", "and", "old", "young", "of", "chapter", "dead", "alive",
    ]
    .contains(&name.to_lowercase().as_str());
    letters >= 2 && (has_han(name) || letters >= 3) && !is_small
}

/// Returns the names that a fact gives after "known as" and similar phrases.
fn names_after(text: &str) -> impl Iterator<Item = String> {
    let phrases = KNOWN_AS.iter().flat_map(move |phrase| {
        let ends: Vec<usize> = find_all(text, phrase, true)
            .into_iter()
            .map(|r| r.end)
            .collect();
        ends.into_iter()
            .filter_map(move |end| name_at(&text[end..]))
    });
    phrases.collect::<Vec<_>>().into_iter()
}

/// Returns the name at the start of a text: words in quotation marks or with capitals, or up to
/// four Han characters.
fn name_at(text: &str) -> Option<String> {
    let text = text.trim_start_matches([' ', '：', ':']);
    if let Some(inner) = text.strip_prefix(['“', '"', '「', '‘', '\'']) {
        let end = inner.find(['”', '"', '」', '’', '\''])?;
        return Some(inner[..end].to_owned()).filter(|name| is_short(name));
    }
    if text.starts_with(is_han) {
        let name: String = text.chars().take_while(|c| is_han(*c)).collect();
        return Some(name).filter(|name| name.chars().count() <= 4);
    }
    let name: Vec<&str> = text
        .split(' ')
        .map(|word| word.trim_end_matches([',', '.', ';', ')']))
        .take_while(|word| word.starts_with(char::is_uppercase))
        .take(3)
        .collect();
    (!name.is_empty()).then(|| name.join(" "))
}

/// Returns the parts of names, and Chinese forms of address, that only one entity has. Also returns
/// those that several have.
fn parts(names: &BTreeSet<(String, usize)>) -> (Vec<(String, usize)>, BTreeSet<String>) {
    let mut owners: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (name, entity) in names {
        let chars: Vec<char> = name.chars().collect();
        let mut add = |part: String| {
            owners.entry(part).or_default().insert(*entity);
        };
        if chars.iter().all(|c| is_han(*c)) {
            if chars.len() == 3 {
                add(chars[1..].iter().collect());
            }
            if (2..=3).contains(&chars.len()) {
                for c in [chars[0], chars[chars.len() - 1]] {
                    BEFORE_SURNAME
                        .iter()
                        .for_each(|before| add(format!("{before}{c}")));
                    AFTER_SURNAME
                        .iter()
                        .for_each(|after| add(format!("{c}{after}")));
                }
            }
        } else if name.contains(' ') {
            let capitals = name
                .split(' ')
                .filter(|part| part.starts_with(char::is_uppercase) && part.chars().count() > 2);
            capitals.for_each(|part| add(part.to_owned()));
        }
    }
    let (mut unique, mut shared) = (Vec::new(), BTreeSet::new());
    for (part, owners) in owners {
        match owners.first() {
            Some(owner) if owners.len() == 1 => unique.push((part, *owner)),
            _ => {
                shared.insert(part);
            }
        }
    }
    (unique, shared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::cut_claims;
    use crate::page::Page;
    use quipu_recall::Tier;

    fn memory() -> Memory {
        let text = "# C\n\n## Otto Brandt (the harbour master)\n- Known as \"Salt\" on the quay.\n\n## Ilse Brandt\n- trade: ropemaker\n\n## 裘伯年\n- 人称裘半仙\n\n## 沈砚（小砚台）\n- 职业：更夫\n";
        Memory::of(&[Page {
            path: "c.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        }])
    }

    fn named(text: &str) -> Vec<String> {
        let memory = memory();
        let found = Roster::of(&memory).named(text);
        found
            .keys()
            .map(|nth| memory.entities[*nth].name.clone())
            .collect()
    }

    #[test]
    fn titles_nicknames_and_forms_of_address_are_names() {
        for (text, name) in [
            (
                "The harbour master nodded.",
                "Otto Brandt (the harbour master)",
            ),
            (
                "Salt spat over the rail.",
                "Otto Brandt (the harbour master)",
            ),
            ("The ropemaker laughed.", "Ilse Brandt"),
            ("老裘没说话。", "裘伯年"),
            ("裘师傅没说话。", "裘伯年"),
            ("裘半仙没说话。", "裘伯年"),
            ("小砚台跑了。", "沈砚（小砚台）"),
            ("更夫敲了三下。", "沈砚（小砚台）"),
        ] {
            assert_eq!(named(text), [name], "{text}");
        }
        assert!(
            named("Brandt stayed.").is_empty(),
            "two people have this name"
        );
    }

    #[test]
    fn a_pronoun_is_the_last_named_or_the_viewpoint() {
        let memory = memory();
        let claims =
            cut_claims("Otto woke. Otto rose.\n\nIlse knocked.\n\nHer hand shook.\n\nIt rained.\n");
        let texts: Vec<&str> = claims.iter().map(|claim| claim.text.as_str()).collect();
        let roster = Roster::of(&memory);
        let subjects = roster.subjects(&[], &texts);
        assert_eq!(subjects[3].keys().copied().collect::<Vec<_>>(), [0, 1]);
        assert!(subjects[4].is_empty());
        // A scene that opens with a pronoun goes on about the last one.
        let next = ["He climbed the stairs.", "Salt met him."];
        let carried = roster.subjects(&["Otto went out."], &next);
        assert_eq!(carried[0].keys().copied().collect::<Vec<_>>(), [0]);
        let opened = roster.subjects(&["Ilse slept."], &["Otto rose.", "He left."]);
        assert!(opened.iter().all(|subjects| !subjects.contains_key(&1)));
    }
}
