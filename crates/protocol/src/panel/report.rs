//! Parses the report of one reviewing agent strictly. Each fault names its line, so that the agent
//! can fix it.

use quipu_text::{Document, Section};
use serde::Serialize;

/// The parts of a report, in order.
const PARTS: [&str; 5] = [
    "Overall Assessment",
    "Key Findings",
    "Recommendations",
    "Critical Issues",
    "Detailed Scores",
];

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub name: String,
    /// 1 to 5.
    pub score: u8,
    /// 1 to 5.
    pub confidence: u8,
    pub summary: String,
    pub findings: Vec<String>,
    pub recommendations: Vec<String>,
    pub critical: Vec<String>,
    pub scores: Vec<(String, u8)>,
    /// The verdict, if the report has one.
    pub verdict: Option<String>,
}

/// A fault and its line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportFault {
    pub line: usize,
    pub what: String,
}

/// Parses a report. `metrics` are the names that it must score.
pub fn parse_report(text: &str, metrics: &[&str]) -> Result<Report, Vec<ReportFault>> {
    let document = Document::parse(text);
    let mut faults = Vec::new();
    let mut fault = |line: usize, what: String| faults.push(ReportFault { line, what });
    let title = document.sections().iter().find(|s| s.level == 1);
    let name = match title {
        Some(title) if title.title.ends_with("Analysis") => {
            title.title.trim_end_matches("Analysis").trim().to_owned()
        }
        Some(title) => {
            fault(
                title.line,
                format!("the title is `# {}`; `# … Analysis` is asked", title.title),
            );
            String::new()
        }
        None => {
            fault(1, "there is no title; `# … Analysis` is asked".into());
            String::new()
        }
    };
    let end = text.lines().count().max(1);
    let mut parts: Vec<Option<&Section>> = Vec::new();
    for (index, part) in PARTS.iter().enumerate() {
        let heading = format!("{}. {part}", index + 1);
        let found = document
            .sections()
            .iter()
            .find(|s| s.level == 2 && s.title == heading);
        if found.is_none() {
            let near = document
                .sections()
                .iter()
                .find(|s| s.title.to_lowercase().contains(&part.to_lowercase()));
            match near {
                Some(near) => fault(
                    near.line,
                    format!(
                        "the heading is `{}`; `## {heading}` is asked, to the letter",
                        near.title
                    ),
                ),
                None => fault(end, format!("there is no `## {heading}`")),
            }
        }
        parts.push(found);
    }
    let mut number = |part: Option<&Section>, key: &str| -> u8 {
        let Some(part) = part else { return 0 };
        match keyed(&document, part)
            .into_iter()
            .find(|(_, name, _)| name == key)
        {
            None => {
                fault(
                    part.line,
                    format!("`{}` has no line `- **{key}:** [1-5]`", part.title),
                );
                0
            }
            Some((line, _, value)) => whole(&value).unwrap_or_else(|| {
                fault(
                    line,
                    format!("**{key}:** is `{value}`; a whole number from 1 to 5 is asked"),
                );
                0
            }),
        }
    };
    let score = number(parts[0], "Score");
    let confidence = number(parts[0], "Confidence");
    let scores: Vec<(String, u8)> = metrics
        .iter()
        .map(|metric| ((*metric).to_owned(), number(parts[4], metric)))
        .collect();
    let summary = parts[0].and_then(|part| {
        keyed(&document, part)
            .into_iter()
            .find(|(_, name, _)| name == "Summary")
    });
    if let (Some(part), None) = (parts[0], &summary) {
        fault(
            part.line,
            format!("`{}` has no line `- **Summary:** …`", part.title),
        );
    }
    let mut list = |part: Option<&Section>| -> Vec<String> {
        let Some(part) = part else { return Vec::new() };
        let items = items(&document, part);
        if items.is_empty() {
            fault(
                part.line,
                format!(
                    "`{}` has no list; write `- None` where there is nothing",
                    part.title
                ),
            );
        }
        items.into_iter().filter(|i| !is_none(i)).collect()
    };
    let (findings, recommendations, critical) = (list(parts[1]), list(parts[2]), list(parts[3]));
    let verdict = document
        .sections()
        .iter()
        .find(|s| s.level == 2 && s.title.ends_with("Verdict"));
    let verdict = verdict.and_then(|part| {
        let (line, _, value) = keyed(&document, part)
            .into_iter()
            .find(|(_, name, _)| name == "Verdict")?;
        let known = super::sum::VERDICTS
            .iter()
            .find(|v| value.trim_end_matches('.').eq_ignore_ascii_case(v));
        if known.is_none() {
            fault(
                line,
                format!(
                    "the verdict is `{value}`; one of {} is asked",
                    super::sum::VERDICTS.join(", ")
                ),
            );
        }
        known.map(|v| (*v).to_owned())
    });
    if !faults.is_empty() {
        faults.sort_by_key(|f| f.line);
        return Err(faults);
    }
    let summary = summary.map(|(_, _, value)| value).unwrap_or_default();
    Ok(Report {
        name,
        score,
        confidence,
        summary,
        findings,
        recommendations,
        critical,
        scores,
        verdict,
    })
}

fn whole(value: &str) -> Option<u8> {
    value.trim().parse().ok().filter(|n| (1..=5).contains(n))
}

/// Whether an item says that the list is empty.
fn is_none(item: &str) -> bool {
    let item = item.trim().trim_end_matches(['.', '。']).to_lowercase();
    ["none", "none found", "n/a", "无", "没有", "-"].contains(&item.as_str())
}

fn items(document: &Document<'_>, part: &Section) -> Vec<String> {
    let own = document
        .items_in(&part.range)
        .iter()
        .filter(|i| i.depth == 0);
    own.map(|i| {
        document
            .slice(&i.content)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    })
    .collect()
}

/// The lines `- **Name:** value` of a part: line, name, value.
fn keyed(document: &Document<'_>, part: &Section) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    for item in document
        .items_in(&part.range)
        .iter()
        .filter(|i| i.depth == 0)
    {
        let raw = document
            .slice(&item.content)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let Some((name, value)) = raw
            .strip_prefix("**")
            .and_then(|rest| rest.split_once("**"))
        else {
            continue;
        };
        let (name, value) = (
            name.trim().trim_end_matches([':', '：']),
            value.trim().trim_start_matches([':', '：']),
        );
        found.push((item.line, name.trim().to_owned(), value.trim().to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Abstract Reviewer Analysis\n\n## 1. Overall Assessment\n- **Score:** 4\n- **Confidence:** 3\n- **Summary:** Clear.\n\n## 2. Key Findings\n- One\n  over two lines\n\n## 3. Recommendations\n- Do it.\n\n## 4. Critical Issues\n- None\n\n## 5. Detailed Scores\n- **Order of the argument, as it is told in seven words:** 5\n\n<!-- ANALYSIS_COMPLETE -->\n";
    const METRIC: &str = "Order of the argument, as it is told in seven words";

    #[test]
    fn a_report_is_read() {
        let report = parse_report(GOOD, &[METRIC]).unwrap();
        assert_eq!(
            (report.score, report.confidence, report.summary.as_str()),
            (4, 3, "Clear.")
        );
        assert_eq!(report.findings, ["One over two lines"]);
        assert!(report.critical.is_empty());
        assert_eq!(report.scores, [(METRIC.to_owned(), 5)]);
    }

    #[test]
    fn faults_name_their_lines() {
        let faults = |text: &str| -> Vec<usize> {
            parse_report(text, &[METRIC])
                .unwrap_err()
                .iter()
                .map(|f| f.line)
                .collect()
        };
        assert_eq!(faults(&GOOD.replace("Score:** 4", "Score:** 4.5")), [4]);
        assert_eq!(
            faults(&GOOD.replace("Confidence:** 3", "Confidence:** 6")),
            [5]
        );
        assert_eq!(
            faults(&GOOD.replace("## 2. Key Findings", "## Key findings")),
            [8]
        );
        assert_eq!(faults(&GOOD.replace("- Do it.", "Do it.")), [12]);
        assert_eq!(
            faults(&GOOD.replace("seven words:** 5", "eight words:** 5")),
            [18]
        );
        assert_eq!(faults(""), [1, 1, 1, 1, 1, 1]);
    }
}
