//! Measures whether agents learn: pattern reuse, knowledge growth and execution gain over time.
//!
//! - reuse: the share of sessions that used a known pattern
//! - growth: patterns named for the first time, per session
//! - gain: how many fewer rounds a pattern took than the first time, averaged over its later uses

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::knowledge::{Pattern, PatternIndex};
use super::session::Session;

/// The three metrics over all sessions up to one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    pub session: String,
    pub date: String,
    pub reuse: f64,
    pub growth: f64,
    /// None until a pattern is used a second time.
    pub gain: Option<f64>,
}

/// One pattern over its uses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gain {
    pub pattern: String,
    pub uses: usize,
    pub first_rounds: Option<u32>,
    pub best_rounds: Option<u32>,
    pub last_rounds: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metrics {
    pub sessions: usize,
    pub reuse: f64,
    pub growth: f64,
    pub gain: Option<f64>,
    pub patterns: Vec<Gain>,
    pub points: Vec<Point>,
}

/// Measures sessions, oldest first. The sources of `known` patterns count as their first uses.
pub fn measure(sessions: &[Session], known: &[Pattern]) -> Metrics {
    let patterns = all_patterns(sessions, known);
    let uses = PatternIndex::of(&patterns).uses(patterns.len(), sessions);
    let used: Vec<(&Pattern, Vec<&Session>)> = patterns.iter().zip(uses).collect();
    let mut used_by: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, (_, used)) in used.iter().enumerate() {
        used.iter()
            .for_each(|session| used_by.entry(&session.name).or_default().push(index));
    }
    let (mut reused, mut grown, mut gained, mut gains) = (0_u32, 0_u32, 0.0, 0_u32);
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut points = Vec::new();
    for (index, session) in sessions.iter().enumerate() {
        reused += u32::from(session.pattern.is_some());
        for (pattern, used) in used_by
            .get(session.name.as_str())
            .into_iter()
            .flatten()
            .map(|index| &used[*index])
        {
            if seen.insert(&pattern.name) {
                grown += 1;
            } else if let (Some(first), Some(rounds)) =
                (first_rounds(used).filter(|n| *n > 0), session.rounds)
            {
                gained += 1.0 - f64::from(rounds) / f64::from(first);
                gains += 1;
            }
        }
        let count = (index + 1) as f64;
        points.push(Point {
            session: session.name.clone(),
            date: session.date.clone(),
            reuse: hundredths(f64::from(reused) / count),
            growth: hundredths(f64::from(grown) / count),
            gain: (gains > 0).then(|| hundredths(gained / f64::from(gains))),
        });
    }
    let last = points.last();
    Metrics {
        sessions: sessions.len(),
        reuse: last.map_or(0.0, |p| p.reuse),
        growth: last.map_or(0.0, |p| p.growth),
        gain: last.and_then(|p| p.gain),
        patterns: used
            .iter()
            .filter(|(_, used)| !used.is_empty())
            .map(|(pattern, used)| Gain {
                pattern: pattern.name.clone(),
                uses: used.len(),
                first_rounds: first_rounds(used),
                best_rounds: used.iter().filter_map(|s| s.rounds).min(),
                last_rounds: used.iter().rev().find_map(|s| s.rounds),
            })
            .collect(),
        points,
    }
}

/// The known patterns, and further patterns that sessions name.
fn all_patterns(sessions: &[Session], known: &[Pattern]) -> Vec<Pattern> {
    let mut patterns = known.to_vec();
    let mut index = PatternIndex::of(known);
    for said in sessions
        .iter()
        .flat_map(|s| [&s.pattern, &s.learnt])
        .flatten()
    {
        if index.is_named_in(said) {
            continue;
        }
        // The name follows the colon: `known pattern: undefined variable`.
        let name = said.rsplit([':', '：']).next().unwrap_or(said).trim();
        if !index.holds(name) {
            let pattern = Pattern {
                name: name.to_owned(),
                ..Pattern::default()
            };
            index.add(patterns.len(), &pattern);
            patterns.push(pattern);
        }
    }
    patterns
}

fn first_rounds(used: &[&Session]) -> Option<u32> {
    used.iter().find_map(|session| session.rounds)
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: usize, pattern: Option<&str>, learnt: Option<&str>, rounds: u32) -> Session {
        Session {
            name: format!("2026-01-0{number}_fix_x"),
            date: format!("2026-01-0{number}"),
            pattern: pattern.map(str::to_owned),
            learnt: learnt.map(str::to_owned),
            rounds: Some(rounds),
            ..Session::default()
        }
    }

    #[test]
    fn a_pattern_that_is_learnt_and_used_is_measured() {
        let sessions = [
            session(1, None, Some("Undefined variable"), 8),
            session(2, Some("known: Undefined variable"), None, 4),
            session(3, None, None, 5),
            session(4, Some("undefined variable"), None, 2),
        ];
        let found = measure(&sessions, &[]);
        assert_eq!(
            (found.reuse, found.growth, found.gain),
            (0.5, 0.25, Some(0.63))
        );
        assert_eq!(found.points[0].gain, None);
        assert_eq!(found.points[1].gain, Some(0.5));
        assert_eq!(
            (
                found.patterns.len(),
                found.patterns[0].uses,
                found.patterns[0].best_rounds
            ),
            (1, 3, Some(2))
        );
    }

    #[test]
    fn no_sessions_are_no_error() {
        assert_eq!(measure(&[], &[]).sessions, 0);
    }
}
