//! Extracts entities, facts, rules, terms, metaphors and threads from the pages of a memory.
//!
//! Each section of an L1 page is an entity and its entries are facts. An entry that begins with a
//! key and a colon is a keyed fact. A table with a column `term` holds terms, and a table with
//! `concept` and `metaphor` holds metaphors, in any file.

use std::collections::BTreeMap;

use quipu_contract::Form;
use quipu_text::{Document, Level, LinkKind};
use serde::Serialize;

use crate::page::{Page, Place};
use crate::period::{Period, Point, Scenes, find_period};
use crate::state::implied_start;
use crate::threads::{Thread, read_threads};
use crate::titles::without_title;
use crate::words::{find_all, has_han, lowered, words};

/// A named person or thing in memory.
#[derive(Debug, Clone)]
pub struct Entity {
    pub name: String,
    /// The name, its aliases, and those parts of the name that are unique.
    pub names: Vec<String>,
    pub at: Place,
}

/// One entry of memory.
#[derive(Debug, Clone)]
pub struct Fact {
    pub entity: Option<usize>,
    /// In lower case. Empty if the entry has no key.
    pub key: String,
    /// Without the period.
    pub value: String,
    /// When it holds in the story.
    pub period: Period,
    /// True for an entry of a chronicle.
    pub is_event: bool,
    /// The first link to its source, as `path#anchor`.
    pub source: Option<String>,
    /// The whole entry without Markdown syntax.
    pub text: String,
    pub at: Place,
    pub level: Option<Level>,
    /// Entities that its links name.
    pub links: Vec<String>,
    /// True if it links to its source.
    pub has_source: bool,
}

/// A rule: words that must not occur.
#[derive(Debug, Clone)]
pub struct Rule {
    pub patterns: Vec<String>,
    pub text: String,
    pub period: Period,
    pub at: Place,
    pub level: Option<Level>,
}

/// A term and the words that must not replace it.
#[derive(Debug, Clone)]
pub struct Term {
    pub name: String,
    pub avoid: Vec<String>,
    pub text: String,
    pub at: Place,
}

/// A concept and its image.
#[derive(Debug, Clone)]
pub struct Metaphor {
    pub concept: String,
    pub image: String,
    pub at: Place,
}

/// The input of the judges.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    pub entities: Vec<Entity>,
    pub facts: Vec<Fact>,
    pub rules: Vec<Rule>,
    pub terms: Vec<Term>,
    pub metaphors: Vec<Metaphor>,
    pub threads: Vec<Thread>,
    pub scenes: Scenes,
}

/// Returns true if a section has nothing but a template's line in italics, so that its heading names
/// nobody yet.
fn is_placeholder(body: &str) -> bool {
    let mut lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_italic = |line: &str| line.starts_with('_') && line.ends_with('_');
    lines.next().is_some_and(is_italic) && lines.all(is_italic)
}

/// The position of an entity's name in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mention {
    pub entity: usize,
    pub start: usize,
    pub end: usize,
    pub possessive: bool,
}

const ALIASES: &[&str] = &[
    "aliases",
    "alias",
    "also known as",
    "aka",
    "别名",
    "又名",
    "又称",
    "化名",
    "绰号",
];
const AVOID: &[&str] = &[
    "avoid",
    "not",
    "forbidden",
    "instead of",
    "never",
    "do not use",
    "勿用",
    "禁用",
    "不用",
    "不得",
    "避免",
    "误作",
];

impl Memory {
    pub fn of(pages: &[Page]) -> Memory {
        let mut memory = Memory {
            scenes: Scenes::of(pages),
            ..Memory::default()
        };
        for page in pages.iter().filter(|page| page.states_facts()) {
            let clean = quipu_text::blank_comments(&page.text, quipu_text::Comments::All);
            let document = Document::parse(&clean);
            if page.form == Some(Form::Threads) {
                memory.threads.extend(read_threads(page, &document));
                continue;
            }
            memory.read_tables(page, &document);
            // One heading of the first level is the title of the page; several name subjects.
            let firsts = document.sections().iter().filter(|s| s.level == 1).count();
            let names_subject = if firsts > 1 { 1 } else { 2 };
            for section in document.sections() {
                let names_one =
                    section.level >= names_subject && !is_placeholder(&clean[section.body.clone()]);
                let entity = names_one.then(|| {
                    let at = Place::new(&page.path, section.line);
                    memory.entities.push(Entity {
                        name: section.title.clone(),
                        names: vec![section.title.clone()],
                        at,
                    });
                    memory.entities.len() - 1
                });
                memory.read_entries(
                    page,
                    &document,
                    &clean[section.body.clone()],
                    section.line + usize::from(section.level > 0),
                    entity,
                );
            }
        }
        memory.join_titled_names();
        memory.name_parts();
        memory
    }

    /// Reads the entries of a section, one per line.
    fn read_entries(
        &mut self,
        page: &Page,
        document: &Document<'_>,
        body: &str,
        first_line: usize,
        entity: Option<usize>,
    ) {
        let is_event = page.form == Some(Form::Chronicle);
        // An event without a chapter, `leaves off: …`, is of the chapter of the one above it.
        let mut last_chapter: Option<Point> = None;
        for (nth, raw) in body.lines().enumerate() {
            let line = first_line + nth;
            let trimmed = raw.trim();
            if trimmed.is_empty()
                || trimmed.starts_with(['|', '_', '#', '`'])
                || trimmed.chars().all(|c| "-=* ".contains(c))
            {
                continue;
            }
            let Some(range) = document.lines().range(line, document.text().len()) else {
                continue;
            };
            let level = document.level_tags_in(&range).first().map(|tag| tag.level);
            let links = document.links_in(&range);
            let source = links
                .iter()
                .find(|link| link.kind != LinkKind::Press)
                .map(|link| match &link.anchor {
                    Some(anchor) => format!("{}#{anchor}", link.path),
                    None => link.path.clone(),
                });
            let text = plain(trimmed);
            let (bare, stated) = match find_period(&text, &self.scenes) {
                Some((range, period)) => (
                    format!("{}{}", text[..range.start].trim_end(), &text[range.end..]),
                    period,
                ),
                None => (text.clone(), Period::default()),
            };
            let (key, value) = split_key(&bare).unwrap_or(("", &bare));
            let at = Place::new(&page.path, line);
            let period = Period {
                from: stated.from.or_else(|| {
                    let heading = document.heading_path(document.section_at(range.start));
                    implied_start(page, key, &heading, source.as_deref(), &self.scenes)
                        .or(last_chapter)
                }),
                ..stated
            };
            if is_event {
                last_chapter = period.from.map(|from| Point::chapter(from.chapter));
            }
            if let Some((_, patterns)) = split_ban(&bare) {
                self.rules.push(Rule {
                    patterns,
                    text: text.clone(),
                    period,
                    at: at.clone(),
                    level,
                });
            }
            let key = key.to_lowercase();
            if let (Some(entity), true) = (entity, ALIASES.contains(&key.as_str())) {
                let names = &mut self.entities[entity].names;
                for name in listed(value) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
            if let (Some(entity), true) = (entity, AVOID.contains(&key.as_str())) {
                let name = self.entities[entity].name.clone();
                self.terms.push(Term {
                    name,
                    avoid: listed(value),
                    text: text.clone(),
                    at: at.clone(),
                });
            }
            self.facts.push(Fact {
                entity,
                key,
                value: value.trim().to_owned(),
                period,
                is_event,
                source,
                text: text.clone(),
                at,
                level,
                has_source: !links.is_empty(),
                links: links
                    .iter()
                    .filter_map(|link| link.anchor.clone())
                    .collect(),
            });
        }
    }

    fn read_tables(&mut self, page: &Page, document: &Document<'_>) {
        let named = |row: &quipu_text::Row, names: &[&str]| {
            document
                .record(row)
                .find(|(header, _)| names.contains(&header.trim().to_lowercase().as_str()))
                .map(|(_, cell)| cell.text.trim().to_owned())
        };
        let mut metaphors: BTreeMap<String, Metaphor> = BTreeMap::new();
        for row in document.rows_in(&(0..document.text().len())) {
            let at = Place::new(&page.path, row.line);
            let text = row
                .cells
                .iter()
                .map(|cell| cell.text.trim())
                .filter(|cell| !cell.is_empty())
                .collect::<Vec<_>>()
                .join(" | ");
            if let Some(name) =
                named(row, &["term", "术语", "名称", "name"]).filter(|name| !name.is_empty())
            {
                let avoid = named(row, AVOID)
                    .map(|avoid| listed(&avoid))
                    .unwrap_or_default();
                self.terms.push(Term {
                    name: name.clone(),
                    avoid,
                    text: text.clone(),
                    at: at.clone(),
                });
                self.facts.push(Fact {
                    entity: None,
                    key: String::new(),
                    value: text.clone(),
                    period: Period::default(),
                    is_event: false,
                    source: None,
                    text,
                    at,
                    level: None,
                    links: Vec::new(),
                    has_source: true,
                });
            } else if let (Some(concept), Some(image)) = (
                named(row, &["concept", "概念"]),
                named(row, &["metaphor", "image", "比喻", "意象"]),
            ) {
                // A later row for the same concept replaces the earlier one. A dash removes it.
                match image.as_str() {
                    "" | "—" | "-" => metaphors.remove(&concept),
                    _ => metaphors.insert(concept.clone(), Metaphor { concept, image, at }),
                };
            }
        }
        self.metaphors.extend(metaphors.into_values());
    }

    /// A heading that is another one with a title names the same person: `Captain Orrin Vale`.
    fn join_titled_names(&mut self) {
        for nth in 0..self.entities.len() {
            let titled = self.entities[nth].name.clone();
            let Some(name) = without_title(&titled) else {
                continue;
            };
            let is_known = |other: &Entity| other.name == name;
            if self.entities.iter().any(is_known) {
                let entity = &mut self.entities[nth];
                entity.name = name.to_owned();
                entity.names.insert(0, name.to_owned());
            }
        }
    }

    /// Adds short names that are unambiguous: `Mara` for Mara Dunn and `素裳` for 李素裳.
    fn name_parts(&mut self) {
        let mut parts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (nth, entity) in self.entities.iter().enumerate() {
            if has_han(&entity.name) {
                let chars: Vec<char> = entity.name.chars().collect();
                if chars.len() == 3 {
                    let owners = parts.entry(chars[1..].iter().collect()).or_default();
                    owners.push(nth);
                }
            } else if entity.name.split(' ').count() >= 2
                && entity
                    .name
                    .split(' ')
                    .all(|part| part.starts_with(char::is_uppercase))
            {
                for part in entity
                    .name
                    .split(' ')
                    .filter(|part| part.chars().count() > 2 && !is_particle(part))
                {
                    parts.entry(part.to_owned()).or_default().push(nth);
                }
            }
        }
        let whole: Vec<String> = self
            .entities
            .iter()
            .map(|entity| entity.name.clone())
            .collect();
        for (part, mut owners) in parts {
            // One person may head sections in several files.
            owners.dedup_by(|a, b| self.entities[*a].name == self.entities[*b].name);
            if let ([owner], false) = (owners.as_slice(), whole.contains(&part)) {
                let names = &mut self.entities[*owner].names;
                if !names.contains(&part) {
                    names.push(part);
                }
            }
        }
    }

    /// Finds the entities named in a sentence, in order. A longer name hides a shorter one inside
    /// it.
    pub fn mentions(&self, text: &str) -> Vec<Mention> {
        let mut found: Vec<Mention> = Vec::new();
        let in_capitals = text
            .split(|c: char| !c.is_uppercase())
            .any(|run| run.chars().nth(1).is_some());
        for (nth, entity) in self.entities.iter().enumerate() {
            for name in &entity.names {
                let is_capital = name.starts_with(char::is_uppercase);
                let mut ranges = find_all(text, name, !is_capital && !has_han(name));
                // A name in capitals is the same name: `ANNA`. In lower case it may be a common
                // word: `rose`, `will`.
                if is_capital && in_capitals && name.contains(char::is_lowercase) {
                    ranges.extend(find_all(text, &name.to_uppercase(), false));
                }
                for range in ranges {
                    let after = &text[range.end..];
                    let possessive = after.starts_with("'s")
                        || after.starts_with("’s")
                        || after.starts_with('的')
                        || after.starts_with("' ");
                    found.push(Mention {
                        entity: nth,
                        start: range.start,
                        end: range.end,
                        possessive,
                    });
                }
            }
        }
        found.sort_by_key(|m| (m.start, std::cmp::Reverse(m.end)));
        let mut kept: Vec<Mention> = Vec::new();
        for mention in found {
            if kept.last().is_none_or(|last| mention.start >= last.end) {
                kept.push(mention);
            }
        }
        kept
    }

    pub fn facts_of(&self, entity: usize) -> impl Iterator<Item = &Fact> {
        let name = &self.entities[entity].name;
        // One name may head sections in several files: a character, and the arc named after them.
        self.facts.iter().filter(move |fact| {
            fact.entity
                .is_some_and(|owner| owner == entity || self.entities[owner].name == *name)
        })
    }
}

/// Returns whether a capitalised part of a name names nobody by itself, as in "The Patience".
fn is_particle(part: &str) -> bool {
    const PARTICLES: &[&str] = &[
        "The", "And", "For", "From", "With", "Von", "Van", "Der", "Den", "Des", "Del", "Los", "Las",
    ];
    PARTICLES.contains(&part)
}

/// Returns true if a fact only lists aliases.
pub fn is_alias(fact: &Fact) -> bool {
    ALIASES.contains(&fact.key.as_str())
}

/// Returns a line of Markdown without list marker, level tags, links and emphasis.
pub fn plain(line: &str) -> String {
    let line = line
        .trim()
        .trim_start_matches(['-', '*', '+', '>'])
        .trim_start();
    let line = line
        .strip_prefix("[ ]")
        .or_else(|| line.strip_prefix("[x]"))
        .unwrap_or(line);
    let mut text = String::new();
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let Some(close) = rest[open..].find(']').map(|at| open + at) else {
            break;
        };
        let inner = &rest[open + 1..close];
        text.push_str(&rest[..open]);
        rest = &rest[close + 1..];
        if Level::parse(inner).is_some() || inner.starts_with(['→', '⊣']) {
            continue;
        }
        text.push_str(inner.trim_start_matches('['));
        // `[text](target)`: keep the text.
        if let Some(target) = rest.strip_prefix('(') {
            rest = target.split_once(')').map_or("", |(_, after)| after);
        }
    }
    text.push_str(rest);
    quipu_text::visible(&text.replace("**", "").replace('`', ""))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Splits `key: value` if the key is short.
pub fn split_key(text: &str) -> Option<(&str, &str)> {
    let (at, sign) = text.char_indices().find(|(at, c)| {
        *c == '：'
            || *c == ':'
                && text[at + 1..]
                    .chars()
                    .next()
                    .is_none_or(char::is_whitespace)
    })?;
    let key = text[..at].trim();
    let short = if has_han(key) {
        key.chars().count() <= 12
    } else {
        key.split(' ').count() <= 4 && key.len() <= 32
    };
    let clean =
        !key.is_empty() && !key.contains(['。', '，', '.', ',', ';', '；', '“', '"', '!', '?']);
    (short && clean).then(|| (key, text[at + sign.len_utf8()..].trim()))
}

/// Returns the words after `must not:`.
fn split_ban(text: &str) -> Option<(String, Vec<String>)> {
    let lower = lowered(text);
    let (at, sign) = ["must not", "不得出现", "禁止出现"]
        .into_iter()
        .find_map(|sign| lower.find(sign).map(|at| (at, sign)))?;
    let after = text[at + sign.len()..].trim_start();
    let list = after
        .strip_prefix(':')
        .or_else(|| after.strip_prefix('：'))?;
    let patterns: Vec<String> = listed(list);
    (!patterns.is_empty()).then(|| (text[..at].trim().to_owned(), patterns))
}

/// Splits a list on one line: `a, b; c`, `甲、乙，丙`.
pub fn listed(text: &str) -> Vec<String> {
    let parts = text.split([',', '，', '、', ';', '；', '/']);
    parts
        .map(|part| {
            part.trim()
                .trim_matches(['"', '“', '”', '.', '。', '「', '」'])
                .trim()
                .to_owned()
        })
        .filter(|part| !part.is_empty())
        .collect()
}

/// Returns the content words of a text: words without stop words, and pairs of Han characters.
pub fn content(text: &str) -> Vec<String> {
    const SMALL: &[&str] = &[
        "the", "a", "an", "of", "and", "or", "to", "in", "on", "at", "for", "with", "is", "was",
        "were", "are", "be", "been", "who", "what", "that", "this", "it", "its", "his", "her",
        "he", "she", "they", "had", "has", "have", "which", "by", "from", "as", "did", "do",
        "does", "why", "how", "when", "where", "else", "can",
    ];
    let mut found: Vec<String> = words(text)
        .into_iter()
        .map(|w| w.lower)
        .filter(|w| !SMALL.contains(&w.as_str()))
        .collect();
    let han: Vec<char> = text.chars().collect();
    for pair in han.windows(2) {
        if pair.iter().all(|c| crate::words::is_han(*c))
            && !pair.iter().any(|c| "的了是在和与把被".contains(*c))
        {
            found.push(pair.iter().collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use quipu_recall::Tier;

    use super::*;

    #[test]
    fn several_headings_of_the_first_level_name_subjects() {
        let page = |text: &str| Page {
            path: "c.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let owner = |text: &str, value: &str| {
            let memory = Memory::of(&[page(text)]);
            let fact = memory.facts.iter().find(|fact| fact.value == value);
            let entity = fact.and_then(|fact| fact.entity);
            entity.map(|entity| memory.entities[entity].name.clone())
        };
        let people = "# 周国梁\n- 年龄：68\n\n# 丁丁\n- 年龄：8\n";
        assert_eq!(owner(people, "68").as_deref(), Some("周国梁"));
        assert_eq!(owner(people, "8").as_deref(), Some("丁丁"));
        assert_eq!(owner("# Notes\n- age: 68\n", "68"), None);
    }

    #[test]
    fn a_heading_of_a_template_names_nobody() {
        let page = Page {
            path: "voice.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: "# Voice\n\n## Point of view\n\n_Whose eyes._\n\n## Nora\n\n## Pell\n_deaf_ since then\n"
                .into(),
        };
        let memory = Memory::of(&[page]);
        let names: Vec<&str> = memory.entities.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["Nora", "Pell"]);
    }

    #[test]
    fn short_names_are_listed_once_and_name_somebody() {
        let page = Page {
            path: "c.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text:
                "# C\n\n## Tobias Finch\n- aliases: Finch, the boy\n- aliases: Finch, Tom Wray\n\n## The Patience\n- a cutter\n"
                    .into(),
        };
        let memory = Memory::of(&[page]);
        assert_eq!(
            memory.entities[0].names,
            ["Tobias Finch", "Finch", "the boy", "Tom Wray", "Tobias"]
        );
        assert_eq!(memory.entities[1].names, ["The Patience", "Patience"]);
        assert!(memory.mentions("The lamp went out.").is_empty());
    }

    #[test]
    fn sections_become_entities_and_entries_facts() {
        let text = "# C\n\n## Mara Dunn [arc]\n- aliases: the keeper, Mad Mara\n- handed: left\n- [premise] drive: guilt [→ manuscripts/ch02.md#watch]\n\n## 李素裳\n- 惯用手：左\n\n## Hard rules\n- No radio here. must not: radioed, called by radio [→ m.md]\n";
        let page = Page {
            path: "c.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let memory = Memory::of(&[page]);
        assert_eq!(
            memory.entities[0].names,
            ["Mara Dunn", "the keeper", "Mad Mara", "Dunn", "Mara"]
        );
        assert_eq!(memory.entities[1].names, ["李素裳", "素裳"]);
        let handed = memory.facts.iter().find(|f| f.key == "handed").unwrap();
        assert_eq!((handed.value.as_str(), handed.at.line), ("left", 5));
        let drive = memory.facts.iter().find(|f| f.key == "drive").unwrap();
        assert_eq!(
            (drive.level, drive.text.as_str(), drive.has_source),
            (Some(Level::Premise), "drive: guilt", true)
        );
        assert_eq!(memory.rules[0].patterns, ["radioed", "called by radio"]);
        let mentions = memory.mentions("Mara Dunn saw 素裳 and the keeper's lamp");
        assert_eq!(
            mentions
                .iter()
                .map(|m| (m.entity, m.possessive))
                .collect::<Vec<_>>(),
            [(0, false), (1, false), (0, true)]
        );
        let named = |text: &str| {
            memory
                .mentions(text)
                .iter()
                .map(|m| m.entity)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (
                named("MARA DUNN'S EYES"),
                named("mara dunn"),
                named("MARADUNN")
            ),
            (vec![0], vec![], vec![])
        );
    }

    #[test]
    fn tables_hold_terms_and_metaphors() {
        let text = "| term | definition | avoid |\n|---|---|---|\n| lease | a right | lock, mutex |\n\n| 概念 | 比喻 |\n|---|---|\n| 租约 | 借书 |\n| 租约 | 停车票 |\n";
        let page = Page {
            path: "g.md".into(),
            tier: Tier::L1,
            is_memory: true,
            form: None,
            text: text.into(),
        };
        let memory = Memory::of(&[page]);
        assert_eq!(memory.terms[0].avoid, ["lock", "mutex"]);
        assert_eq!(memory.metaphors.len(), 1);
        assert_eq!(
            (
                memory.metaphors[0].image.as_str(),
                memory.metaphors[0].at.line
            ),
            ("停车票", 8)
        );
    }
}
