//! Proposes patterns: work that was done several times in the same way.
//!
//! Sessions with a cause or a cure are similar if these share most words. Others are similar if they
//! have one type and share most words of their steps or, without steps, of their keywords. Groups form oldest first around their first session, so that the same sessions always
//! give the same proposals.

use std::collections::BTreeSet;

use quipu_contract::Contract;
use serde::Serialize;

use super::knowledge::{Pattern, PatternIndex};
use super::names::{bare_step, fold};
use super::session::{Outcome, Session};
use crate::view::words;

/// Two sets of steps are similar if they share this percentage of their words.
const ALIKE: usize = 60;
/// The same for causes and cures, which are short.
const ALIKE_CURES: usize = 50;
/// The same for keywords, of which there are few.
const ALIKE_WORDS: usize = 50;

/// The default number of uses after which a pattern is proposed.
const PATTERN_AFTER: usize = 3;

/// The number of uses after which a pattern is proposed: the contract's variable `pattern_after`.
pub fn pattern_after(contract: &Contract) -> usize {
    contract
        .vars
        .get("pattern_after")
        .and_then(|var| var.value.as_ref()?.trim().parse().ok())
        .unwrap_or(PATTERN_AFTER)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub situation: String,
    /// The steps of the shortest session.
    pub steps: Vec<String>,
    pub sessions: Vec<String>,
    pub first_rounds: Option<u32>,
    pub best_rounds: Option<u32>,
}

/// Proposes work that more than `after` sessions (oldest first) did in a similar way and that no
/// known pattern covers.
pub fn propose(sessions: &[Session], known: &[Pattern], after: usize) -> Vec<Proposal> {
    let uses = PatternIndex::of(known).uses(known.len(), sessions);
    let covered: BTreeSet<&str> = uses
        .iter()
        .flatten()
        .map(|session| session.name.as_str())
        .collect();
    let mut groups: Vec<Vec<&Session>> = Vec::new();
    for session in sessions.iter().filter(|s| {
        s.outcome == Outcome::Done && s.pattern.is_none() && !covered.contains(s.name.as_str())
    }) {
        match groups.iter_mut().find(|group| alike(group[0], session)) {
            Some(group) => group.push(session),
            None => groups.push(vec![session]),
        }
    }
    groups
        .into_iter()
        .filter(|group| group.len() > after)
        .map(|group| proposal(&group))
        .collect()
}

fn alike(a: &Session, b: &Session) -> bool {
    let cured = |session: &Session| {
        let texts = [&session.cause, &session.cure];
        let texts: Vec<&str> = texts.into_iter().flatten().map(String::as_str).collect();
        words(&texts.join(" "))
    };
    let (left, right) = (cured(a), cured(b));
    if !left.is_empty() || !right.is_empty() {
        return share(&left, &right) >= ALIKE_CURES;
    }
    if fold(&a.kind) != fold(&b.kind) {
        return false;
    }
    if a.steps.is_empty() || b.steps.is_empty() {
        return share(&key_words(a), &key_words(b)) >= ALIKE_WORDS;
    }
    share(&step_words(a), &step_words(b)) >= ALIKE
}

fn step_words(session: &Session) -> BTreeSet<String> {
    let steps: Vec<&str> = session.steps.iter().map(|step| bare_step(step)).collect();
    words(&steps.join(" "))
}

fn key_words(session: &Session) -> BTreeSet<String> {
    words(&session.keywords.join(" "))
}

/// The overlap of two sets in percent.
fn share(a: &BTreeSet<String>, b: &BTreeSet<String>) -> usize {
    let all = a.union(b).count();
    (100 * a.intersection(b).count())
        .checked_div(all)
        .unwrap_or(0)
}

fn proposal(group: &[&Session]) -> Proposal {
    let first = group[0];
    // Words that most sessions share name the pattern.
    let most = |word: &String| {
        2 * group
            .iter()
            .filter(|s| s.keywords.iter().any(|w| fold(w) == fold(word)))
            .count()
            > group.len()
    };
    let mut shared: Vec<&str> = Vec::new();
    for word in first.keywords.iter().filter(|word| most(word)) {
        if !shared.contains(&word.as_str()) {
            shared.push(word);
        }
    }
    let named = if shared.is_empty() {
        first.keywords.iter().map(String::as_str).take(3).collect()
    } else {
        shared
    };
    let best = group
        .iter()
        .min_by_key(|s| (s.rounds.unwrap_or(u32::MAX), s.name.as_str()))
        .unwrap_or(&first);
    if let Some(cure) = &first.cure {
        return Proposal {
            name: cure.clone(),
            kind: first.kind.clone(),
            situation: first.cause.clone().unwrap_or_default(),
            steps: vec![cure.clone()],
            sessions: group.iter().map(|s| s.name.clone()).collect(),
            first_rounds: group.iter().find_map(|s| s.rounds),
            best_rounds: group.iter().filter_map(|s| s.rounds).min(),
        };
    }
    Proposal {
        name: format!("{} {}", first.kind, named.join(" "))
            .trim()
            .to_owned(),
        kind: first.kind.clone(),
        situation: first
            .problem
            .lines()
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned(),
        steps: best
            .steps
            .iter()
            .map(|step| bare_step(step).to_owned())
            .collect(),
        sessions: group.iter().map(|s| s.name.clone()).collect(),
        first_rounds: group.iter().find_map(|s| s.rounds),
        best_rounds: group.iter().filter_map(|s| s.rounds).min(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: usize, kind: &str, words: &str, steps: &str, rounds: u32) -> Session {
        let list = |text: &str, sign: char| {
            text.split(sign)
                .map(|w| w.trim().to_owned())
                .filter(|w| !w.is_empty())
                .collect()
        };
        Session {
            name: format!("2026-01-0{number}_{kind}"),
            kind: kind.into(),
            keywords: list(words, ' '),
            steps: list(steps, ';'),
            rounds: Some(rounds),
            problem: format!("case {number}"),
            ..Session::default()
        }
    }

    #[test]
    fn more_than_so_many_of_a_kind_are_proposed() {
        let steps =
            "find the last commit that knew the name; remove the name; run the failing test";
        let mut sessions: Vec<Session> = (1..=4)
            .map(|n| {
                session(
                    n,
                    "debug",
                    &format!("undefined var f{n}"),
                    &format!("{steps}; run all{}", if n > 2 { " tests" } else { "" }),
                    10 - n as u32,
                )
            })
            .collect();
        sessions.push(session(5, "optimize", "undefined var", steps, 3));
        sessions.push(session(6, "debug", "leak", "measure; compare heaps", 5));
        assert!(propose(&sessions[..3], &[], 3).is_empty());
        let found = propose(&sessions, &[], 3);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].sessions.len()),
            ("debug undefined var", 4)
        );
        assert_eq!(
            (found[0].first_rounds, found[0].best_rounds),
            (Some(9), Some(6))
        );
        let taken = Pattern {
            name: found[0].name.clone(),
            sessions: found[0].sessions.clone(),
            ..Pattern::default()
        };
        assert!(propose(&sessions, &[taken], 3).is_empty());
    }

    #[test]
    fn chinese_steps_are_compared_too() {
        let same = |n: usize| {
            session(
                n,
                "debug",
                "未定义 变量",
                "找到最后的提交; 删除未定义的变量; 运行测试",
                5,
            )
        };
        let sessions: Vec<Session> = (1..=4).map(same).collect();
        assert_eq!(propose(&sessions, &[], 3)[0].name, "debug 未定义 变量");
    }
}
