//! Combines reports: averages by domain, an overall score weighted by confidence, conflicts, issues
//! and a verdict.
//!
//! Pure arithmetic. The caller passes only completed reports.

use std::collections::BTreeMap;

use serde::Serialize;

use super::report::Report;

/// From best to worst.
pub const VERDICTS: [&str; 3] = ["ready", "needs revision", "major revision required"];

/// Scores of one subject that differ by this much are a conflict.
const GAP: u8 = 2;
/// A manuscript below the first value fails; from the second value on it may be ready.
const FAILS_BELOW: f64 = 3.0;
const READY_FROM: f64 = 4.0;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Domain {
    pub name: String,
    pub mean: f64,
    pub agents: usize,
}

/// Two agents that disagree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    pub subject: String,
    pub agents: [String; 2],
    pub scores: [u8; 2],
    /// The two recommendations, if they are the conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<[String; 2]>,
}

/// An objection of an agent to the manuscript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    pub agent: String,
    pub what: String,
}

/// The combined result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sum {
    pub domains: Vec<Domain>,
    /// The sum of score × confidence, divided by the sum of confidence.
    pub overall: f64,
    pub conflicts: Vec<Conflict>,
    pub critical: Vec<Issue>,
    pub important: Vec<Issue>,
    pub minor: Vec<Issue>,
    /// The verdict of the rule; none as long as a report is open.
    pub verdict: Option<&'static str>,
}

/// A completed report with its agent and domain.
pub struct Counted<'r> {
    pub agent: &'r str,
    pub domain: &'r str,
    pub report: &'r Report,
}

/// Combines reports. None if there are none.
pub fn sum_up(
    reports: &[Counted<'_>],
    subjects: &BTreeMap<String, Vec<String>>,
    opposites: &[Vec<String>],
) -> Option<Sum> {
    let weight: u32 = reports.iter().map(|r| u32::from(r.report.confidence)).sum();
    if weight == 0 {
        return None;
    }
    let mut domains: Vec<(String, Vec<f64>)> = Vec::new();
    for counted in reports {
        let score = f64::from(counted.report.score);
        match domains.iter_mut().find(|(name, _)| name == counted.domain) {
            Some((_, scores)) => scores.push(score),
            None => domains.push((counted.domain.to_owned(), vec![score])),
        }
    }
    let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let domains = domains.into_iter().map(|(name, s)| Domain {
        name,
        mean: tenth(s.iter().sum::<f64>() / count(s.len())),
        agents: s.len(),
    });
    let sum: u32 = reports
        .iter()
        .map(|r| u32::from(r.report.score) * u32::from(r.report.confidence))
        .sum();
    let overall = f64::from(sum) / f64::from(weight);
    let issues = |of: &dyn Fn(&Report) -> Vec<String>| -> Vec<Issue> {
        reports
            .iter()
            .flat_map(|r| {
                of(r.report).into_iter().map(|what| Issue {
                    agent: r.agent.to_owned(),
                    what,
                })
            })
            .collect()
    };
    let critical = issues(&|r| r.critical.clone());
    let important = issues(&|r| {
        if r.score <= 3 {
            r.recommendations.clone()
        } else {
            Vec::new()
        }
    });
    let minor = issues(&|r| {
        if r.score > 3 {
            r.recommendations.clone()
        } else {
            Vec::new()
        }
    });
    let verdict = if !critical.is_empty() || overall < FAILS_BELOW {
        VERDICTS[2]
    } else if important.is_empty() && overall >= READY_FROM {
        VERDICTS[0]
    } else {
        VERDICTS[1]
    };
    let conflicts = find_conflicts(reports, subjects, opposites);
    Some(Sum {
        domains: domains.collect(),
        overall: hundredth(overall),
        conflicts,
        critical,
        important,
        minor,
        verdict: Some(verdict),
    })
}

fn tenth(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn hundredth(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn find_conflicts(
    reports: &[Counted<'_>],
    subjects: &BTreeMap<String, Vec<String>>,
    opposites: &[Vec<String>],
) -> Vec<Conflict> {
    let mut found: Vec<Conflict> = Vec::new();
    for (subject, members) in subjects {
        let members: Vec<&Counted<'_>> = members
            .iter()
            .filter_map(|m| reports.iter().find(|r| r.agent == m))
            .collect();
        for (index, a) in members.iter().enumerate() {
            for b in &members[index + 1..] {
                let conflict = |advice| Conflict {
                    subject: subject.clone(),
                    agents: [a.agent.to_owned(), b.agent.to_owned()],
                    scores: [a.report.score, b.report.score],
                    advice,
                };
                let advice = opposed(a.report, b.report, opposites);
                if advice.is_some() || a.report.score.abs_diff(b.report.score) >= GAP {
                    found.push(conflict(advice));
                }
            }
        }
    }
    found
}

/// Finds the first two recommendations that contradict each other: opposite words about the same
/// subject.
fn opposed(a: &Report, b: &Report, opposites: &[Vec<String>]) -> Option<[String; 2]> {
    for one in &a.recommendations {
        for other in &b.recommendations {
            let (left, right) = (one.to_lowercase(), other.to_lowercase());
            let against = opposites.iter().filter(|pair| pair.len() == 2).any(|pair| {
                (holds(&left, &pair[0]) && holds(&right, &pair[1]))
                    || (holds(&left, &pair[1]) && holds(&right, &pair[0]))
            });
            if against && share_subject(&left, &right, opposites) {
                return Some([one.clone(), other.clone()]);
            }
        }
    }
    None
}

fn holds(text: &str, word: &str) -> bool {
    if word.is_ascii() {
        text.split(|c: char| !c.is_alphanumeric())
            .any(|w| w == word)
    } else {
        text.contains(word)
    }
}

/// Whether two sentences share a significant word, or in Chinese three neighbouring characters.
fn share_subject(a: &str, b: &str, opposites: &[Vec<String>]) -> bool {
    let telling =
        |word: &&str| word.chars().count() > 4 && !opposites.iter().flatten().any(|o| o == word);
    let words: Vec<&str> = a
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| w.is_ascii())
        .filter(telling)
        .collect();
    if words.iter().any(|word| holds(b, word)) {
        return true;
    }
    let wide: Vec<char> = a.chars().filter(|c| !c.is_ascii()).collect();
    wide.windows(3)
        .map(|three| three.iter().collect::<String>())
        .any(|run| b.contains(&run))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(score: u8, confidence: u8, advice: &str, critical: &[&str]) -> Report {
        Report {
            name: String::new(),
            score,
            confidence,
            summary: String::new(),
            findings: Vec::new(),
            recommendations: vec![advice.into()],
            critical: critical.iter().map(|c| (*c).to_owned()).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn scores_weigh_by_confidence() {
        let (a, b, c) = (
            report(5, 5, "x", &[]),
            report(2, 1, "y", &[]),
            report(4, 4, "z", &[]),
        );
        let counted = [
            ("s1", "sections", &a),
            ("s2", "sections", &b),
            ("r1", "rigour", &c),
        ]
        .map(|(agent, domain, report)| Counted {
            agent,
            domain,
            report,
        });
        let sum = sum_up(
            &counted,
            &BTreeMap::from([(
                "claims".to_owned(),
                vec!["s1".to_owned(), "s2".into(), "r9".into()],
            )]),
            &[],
        )
        .unwrap();
        assert_eq!(
            sum.domains
                .iter()
                .map(|d| (d.name.as_str(), d.mean, d.agents))
                .collect::<Vec<_>>(),
            [("sections", 3.5, 2), ("rigour", 4.0, 1)]
        );
        assert!((sum.overall - 4.3).abs() < 1e-9);
        assert_eq!(sum.conflicts.len(), 1);
        assert_eq!(sum.verdict, Some("needs revision"));
        assert!(sum_up(&[], &BTreeMap::new(), &[]).is_none());
    }

    #[test]
    fn a_critical_issue_decides_and_advice_can_be_opposed() {
        let (a, b) = (
            report(5, 3, "Expand the introduction.", &["fabricated"]),
            report(5, 3, "Shorten the introduction.", &[]),
        );
        let counted = [
            Counted {
                agent: "w2",
                domain: "w",
                report: &a,
            },
            Counted {
                agent: "w3",
                domain: "w",
                report: &b,
            },
        ];
        let subjects = BTreeMap::from([("length".to_owned(), vec!["w2".to_owned(), "w3".into()])]);
        let sum = sum_up(
            &counted,
            &subjects,
            &[vec!["expand".into(), "shorten".into()]],
        )
        .unwrap();
        assert_eq!(sum.verdict, Some("major revision required"));
        assert!(sum.conflicts[0].advice.is_some());
    }
}
