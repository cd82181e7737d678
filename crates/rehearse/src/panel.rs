//! Review panels: a reader's scores, a reviewer's report, the weighted summary of all reports, and
//! the outcome on one page.
//!
//! A program parses these reports, so the headings and the bold names are the same in every
//! language.

use std::collections::BTreeMap;

use quipu_contract::Language;
use quipu_text::Document;

use crate::measure::{Measured, Scored};
use crate::parse::shortened;
use crate::sheet::{Sheet, quoted, say};
use crate::task::RehearseTask;
use crate::view::View;

/// The confidence of a mechanical score.
const CONFIDENCE: u8 = 2;

/// Writes a reader's report: scores, strengths, weaknesses and three wishes.
pub(crate) fn read(draft: &str, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let measured = Measured::of(draft);
    let mut sheet = Sheet::titled(&task.title);
    sheet.h2(say(l, "Scores", "评分"));
    let scores: Vec<(String, Scored)> = task
        .metrics
        .iter()
        .map(|metric| (metric.clone(), measured.score(metric, l)))
        .collect();
    for (metric, scored) in &scores {
        sheet.line(&match l {
            Language::En => format!("- **{metric}:** {}: {}", scored.score, scored.reason),
            Language::Zh => format!("- **{metric}：** {}：{}", scored.score, scored.reason),
        });
    }
    let named = |keep: &dyn Fn(u8) -> bool| -> Vec<String> {
        scores
            .iter()
            .filter(|(_, scored)| keep(scored.score))
            .map(|(metric, scored)| format!("{metric}: {}", scored.reason))
            .collect()
    };
    sheet.h2(say(l, "Where it worked", "好的地方"));
    sheet.items(&named(&|score| score >= 4), say(l, "none", "无"));
    sheet.h2(say(l, "Where it failed", "不好的地方"));
    let mut failed = named(&|score| score < 4);
    if measured.long_share > 0.0 {
        failed.push(format!(
            "{}:{} “{}”",
            say(l, "the longest sentence, line", "最长的句子，第"),
            measured.longest_line,
            shortened(&quoted(&measured.longest), 120)
        ));
    }
    sheet.items(&failed, say(l, "none", "无"));
    sheet.h2(say(l, "Three wishes", "三个愿望"));
    for wish in [
        say(
            l,
            "Shorter sentences where they are longest.",
            "最长的句子改短。",
        ),
        say(
            l,
            "More places to look at, and fewer names in a row.",
            "多给出处，少列名称。",
        ),
        say(
            l,
            "A reader who understands: this one only counted.",
            "请一位能理解的读者来读：这一位只会清点。",
        ),
    ] {
        sheet.line(&format!("1. {wish}"));
    }
    sheet
}

/// Returns the section of a manuscript that matches a subject, and its line. Returns the whole text
/// if none matches.
fn part_about<'t>(document: &Document<'t>, subject: &str) -> (&'t str, usize, bool) {
    let subject = subject.to_lowercase();
    let words: Vec<&str> = subject
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 1)
        .collect();
    let found = document.sections().iter().find(|section| {
        let title = section.title.to_lowercase();
        section.level > 0
            && words.iter().any(|word| {
                title.contains(word)
                    || (title.chars().count() > 3 && word.starts_with(title.as_str()))
            })
    });
    match found {
        Some(section) => (document.slice(&section.range), section.line, true),
        None => (document.text(), 1, false),
    }
}

/// Writes one reviewer's report on a manuscript.
pub(crate) fn score(path: &str, manuscript: &str, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let document = Document::parse(manuscript);
    let subject = task
        .unit
        .as_ref()
        .map_or(task.title.as_str(), |unit| &unit.title);
    let (part, line, named) = part_about(&document, subject);
    let measured = Measured::of(part);
    let scores: Vec<(&str, Scored)> = task
        .metrics
        .iter()
        .map(|metric| (metric.as_str(), measured.score(metric, l)))
        .collect();
    let sum: usize = scores
        .iter()
        .map(|(_, scored)| usize::from(scored.score))
        .sum();
    let mean = if scores.is_empty() {
        3
    } else {
        (sum * 2 + scores.len()) / (2 * scores.len())
    };
    let place = match (named, l) {
        (true, Language::En) => format!("{path}:{line}"),
        (true, Language::Zh) => format!("{path}:{line}"),
        (false, Language::En) => format!("{path}, the whole text, for no section is headed so"),
        (false, Language::Zh) => format!("{path} 全文（没有同名的一节）"),
    };
    let mut sheet = report(
        task,
        mean as u8,
        &match l {
            Language::En => format!(
                "Mechanical: {} words counted at {place}; nothing was understood.",
                measured.words
            ),
            Language::Zh => format!(
                "机械评分：在 {place} 清点了 {} 字，未作理解。",
                measured.words
            ),
        },
    );
    let low: Vec<&(&str, Scored)> = scores
        .iter()
        .filter(|(_, scored)| scored.score < 4)
        .collect();
    let mut findings: Vec<String> = low
        .iter()
        .map(|(metric, scored)| format!("{metric}: {} ({place})", scored.reason))
        .collect();
    if measured.long_share > 0.08 {
        let at = line + measured.longest_line.saturating_sub(1);
        findings.push(format!(
            "{path}:{at}: {} “{}”",
            say(l, "the longest sentence:", "最长的句子："),
            shortened(&quoted(&measured.longest), 100)
        ));
    }
    let recommendations: Vec<String> = low
        .iter()
        .map(|(metric, scored)| match l {
            Language::En => format!("Raise what is counted for “{metric}” ({}).", scored.reason),
            Language::Zh => format!("改善“{metric}”所清点的项目（{}）。", scored.reason),
        })
        .collect();
    let critical: Vec<String> = match measured.words {
        0 => vec![say(l, "There is no text to review.", "没有可审的文字。").to_owned()],
        _ => Vec::new(),
    };
    parts(&mut sheet, &findings, &recommendations, &critical);
    sheet.h2("5. Detailed Scores");
    for (metric, scored) in &scores {
        sheet.line(&format!("- **{metric}:** {}", scored.score));
    }
    sheet
}

fn report(task: &RehearseTask, score: u8, summary: &str) -> Sheet {
    let mut sheet = Sheet::titled(&format!("{} Analysis", task.title));
    sheet.h2("1. Overall Assessment");
    sheet.line(&format!("- **Score:** {score}"));
    sheet.line(&format!("- **Confidence:** {CONFIDENCE}"));
    sheet.line(&format!("- **Summary:** {summary}"));
    sheet
}

fn parts(sheet: &mut Sheet, findings: &[String], recommendations: &[String], critical: &[String]) {
    for (name, items) in [
        ("2. Key Findings", findings),
        ("3. Recommendations", recommendations),
        ("4. Critical Issues", critical),
    ] {
        sheet.h2(name);
        sheet.items(items, "None");
    }
}

#[derive(Default)]
struct Report {
    id: String,
    score: f64,
    confidence: f64,
    findings: Vec<String>,
    recommendations: Vec<String>,
    critical: Vec<String>,
    metrics: BTreeMap<String, f64>,
}

fn read_report(path: &str, text: &str) -> Option<Report> {
    let document = Document::parse(text);
    let id = path.rsplit('/').next()?.split('.').next()?.to_owned();
    let mut report = Report {
        id,
        ..Report::default()
    };
    for section in document
        .sections()
        .iter()
        .filter(|section| section.level == 2)
    {
        let items: Vec<String> = document
            .items_in(&section.range)
            .iter()
            .map(|item| item.text.trim().to_owned())
            .filter(|item| item != "None")
            .collect();
        let number = |item: &str| {
            item.rsplit(':')
                .next()
                .and_then(|value| value.trim().parse::<f64>().ok())
        };
        match section.title.as_bytes().first() {
            Some(b'1') => {
                for item in &items {
                    match item.split_once(':') {
                        Some(("Score", value)) => report.score = value.trim().parse().ok()?,
                        Some(("Confidence", value)) => {
                            report.confidence = value.trim().parse().ok()?
                        }
                        _ => {}
                    }
                }
            }
            Some(b'2') => report.findings = items,
            Some(b'3') => report.recommendations = items,
            Some(b'4') => report.critical = items,
            Some(b'5') => {
                report.metrics = items
                    .iter()
                    .filter_map(|item| Some((item.rsplit_once(':')?.0.to_owned(), number(item)?)))
                    .collect()
            }
            _ => {}
        }
    }
    (report.score >= 1.0).then_some(report)
}

/// The domains of a panel, by the first letter of the reviewers' IDs.
const DOMAINS: [(&str, &str); 3] = [("s", "Sections"), ("r", "Rigour"), ("w", "Writing")];

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Combines all reports: means, conflicts, issues and verdict.
pub(crate) fn weigh(view: &View, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let own = |path: &str| task.outputs.iter().any(|output| output.path == path);
    let named = view.texts.iter().filter(|(path, _)| {
        task.subject
            .as_ref()
            .is_none_or(|subject| subject.matches(path).is_some())
            && !own(path)
    });
    let mut reports: Vec<Report> = named
        .filter_map(|(path, seen)| read_report(path, &seen.text))
        .collect();
    let order = |id: &str| {
        task.units
            .iter()
            .position(|unit| unit.id == id)
            .unwrap_or(usize::MAX)
    };
    reports.sort_by_key(|report| (order(&report.id), report.id.clone()));
    let weight: f64 = reports.iter().map(|report| report.confidence).sum();
    let overall = if weight > 0.0 {
        reports
            .iter()
            .map(|report| report.score * report.confidence)
            .sum::<f64>()
            / weight
    } else {
        0.0
    };
    let list = |pick: &dyn Fn(&Report) -> Vec<String>| -> Vec<String> {
        reports
            .iter()
            .flat_map(|report| {
                pick(report)
                    .into_iter()
                    .map(|item| format!("{item} ({})", report.id))
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    let critical = list(&|report| report.critical.clone());
    let important = list(&|report| {
        if report.score <= 3.0 {
            report.recommendations.clone()
        } else {
            Vec::new()
        }
    });
    let minor = list(&|report| {
        if report.score > 3.0 {
            report.recommendations.clone()
        } else {
            Vec::new()
        }
    });
    let mut conflicts = Vec::new();
    for (at, one) in reports.iter().enumerate() {
        for other in &reports[at + 1..] {
            for (metric, score) in &one.metrics {
                let gap = other
                    .metrics
                    .get(metric)
                    .map(|theirs| (theirs - score).abs())
                    .unwrap_or_default();
                if gap >= 2.0 {
                    let holds = if other.confidence > one.confidence {
                        &other.id
                    } else {
                        &one.id
                    };
                    let why = match l {
                        Language::En => format!("{holds} holds: confidence decides, then order"),
                        Language::Zh => format!("以 {holds} 为准：先看信心，再看次序"),
                    };
                    conflicts.push(format!(
                        "{} {score} | {} {} | {metric} | {why}",
                        one.id, other.id, other.metrics[metric]
                    ));
                }
            }
        }
    }
    let verdict = if !critical.is_empty() || overall < 3.0 {
        "major revision required"
    } else if important.is_empty() && overall >= 4.0 {
        "ready"
    } else {
        "needs revision"
    };
    let reason = match l {
        Language::En => format!(
            "overall {overall:.1} over {} reports, {} critical and {} important issues",
            reports.len(),
            critical.len(),
            important.len()
        ),
        Language::Zh => {
            format!(
                "{} 份报告的总分为 {overall:.1}，关键问题 {} 个，重要问题 {} 个",
                reports.len(),
                critical.len(),
                important.len()
            )
        }
    };
    let mut sheet = report(
        task,
        overall.round().clamp(1.0, 5.0) as u8,
        &format!("{verdict}: {reason}."),
    );
    let lowest: Vec<String> = {
        let mut sorted: Vec<&Report> = reports.iter().collect();
        sorted.sort_by(|a, b| a.score.total_cmp(&b.score).then(a.id.cmp(&b.id)));
        sorted
            .iter()
            .take(3)
            .map(|report| format!("{} {}", report.id, report.score))
            .collect()
    };
    let recommendations = list(&|report| report.recommendations.iter().take(1).cloned().collect());
    parts(
        &mut sheet,
        &[format!(
            "{} {}",
            say(l, "lowest scores:", "最低分："),
            lowest.join(", ")
        )],
        &recommendations,
        &critical,
    );
    sheet.h2("5. Detailed Scores");
    let supported = reports
        .iter()
        .filter(|report| report.score >= 4.0 || !report.findings.is_empty())
        .count()
        == reports.len();
    let panel = [
        if reports.len() > 1 { 5 } else { 2 },
        if supported { 5 } else { 3 },
        if conflicts.is_empty() { 5 } else { 3 },
        3,
    ];
    for (metric, score) in task.metrics.iter().zip(panel) {
        sheet.line(&format!("- **{metric}:** {score}"));
    }
    sheet.h2("6. Scores by Domain");
    for (prefix, name) in DOMAINS {
        let of_domain = |id: &str| {
            id.strip_prefix(prefix)
                .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
        };
        let scores: Vec<f64> = reports
            .iter()
            .filter(|report| of_domain(&report.id))
            .map(|report| report.score)
            .collect();
        let all = task.units.iter().filter(|unit| of_domain(&unit.id)).count();
        if let Some(mean) = mean(scores.iter().copied()) {
            sheet.line(&format!(
                "- **{name}:** {mean:.1} ({} of {all} agents)",
                scores.len()
            ));
        }
    }
    sheet.line(&format!("- **Overall:** {overall:.1}"));
    sheet.h2("7. Conflicts");
    sheet.items(&conflicts, "None");
    sheet.h2("8. Issues by Severity");
    for (name, items) in [
        ("Critical", &critical),
        ("Important", &important),
        ("Minor", &minor),
    ] {
        sheet.h3(name);
        sheet.items(items, "None");
    }
    sheet.h2("9. Verdict");
    sheet.line(&format!("- **Verdict:** {verdict}"));
    sheet.line(&format!("- **Reason:** {reason}."));
    sheet
}

/// Summarises the weighted result on one page, without adding anything.
pub(crate) fn sum_up(weighed: &str, task: &RehearseTask) -> Sheet {
    let document = Document::parse(weighed);
    let value = |name: &str| {
        let keyed = document.items().iter().find_map(|item| {
            item.text
                .strip_prefix(name)
                .map(|value| value.trim_start_matches(':').trim().to_owned())
        });
        keyed.unwrap_or_default()
    };
    let items = |title: &str| -> Vec<String> {
        let section = document
            .sections()
            .iter()
            .find(|section| section.title == title);
        let items = section
            .map(|section| document.items_in(&section.body))
            .unwrap_or_default();
        items
            .iter()
            .map(|item| shortened(&item.text, 160))
            .filter(|item| item != "None")
            .collect()
    };
    let mut sheet = Sheet::titled(&format!("{} Analysis", task.title));
    sheet.h2("1. Overall Assessment");
    sheet.line(&format!("- **Score:** {}", value("Score")));
    sheet.line(&format!("- **Confidence:** {}", value("Confidence")));
    sheet.line(&format!(
        "- **Summary:** {}: {}",
        value("Verdict"),
        value("Reason")
    ));
    let take = |items: Vec<String>| -> Vec<String> { items.into_iter().take(5).collect() };
    let findings = take(
        items("2. Key Findings")
            .into_iter()
            .chain(items("Important"))
            .collect(),
    );
    parts(
        &mut sheet,
        &findings,
        &take(items("3. Recommendations")),
        &items("4. Critical Issues"),
    );
    sheet.h2("5. Detailed Scores");
    for (metric, score) in task.metrics.iter().zip([5, 4, 3, 3]) {
        sheet.line(&format!("- **{metric}:** {score}"));
    }
    sheet
}
