//! Parses the report of one agent of a panel strictly. Each fault names its line, so that the agent
//! can fix it.
//!
//! A reviewer writes comments; the agents that weigh the panel and sum it up write lists. In a later
//! round a reviewer may write one list without parts: a summary, the scores that change, answers and
//! new comments. The other scores are those of its last report.

use quipu_text::{Document, Section};
use serde::Serialize;

use super::comment::{
    Severity, WrittenAnswer, WrittenComment, ids_in, parse_answer, parse_comment,
};
use super::nothing::{Entry, read_entry};
use super::sum::VERDICTS;

/// The parts of a reviewer's report, in order.
const OF_REVIEWER: [&str; 3] = ["Overall Assessment", "Comments", "Detailed Scores"];
/// The parts of a report on the panel, in order.
const OF_PANEL: [&str; 5] = [
    "Overall Assessment",
    "Key Findings",
    "Recommendations",
    "Critical Issues",
    "Detailed Scores",
];
const ANSWERS: &str = "Earlier Comments";
const ISSUES: &str = "Issues by Severity";
const CONFLICTS: &str = "Conflicts";

/// Who writes a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    Reviewer,
    /// An agent that reports on the reports of others.
    Panel,
}

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    pub name: String,
    /// 1 to 5.
    pub score: u8,
    /// 1 to 5.
    pub confidence: u8,
    pub summary: String,
    #[serde(skip)]
    pub comments: Vec<WrittenComment>,
    /// Answers to comments of earlier rounds.
    #[serde(skip)]
    pub answers: Vec<WrittenAnswer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recommendations: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub critical: Vec<String>,
    /// The issues by severity, each with the comments that it joins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<PlacedIssue>,
    /// The rulings on conflicts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rulings: Vec<Ruling>,
    /// 1 to 5; none if a metric does not apply.
    pub scores: Vec<(String, Option<u8>)>,
    /// The verdict, if the report has one.
    pub verdict: Option<String>,
    /// Why the verdict differs from that of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departure: Option<String>,
    /// The numbers that it states about the panel: line, name and value, as in `Sections`, `3.8 (9
    /// of 10 agents)`.
    #[serde(skip)]
    pub stated: Vec<(usize, String, String)>,
    /// The lines of score, summary, critical issues and verdict, for faults.
    #[serde(skip)]
    pub lines: ReportLines,
}

/// An entry of the issues by severity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacedIssue {
    #[serde(skip)]
    pub line: usize,
    pub severity: Severity,
    pub comments: Vec<String>,
    pub text: String,
}

/// Two comments that oppose each other, and which of them holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ruling {
    #[serde(skip)]
    pub line: usize,
    pub comments: Vec<String>,
    pub text: String,
}

/// Where a report says what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportLines {
    pub score: usize,
    pub summary: usize,
    pub critical: usize,
    pub issues: usize,
    pub verdict: usize,
}

/// A fault and its line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportFault {
    pub line: usize,
    pub what: String,
}

/// Parses a report. `metrics` are the names that it must score; `last` is the report of its author in
/// the round before.
pub fn parse_report(
    text: &str,
    metrics: &[&str],
    author: Author,
    last: Option<&Report>,
) -> Result<Report, Vec<ReportFault>> {
    let mut reader = Reader {
        document: Document::parse(text),
        end: text.lines().count().max(1),
        faults: Vec::new(),
    };
    let mut report = Report {
        name: reader.title(),
        ..Report::default()
    };
    match (author, last.and_then(|_| reader.list_alone())) {
        (Author::Reviewer, Some(list)) => reader.answers(&list, metrics, last, &mut report),
        (Author::Reviewer, None) => {
            let [overall, comments, scores] = reader.parts(OF_REVIEWER);
            reader.assessment(overall.as_ref(), &mut report);
            report.comments = reader.entries(comments.as_ref(), parse_comment);
            let answers = reader.part_about(ANSWERS);
            report.answers = reader.entries(answers.as_ref(), parse_answer);
            report.scores = reader.metrics(scores.as_ref(), metrics);
        }
        (Author::Panel, _) => {
            let [overall, findings, advice, critical, scores] = reader.parts(OF_PANEL);
            reader.assessment(overall.as_ref(), &mut report);
            report.findings = reader.list(findings.as_ref());
            report.recommendations = reader.list(advice.as_ref());
            report.critical = reader.list(critical.as_ref());
            report.lines.critical = critical.map_or(reader.end, |part| part.line);
            report.scores = reader.metrics(scores.as_ref(), metrics);
            reader.weighing(&mut report);
        }
    }
    if reader.faults.is_empty() {
        return Ok(report);
    }
    reader.faults.sort_by_key(|fault| fault.line);
    Err(reader.faults)
}

/// The comments of a report, without a check of its other parts. Entries out of form are left out.
pub(super) fn parse_comments(text: &str) -> Vec<WrittenComment> {
    let mut reader = Reader {
        document: Document::parse(text),
        end: 1,
        faults: Vec::new(),
    };
    let part = reader.part_about(OF_REVIEWER[1]);
    let part = part.or_else(|| reader.list_alone());
    reader.entries(part.as_ref(), parse_comment)
}

/// The issues of a report that weighs the panel, without a check of its other parts.
pub(super) fn parse_issues(text: &str) -> Vec<PlacedIssue> {
    let reader = Reader {
        document: Document::parse(text),
        end: 1,
        faults: Vec::new(),
    };
    let part = reader.part_about(ISSUES);
    part.map_or_else(Vec::new, |part| reader.issues(&part))
}

/// A report that weighs the panel without its scores of the panel and without the places of comments.
pub(crate) fn without_places(text: &str) -> String {
    let document = Document::parse(text);
    let left_out = |s: &&Section| {
        s.level == 2 && (s.title.ends_with(ISSUES) || s.title.ends_with(OF_PANEL[4]))
    };
    let (mut kept, mut at) = (String::new(), 0);
    for section in document.sections().iter().filter(left_out) {
        kept.push_str(&text[at..section.range.start]);
        at = section.range.end;
    }
    kept + &text[at..]
}

struct Reader<'t> {
    document: Document<'t>,
    /// The last line, for what is missing.
    end: usize,
    faults: Vec<ReportFault>,
}

impl Reader<'_> {
    fn fault(&mut self, line: usize, what: String) {
        self.faults.push(ReportFault { line, what });
    }

    fn title(&mut self) -> String {
        let title = self.document.sections().iter().find(|s| s.level == 1);
        let found = title.map(|title| (title.line, title.title.clone()));
        match found {
            Some((_, title)) if title.ends_with("Analysis") => {
                title.trim_end_matches("Analysis").trim().to_owned()
            }
            Some((line, title)) => {
                self.fault(
                    line,
                    format!("the title is `# {title}`; it must be `# … Analysis`"),
                );
                String::new()
            }
            None => {
                self.fault(1, "there is no title; it must be `# … Analysis`".into());
                String::new()
            }
        }
    }

    /// The parts of the form; a fault for each that is missing.
    fn parts<const N: usize>(&mut self, names: [&str; N]) -> [Option<Section>; N] {
        let mut number = 0;
        names.map(|name| {
            number += 1;
            let heading = format!("{number}. {name}");
            let sections = self.document.sections();
            let found = sections
                .iter()
                .find(|s| s.level == 2 && s.title == heading)
                .cloned();
            if found.is_none() {
                let near = sections
                    .iter()
                    .find(|s| s.title.to_lowercase().contains(&name.to_lowercase()));
                let (line, what) = match near {
                    Some(near) => (
                        near.line,
                        format!(
                            "the heading is `{}`; it must be exactly `## {heading}`",
                            near.title
                        ),
                    ),
                    None => (self.end, format!("`## {heading}` is missing")),
                };
                self.fault(line, what);
            }
            found
        })
    }

    /// An optional part, whatever its number.
    fn part_about(&self, name: &str) -> Option<Section> {
        let mut sections = self.document.sections().iter();
        sections
            .find(|s| s.level == 2 && s.title.ends_with(name))
            .cloned()
    }

    /// The title with its list, if the report has no parts.
    fn list_alone(&self) -> Option<Section> {
        let mut sections = self.document.sections().iter();
        let title = sections.find(|s| s.level == 1)?;
        let is_alone = !self.document.sections().iter().any(|s| s.level == 2);
        is_alone.then(|| title.clone())
    }

    /// A report of a later round without parts.
    fn answers(
        &mut self,
        list: &Section,
        metrics: &[&str],
        last: Option<&Report>,
        report: &mut Report,
    ) {
        let keys = keyed(&self.document, list);
        let is_given = |key: &str| keys.iter().any(|(_, name, _)| name == key);
        let mut number = |key: &str, last: Option<u8>| match last.filter(|_| !is_given(key)) {
            Some(last) => last,
            None => self.number(Some(list), key).unwrap_or_default(),
        };
        report.score = number("Score", last.map(|last| last.score));
        report.confidence = number("Confidence", last.map(|last| last.confidence));
        match keys.iter().find(|(_, name, _)| name == "Summary") {
            Some((_, _, value)) => report.summary.clone_from(value),
            None => self.fault(list.line, "there is no line `- **Summary:** …`".into()),
        }
        let line_of = |key: &str| {
            let found = keys.iter().find(|(_, name, _)| name == key);
            found.map_or(list.line, |(line, ..)| *line)
        };
        (report.lines.score, report.lines.summary) = (line_of("Score"), line_of("Summary"));
        report.scores = metrics
            .iter()
            .map(|metric| {
                let before = last.and_then(|last| last.scores.iter().find(|(m, _)| m == metric));
                match before.filter(|_| !is_given(metric)) {
                    Some(before) => before.clone(),
                    None => self.metrics(Some(list), &[metric]).remove(0),
                }
            })
            .collect();
        for (line, entry) in items(&self.document, list) {
            let result = match entry.chars().next() {
                Some('*') if entry.starts_with("**") => Ok(()),
                Some('[' | '【') => {
                    parse_comment(line, &entry).map(|parsed| report.comments.extend(parsed))
                }
                _ => parse_answer(line, &entry).map(|parsed| report.answers.extend(parsed)),
            };
            if let Err(what) = result {
                self.fault(line, what);
            }
        }
    }

    fn assessment(&mut self, part: Option<&Section>, report: &mut Report) {
        report.score = self.number(part, "Score").unwrap_or_default();
        report.confidence = self.number(part, "Confidence").unwrap_or_default();
        let Some(part) = part else { return };
        let keys = keyed(&self.document, part);
        let line_of = |key: &str| {
            let found = keys.iter().find(|(_, name, _)| name == key);
            found.map_or(part.line, |(line, ..)| *line)
        };
        (report.lines.score, report.lines.summary) = (line_of("Score"), line_of("Summary"));
        match keys.into_iter().find(|(_, name, _)| name == "Summary") {
            Some((_, _, value)) => report.summary = value,
            None => self.fault(
                part.line,
                format!("`{}` has no line `- **Summary:** …`", part.title),
            ),
        }
    }

    fn number(&mut self, part: Option<&Section>, key: &str) -> Option<u8> {
        let part = part?;
        let found = keyed(&self.document, part)
            .into_iter()
            .find(|(_, name, _)| name == key);
        let Some((line, _, value)) = found else {
            self.fault(
                part.line,
                format!("`{}` has no line `- **{key}:** [1-5]`", part.title),
            );
            return None;
        };
        let number = whole(&value);
        if number.is_none() {
            self.fault(
                line,
                format!("**{key}:** is `{value}`; it must be a whole number from 1 to 5"),
            );
        }
        number
    }

    /// The scores of the metrics. A metric that does not apply is `n/a`.
    fn metrics(&mut self, part: Option<&Section>, metrics: &[&str]) -> Vec<(String, Option<u8>)> {
        let keys = part.map(|part| keyed(&self.document, part));
        let keys = keys.unwrap_or_default();
        let scored = metrics.iter().map(|metric| {
            let value = keys.iter().find(|(_, name, _)| name == metric);
            let score = match value {
                Some((_, _, value)) if does_not_apply(value) => None,
                _ => self.number(part, metric),
            };
            ((*metric).to_owned(), score)
        });
        scored.collect()
    }

    /// The entries of a part, by a parser of one entry.
    fn entries<T>(
        &mut self,
        part: Option<&Section>,
        parse: fn(usize, &str) -> Result<Option<T>, String>,
    ) -> Vec<T> {
        let Some(part) = part else { return Vec::new() };
        let mut found = Vec::new();
        for (line, entry) in self.items(part) {
            match parse(line, &entry) {
                Ok(parsed) => found.extend(parsed),
                Err(what) => self.fault(line, what),
            }
        }
        found
    }

    /// The items of a part that must have a list.
    fn items(&mut self, part: &Section) -> Vec<(usize, String)> {
        let items = items(&self.document, part);
        if items.is_empty() {
            self.fault(
                part.line,
                format!(
                    "`{}` has no list; write `- None` if there is nothing to report",
                    part.title
                ),
            );
        }
        items
    }

    fn list(&mut self, part: Option<&Section>) -> Vec<String> {
        let Some(part) = part else { return Vec::new() };
        let mut found = Vec::new();
        for (line, item) in self.items(part) {
            match read_entry(&item) {
                Entry::Nothing => {}
                // Findings and recommendations that say more than "none" are kept as they are.
                Entry::Unclear if part.title.ends_with(OF_PANEL[3]) => self.fault(
                    line,
                    format!(
                        "\"{item}\" denies critical issues and says something else: write `- \
                         None`, or state only what must be settled"
                    ),
                ),
                _ => found.push(item),
            }
        }
        found
    }

    /// What only the agent that weighs the panel writes.
    fn weighing(&mut self, report: &mut Report) {
        let end = self.end;
        report.stated = match self.part_about("Scores by Domain") {
            Some(part) => keyed(&self.document, &part),
            None => Vec::new(),
        };
        let issues = self.part_about(ISSUES);
        report.lines.issues = issues.as_ref().map_or(end, |part| part.line);
        report.issues = issues.map_or_else(Vec::new, |part| self.issues(&part));
        report.rulings = match self.part_about(CONFLICTS) {
            Some(part) => items(&self.document, &part)
                .into_iter()
                .filter(|(_, item)| read_entry(item) != Entry::Nothing)
                .map(|(line, text)| Ruling {
                    line,
                    comments: owned(ids_in(head(&text))),
                    text: after_head(&text),
                })
                .collect(),
            None => Vec::new(),
        };
        let decided = self.part_about("Verdict");
        let decided = decided.map_or_else(Vec::new, |part| keyed(&self.document, &part));
        let said = |name: &str| decided.iter().find(|(_, key, _)| key == name);
        report.lines.verdict = said("Verdict").map_or(end, |(line, ..)| *line);
        report.departure = said("Departure")
            .map(|(_, _, value)| value.clone())
            .filter(|value| {
                value.contains(char::is_alphanumeric) && read_entry(value) != Entry::Nothing
            });
        let Some((line, _, value)) = said("Verdict") else {
            return;
        };
        let known = VERDICTS
            .iter()
            .find(|v| value.trim_end_matches('.').eq_ignore_ascii_case(v));
        report.verdict = known.map(|v| (*v).to_owned());
        if known.is_none() {
            let known = VERDICTS.join(", ");
            let what = format!("the verdict is `{value}`; it must be one of {known}");
            self.fault(*line, what);
        }
    }

    /// The items below the headings of the severities.
    fn issues(&self, part: &Section) -> Vec<PlacedIssue> {
        let below = self.document.sections().iter().filter(|section| {
            section.level == 3
                && part.range.start < section.range.start
                && section.range.end <= part.range.end
        });
        let mut found = Vec::new();
        for section in below {
            let Some(severity) = Severity::parse(&section.title) else {
                continue;
            };
            for (line, item) in items(&self.document, section) {
                if read_entry(&item) != Entry::Nothing {
                    found.push(PlacedIssue {
                        line,
                        severity,
                        comments: owned(ids_in(head(&item))),
                        text: after_head(&item),
                    });
                }
            }
        }
        found
    }
}

/// The part of an entry before its first colon, which names comments.
fn head(entry: &str) -> &str {
    entry.split([':', '：']).next().unwrap_or_default()
}

fn after_head(entry: &str) -> String {
    let rest = entry.split_once([':', '：']).map(|(_, rest)| rest);
    rest.unwrap_or(entry).trim().to_owned()
}

fn owned(ids: Vec<&str>) -> Vec<String> {
    ids.into_iter().map(str::to_owned).collect()
}

fn whole(value: &str) -> Option<u8> {
    value.trim().parse().ok().filter(|n| (1..=5).contains(n))
}

fn does_not_apply(value: &str) -> bool {
    let value = value.trim().trim_end_matches(['.', '。']).to_lowercase();
    ["n/a", "na", "not applicable", "不适用"].contains(&value.as_str())
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
    let keyed = |(line, raw): (usize, String)| {
        let (name, value) = raw.strip_prefix("**")?.split_once("**")?;
        let name = name.trim().trim_end_matches([':', '：']).trim();
        let value = value.trim().trim_start_matches([':', '：']).trim();
        Some((line, name.to_owned(), value.to_owned()))
    };
    let items = items(document, part).into_iter();
    items.filter_map(keyed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRIC: &str = "Order of the argument, as it is told in seven words";
    const GOOD: &str = "# Abstract Reviewer Analysis\n\n## 1. Overall Assessment\n- **Score:** 4\n- **Confidence:** 3\n- **Summary:** Clear.\n\n## 2. Comments\n- [minor] L3 \"a word\":\n  Cut it.\n\n## 3. Detailed Scores\n- **Order of the argument, as it is told in seven words:** 5\n\n<!-- ANALYSIS_COMPLETE -->\n";
    const WEIGHED: &str = "# Quality Controller Analysis\n\n## 1. Overall Assessment\n- **Score:** 4\n- **Confidence:** 3\n- **Summary:** Clear.\n\n## 2. Key Findings\n- One\n  over two lines\n\n## 3. Recommendations\n- Do it.\n\n## 4. Critical Issues\n- None\n\n## 5. Detailed Scores\n\n## 6. Issues by Severity\n### Critical\n- None\n### Important\n- s1.2, r5.1: The two means differ.\n### Minor\n- w3.1: Cut it.\n\n## 7. Conflicts\n- s2.1 | w3.1: w3.1 holds, for the text is long.\n\n## 8. Verdict\n- **Verdict:** Needs revision.\n";

    fn read(text: &str) -> Result<Report, Vec<ReportFault>> {
        parse_report(text, &[METRIC], Author::Reviewer, None)
    }

    #[test]
    fn a_reviewers_report_is_read() {
        let report = read(GOOD).unwrap();
        assert_eq!(
            (report.score, report.confidence, report.summary.as_str()),
            (4, 3, "Clear.")
        );
        assert_eq!(
            (report.comments[0].line, report.comments[0].text.as_str()),
            (9, "Cut it.")
        );
        assert_eq!(report.scores, [(METRIC.to_owned(), Some(5))]);
        let text = GOOD.replace("seven words:** 5", "seven words:** n/a");
        assert_eq!(read(&text).unwrap().scores, [(METRIC.to_owned(), None)]);
        let text = GOOD.replace(
            "<!--",
            "## 4. Earlier Comments\n- s2.1 [withdrawn]: Mine.\n\n<!--",
        );
        assert_eq!(read(&text).unwrap().answers[0].id, "s2.1");
    }

    #[test]
    fn a_report_of_a_later_round_may_be_one_list() {
        let text = "# Abstract Reviewer Analysis\n- **Summary:** Better.\n- **Score:** 5\n- s2.1 [not \
                    addressed]: As before.\n- [minor] L3 \"a word\": Cut it.\n\n<!-- ANALYSIS_COMPLETE -->\n";
        let last = read(GOOD).unwrap();
        let of_round = |text: &str| parse_report(text, &[METRIC], Author::Reviewer, Some(&last));
        let report = of_round(text).unwrap();
        assert_eq!((report.score, report.confidence), (5, 3));
        assert_eq!(report.summary, "Better.");
        assert_eq!(report.scores, last.scores);
        assert_eq!((report.comments.len(), report.answers.len()), (1, 1));
        let faults = of_round(&text.replace("**Score:** 5", "**Score:** 4.5")).unwrap_err();
        assert_eq!(faults[0].line, 3);
        assert_eq!(
            of_round(&text.replace("Summary", "Sum")).unwrap_err().len(),
            1
        );
        // The first report has every part.
        assert!(read(text).is_err());
        // A report with parts is read as before.
        assert_eq!(of_round(GOOD).unwrap().score, 4);
    }

    #[test]
    fn a_report_on_the_panel_is_read() {
        let report = parse_report(WEIGHED, &[], Author::Panel, None).unwrap();
        assert_eq!(report.findings, ["One over two lines"]);
        assert!(report.critical.is_empty());
        let issues: Vec<_> = report
            .issues
            .iter()
            .map(|i| (i.severity, i.comments.join(" "), i.text.as_str()))
            .collect();
        assert_eq!(
            issues,
            [
                (
                    Severity::Important,
                    "s1.2 r5.1".into(),
                    "The two means differ."
                ),
                (Severity::Minor, "w3.1".into(), "Cut it.")
            ]
        );
        assert_eq!(report.rulings[0].comments, ["s2.1", "w3.1"]);
        assert_eq!(report.verdict.as_deref(), Some("needs revision"));
    }

    #[test]
    fn a_denied_issue_is_none_and_an_unclear_one_goes_back() {
        let read = |denied: &str| {
            let text = WEIGHED.replacen("Issues\n- None", &format!("Issues\n- {denied}"), 1);
            parse_report(&text, &[], Author::Panel, None)
        };
        for denied in ["No critical issues were identified.", "未发现关键问题。"] {
            assert!(read(denied).unwrap().critical.is_empty());
        }
        assert_eq!(
            read("No critical issues, but n is 3.").unwrap_err()[0].line,
            16
        );
    }

    #[test]
    fn faults_name_their_lines() {
        let faults =
            |text: &str| -> Vec<usize> { read(text).unwrap_err().iter().map(|f| f.line).collect() };
        assert_eq!(faults(&GOOD.replace("Score:** 4", "Score:** 4.5")), [4]);
        assert_eq!(
            faults(&GOOD.replace("Confidence:** 3", "Confidence:** 6")),
            [5]
        );
        assert_eq!(faults(&GOOD.replace("## 2. Comments", "## Comments")), [8]);
        assert_eq!(faults(&GOOD.replace("- [minor]", "[minor]")), [8]);
        assert_eq!(faults(&GOOD.replace("L3 ", "")), [9]);
        assert_eq!(
            faults(&GOOD.replace("seven words:** 5", "eight words:** 5")),
            [12]
        );
        assert_eq!(faults(""), [1, 1, 1, 1]);
    }
}
