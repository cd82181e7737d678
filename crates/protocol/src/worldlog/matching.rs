//! Finds patterns and past sessions that match a task, with their sources.
//!
//! The match is lexical: the share of the task's words that a pattern or session contains. Rare
//! words count more. The result and its order are deterministic.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::knowledge::Pattern;
use super::session::Session;
use crate::view::words;

/// The minimum share of the task's words for a match, in percent.
const LEAST: u32 = 20;
/// A match below this score needs two words in common: one word says little.
const SURE: u32 = 50;
/// The maximum number of matches.
const MOST: usize = 5;
/// The weight of a word in the text, relative to one in a name, a situation or keywords.
const IN_TEXT: f64 = 0.7;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Pattern,
    Session,
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
    lesson: Option<String>,
}

/// Matches a description with an agent's patterns (from the file `knowledge`) and past sessions,
/// each with its path.
pub fn match_task(
    description: &str,
    knowledge: &str,
    patterns: &[Pattern],
    sessions: &[(String, Session)],
) -> Vec<Match> {
    let mut candidates = Vec::new();
    for pattern in patterns {
        let strong = format!(
            "{} {}",
            pattern.name,
            pattern.situation.as_deref().unwrap_or_default()
        );
        let weak = format!(
            "{} {}",
            pattern.description.as_deref().unwrap_or_default(),
            pattern.steps.join(" ")
        );
        let source = format!("{knowledge}:{}", pattern.line);
        let (strong, weak) = (words(&strong), words(&weak));
        candidates.push(Candidate {
            kind: Kind::Pattern,
            name: pattern.name.clone(),
            source,
            strong,
            weak,
            lesson: None,
        });
    }
    for (path, session) in sessions {
        let strong = words(&format!("{} {}", session.kind, session.keywords.join(" ")));
        let weak = words(&texts_of(session));
        let source = format!("{path}:{}", session.line);
        candidates.push(Candidate {
            kind: Kind::Session,
            name: session.name.clone(),
            source,
            strong,
            weak,
            lesson: lesson_of(session),
        });
    }
    rank(description, &candidates)
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

fn rank(description: &str, candidates: &[Candidate]) -> Vec<Match> {
    let wanted = words(description);
    let mut spread: BTreeMap<&str, u32> = BTreeMap::new();
    for candidate in candidates {
        for word in candidate
            .strong
            .union(&candidate.weak)
            .filter(|word| wanted.contains(*word))
        {
            *spread.entry(word).or_default() += 1;
        }
    }
    let all = candidates.len() as f64;
    // A word that no candidate contains only shows that the task is new, so it counts least.
    let weight = |word: &str| {
        spread.get(word).map_or(std::f64::consts::LN_2, |held| {
            (1.0 + all / f64::from(*held)).ln()
        })
    };
    let whole: f64 = wanted.iter().map(|word| weight(word)).sum();
    let mut found: Vec<Match> = Vec::new();
    for candidate in candidates {
        let held = |word: &str| match (
            candidate.strong.contains(word),
            candidate.weak.contains(word),
        ) {
            (true, _) => 1.0,
            (false, true) => IN_TEXT,
            _ => 0.0,
        };
        let shared: BTreeSet<&str> = wanted
            .iter()
            .map(String::as_str)
            .filter(|word| held(word) > 0.0)
            .collect();
        let sum: f64 = shared.iter().map(|word| weight(word) * held(word)).sum();
        let score = if whole > 0.0 {
            (100.0 * sum / whole).round() as u32
        } else {
            0
        };
        if score >= SURE || score >= LEAST && shared.len() > 1 {
            let why = told(description, &shared);
            found.push(Match {
                kind: candidate.kind,
                name: candidate.name.clone(),
                source: candidate.source.clone(),
                score,
                why,
                lesson: candidate.lesson.clone(),
            });
        }
    }
    // Among equal scores, patterns precede sessions, and newer sessions precede older ones (names
    // begin with dates).
    found.sort_by(|a, b| {
        b.score
            .cmp(&a.score)
            .then(a.kind.cmp(&b.kind))
            .then_with(|| b.name.cmp(&a.name))
    });
    found.truncate(MOST);
    found
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
        let found = match_task(
            "NameError: undefined variable in multiply",
            "k.md",
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
        let found = match_task("multiply 函数有未定义变量", "k.md", &patterns, &[]);
        assert_eq!(
            (found.len(), found[0].name.as_str(), found[0].why.as_str()),
            (1, "未定义变量", "未定义变量")
        );
    }

    #[test]
    fn nothing_shared_is_no_match() {
        assert!(match_task("write a poem", "k.md", &[pattern("A", "b", 1)], &[]).is_empty());
        assert!(match_task("", "k.md", &[pattern("A", "b", 1)], &[]).is_empty());
    }
}
