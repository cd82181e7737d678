//! Checks reports against the numbers that Quipu computes: a score against its metrics, the report
//! that weighs the panel, and the page that repeats its result.
//!
//! Pure: reports and the computed result in, faults with lines out.

use quipu_contract::{Language, PanelPart, Step};
use quipu_text::count_words;

use super::comment::Severity;
use super::report::{PlacedIssue, Report, ReportFault};
use super::rounds::Comment;
use super::sum::{Sum, VERDICTS};

/// A score may differ from the mean of its metrics by this much.
const APART: f64 = 1.0;
/// A lower score needs an open comment.
const FLAWLESS_FROM: u8 = 4;

/// The panel as it stands when a report is checked.
pub(super) struct Known<'k> {
    pub sum: Option<&'k Sum>,
    /// The comments of all agents.
    pub comments: &'k [Comment],
    /// The current round.
    pub round: usize,
    /// Members that failed; the report that weighs the panel names them.
    pub failed: Vec<&'k str>,
    /// The report that weighs the panel.
    pub weighed: Option<&'k Report>,
    pub language: Language,
}

/// Finds the faults of a report on the panel.
pub(super) fn find_faults(
    step: &Step,
    text: &str,
    report: &Report,
    known: &Known<'_>,
) -> Vec<ReportFault> {
    let mut faults = match step.panel {
        None => Vec::new(),
        Some(PanelPart::Weigh) => weigh_faults(text, report, known),
        Some(PanelPart::SumUp) => known
            .weighed
            .map(|weighed| page_faults(report, weighed, known.sum))
            .unwrap_or_default(),
    };
    if let Some(most) = step.most_words {
        let most = match known.language {
            Language::En => most.en,
            Language::Zh => most.zh,
        };
        let words = count_words(text);
        if words > most {
            let what = format!("the report has {words} words; at most {most} are allowed");
            faults.push(ReportFault { line: 1, what });
        }
    }
    faults
}

/// Checks the score of a reviewer against its metrics and its open comments.
pub(super) fn score_faults(report: &Report, own: &[Comment]) -> Vec<ReportFault> {
    let fault = |what: String| ReportFault {
        line: report.lines.score,
        what,
    };
    let mut faults = Vec::new();
    if report.score < FLAWLESS_FROM && !own.iter().any(Comment::is_open) {
        faults.push(fault(format!(
            "**Score:** is {}, but no comment is open: a score below {FLAWLESS_FROM} rests on a \
             comment",
            report.score
        )));
    }
    // A metric that does not apply counts for nothing.
    let scores: Vec<u8> = report
        .scores
        .iter()
        .filter_map(|(_, score)| *score)
        .collect();
    if scores.is_empty() {
        return faults;
    }
    let sum: u32 = scores.iter().map(|score| u32::from(*score)).sum();
    let mean = f64::from(sum) / scores.len() as f64;
    let above = f64::from(report.score) - mean;
    // One critical issue may outweigh all metrics.
    let is_critical = |c: &Comment| c.is_open() && c.severity == Severity::Critical;
    let is_low = above < -APART && !own.iter().any(is_critical);
    if above > APART || is_low {
        faults.push(fault(format!(
            "**Score:** is {}, but the detailed scores have a mean of {mean:.1}: they may differ \
             by at most {APART}; correct one of them{}",
            report.score,
            if is_low {
                ", or write the critical comment"
            } else {
                ""
            }
        )));
    }
    faults
}

fn weigh_faults(text: &str, report: &Report, known: &Known<'_>) -> Vec<ReportFault> {
    let mut faults = Vec::new();
    let mut fault = |line: usize, what: String| faults.push(ReportFault { line, what });
    for agent in known.failed.iter().filter(|agent| !names(text, agent)) {
        fault(
            1,
            format!("{agent} failed and is not counted: name it in the summary or the findings"),
        );
    }
    if report.verdict.is_none() {
        fault(
            report.lines.verdict,
            format!(
                "there is no verdict: write `## 8. Verdict` and below it `- **Verdict:** …` with \
                 one of {}",
                VERDICTS.join(", ")
            ),
        );
    }
    let Some(sum) = known.sum else { return faults };
    if let (Some(verdict), Some(rule)) = (&report.verdict, sum.verdict)
        && rule != verdict
        && report.departure.is_none()
    {
        fault(
            report.lines.verdict,
            format!(
                "the verdict is `{verdict}`; the reports give `{rule}` (overall {:.2}, {} critical, \
                 {} important): write that, or add the line `- **Departure:** why you depart from it`",
                sum.overall, sum.open.critical, sum.open.important
            ),
        );
    }
    faults.extend(number_faults(report, sum));
    faults.extend(placing_faults(report, known.comments, known.round));
    faults.extend(conflict_faults(report, sum, known.comments));
    faults
}

/// Faults of the averages that a report states.
fn number_faults(report: &Report, sum: &Sum) -> Vec<ReportFault> {
    let mut faults = Vec::new();
    let mut fault = |line: usize, what: String| faults.push(ReportFault { line, what });
    for (line, name, value) in &report.stated {
        let domain = sum
            .domains
            .iter()
            .find(|domain| domain.name.eq_ignore_ascii_case(name));
        let (computed, agents) = match domain {
            Some(domain) => (domain.mean, Some(domain.agents)),
            None if name.eq_ignore_ascii_case("overall") => (sum.overall, None),
            None => continue,
        };
        let stated = first_number(value);
        if !stated.is_some_and(|stated| stated.is_about(computed)) {
            fault(
                *line,
                format!("**{name}:** is `{value}`; the reports give {computed}"),
            );
        }
        let counted = value
            .split_once(['(', '（'])
            .and_then(|(_, rest)| first_number(rest));
        if let (Some(counted), Some(agents)) = (counted, agents)
            && !counted.is_about(agents as f64)
        {
            fault(
                *line,
                format!("**{name}:** is `{value}`; {agents} agents have reported"),
            );
        }
    }
    faults
}

/// Every open comment is placed once, below its severity. A joined issue has the highest severity
/// of its comments. Comments of earlier rounds that are not named keep the place that they have.
fn placing_faults(report: &Report, comments: &[Comment], round: usize) -> Vec<ReportFault> {
    let mut faults = Vec::new();
    let mut fault = |line: usize, what: String| faults.push(ReportFault { line, what });
    let open = |id: &str| comments.iter().find(|c| c.id == id && c.is_asked());
    for issue in &report.issues {
        if issue.comments.is_empty() {
            fault(
                issue.line,
                "the issue names no comment: begin it with the ids that it joins, `- s6.1, r5.2: \
                 …`"
                .into(),
            );
        }
        for id in issue.comments.iter().filter(|id| open(id).is_none()) {
            let joined = comments.iter().find(|c| c.id == *id && c.is_open());
            let what = match joined.and_then(|c| c.joined_to.as_ref()) {
                Some(first) => format!("`{id}` is joined to `{first}`: name `{first}` alone"),
                None => format!("`{id}` is not an open comment"),
            };
            fault(issue.line, what);
        }
        let highest = issue
            .comments
            .iter()
            .filter_map(|id| Some((open(id)?.severity, id)))
            .min();
        if let Some((severity, id)) = highest.filter(|(severity, _)| *severity != issue.severity) {
            fault(
                issue.line,
                format!(
                    "`{id}` is {}: place it below that heading",
                    severity.as_str()
                ),
            );
        }
    }
    let times = |id: &str| {
        let names = |issue: &&PlacedIssue| issue.comments.iter().any(|named| named == id);
        report.issues.iter().filter(names).count()
    };
    let at = report.lines.issues;
    let ids = comments.iter().filter(|c| c.is_asked()).map(|c| &c.id);
    let new = comments.iter().filter(|c| c.is_asked() && c.round == round);
    let missing: Vec<&str> = new
        .map(|c| c.id.as_str())
        .filter(|id| times(id) == 0)
        .collect();
    if !missing.is_empty() {
        fault(
            at,
            format!(
                "not placed: {}. Name each of them in `## 6. Issues by Severity`, below its \
                 severity; join those that say the same: `- s6.1, r5.2: …`",
                missing.join(", ")
            ),
        );
    }
    for id in ids.filter(|id| times(id) > 1) {
        fault(at, format!("`{id}` is placed {} times", times(id)));
    }
    faults
}

/// Every conflict that a comment declares is ruled on, and a ruling names its comments.
fn conflict_faults(report: &Report, sum: &Sum, comments: &[Comment]) -> Vec<ReportFault> {
    let mut faults = Vec::new();
    let mut fault = |line: usize, what: String| faults.push(ReportFault { line, what });
    let exists = |id: &String| comments.iter().any(|c| c.id == *id);
    for ruling in &report.rulings {
        let known = ruling.comments.iter().filter(|id| exists(id)).count();
        if known < 2 || known < ruling.comments.len() {
            fault(
                ruling.line,
                "a conflict names two comments and says which holds: `- s6.1 | w3.2: w3.2 holds: \
                 why`"
                    .into(),
            );
        } else if !ruling
            .comments
            .iter()
            .any(|id| ruling.text.contains(id.as_str()))
        {
            fault(
                ruling.line,
                format!(
                    "the conflict does not say which holds: `- {}: {} holds: why`",
                    ruling.comments.join(" | "),
                    ruling.comments[0]
                ),
            );
        }
    }
    for conflict in &sum.conflicts {
        let is_ruled = report.rulings.iter().any(|ruling| {
            conflict
                .comments
                .iter()
                .all(|id| ruling.comments.contains(id))
        });
        if !is_ruled {
            let [one, other] = [&conflict.comments[0], &conflict.comments[1]];
            fault(
                report.lines.verdict,
                format!(
                    "`{one}` declares that it opposes `{other}`: rule on it under `## 7. \
                     Conflicts`, `- {one} | {other}: {one} holds: why`"
                ),
            );
        }
    }
    faults
}

/// Faults of the page: verdict, score and overall score are those of the report that weighs.
fn page_faults(report: &Report, weighed: &Report, sum: Option<&Sum>) -> Vec<ReportFault> {
    let mut faults = Vec::new();
    let mut fault = |line: usize, what: String| faults.push(ReportFault { line, what });
    if (report.score, report.confidence) != (weighed.score, weighed.confidence) {
        fault(
            report.lines.score,
            format!(
                "score and confidence are {} and {}; quality control gave {} and {}",
                report.score, report.confidence, weighed.score, weighed.confidence
            ),
        );
    }
    let summary = report.summary.to_lowercase();
    if let Some(verdict) = &weighed.verdict {
        // `ready` is also an ordinary word.
        let other = VERDICTS[1..]
            .iter()
            .find(|other| *other != verdict && summary.contains(**other));
        if !summary.contains(verdict.as_str()) || other.is_some() {
            fault(
                report.lines.summary,
                format!("**Summary:** must give the verdict of quality control: `{verdict}`"),
            );
        }
    }
    if let Some(open) = sum.map(|sum| sum.open.critical)
        && (open == 0) != report.critical.is_empty()
    {
        fault(
            report.lines.critical,
            format!(
                "the critical issues are {}; the comments give {open}: write {}",
                report.critical.len(),
                if open == 0 {
                    "`- None`"
                } else {
                    "a line for each"
                }
            ),
        );
    }
    if let (Some(sum), Some(stated)) = (sum, overall_in(&summary))
        && !stated.is_about(sum.overall)
    {
        fault(
            report.lines.summary,
            format!(
                "**Summary:** states another overall score; the reports give {:.2}",
                sum.overall
            ),
        );
    }
    faults
}

/// Whether a text names an agent as a word.
fn names(text: &str, agent: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| word.eq_ignore_ascii_case(agent))
}

/// A number as it is written, with its decimals.
struct Stated {
    value: f64,
    decimals: u32,
}

impl Stated {
    /// Whether a computed value gives this number when it is rounded to as many decimals.
    fn is_about(&self, computed: f64) -> bool {
        let unit = 10_f64.powi(-i32::try_from(self.decimals.min(9)).unwrap_or(9));
        (self.value - computed).abs() <= unit / 2.0 + 0.006
    }
}

fn first_number(text: &str) -> Option<Stated> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let digits: String = text[start..]
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    let digits = digits.trim_end_matches('.');
    let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
    Some(Stated {
        value: digits.parse().ok()?,
        decimals: u32::try_from(decimals).unwrap_or(0),
    })
}

/// The characters after `overall` in which its number stands.
const NEAR: usize = 24;

/// The overall score that a sentence states, with decimals: `overall score of 3.9`, `总分 3.9`.
fn overall_in(summary: &str) -> Option<Stated> {
    let at = ["overall", "总分", "总评"]
        .iter()
        .find_map(|word| Some(summary.find(word)? + word.len()))?;
    let near: String = summary[at..].chars().take(NEAR).collect();
    first_number(&near).filter(|stated| stated.decimals > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::comment::Status;
    use crate::review::report::Ruling;
    use crate::review::sum::{Conflict, Counts, Domain};

    fn report(score: u8, metrics: &[u8]) -> Report {
        Report {
            score,
            confidence: 4,
            scores: metrics
                .iter()
                .map(|m| (String::new(), (*m > 0).then_some(*m)))
                .collect(),
            ..Report::default()
        }
    }

    fn sum() -> Sum {
        Sum {
            domains: vec![Domain {
                name: "sections".into(),
                mean: 3.8,
                agents: 9,
            }],
            overall: 3.94,
            open: Counts::default(),
            shared: Vec::new(),
            conflicts: Vec::new(),
            verdict: Some("needs revision"),
        }
    }

    fn comment(id: &str, severity: Severity, status: Status) -> Comment {
        Comment {
            id: id.into(),
            agent: "s1".into(),
            severity,
            round: 1,
            path: None,
            line: 1,
            was: None,
            gone: false,
            last_line: 1,
            written_line: 1,
            quote: "word".into(),
            text: "Mend it.".into(),
            status,
            answer: None,
            joined_to: None,
            matter: None,
            carried: false,
            passage: None,
        }
    }

    #[test]
    fn a_score_follows_from_its_metrics_and_comments() {
        let important = [comment("s1.1", Severity::Important, Status::Open)];
        for (score, metrics, faults) in [
            (5, [1, 1, 1, 1], 1),
            (5, [4, 4, 4, 4], 0),
            (3, [4, 4, 4, 4], 0),
            (1, [4, 4, 4, 4], 1),
            // 0 stands for a metric that does not apply.
            (5, [5, 0, 0, 5], 0),
            (5, [0, 0, 0, 0], 0),
        ] {
            let found = score_faults(&report(score, &metrics), &important);
            assert_eq!(found.len(), faults, "{score} {metrics:?}");
        }
        assert_eq!(score_faults(&report(3, &[3, 3]), &[]).len(), 1);
        let closed = [comment("s1.1", Severity::Critical, Status::Addressed)];
        assert_eq!(score_faults(&report(3, &[3, 3]), &closed).len(), 1);
        assert!(score_faults(&report(4, &[4, 4]), &closed).is_empty());
        let fatal = [comment("s1.1", Severity::Critical, Status::Partly)];
        assert!(score_faults(&report(1, &[4, 4]), &fatal).is_empty());
    }

    #[test]
    fn every_open_comment_is_placed_once_below_its_severity() {
        let comments = [
            comment("s1.1", Severity::Critical, Status::Open),
            comment("s1.2", Severity::Minor, Status::NotAddressed),
            comment("s1.3", Severity::Minor, Status::Addressed),
        ];
        let place = |entries: &[(Severity, &[&str])]| {
            let issue = |(severity, ids): &(Severity, &[&str])| PlacedIssue {
                line: 7,
                severity: *severity,
                comments: ids.iter().map(|id| (*id).to_owned()).collect(),
                text: "Mend it.".into(),
            };
            let report = Report {
                issues: entries.iter().map(issue).collect(),
                ..report(4, &[])
            };
            placing_faults(&report, &comments, 1).len()
        };
        use Severity::{Critical, Important, Minor};
        assert_eq!(place(&[(Critical, &["s1.1"]), (Minor, &["s1.2"])]), 0);
        assert_eq!(place(&[(Critical, &["s1.1", "s1.2"])]), 0);
        assert_eq!(place(&[]), 1);
        assert_eq!(place(&[(Critical, &["s1.1"])]), 1);
        assert_eq!(place(&[(Important, &["s1.1", "s1.2"])]), 1);
        assert_eq!(
            place(&[(Critical, &["s1.1", "s1.2"]), (Minor, &["s1.2"])]),
            1
        );
        assert_eq!(
            place(&[(Critical, &["s1.1", "s1.2"]), (Minor, &["s1.3"])]),
            1
        );
        assert_eq!(place(&[(Critical, &["s1.1", "s1.2"]), (Minor, &[])]), 1);
        // In a later round they have their places.
        assert!(placing_faults(&report(4, &[]), &comments, 2).is_empty());
    }

    #[test]
    fn a_declared_conflict_is_ruled_on() {
        let comments = [
            comment("s1.1", Severity::Minor, Status::Open),
            comment("w3.1", Severity::Minor, Status::Open),
        ];
        let mut sum = sum();
        sum.conflicts = vec![Conflict {
            comments: vec!["w3.1".into(), "s1.1".into()],
            ruling: None,
        }];
        let faults = |ids: &[&str], text: &str| {
            let ruling = Ruling {
                line: 7,
                comments: ids.iter().map(|id| (*id).to_owned()).collect(),
                text: text.into(),
            };
            let report = Report {
                rulings: vec![ruling],
                ..report(4, &[])
            };
            conflict_faults(&report, &sum, &comments).len()
        };
        assert_eq!(
            faults(&["s1.1", "w3.1"], "s1.1 holds: it has the numbers"),
            0
        );
        assert_eq!(faults(&["s1.1", "w3.1"], "both are right"), 1);
        assert_eq!(faults(&["s1.1"], "s1.1 holds"), 2);
        assert_eq!(conflict_faults(&report(4, &[]), &sum, &comments).len(), 1);
    }

    #[test]
    fn the_weighing_report_agrees_with_the_numbers_or_gives_a_reason() {
        let sum = sum();
        let known = Known {
            sum: Some(&sum),
            comments: &[],
            round: 1,
            failed: vec!["s3"],
            weighed: None,
            language: Language::En,
        };
        let faults = |report: &Report| weigh_faults("s3 failed", report, &known).len();
        let mut good = report(4, &[]);
        assert_eq!(faults(&good), 1);
        good.verdict = Some("ready".into());
        assert_eq!(faults(&good), 1);
        good.departure = Some("s5 scored another text".into());
        assert_eq!(faults(&good), 0);
        good.verdict = Some("needs revision".into());
        for (value, expected) in [
            ("3.8 (9 of 10 agents)", 0),
            ("4.2 (9 of 10)", 1),
            ("3.8 (8)", 1),
        ] {
            good.stated = vec![(1, "Sections".into(), value.into())];
            assert_eq!(faults(&good), expected, "{value}");
        }
        for (value, expected) in [("3.9", 0), ("3.94", 0), ("4.2", 1)] {
            good.stated = vec![(1, "Overall".into(), value.into())];
            assert_eq!(faults(&good), expected, "{value}");
        }
        assert_eq!(weigh_faults("nobody failed", &good, &known).len(), 2);
    }

    #[test]
    fn the_page_repeats_the_result() {
        let weighed = Report {
            verdict: Some("needs revision".into()),
            ..report(4, &[])
        };
        let page = |summary: &str| Report {
            summary: summary.into(),
            ..report(4, &[])
        };
        let faults = |summary: &str| page_faults(&page(summary), &weighed, Some(&sum())).len();
        assert_eq!(faults("Needs revision: overall 3.9, for the sampling."), 0);
        assert_eq!(faults("needs revision，总分 3.9"), 0);
        assert_eq!(faults("It is ready."), 1);
        assert_eq!(faults("needs revision, overall score 4.4"), 1);
        assert_eq!(faults("needs revision, not major revision required"), 1);
        let grave = Report {
            critical: vec!["fabricated".into()],
            ..page("needs revision")
        };
        assert_eq!(page_faults(&grave, &weighed, Some(&sum())).len(), 1);
        let other = Report {
            score: 5,
            ..page("needs revision")
        };
        assert_eq!(page_faults(&other, &weighed, None).len(), 1);
    }
}
