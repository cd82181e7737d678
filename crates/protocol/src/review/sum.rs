//! Combines reports: averages by domain, an overall score weighted by confidence, counts of open
//! comments, passages that several agents comment on, and the verdict of the rule.
//!
//! Pure arithmetic. The caller passes only completed reports, so no failed agent and no metric that
//! does not apply enters an average.

use serde::Serialize;

use super::comment::{Severity, opposed};
use super::report::Report;
use super::rounds::Comment;

/// From best to worst.
pub const VERDICTS: [&str; 3] = ["ready", "needs revision", "major revision required"];

/// A manuscript below the first value fails; from the second value on it may be ready.
const FAILS_BELOW: f64 = 3.0;
const READY_FROM: f64 = 4.0;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Domain {
    pub name: String,
    pub mean: f64,
    pub agents: usize,
}

/// Open comments of several agents on one passage: duplicates, or opposite advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedPassage {
    pub line: usize,
    pub quote: String,
    pub comments: Vec<String>,
}

/// Two comments with opposite advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    pub comments: Vec<String>,
    /// The ruling of the agent that weighs the panel; none yet if only a comment declares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ruling: Option<String>,
}

/// The number of open comments of each severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    pub critical: usize,
    pub important: usize,
    pub minor: usize,
}

impl Counts {
    pub fn of<'c>(comments: impl Iterator<Item = &'c Comment>) -> Counts {
        let mut counts = Counts::default();
        for comment in comments.filter(|c| c.is_asked()) {
            match comment.severity {
                Severity::Critical => counts.critical += 1,
                Severity::Important => counts.important += 1,
                Severity::Minor => counts.minor += 1,
            }
        }
        counts
    }

    pub const fn get(&self, severity: Severity) -> usize {
        match severity {
            Severity::Critical => self.critical,
            Severity::Important => self.important,
            Severity::Minor => self.minor,
        }
    }
}

/// The combined result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sum {
    pub domains: Vec<Domain>,
    /// The sum of score × confidence, divided by the sum of confidence.
    pub overall: f64,
    /// Open comments by severity.
    pub open: Counts,
    pub shared: Vec<SharedPassage>,
    pub conflicts: Vec<Conflict>,
    /// The verdict of the rule; none as long as a report is open.
    pub verdict: Option<&'static str>,
}

/// A completed report with its domain.
pub struct Counted<'r> {
    pub domain: &'r str,
    pub report: &'r Report,
}

/// Combines reports and the comments of all rounds. None if there are no reports.
pub fn sum_up(reports: &[Counted<'_>], comments: &[Comment]) -> Option<Sum> {
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
    let weighted = |r: &Counted<'_>| u32::from(r.report.score) * u32::from(r.report.confidence);
    let sum: u32 = reports.iter().map(weighted).sum();
    let overall = f64::from(sum) / f64::from(weight);
    let open = Counts::of(comments.iter());
    let verdict = if open.critical > 0 || overall < FAILS_BELOW {
        VERDICTS[2]
    } else if open.important == 0 && overall >= READY_FROM {
        VERDICTS[0]
    } else {
        VERDICTS[1]
    };
    Some(Sum {
        domains: domains.collect(),
        overall: hundredth(overall),
        open,
        shared: shared_passages(comments),
        conflicts: declared_conflicts(comments),
        verdict: Some(verdict),
    })
}

fn tenth(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn hundredth(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// Groups open comments of different agents whose passages overlap, in the order of the text.
fn shared_passages(comments: &[Comment]) -> Vec<SharedPassage> {
    let open: Vec<&Comment> = comments
        .iter()
        .filter(|c| c.is_asked() && c.passage.is_some())
        .collect();
    let overlap = |a: &Comment, b: &Comment| match (&a.passage, &b.passage) {
        (Some(one), Some(other)) => a.agent != b.agent && a.path == b.path && one.overlaps(other),
        _ => false,
    };
    let mut group: Vec<usize> = (0..open.len()).collect();
    for at in 0..open.len() {
        for other in 0..at {
            if overlap(open[at], open[other]) {
                let (from, to) = (group[at], group[other]);
                group
                    .iter_mut()
                    .filter(|g| **g == from)
                    .for_each(|g| *g = to);
            }
        }
    }
    let mut found = Vec::new();
    for number in 0..open.len() {
        let members: Vec<&Comment> = (0..open.len())
            .filter(|at| group[*at] == number)
            .map(|at| open[at])
            .collect();
        if members.len() > 1 {
            found.push(SharedPassage {
                line: members[0].line,
                quote: members[0].quote.clone(),
                comments: members.iter().map(|c| c.id.clone()).collect(),
            });
        }
    }
    found.sort_by_key(|shared| shared.line);
    found
}

/// The open comments that declare to oppose another open comment.
fn declared_conflicts(comments: &[Comment]) -> Vec<Conflict> {
    let open = || comments.iter().filter(|c| c.is_asked());
    let declared = open().filter_map(|comment| {
        let other = opposed(&comment.text)?;
        let other = open().find(|c| c.id == other && c.agent != comment.agent)?;
        Some(Conflict {
            comments: vec![comment.id.clone(), other.id.clone()],
            ruling: None,
        })
    });
    declared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::comment::Status;
    use crate::review::passage::Passage;

    fn report(score: u8, confidence: u8) -> Report {
        Report {
            score,
            confidence,
            ..Report::default()
        }
    }

    fn comment(id: &str, severity: Severity, at: std::ops::Range<usize>, text: &str) -> Comment {
        Comment {
            id: id.into(),
            agent: id.split('.').next().unwrap().into(),
            severity,
            round: 1,
            path: None,
            line: at.start,
            was: None,
            gone: false,
            last_line: at.start,
            written_line: at.start,
            quote: "words".into(),
            text: text.into(),
            status: Status::Open,
            answer: None,
            joined_to: None,
            matter: None,
            carried: false,
            passage: Some(Passage {
                first: at.start,
                last: at.start,
                plain: at,
            }),
        }
    }

    #[test]
    fn scores_weigh_by_confidence() {
        let (a, b, c) = (report(5, 5), report(2, 1), report(4, 4));
        let counted = [("sections", &a), ("sections", &b), ("rigour", &c)]
            .map(|(domain, report)| Counted { domain, report });
        let sum = sum_up(&counted, &[]).unwrap();
        assert_eq!(
            sum.domains
                .iter()
                .map(|d| (d.name.as_str(), d.mean, d.agents))
                .collect::<Vec<_>>(),
            [("sections", 3.5, 2), ("rigour", 4.0, 1)]
        );
        assert!((sum.overall - 4.3).abs() < 1e-9);
        assert_eq!(sum.verdict, Some("ready"));
        assert!(sum_up(&[], &[]).is_none());
    }

    #[test]
    fn open_comments_decide_and_closed_ones_do_not() {
        let good = report(5, 5);
        let counted = [Counted {
            domain: "d",
            report: &good,
        }];
        let verdict = |comments: &[Comment]| sum_up(&counted, comments).unwrap().verdict;
        let mut one = comment("s1.1", Severity::Critical, 1..2, "fabricated");
        assert_eq!(verdict(&[one.clone()]), Some("major revision required"));
        one.status = Status::Partly;
        assert_eq!(verdict(&[one.clone()]), Some("major revision required"));
        one.status = Status::Addressed;
        assert_eq!(verdict(&[one]), Some("ready"));
        let important = comment("s1.2", Severity::Important, 1..2, "unclear");
        assert_eq!(verdict(&[important]), Some("needs revision"));
        let minor = comment("s1.3", Severity::Minor, 1..2, "a comma");
        assert_eq!(verdict(&[minor]), Some("ready"));
    }

    #[test]
    fn one_passage_joins_comments_of_different_agents() {
        let comments = [
            comment("s1.1", Severity::Minor, 10..20, "Cut it."),
            comment("s1.2", Severity::Minor, 12..18, "Cut it more."),
            comment("w3.1", Severity::Minor, 15..30, "Expand it, against s1.1."),
            comment("r5.1", Severity::Minor, 29..40, "It is wrong."),
            comment("r6.1", Severity::Minor, 50..60, "Elsewhere, against zz.9."),
        ];
        let good = report(5, 5);
        let counted = [Counted {
            domain: "d",
            report: &good,
        }];
        let sum = sum_up(&counted, &comments).unwrap();
        assert_eq!(sum.shared.len(), 1);
        assert_eq!(sum.shared[0].comments, ["s1.1", "s1.2", "w3.1", "r5.1"]);
        assert_eq!(sum.conflicts.len(), 1);
        assert_eq!(sum.conflicts[0].comments, ["w3.1", "s1.1"]);
    }
}
