//! The report that Quipu makes of a manuscript without a model, and its comments over the rounds.
//!
//! The report has the comments of a reviewer and no score, so it enters no average. In a later
//! round a comment is resolved if its fault is no longer found.

use std::fmt::Write as _;

use quipu_checks::{Bibliography, Checked, Gravity, Input, Limits, check};
use quipu_contract::{Contract, Form, Language, ProjectPath};
use serde::Serialize;

use super::comment::{Severity, Status, WrittenComment};
use super::report::parse_comments;
use super::rounds::{Answer, Comment, Read, RoundReport, Rounds};

/// The report, as a panel shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checks {
    /// The name of its file, which begins the ids of its comments: `d`.
    pub id: String,
    pub title: String,
    pub path: ProjectPath,
}

/// The path of the report.
pub(super) fn checks_path(contract: &Contract) -> Option<ProjectPath> {
    let mut rules = contract.of_form(Form::Checks);
    rules.find_map(|rule| ProjectPath::parse(rule.path.as_literal()?).ok())
}

pub(super) fn checks_of(contract: &Contract) -> Option<Checks> {
    let path = checks_path(contract)?;
    let name = path.as_str().rsplit('/').next()?;
    Some(Checks {
        id: name.strip_suffix(".md").unwrap_or(name).to_owned(),
        title: title(contract.language).to_owned(),
        path,
    })
}

const fn title(language: Language) -> &'static str {
    match language {
        Language::En => "Checks by Quipu",
        Language::Zh => "Quipu 核对",
    }
}

/// Makes the report. None without a manuscript, or if the contract has no such report. `all` are
/// the files of the project.
pub fn make_checks(
    contract: &Contract,
    all: &[ProjectPath],
    read: Read<'_>,
) -> Option<(ProjectPath, String)> {
    let path = checks_path(contract)?;
    let rounds = Rounds::load(contract, read);
    let manuscript = rounds.text(rounds.number());
    if manuscript.trim().is_empty() {
        return None;
    }
    let of_form = |form: Form| {
        let paths = all
            .iter()
            .filter(move |path| contract.rule(path).and_then(|rule| rule.form) == Some(form));
        paths
            .filter_map(|path| Some((path.as_str(), read(path)?)))
            .collect::<Vec<_>>()
    };
    let mut limits = Limits::default();
    for (_, criteria) in of_form(Form::Criteria) {
        limits.read(&criteria);
    }
    let texts = of_form(Form::Bibliography);
    let bibliographies: Vec<Bibliography<'_>> = texts
        .iter()
        .map(|(path, text)| Bibliography { path, text })
        .collect();
    let checked = check(&Input {
        manuscript,
        bibliographies: &bibliographies,
        limits,
        language: contract.language,
    });
    Some((path, render(&checked, contract.language)))
}

/// Renders the report. A program reads it, so the headings are the same in every language.
fn render(checked: &Checked, language: Language) -> String {
    let (said, colon) = match language {
        Language::En => (
            "Quipu checked the text and the bibliography without a model. There is no score, and \
             nothing here enters an average. A check that depends on something that the text does \
             not say is silent.",
            ": ",
        ),
        Language::Zh => (
            "Quipu 不用模型核对了正文与参考文献库。没有分数，也不计入任何均分。凡取决于正文未写明之事的，一律不报。",
            "：",
        ),
    };
    let mut text = format!(
        "# {}\n\n{said}\n\n## 1. What Was Checked\n\n",
        title(language)
    );
    for line in &checked.covered {
        let _ = writeln!(text, "- {line}");
    }
    text.push_str("\n## 2. Comments\n\n");
    for finding in &checked.findings {
        let severity = match finding.gravity {
            Gravity::Important => Severity::Important,
            Gravity::Minor => Severity::Minor,
        };
        let path = finding.path.as_ref().map(|path| format!("{path} "));
        let _ = writeln!(
            text,
            "- [{}] {}L{} \"{}\"{colon}{}",
            severity.as_str(),
            path.unwrap_or_default(),
            finding.line,
            finding.quote,
            finding.text
        );
    }
    if checked.findings.is_empty() {
        text.push_str("- None\n");
    }
    text
}

fn without_digits(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// The comments of the reports of all rounds, oldest first. A fault that is found again stays open;
/// one that is not found again is resolved.
pub(super) fn checks_comments(
    checks: &Checks,
    reports: &[RoundReport],
    language: Language,
) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    for RoundReport { round, text } in reports {
        let mut found = parse_comments(text);
        for comment in comments.iter_mut().filter(|c| c.is_open()) {
            // The number of words, for one, differs from round to round.
            let same = |a: &str, b: &str| without_digits(a) == without_digits(b);
            let again = |c: &WrittenComment| {
                same(&c.text, &comment.text)
                    && c.cited.quote == comment.quote
                    && c.cited.path == comment.path
            };
            match found.iter().position(again) {
                Some(at) => {
                    let again = found.remove(at);
                    comment.text = again.text;
                    (comment.line, comment.last_line) = again.cited.lines;
                    comment.written_line = comment.line;
                }
                None => {
                    comment.status = Status::Addressed;
                    comment.answer = Some(Answer {
                        round: *round,
                        line: None,
                        quote: None,
                        text: match language {
                            Language::En => "no longer found".into(),
                            Language::Zh => "不再出现".into(),
                        },
                    });
                }
            }
        }
        for written in found {
            let id = format!("{}.{}", checks.id, comments.len() + 1);
            comments.push(Comment::new(id, &checks.id, *round, &written));
        }
    }
    comments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(round: usize, entries: &[&str]) -> RoundReport {
        let items: String = entries.iter().map(|e| format!("- {e}\n")).collect();
        let text =
            format!("# Checks Analysis\n\n## 1. What Was Checked\n\n## 2. Comments\n\n{items}");
        RoundReport { round, text }
    }

    #[test]
    fn a_fault_that_is_not_found_again_is_resolved() {
        let checks = Checks {
            id: "d".into(),
            title: "Checks".into(),
            path: ProjectPath::parse("d.md").unwrap(),
        };
        let (one, two) = (
            "[minor] L3 \"30 %\": It is 25 %.",
            "[important] paper.bib L5 \"x\": No.",
        );
        let reports = [
            report(1, &[one, two]),
            report(2, &[&one.replace("L3", "L9"), "[minor] L1 \"ab\": New."]),
            report(3, &["None"]),
        ];
        let shown = |reports: &[RoundReport]| -> Vec<(String, Status, usize)> {
            let comments = checks_comments(&checks, reports, Language::En).into_iter();
            comments.map(|c| (c.id, c.status, c.line)).collect()
        };
        assert_eq!(
            shown(&reports[..2]),
            [
                ("d.1".into(), Status::Open, 9),
                ("d.2".into(), Status::Addressed, 5),
                ("d.3".into(), Status::Open, 1),
            ]
        );
        assert!(
            shown(&reports)
                .iter()
                .all(|(_, status, _)| *status == Status::Addressed)
        );
    }
}
