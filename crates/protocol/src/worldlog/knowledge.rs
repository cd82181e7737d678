//! The knowledge of one agent: parsed, extended, and counted from its sessions.
//!
//! Numbers are computed: `recount` replaces only them and leaves every other byte unchanged.

use std::collections::{BTreeSet, HashMap};

use quipu_contract::Language;
use quipu_text::{Document, Place, Section, SpliceError};
use serde::Serialize;

use super::names::{self, Name, fold, number, split_list};
use super::raw::{raw_items, raw_title};
use super::session::{Outcome, Session};

/// A proven way of working.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Pattern {
    pub name: String,
    pub description: Option<String>,
    pub situation: Option<String>,
    pub steps: Vec<String>,
    /// The names of the sessions from which it was proposed.
    pub sessions: Vec<String>,
    pub frequency: Option<u32>,
    pub success: Option<String>,
    pub first_rounds: Option<u32>,
    pub best_rounds: Option<u32>,
    pub line: usize,
}

/// A recurring mistake.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ErrorPattern {
    pub name: String,
    pub symptom: Option<String>,
    pub cause: Option<String>,
    pub cure: Option<String>,
    pub prevention: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Knowledge {
    pub tasks: Option<u32>,
    pub rounds: Option<u32>,
    pub mean_rounds: Option<String>,
    pub patterns: Vec<Pattern>,
    pub errors: Vec<ErrorPattern>,
    pub lessons: Vec<String>,
    pub ideas: Vec<String>,
}

pub fn read_knowledge(text: &str) -> Knowledge {
    let document = Document::parse(text);
    let mut knowledge = Knowledge::default();
    if let Some(section) = names::STATISTICS.section(&document) {
        knowledge.tasks = names::TASKS.value(&document, section).and_then(number);
        knowledge.rounds = names::ALL_ROUNDS.value(&document, section).and_then(number);
        knowledge.mean_rounds = names::MEAN_ROUNDS
            .value(&document, section)
            .map(str::to_owned);
    }
    let own = |name: &Name, section: &Section| name.value(&document, section).map(str::to_owned);
    if let Some(patterns) = names::PATTERNS.section(&document) {
        for section in document.children(patterns) {
            knowledge.patterns.push(Pattern {
                name: raw_title(&document, section),
                description: own(&names::DESCRIPTION, section),
                situation: own(&names::SITUATION, section),
                steps: names::steps(&document, section),
                sessions: own(&names::FROM_SESSIONS, section)
                    .map(|list| split_list(&list, &[',', '，', '、', ';', '；']))
                    .unwrap_or_default(),
                frequency: own(&names::FREQUENCY, section).as_deref().and_then(number),
                success: own(&names::SUCCESS, section),
                first_rounds: own(&names::FIRST_ROUNDS, section)
                    .as_deref()
                    .and_then(number),
                best_rounds: own(&names::BEST_ROUNDS, section)
                    .as_deref()
                    .and_then(number),
                line: section.line,
            });
        }
    }
    if let Some(errors) = names::ERRORS.section(&document) {
        for section in document.children(errors) {
            knowledge.errors.push(ErrorPattern {
                name: raw_title(&document, section),
                symptom: own(&names::SYMPTOM, section),
                cause: own(&names::CAUSE, section),
                cure: own(&names::CURE, section),
                prevention: own(&names::PREVENTION, section),
            });
        }
    }
    let items = |name: &Name| -> Vec<String> {
        let Some(section) = name.section(&document) else {
            return Vec::new();
        };
        raw_items(&document, section)
    };
    (knowledge.lessons, knowledge.ideas) = (items(&names::LESSONS), items(&names::IDEAS));
    knowledge
}

/// Separators between names in a session's pattern field.
const APART: [char; 19] = [
    ':', '：', ',', '，', '、', ';', '；', '(', ')', '（', '）', '“', '”', '"', '「', '」', '→',
    '《', '》',
];

/// Whether a session's pattern field names this pattern: `已知模式：未定义变量` names `未定义变量`.
pub fn names_pattern(said: &str, pattern: &str) -> bool {
    let wanted = fold(pattern);
    names_in(said).any(|name| name == wanted)
}

/// The folded names in a session's pattern field: the whole text, and each of its parts.
fn names_in(said: &str) -> impl Iterator<Item = String> {
    std::iter::once(fold(said)).chain(said.split(APART).map(fold))
}

/// Indexes patterns by name and by source session, for fast lookup per session.
#[derive(Debug, Default)]
pub(super) struct PatternIndex {
    by_name: HashMap<String, Vec<usize>>,
    by_session: HashMap<String, Vec<usize>>,
}

impl PatternIndex {
    pub(super) fn of(patterns: &[Pattern]) -> PatternIndex {
        let mut index = PatternIndex::default();
        patterns
            .iter()
            .enumerate()
            .for_each(|(nth, pattern)| index.add(nth, pattern));
        index
    }

    pub(super) fn add(&mut self, nth: usize, pattern: &Pattern) {
        self.by_name
            .entry(fold(&pattern.name))
            .or_default()
            .push(nth);
        for session in &pattern.sessions {
            self.by_session
                .entry(session.clone())
                .or_default()
                .push(nth);
        }
    }

    pub(super) fn holds(&self, name: &str) -> bool {
        self.by_name.contains_key(&fold(name))
    }

    /// Whether a session's text names a pattern.
    pub(super) fn is_named_in(&self, said: &str) -> bool {
        names_in(said).any(|name| self.by_name.contains_key(&name))
    }

    /// For each pattern, the sessions that used, improved or created it.
    pub(super) fn uses<'s>(
        &self,
        patterns: usize,
        sessions: &'s [Session],
    ) -> Vec<Vec<&'s Session>> {
        let mut uses: Vec<Vec<&Session>> = vec![Vec::new(); patterns];
        for session in sessions {
            let named = [&session.pattern, &session.learnt]
                .into_iter()
                .flatten()
                .flat_map(|said| names_in(said));
            let mut used: BTreeSet<usize> = named
                .filter_map(|name| self.by_name.get(&name))
                .flatten()
                .copied()
                .collect();
            used.extend(self.by_session.get(&session.name).into_iter().flatten());
            used.into_iter().for_each(|nth| uses[nth].push(session));
        }
        uses
    }
}

/// The sessions that used, improved or created a pattern.
pub fn uses<'s>(pattern: &Pattern, sessions: &'s [Session]) -> Vec<&'s Session> {
    PatternIndex::of(std::slice::from_ref(pattern))
        .uses(1, sessions)
        .swap_remove(0)
}

/// The statistics of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub frequency: usize,
    pub success: String,
    pub first_rounds: Option<u32>,
    pub best_rounds: Option<u32>,
}

/// Counts a pattern's uses. Sessions must be oldest first.
pub fn count_pattern(pattern: &Pattern, sessions: &[Session]) -> Counted {
    count_uses(&uses(pattern, sessions))
}

fn count_uses(used: &[&Session]) -> Counted {
    let done = used.iter().filter(|s| s.outcome == Outcome::Done);
    let share = if used.is_empty() {
        "0%".to_owned()
    } else {
        format!(
            "{}%",
            (100 * done.clone().count() + used.len() / 2) / used.len()
        )
    };
    Counted {
        frequency: used.len(),
        success: share,
        first_rounds: used.iter().find_map(|s| s.rounds),
        best_rounds: done.filter_map(|s| s.rounds).min(),
    }
}

/// Updates the numbers from an agent's sessions (oldest first). Nothing else changes.
pub fn recount(
    text: &str,
    language: Language,
    sessions: &[Session],
) -> Result<String, SpliceError> {
    let rounds: u64 = sessions
        .iter()
        .filter_map(|s| s.rounds)
        .map(u64::from)
        .sum();
    let counted = sessions.iter().filter(|s| s.rounds.is_some()).count() as u64;
    // In tenths, rounded half up.
    let tenths = (10 * rounds + counted / 2)
        .checked_div(counted)
        .unwrap_or(0);
    let mean = format!("{}.{}", tenths / 10, tenths % 10);
    let mean = mean.strip_suffix(".0").unwrap_or(&mean);
    let mut text = with_section(text, &names::STATISTICS, language)?;
    let of_all = [
        (&names::TASKS, sessions.len().to_string()),
        (&names::ALL_ROUNDS, rounds.to_string()),
        (&names::MEAN_ROUNDS, mean.to_owned()),
    ];
    for (name, value) in of_all {
        text = set(&text, language, name, &value, |document| {
            names::STATISTICS.section(document).cloned()
        })?;
    }
    let patterns = read_knowledge(&text).patterns;
    let used = PatternIndex::of(&patterns).uses(patterns.len(), sessions);
    for (pattern, used) in patterns.iter().zip(used) {
        let numbers = count_uses(&used);
        // Edit only changed numbers: a session uses one or two of many patterns.
        let is_counted = pattern.frequency == u32::try_from(numbers.frequency).ok()
            && pattern.success.as_ref() == Some(&numbers.success)
            && pattern.first_rounds == Some(numbers.first_rounds.unwrap_or(0))
            && pattern.best_rounds == Some(numbers.best_rounds.unwrap_or(0));
        if is_counted {
            continue;
        }
        let told = |rounds: Option<u32>| rounds.map_or_else(|| "0".to_owned(), |n| n.to_string());
        let of_pattern = [
            (&names::FREQUENCY, numbers.frequency.to_string()),
            (&names::SUCCESS, numbers.success),
            (&names::FIRST_ROUNDS, told(numbers.first_rounds)),
            (&names::BEST_ROUNDS, told(numbers.best_rounds)),
        ];
        for (name, value) in of_pattern {
            text = set(&text, language, name, &value, |document| {
                find_pattern(document, &names::PATTERNS, &pattern.name)
            })?;
        }
    }
    Ok(text)
}

fn find_pattern(document: &Document<'_>, under: &Name, title: &str) -> Option<Section> {
    let section = under.section(document)?;
    document
        .children(section)
        .find(|child| fold(&raw_title(document, child)) == fold(title))
        .cloned()
}

/// Sets one key of a section, if the section exists and the value differs.
fn set(
    text: &str,
    language: Language,
    name: &Name,
    value: &str,
    find: impl Fn(&Document<'_>) -> Option<Section>,
) -> Result<String, SpliceError> {
    let document = Document::parse(text);
    let Some(section) = find(&document) else {
        return Ok(text.to_owned());
    };
    let known = document
        .keyed_in(&section.body)
        .iter()
        .find(|line| name.is(&line.key));
    if value.starts_with('\n') {
        return set_list(
            &document,
            &section,
            &name.key_in(&document, &section, language),
            value,
        );
    }
    if known.is_some_and(|line| document.slice(&line.value).trim() == value) {
        return Ok(text.to_owned());
    }
    if known.is_none() && document.keyed_in(&section.body).is_empty() {
        let colon = if language == Language::Zh {
            "："
        } else {
            ": "
        };
        return document.append_entry(
            &section,
            &format!("- {}{colon}{value}", name.in_language(language)),
        );
    }
    document.set_keyed(&section, &name.key_in(&document, &section, language), value)
}

/// Sets a key whose value is a list below it. An older value, on one line or a list, is replaced.
fn set_list(
    document: &Document<'_>,
    section: &Section,
    key: &str,
    list: &str,
) -> Result<String, SpliceError> {
    let entry = format!("- {key}:{list}");
    let body = document.slice(&section.body);
    let known = document
        .keyed_in(&section.body)
        .iter()
        .find(|line| line.key == key);
    let Some(known) = known else {
        return document.append_entry(section, &entry);
    };
    let text = document.text();
    let start = text[..known.range.start].rfind('\n').map_or(0, |at| at + 1);
    let below = known.range.end..section.body.end;
    let end = document
        .items_in(&below)
        .iter()
        .take_while(|item| item.depth > 0)
        .map(|item| item.range.start + document.slice(&item.range).trim_end().len())
        .max()
        .unwrap_or(known.range.end);
    let (start, end) = (start - section.body.start, end - section.body.start);
    document.replace_body(
        section,
        &format!("{}{entry}{}", &body[..start], &body[end..]),
    )
}

/// Adds the section at the end, if it is missing.
fn with_section(text: &str, name: &Name, language: Language) -> Result<String, SpliceError> {
    let document = Document::parse(text);
    match name.section(&document) {
        Some(_) => Ok(text.to_owned()),
        None => document.insert_section(Place::End, 2, name.in_language(language), ""),
    }
}

/// Adds a pattern, or updates the given fields of a known one.
pub fn put_pattern(
    text: &str,
    language: Language,
    pattern: &Pattern,
) -> Result<String, SpliceError> {
    let steps = (!pattern.steps.is_empty()).then(|| names::render_steps(language, &pattern.steps));
    let fields = [
        (&names::DESCRIPTION, pattern.description.clone()),
        (&names::SITUATION, pattern.situation.clone()),
        (&names::STEPS, steps),
        (
            &names::FROM_SESSIONS,
            (!pattern.sessions.is_empty()).then(|| pattern.sessions.join(", ")),
        ),
    ];
    put_entry(text, language, &names::PATTERNS, &pattern.name, &fields)
}

/// Adds an error pattern, or updates the given fields of a known one.
pub fn put_error(
    text: &str,
    language: Language,
    error: &ErrorPattern,
) -> Result<String, SpliceError> {
    let fields = [
        (&names::SYMPTOM, error.symptom.clone()),
        (&names::CAUSE, error.cause.clone()),
        (&names::CURE, error.cure.clone()),
        (&names::PREVENTION, error.prevention.clone()),
    ];
    put_entry(text, language, &names::ERRORS, &error.name, &fields)
}

fn put_entry(
    text: &str,
    language: Language,
    under: &Name,
    title: &str,
    fields: &[(&Name, Option<String>)],
) -> Result<String, SpliceError> {
    let mut text = with_section(text, under, language)?;
    let document = Document::parse(&text);
    if find_pattern(&document, under, title).is_none()
        && let Some(section) = under.section(&document)
    {
        let last = document
            .children(section)
            .last()
            .map_or(section.id, |child| child.id);
        text = document.insert_section(Place::After(last), section.level + 1, title, "")?;
    }
    for (name, value) in fields {
        if let Some(value) = value {
            text = set(&text, language, name, value, |document| {
                find_pattern(document, under, title)
            })?;
        }
    }
    Ok(text)
}

/// Adds a lesson with its source sessions.
pub fn add_lesson(
    text: &str,
    language: Language,
    lesson: &str,
    sessions: &[String],
) -> Result<String, SpliceError> {
    let from = match (sessions, language) {
        ([], _) => String::new(),
        (names, Language::En) => format!(" ({})", names.join(", ")),
        (names, Language::Zh) => format!("（{}）", names.join("、")),
    };
    add_line(
        text,
        language,
        &names::LESSONS,
        &format!("{}{from}", lesson.trim()),
    )
}

pub fn add_idea(text: &str, language: Language, idea: &str) -> Result<String, SpliceError> {
    add_line(text, language, &names::IDEAS, idea)
}

fn add_line(
    text: &str,
    language: Language,
    name: &Name,
    line: &str,
) -> Result<String, SpliceError> {
    if line.contains('\n') {
        return Err(SpliceError::NotOneLine {
            text: line.to_owned(),
        });
    }
    let text = with_section(text, name, language)?;
    let document = Document::parse(&text);
    match name.section(&document) {
        Some(section) => document.append_entry(section, &format!("- {}", line.trim())),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ZH: &str = "# 知识\n\n开头的话。\n\n## 统计\n\n- 任务数：99\n- 总轮数：0\n- 平均轮数：0\n\n## 模式\n\n### 未定义变量\n- **描述**：名字未定义\n- **步骤**：找到提交；删除变量；跑测试\n- **频次**：1\n- 我的备注：保留\n\n## 我自己的小节\n\n  奇怪的  空格\n\n## 经验\n";

    fn session(name: &str, pattern: &str, rounds: u32, outcome: Outcome) -> Session {
        let pattern = (!pattern.is_empty()).then(|| pattern.to_owned());
        Session {
            name: name.into(),
            pattern,
            rounds: Some(rounds),
            outcome,
            ..Session::default()
        }
    }

    #[test]
    fn code_in_names_steps_and_lessons_is_kept() {
        for name in ["dunder __init__", "Vec<T> of a<b>c", "[x](y) *args"] {
            let pattern = Pattern {
                name: name.into(),
                situation: Some(name.into()),
                steps: vec![name.into(), "for (i; j) [x](y)".into()],
                ..Pattern::default()
            };
            let text = put_pattern(ZH, Language::Zh, &pattern).unwrap();
            let text = put_pattern(&text, Language::Zh, &pattern).unwrap();
            let plain = Pattern {
                steps: vec!["a".into(), name.into()],
                ..pattern.clone()
            };
            let lesson = add_lesson(&text, Language::Zh, name, &[]).unwrap();
            let found = read_knowledge(&lesson);
            assert_eq!(found.patterns.len(), 2, "{text}");
            let known = &found.patterns[1];
            assert_eq!((&known.name, &known.steps), (&pattern.name, &pattern.steps));
            assert_eq!(known.situation.as_deref(), Some(name));
            assert_eq!(found.lessons, [name]);
            assert!(names_pattern(name, &known.name));
            let again = put_pattern(&lesson, Language::Zh, &plain).unwrap();
            assert_eq!(
                read_knowledge(&again).patterns[1].steps,
                plain.steps,
                "{again}"
            );
        }
    }

    #[test]
    fn numbers_are_counted_and_nothing_else_changes() {
        let sessions = [
            session("a", "", 9, Outcome::Done),
            session("b", "已知模式：未定义变量", 6, Outcome::Done),
            session("c", "未定义变量", 3, Outcome::Failed),
            session("d", "未定义变量", 4, Outcome::Done),
        ];
        let text = recount(ZH, Language::Zh, &sessions).unwrap();
        let expected = ZH
            .replace("任务数：99", "任务数：4")
            .replace("总轮数：0", "总轮数：22")
            .replace("平均轮数：0", "平均轮数：5.5")
            .replace(
                "频次**：1\n- 我的备注：保留\n",
                "频次**：3\n- 我的备注：保留\n- 成功率：67%\n- 首次轮数：6\n- 最佳轮数：4\n",
            );
        assert_eq!(text, expected);
        assert_eq!(recount(&text, Language::Zh, &sessions).unwrap(), text);
        let found = read_knowledge(&text);
        assert_eq!(
            (found.tasks, found.rounds, found.mean_rounds.as_deref()),
            (Some(4), Some(22), Some("5.5"))
        );
        assert_eq!(found.patterns[0].steps, ["找到提交", "删除变量", "跑测试"]);
    }

    proptest! {
        /// The index finds the same uses as comparing each pattern with each session.
        #[test]
        fn uses_are_found_by_name_and_by_session(
            names in prop::collection::vec("[aB ]{1,2}", 0..5),
            said in prop::collection::vec(("[ab :,]{0,5}", "[ab :,]{0,5}"), 0..6),
        ) {
            let pattern = |(nth, name): (usize, &String)| Pattern { name: name.clone(), sessions: vec![format!("s{nth}")], ..Pattern::default() };
            let patterns: Vec<Pattern> = names.iter().enumerate().map(pattern).collect();
            let session = |(nth, (pattern, learnt)): (usize, &(String, String))| Session {
                name: format!("s{nth}"),
                pattern: Some(pattern.clone()).filter(|said| !said.is_empty()),
                learnt: Some(learnt.clone()).filter(|said| !said.is_empty()),
                ..Session::default()
            };
            let sessions: Vec<Session> = said.iter().enumerate().map(session).collect();
            let found = PatternIndex::of(&patterns).uses(patterns.len(), &sessions);
            for (pattern, found) in patterns.iter().zip(found) {
                let named = |said: &Option<String>| said.as_deref().is_some_and(|said| names_pattern(said, &pattern.name));
                let wanted = sessions.iter().filter(|s| named(&s.pattern) || named(&s.learnt) || pattern.sessions.contains(&s.name));
                prop_assert_eq!(found, wanted.collect::<Vec<_>>());
            }
        }
    }

    /// Comparing each session with each pattern would take minutes.
    #[test]
    fn many_sessions_are_counted_in_linear_time() {
        const MANY: usize = 10_000;
        let patterns: Vec<Pattern> = (0..MANY)
            .map(|n| Pattern {
                name: format!("pattern {n}"),
                ..Pattern::default()
            })
            .collect();
        let sessions: Vec<Session> = (0..MANY)
            .map(|n| {
                session(
                    &format!("s{n}"),
                    &format!("known: Pattern {n}"),
                    1,
                    Outcome::Done,
                )
            })
            .collect();
        let uses = PatternIndex::of(&patterns).uses(MANY, &sessions);
        assert!(uses.iter().all(|used| used.len() == 1));
        assert_eq!(
            crate::worldlog::measure(&sessions, &[]).patterns.len(),
            MANY
        );
    }

    #[test]
    fn patterns_lessons_and_errors_are_added_in_place() {
        let pattern = Pattern {
            name: "Flaky test".into(),
            steps: vec!["run alone".into(), "run all".into()],
            ..Pattern::default()
        };
        let text = put_pattern(ZH, Language::Zh, &pattern).unwrap();
        assert!(text.contains("- 我的备注：保留\n\n### Flaky test\n\n- 步骤：run alone；run all\n\n## 我自己的小节"), "{text}");
        let better = Pattern {
            name: "未定义变量".into(),
            situation: Some("重构之后".into()),
            ..Pattern::default()
        };
        let text = put_pattern(&text, Language::Zh, &better).unwrap();
        assert!(
            text.contains("- 我的备注：保留\n- 适用情境：重构之后\n"),
            "{text}"
        );
        let text = add_lesson(
            &text,
            Language::Zh,
            "先跑单测",
            &["2026-01-02_fix_x".into()],
        )
        .unwrap();
        assert!(
            text.ends_with("## 经验\n\n- 先跑单测（2026-01-02_fix_x）\n"),
            "{text}"
        );
        let error = ErrorPattern {
            name: "Passes alone".into(),
            cause: Some("shared state".into()),
            ..ErrorPattern::default()
        };
        let text = put_error(&text, Language::En, &error).unwrap();
        assert!(
            text.ends_with("## Error patterns\n\n### Passes alone\n\n- Cause: shared state\n"),
            "{text}"
        );
        assert!(text.contains("  奇怪的  空格\n"));
    }

    #[test]
    fn an_empty_file_gets_its_statistics() {
        let text = recount("", Language::En, &[session("a", "", 2, Outcome::Done)]).unwrap();
        assert_eq!(
            text,
            "## Statistics\n\n- Tasks: 1\n- Rounds: 2\n- Mean rounds: 2\n"
        );
    }

    #[test]
    fn steps_may_be_items() {
        let text = "## Patterns\n\n### A\n\n- Steps:\n  1. one\n  2. two\n- Frequency: 1\n";
        assert_eq!(read_knowledge(text).patterns[0].steps, ["one", "two"]);
    }
}
