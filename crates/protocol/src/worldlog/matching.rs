//! Finds patterns and past sessions that match a task, with their sources.
//!
//! A match is by words or by meaning. By words: the share of the task's words that a pattern or
//! session contains, where rare words count more. By meaning: the encoder compares the cause that
//! the agent suspects with the causes and cures that were found, and, with less weight, the problems;
//! a symptom alone seldom resembles the cause of another. The result and its order are deterministic.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use quipu_contract::Language;
use serde::Serialize;

use super::knowledge::Pattern;
use super::meanings::{Encode, Meaning, similarity};
use super::session::Session;
use crate::view::words;

/// The minimum share of the task's words for a match by words, in percent.
const LEAST: u32 = 20;
/// A match by words below this score needs some similarity of meaning too.
const SURE: u32 = 50;
/// The minimum number of words in common: one word says little.
const IN_COMMON: usize = 2;
/// The minimum similarity for a match by meaning, in percent: most causes of one kind are above it,
/// and most of different kinds below.
const MEANT: u32 = 34;
/// The minimum similarity for a match by few words.
const NEAR: u32 = 32;
/// The weight of the problem in the similarity, relative to the cause: tasks that differ in both are
/// of different kinds.
const OF_PROBLEM: f64 = 0.3;
/// The maximum number of matches.
const MOST: usize = 3;
/// The weight of a word in the text, relative to one in a name, a situation or keywords.
const IN_TEXT: f64 = 0.7;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Pattern,
    Session,
}

/// What an agent knows of a task when it starts.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    pub task: &'q str,
    /// The cause that the agent suspects.
    pub suspect: Option<&'q str>,
    pub language: Language,
}

/// What past work left: an agent's patterns (from the file `knowledge`), and sessions, each with
/// its path.
#[derive(Debug, Clone, Copy)]
pub struct Known<'k> {
    pub knowledge: &'k str,
    pub patterns: &'k [Pattern],
    pub sessions: &'k [(String, Session)],
}

/// A match for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Match {
    pub kind: Kind,
    pub name: String,
    /// `path:line`
    pub source: String,
    /// In percent.
    pub score: u32,
    pub why: String,
    /// What was learnt then: the lesson, or cause and cure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lesson: Option<String>,
}

struct Candidate {
    kind: Kind,
    name: String,
    source: String,
    strong: BTreeSet<String>,
    weak: BTreeSet<String>,
    /// Cause and cure, or the situation of a pattern.
    meant: String,
    problem: String,
    lesson: Option<String>,
}

/// Matches a task with past work, best match first.
pub fn match_task(question: &Question<'_>, known: &Known<'_>, encoder: &dyn Encode) -> Vec<Match> {
    let patterns = known.patterns.iter();
    let of_patterns = patterns.map(|pattern| of_pattern(known.knowledge, pattern));
    let of_sessions = known
        .sessions
        .iter()
        .map(|(path, past)| of_session(path, past));
    rank(
        question,
        &of_patterns.chain(of_sessions).collect::<Vec<_>>(),
        encoder,
    )
}

fn of_pattern(knowledge: &str, pattern: &Pattern) -> Candidate {
    let situation = pattern.situation.as_deref().unwrap_or_default();
    let description = pattern.description.as_deref().unwrap_or_default();
    Candidate {
        kind: Kind::Pattern,
        name: pattern.name.clone(),
        source: format!("{knowledge}:{}", pattern.line),
        strong: words(&format!("{} {situation}", pattern.name)),
        weak: words(&format!("{description} {}", pattern.steps.join(" "))),
        meant: format!("{situation}. {}", pattern.name),
        problem: situation.to_owned(),
        lesson: None,
    }
}

fn of_session(path: &str, session: &Session) -> Candidate {
    Candidate {
        kind: Kind::Session,
        name: session.name.clone(),
        source: format!("{path}:{}", session.line),
        strong: words(&format!("{} {}", session.kind, session.keywords.join(" "))),
        weak: words(&texts_of(session)),
        meant: meant_by(session),
        problem: session.problem.clone(),
        lesson: lesson_of(session),
    }
}

/// The text of a session that the encoder compares: cause and cure, or else the lesson or what was
/// done.
fn meant_by(session: &Session) -> String {
    let cured = [&session.cause, &session.cure];
    let cured: Vec<&str> = cured.into_iter().flatten().map(String::as_str).collect();
    match (cured.is_empty(), &session.experience) {
        (false, _) => cured.join(". "),
        (true, Some(lesson)) => lesson.clone(),
        (true, None) => session
            .solution
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned(),
    }
}

/// Everything that a later task may have in common with a session.
fn texts_of(session: &Session) -> String {
    let learnt = [
        &session.cause,
        &session.cure,
        &session.experience,
        &session.improvement,
        &session.learnt,
    ];
    let learnt = learnt.into_iter().flatten().map(String::as_str);
    let texts = [session.problem.as_str(), session.solution.as_str()];
    let steps = session.steps.iter().map(String::as_str);
    texts
        .into_iter()
        .chain(learnt)
        .chain(steps)
        .collect::<Vec<_>>()
        .join("\n")
}

fn lesson_of(session: &Session) -> Option<String> {
    let cured = [&session.cause, &session.cure];
    let cured: Vec<&str> = cured.into_iter().flatten().map(String::as_str).collect();
    let cured = (!cured.is_empty()).then(|| cured.join(" → "));
    match (cured, &session.experience) {
        (Some(cured), Some(lesson)) => Some(format!("{cured}; {lesson}")),
        (cured, lesson) => cured.or_else(|| lesson.clone()),
    }
}

/// The rarity of words among candidates.
struct Rarity {
    spread: BTreeMap<String, u32>,
    all: f64,
}

impl Rarity {
    fn of(candidates: &[Candidate]) -> Rarity {
        let mut spread: BTreeMap<String, u32> = BTreeMap::new();
        for candidate in candidates {
            for word in candidate.strong.union(&candidate.weak) {
                match spread.get_mut(word) {
                    Some(count) => *count += 1,
                    None => drop(spread.insert(word.clone(), 1)),
                }
            }
        }
        Rarity {
            spread,
            all: candidates.len() as f64,
        }
    }

    /// The weight of a word. One that no candidate contains only shows that the task is new, so it
    /// counts least.
    fn weight(&self, word: &str) -> f64 {
        self.spread
            .get(word)
            .map_or(std::f64::consts::LN_2, |held| {
                (1.0 + self.all / f64::from(*held)).ln()
            })
    }

    /// The share of the wanted words that a candidate contains, in percent, and these words.
    fn share<'w>(
        &self,
        wanted: &'w BTreeSet<String>,
        candidate: &Candidate,
    ) -> (u32, BTreeSet<&'w str>) {
        let held = |word: &str| match (
            candidate.strong.contains(word),
            candidate.weak.contains(word),
        ) {
            (true, _) => 1.0,
            (false, true) => IN_TEXT,
            _ => 0.0,
        };
        let whole: f64 = wanted.iter().map(|word| self.weight(word)).sum();
        let all = wanted.iter().map(String::as_str);
        let shared: BTreeSet<&str> = all.filter(|word| held(word) > 0.0).collect();
        let sum: f64 = shared
            .iter()
            .map(|word| self.weight(word) * held(word))
            .sum();
        let score = match whole > 0.0 {
            true => (100.0 * sum / whole).round() as u32,
            false => 0,
        };
        (score, shared)
    }
}

fn rank(question: &Question<'_>, candidates: &[Candidate], encoder: &dyn Encode) -> Vec<Match> {
    let rarity = Rarity::of(candidates);
    let texts: Vec<&str> = [Some(question.task), question.suspect]
        .into_iter()
        .flatten()
        .collect();
    let asked: Vec<(&str, BTreeSet<String>)> =
        texts.iter().map(|text| (*text, words(text))).collect();
    let meanings = compare_meanings(question, candidates, encoder);
    let mut found: Vec<Match> = Vec::new();
    for (candidate, meaning) in candidates.iter().zip(meanings) {
        let shares = asked.iter().map(|(text, wanted)| {
            let (score, shared) = rarity.share(wanted, candidate);
            let is_near = meaning.is_none_or(|meaning| meaning >= NEAR);
            let least = if is_near { LEAST } else { SURE };
            let is_match = shared.len() >= IN_COMMON && score >= least;
            (if is_match { score } else { 0 }, *text, shared)
        });
        let Some((by_words, text, shared)) = shares.max_by_key(|(score, ..)| *score) else {
            continue;
        };
        let meant = meaning.filter(|meaning| *meaning >= MEANT).unwrap_or(0);
        let score = by_words.max(meant);
        if score == 0 {
            continue;
        }
        let why = match (by_words, question.language) {
            (0, Language::En) => "similar cause".to_owned(),
            (0, Language::Zh) => "原因相近".to_owned(),
            _ => told(text, &shared),
        };
        found.push(Match {
            kind: candidate.kind,
            name: candidate.name.clone(),
            source: candidate.source.clone(),
            score,
            why,
            lesson: candidate.lesson.clone(),
        });
    }
    // Among equal scores, patterns precede sessions, and newer sessions precede older ones (names
    // begin with dates).
    found.sort_by(|a, b| {
        b.score
            .cmp(&a.score)
            .then(a.kind.cmp(&b.kind))
            .then_with(|| b.name.cmp(&a.name))
    });
    // One lesson that was learnt several times is shown once.
    let mut met = HashSet::new();
    found.retain(|one| {
        one.lesson
            .as_ref()
            .is_none_or(|lesson| met.insert(lesson.clone()))
    });
    found.truncate(MOST);
    found
}

/// The similarity of each candidate in percent, of the suspected cause with the causes that were
/// found and of the problems; none without an encoder.
fn compare_meanings(
    question: &Question<'_>,
    candidates: &[Candidate],
    encoder: &dyn Encode,
) -> Vec<Option<u32>> {
    let mut texts = vec![question.suspect.unwrap_or(question.task), question.task];
    for candidate in candidates {
        texts.extend([candidate.meant.as_str(), candidate.problem.as_str()]);
    }
    let meanings = match candidates.is_empty() {
        true => Vec::new(),
        false => encoder.encode(&texts),
    };
    let [suspect, task, known @ ..] = meanings.as_slice() else {
        return vec![None; candidates.len()];
    };
    let score = |pair: &[Meaning]| {
        let [meant, problem] = pair else { return None };
        let of_cause = f64::from(similarity(suspect, meant));
        let of_problem = f64::from(similarity(task, problem));
        let mean = (of_cause + OF_PROBLEM * of_problem) / (1.0 + OF_PROBLEM);
        Some(mean.round() as u32)
    };
    known.chunks(2).map(score).collect()
}

/// The shared words in the spelling of the description.
fn told(description: &str, shared: &BTreeSet<&str>) -> String {
    let mut pieces: Vec<String> = Vec::new();
    let mut tell = |piece: &mut String| {
        if !piece.is_empty() && !pieces.contains(piece) {
            pieces.push(std::mem::take(piece));
        }
        piece.clear();
    };
    for run in description.split(|c: char| !c.is_alphanumeric()) {
        let chars: Vec<char> = run.chars().collect();
        let mut piece = String::new();
        let mut at = 0;
        while at < chars.len() {
            if is_han(chars[at]) {
                let pair: String = chars[at..chars.len().min(at + 2)].iter().collect();
                if pair.chars().count() == 2 && shared.contains(pair.as_str()) {
                    if piece.is_empty() {
                        piece.push(chars[at]);
                    }
                    piece.push(chars[at + 1]);
                } else {
                    tell(&mut piece);
                }
                at += 1;
            } else {
                tell(&mut piece);
                let word: String = chars[at..].iter().take_while(|c| !is_han(**c)).collect();
                at += word.chars().count();
                if words(&word)
                    .iter()
                    .any(|stem| shared.contains(stem.as_str()))
                {
                    piece = word;
                    tell(&mut piece);
                }
            }
        }
        tell(&mut piece);
    }
    pieces.join(", ")
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two dimensions: a text that contains `shared` is far from any other.
    struct Toy;

    impl Encode for Toy {
        fn encode(&self, texts: &[&str]) -> Vec<Meaning> {
            let of = |text: &&str| match text.contains("shared") {
                true => vec![100, 0],
                false => vec![0, 100],
            };
            texts.iter().map(of).collect()
        }
    }

    struct NoEncoder;

    impl Encode for NoEncoder {
        fn encode(&self, _: &[&str]) -> Vec<Meaning> {
            Vec::new()
        }
    }

    fn find(task: &str, patterns: &[Pattern], sessions: &[(String, Session)]) -> Vec<Match> {
        let question = Question {
            task,
            suspect: None,
            language: Language::En,
        };
        let known = Known {
            knowledge: "k.md",
            patterns,
            sessions,
        };
        match_task(&question, &known, &NoEncoder)
    }

    #[test]
    fn a_suspected_cause_finds_the_cause_that_was_found() {
        let learnt = |name: &str, cause: &str| {
            let (path, mut past) = session(name, "the invoice has foreign lines");
            past.cause = Some(cause.into());
            (path, past)
        };
        let sessions = [
            learnt("2026-01-01_a", "a default list is shared by all calls"),
            learnt("2026-01-02_b", "rounding"),
            learnt("2026-01-03_c", "a default list is shared by all calls"),
        ];
        let known = Known {
            knowledge: "k.md",
            patterns: &[],
            sessions: &sessions,
        };
        let question = Question {
            task: "the new cart is not empty",
            suspect: Some("state that instances hold in common: shared"),
            language: Language::En,
        };
        let found = match_task(&question, &known, &Toy);
        assert_eq!((found.len(), found[0].name.as_str()), (1, "2026-01-03_c"));
        assert_eq!(
            (found[0].score, found[0].why.as_str()),
            (100, "similar cause")
        );
        assert!(match_task(&question, &known, &NoEncoder).is_empty());
    }

    fn pattern(name: &str, situation: &str, line: usize) -> Pattern {
        Pattern {
            name: name.into(),
            situation: Some(situation.into()),
            line,
            ..Pattern::default()
        }
    }

    fn session(name: &str, problem: &str) -> (String, Session) {
        let read = super::super::session::read_session(name, &format!("## Problem\n\n{problem}\n"));
        (format!(".sessions/{name}.md"), read)
    }

    #[test]
    fn the_pattern_and_the_session_that_share_words_are_found() {
        let patterns = [
            pattern("Undefined variable", "NameError after a refactoring", 12),
            pattern("Slow query", "a page takes seconds", 20),
        ];
        let sessions = [
            session(
                "2024-01-20_debug_undefined_var_add",
                "add() raises NameError",
            ),
            session("2024-01-21_optimize_cache", "pages are slow"),
        ];
        let found = find(
            "NameError: undefined variable in multiply",
            &patterns,
            &sessions,
        );
        assert_eq!(
            (found[0].name.as_str(), found[0].source.as_str()),
            ("Undefined variable", "k.md:12")
        );
        assert_eq!(found[0].why, "NameError, undefined, variable");
        assert_eq!(
            (found[1].kind, found[1].source.as_str()),
            (
                Kind::Session,
                ".sessions/2024-01-20_debug_undefined_var_add.md:1"
            )
        );
        assert!(found.iter().all(|m| m.name != "Slow query"));
    }

    #[test]
    fn chinese_is_matched_by_pairs_and_told_in_runs() {
        let patterns = [
            pattern("未定义变量", "重构之后报错", 3),
            pattern("缓存失效", "读到旧数据", 9),
        ];
        let found = find("multiply 函数有未定义变量", &patterns, &[]);
        assert_eq!(
            (found.len(), found[0].name.as_str(), found[0].why.as_str()),
            (1, "未定义变量", "未定义变量")
        );
    }

    #[test]
    fn nothing_shared_is_no_match() {
        assert!(find("write a poem", &[pattern("A", "b", 1)], &[]).is_empty());
        assert!(find("", &[pattern("A", "b", 1)], &[]).is_empty());
    }
}
