//! Parses the report of one reviewing agent strictly. Each fault names its line, so that the agent
//! can fix it.

use quipu_text::{Document, Section};
use serde::Serialize;

use super::nothing::{Entry, read_entry};

/// The parts of a report, in order.
const PARTS: [&str; 5] = [
    "Overall Assessment",
    "Key Findings",
    "Recommendations",
    "Critical Issues",
    "Detailed Scores",
];

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
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
    /// Why the verdict differs from that of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departure: Option<String>,
    /// The numbers that it states about the panel: line, name and value, as in `Sections`, `3.8 (9
    /// of 10 agents)`.
    #[serde(skip)]
    pub stated: Vec<(usize, String, String)>,
    /// The lines of score, confidence, summary and verdict, for faults.
    #[serde(skip)]
    pub lines: ReportLines,
}

/// Where a report says what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportLines {
    pub score: usize,
    pub summary: usize,
    pub verdict: usize,
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
                format!(
                    "the title is `# {}`; it must be `# … Analysis`",
                    title.title
                ),
            );
            String::new()
        }
        None => {
            fault(1, "there is no title; it must be `# … Analysis`".into());
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
                        "the heading is `{}`; it must be exactly `## {heading}`",
                        near.title
                    ),
                ),
                None => fault(end, format!("`## {heading}` is missing")),
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
                    format!("**{key}:** is `{value}`; it must be a whole number from 1 to 5"),
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
        for (line, item) in &items {
            // Findings and recommendations that say more than "none" are kept as they are.
            if part.title.ends_with(PARTS[3]) && read_entry(item) == Entry::Unclear {
                fault(
                    *line,
                    format!(
                        "\"{item}\" denies critical issues and says something else: write `- None`, \
                         or state only what must be settled"
                    ),
                );
            }
        }
        if items.is_empty() {
            fault(
                part.line,
                format!(
                    "`{}` has no list; write `- None` if there is nothing to report",
                    part.title
                ),
            );
        }
        items
            .into_iter()
            .map(|(_, item)| item)
            .filter(|item| read_entry(item) != Entry::Nothing)
            .collect()
    };
    let (findings, recommendations, critical) = (list(parts[1]), list(parts[2]), list(parts[3]));
    let part_of = |name: &str| {
        document
            .sections()
            .iter()
            .find(|s| s.level == 2 && s.title.ends_with(name))
    };
    let decided = part_of("Verdict").map(|part| keyed(&document, part));
    let said = |name: &str| decided.iter().flatten().find(|(_, key, _)| key == name);
    let verdict = said("Verdict").and_then(|(line, _, value)| {
        let known = super::sum::VERDICTS
            .iter()
            .find(|v| value.trim_end_matches('.').eq_ignore_ascii_case(v));
        if known.is_none() {
            fault(
                *line,
                format!(
                    "the verdict is `{value}`; it must be one of {}",
                    super::sum::VERDICTS.join(", ")
                ),
            );
        }
        known.map(|v| (*v).to_owned())
    });
    let departure = said("Departure")
        .map(|(_, _, value)| value.clone())
        .filter(|value| {
            value.contains(char::is_alphanumeric) && read_entry(value) != Entry::Nothing
        });
    let stated = part_of("Scores by Domain").map(|part| keyed(&document, part));
    let line_of = |part: Option<&Section>, key: &str| {
        let keys = part.map(|part| keyed(&document, part)).unwrap_or_default();
        let found = keys.iter().find(|(_, name, _)| name == key);
        found.map_or_else(|| part.map_or(end, |part| part.line), |(line, _, _)| *line)
    };
    let lines = ReportLines {
        score: line_of(parts[0], "Score"),
        summary: line_of(parts[0], "Summary"),
        verdict: said("Verdict").map_or(end, |(line, _, _)| *line),
    };
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
        departure,
        stated: stated.unwrap_or_default(),
        lines,
    })
}

fn whole(value: &str) -> Option<u8> {
    value.trim().parse().ok().filter(|n| (1..=5).contains(n))
}

/// The top-level items of a part with their lines.
fn items(document: &Document<'_>, part: &Section) -> Vec<(usize, String)> {
    let own = document
        .items_in(&part.range)
        .iter()
        .filter(|i| i.depth == 0);
    own.map(|i| {
        let text = document.slice(&i.content);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (i.line, text)
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
    #[test]
    fn a_denied_issue_is_none_and_an_unclear_one_goes_back() {
        for denied in ["No critical issues were identified.", "未发现关键问题。"] {
            let text = GOOD.replace(
                "## 4. Critical Issues\n- None",
                &format!("## 4. Critical Issues\n- {denied}"),
            );
            assert!(parse_report(&text, &[METRIC]).unwrap().critical.is_empty());
        }
        let text = GOOD.replace(
            "## 4. Critical Issues\n- None",
            "## 4. Critical Issues\n- No critical issues, but n is 3.",
        );
        assert_eq!(parse_report(&text, &[METRIC]).unwrap_err()[0].line, 16);
    }

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
