//! Checks reports against the numbers that Quipu computes: a score against its metrics, the report
//! that weighs the panel, and the page that repeats its result.
//!
//! Pure: reports and the computed result in, faults with lines out.

use quipu_contract::{Language, PanelPart, Step};
use quipu_text::count_words;

use super::report::{Report, ReportFault};
use super::sum::{Sum, VERDICTS};

/// A score may differ from the mean of its metrics by this much.
const APART: f64 = 1.0;

/// The panel as it stands when a report is checked.
pub(super) struct Known<'k> {
    pub sum: Option<&'k Sum>,
    /// Members that failed; the report that weighs the panel names them.
    pub failed: Vec<&'k str>,
    /// The report that weighs the panel.
    pub weighed: Option<&'k Report>,
    pub language: Language,
}

pub(super) fn find_faults(
    step: &Step,
    text: &str,
    report: &Report,
    known: &Known<'_>,
) -> Vec<ReportFault> {
    let mut faults = match step.panel {
        None => score_against_metrics(report),
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

fn score_against_metrics(report: &Report) -> Vec<ReportFault> {
    if report.scores.is_empty() {
        return Vec::new();
    }
    let sum: u32 = report
        .scores
        .iter()
        .map(|(_, score)| u32::from(*score))
        .sum();
    let mean = f64::from(sum) / report.scores.len() as f64;
    let above = f64::from(report.score) - mean;
    // One critical issue may outweigh all metrics.
    let is_low = above < -APART && report.critical.is_empty();
    if above <= APART && !is_low {
        return Vec::new();
    }
    vec![ReportFault {
        line: report.lines.score,
        what: format!(
            "**Score:** is {}, but the detailed scores have a mean of {mean:.1}: they may differ by \
             at most {APART}; correct one of them{}",
            report.score,
            if is_low {
                ", or name the critical issue"
            } else {
                ""
            }
        ),
    }]
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
    let Some(verdict) = &report.verdict else {
        fault(
            report.lines.verdict,
            format!(
                "there is no verdict: write `## 9. Verdict` and below it `- **Verdict:** …` with one \
                 of {}",
                VERDICTS.join(", ")
            ),
        );
        return faults;
    };
    let Some(sum) = known.sum else { return faults };
    if let Some(rule) = sum.verdict.filter(|rule| rule != verdict)
        && report.departure.is_none()
    {
        fault(
            report.lines.verdict,
            format!(
                "the verdict is `{verdict}`; the reports give `{rule}` (overall {:.2}, {} critical, \
                 {} important): write that, or add the line `- **Departure:** why you depart from it`",
                sum.overall,
                sum.critical.len(),
                sum.important.len()
            ),
        );
    }
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
    use crate::review::sum::Domain;

    fn report(score: u8, metrics: &[u8]) -> Report {
        Report {
            score,
            confidence: 4,
            scores: metrics.iter().map(|m| (String::new(), *m)).collect(),
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
            conflicts: Vec::new(),
            critical: Vec::new(),
            important: Vec::new(),
            minor: Vec::new(),
            verdict: Some("needs revision"),
        }
    }

    #[test]
    fn a_score_follows_from_its_metrics() {
        for (score, metrics, faults) in [
            (5, [1, 1, 1, 1], 1),
            (5, [4, 4, 4, 4], 0),
            (3, [4, 4, 4, 4], 0),
            (1, [4, 4, 4, 4], 1),
        ] {
            assert_eq!(
                score_against_metrics(&report(score, &metrics)).len(),
                faults
            );
        }
        let fatal = Report {
            critical: vec!["fabricated".into()],
            ..report(1, &[4, 4])
        };
        assert!(score_against_metrics(&fatal).is_empty());
    }

    #[test]
    fn the_weighing_report_agrees_with_the_numbers_or_gives_a_reason() {
        let sum = sum();
        let known = Known {
            sum: Some(&sum),
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
        let other = Report {
            score: 5,
            ..page("needs revision")
        };
        assert_eq!(page_faults(&other, &weighed, None).len(), 1);
    }
}
