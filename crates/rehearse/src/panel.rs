//! Review panels: a reader's scores, a reviewer's report with comments, the report that places all
//! comments, and the outcome on one page.
//!
//! A program parses these reports, so the headings and the bold names are the same in every
//! language.

use quipu_contract::{Form, Language, ProjectPath};
use quipu_text::Document;
use serde_json::Value;

use crate::measure::{Measured, Scored};
use crate::parse::shortened;
use crate::sheet::{Sheet, quoted, say};
use crate::task::RehearseTask;
use crate::view::{Seen, View};

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
pub(crate) fn score(manuscript: &Seen, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let document = Document::parse(&manuscript.text);
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
        (true, Language::En) => format!("from line {line}"),
        (true, Language::Zh) => format!("第 {line} 行起"),
        (false, Language::En) => "in the whole text, for no section is headed so".to_owned(),
        (false, Language::Zh) => "全文（没有同名的一节）".to_owned(),
    };
    let summary = match l {
        Language::En => format!(
            "Mechanical: {} words counted {place}; nothing was understood.",
            measured.words
        ),
        Language::Zh => format!("机械评分：{place}清点了 {} 字，未作理解。", measured.words),
    };
    let found = comments(manuscript, &scores, &measured, line, l);
    let scores = scores
        .iter()
        .map(|(metric, scored)| format!("**{metric}:** {}", scored.score));
    if !task.earlier.is_empty() {
        // A later round asks for one list.
        let mut sheet = Sheet::titled(&format!("{} Analysis", task.title));
        let own = [
            format!("**Summary:** {summary}"),
            format!("**Score:** {mean}"),
        ];
        let earlier = task.earlier.iter();
        let answers = earlier.filter_map(|item| answer(manuscript, item, l));
        let list: Vec<String> = own
            .into_iter()
            .chain(scores)
            .chain(answers)
            .chain(found)
            .collect();
        sheet.items(&list, "None");
        return sheet;
    }
    let mut sheet = report(task, mean as u8, &summary);
    sheet.h2("2. Comments");
    sheet.items(&found, "None");
    sheet.h2("3. Detailed Scores");
    for score in scores {
        sheet.line(&format!("- {score}"));
    }
    sheet
}

/// A comment for each low score, and one on the longest sentence.
fn comments(
    manuscript: &Seen,
    scores: &[(&str, Scored)],
    measured: &Measured,
    line: usize,
    l: Language,
) -> Vec<String> {
    let mut found = Vec::new();
    let Some(heading) = cite(manuscript, line) else {
        return found;
    };
    for (metric, scored) in scores.iter().filter(|(_, scored)| scored.score < 4) {
        let severity = if scored.score < 3 {
            "important"
        } else {
            "minor"
        };
        let (metric, reason) = (quoted(metric), quoted(&scored.reason));
        found.push(match l {
            Language::En => {
                format!("[{severity}] {heading}: {metric}: {reason}; raise what is counted.")
            }
            Language::Zh => {
                format!("[{severity}] {heading}：{metric}：{reason}；改善所清点的项目。")
            }
        });
    }
    if measured.long_share > 0.08
        && let Some(cited) = cite(manuscript, line + measured.longest_line.saturating_sub(1))
    {
        found.push(match l {
            Language::En => {
                format!("[minor] {cited}: This line has the longest sentence; make two of it.")
            }
            Language::Zh => format!("[minor] {cited}：这一行的句子最长，分成两句。"),
        });
    }
    found
}

/// The place and the first words of a line, or of the next line with words.
fn cite(manuscript: &Seen, line: usize) -> Option<String> {
    let lines = manuscript.text.lines().enumerate();
    lines.skip(line.saturating_sub(1)).find_map(|(at, text)| {
        let text = text.trim_start_matches(['#', ' ', '>', '-']);
        let words = text.split(['"', '“', '”', '<']).next()?;
        let words: String = words.chars().take(60).collect();
        let enough = words.chars().filter(|c| c.is_alphanumeric()).count() > 1;
        // A view without numbers shows the whole file.
        let number = manuscript.lines.get(at).copied().unwrap_or(at + 1);
        (enough && number > 0).then(|| format!("L{number} \"{}\"", words.trim_end()))
    })
}

/// The answer to an earlier comment: whether its words are still in the text.
fn answer(manuscript: &Seen, item: &str, l: Language) -> Option<String> {
    let (id, rest) = item.strip_prefix("- ")?.split_once(' ')?;
    let quote = rest.split('"').nth(1)?;
    let there = manuscript
        .text
        .lines()
        .position(|line| line.contains(quote));
    let (status, cited) = match there {
        Some(_) => ("not addressed", String::new()),
        None => ("addressed", format!(" {}", cite(manuscript, 1)?)),
    };
    Some(match l {
        Language::En => format!("{id} [{status}]{cited}: Only looked up, not understood."),
        Language::Zh => format!("{id} [{status}]{cited}：只作查对，未作理解。"),
    })
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

/// The state of the panel, as the view shows it.
fn state(view: &View, task: &RehearseTask) -> Value {
    let is_panel = |path: &str| {
        let path = ProjectPath::parse(path).ok();
        task.files
            .iter()
            .filter(|rule| rule.form == Some(Form::Panel))
            .any(|rule| {
                path.as_ref()
                    .is_some_and(|p| rule.path.matches(p.as_str()).is_some())
            })
    };
    let found = view.texts.iter().find(|(path, _)| is_panel(path));
    found
        .and_then(|(_, seen)| serde_json::from_str(&seen.text).ok())
        .unwrap_or_default()
}

/// Weighs the panel: places every open comment, and repeats the computed numbers and verdict.
pub(crate) fn weigh(view: &View, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let state = state(view, task);
    let names = |key: &str| -> Vec<String> {
        let list = state["review_progress"][key].as_array();
        let names = list.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    };
    let failed = names("failed_agents");
    let overall = state["aggregates"]["overall"].as_f64().unwrap_or(3.0);
    let verdict = state["aggregates"]["verdict"].as_str();
    let verdict = verdict.unwrap_or("needs revision");
    let count = |severity: &str| {
        state["open_comments"][severity]
            .as_u64()
            .unwrap_or_default()
    };
    let (critical, important) = (count("critical"), count("important"));
    let mut reason = match l {
        Language::En => format!(
            "overall {overall:.1}, {critical} critical and {important} important comments open"
        ),
        Language::Zh => {
            format!("总分 {overall:.1}，未解决的关键意见 {critical} 条，重要意见 {important} 条")
        }
    };
    if !failed.is_empty() {
        reason.push_str(say(l, "; failed: ", "；失败："));
        reason.push_str(&failed.join(", "));
    }
    let mut sheet = report(
        task,
        overall.round().clamp(1.0, 5.0) as u8,
        &format!("{verdict}: {reason}."),
    );
    let listed = |name: &str| -> Vec<(&str, &str)> {
        let comments = state[name].as_array().into_iter().flatten();
        comments
            .filter_map(|comment| comment.as_str()?.split_once(' '))
            .collect()
    };
    let new = listed("comments");
    let open = |severity: &str, comments: &[(&str, &str)]| -> Vec<String> {
        // `s6.1 [important] L103 "words": what is wrong`.
        let is_own = |rest: &str| {
            let word = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            word.is_some_and(|(word, _)| word.split(',').next() == Some(severity))
        };
        let text = |rest: &str| {
            let parts = rest.split_once("\": ").or_else(|| rest.split_once(": "));
            quoted(parts.map_or(rest, |(_, text)| text))
        };
        let own = comments.iter().filter(|(_, rest)| is_own(rest));
        own.map(|(id, rest)| format!("{id}: {}", text(rest)))
            .collect()
    };
    let (gravest, grave) = (open("critical", &new), open("important", &new));
    // In a later round the earlier comments have their places.
    let earlier = listed("earlier");
    let all = |severity: &str| [open(severity, &earlier), open(severity, &new)].concat();
    let (all_gravest, all_grave) = (all("critical"), all("important"));
    let findings = all_gravest.iter().chain(&all_grave).take(5).cloned();
    let findings: Vec<String> = findings.collect();
    parts(&mut sheet, &findings, &findings, &all_gravest);
    sheet.h2("5. Detailed Scores");
    for (metric, score) in task.metrics.iter().zip([4, 5, 4, 3]) {
        sheet.line(&format!("- **{metric}:** {score}"));
    }
    sheet.h2("6. Issues by Severity");
    for (name, items) in [
        ("Critical", gravest),
        ("Important", grave),
        ("Minor", open("minor", &new)),
    ] {
        sheet.h3(name);
        sheet.items(&items, "None");
    }
    sheet.h2("7. Conflicts");
    let declared = state["aggregates"]["conflicts"].as_array();
    let ruled = declared.into_iter().flatten().filter_map(|conflict| {
        let ids = conflict["comments"].as_array()?;
        let ids: Vec<&str> = ids.iter().filter_map(Value::as_str).collect();
        let first = ids.first()?;
        Some(match l {
            Language::En => format!("{}: {first} holds: it comes first", ids.join(" | ")),
            Language::Zh => format!("{}：以 {first} 为准：它在先", ids.join(" | ")),
        })
    });
    sheet.items(&ruled.collect::<Vec<_>>(), "None");
    sheet.h2("8. Verdict");
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
