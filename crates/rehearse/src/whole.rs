//! Steps that cover the whole work: a review of the plan, the final audit, and a list of the files
//! read.
//!
//! The audit decides whether publication may go ahead; `review` supplies the checks of single
//! chapters.

use quipu_contract::Language;
use quipu_text::Document;

use crate::review::{Findings, METAPHORS, REFERENCES, TERMS, entries, form_faults};
use crate::sheet::{Sheet, code, count_words, quoted, say};
use crate::task::RehearseTask;
use crate::view::View;

/// Reviews a plan: checks that each unit states what it must.
pub(crate) fn on_outline(outline: &str, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let document = Document::parse(outline);
    let units: Vec<(String, String)> = match task.units.is_empty() {
        false => task
            .units
            .iter()
            .map(|unit| (unit.id.clone(), unit.title.clone()))
            .collect(),
        true => document
            .sections()
            .iter()
            .filter(|section| {
                section.level == 2 && section.title.ends_with(|c: char| c.is_ascii_digit())
            })
            .map(|section| (section.title.clone(), section.title.clone()))
            .collect(),
    };
    let mut findings = Findings::default();
    let mut by_unit = Vec::new();
    for (id, _) in &units {
        let Some(section) = document
            .sections()
            .iter()
            .find(|section| section.title == *id)
        else {
            findings.warnings.push(format!(
                "{id} | {} | {}",
                say(l, "the outline has no such section", "大纲里没有这一节"),
                say(l, "add it", "补上")
            ));
            continue;
        };
        let text = document.slice(&section.range);
        let covers = ["**Covers:**", "**内容：**"]
            .iter()
            .find_map(|mark| text.split_once(mark))
            .map(|(_, rest)| rest.lines().next().unwrap_or_default());
        let points = covers.map_or(0, |covers| {
            covers
                .split([';', '；'])
                .filter(|point| !point.trim().is_empty())
                .count()
        });
        if !(3..=6).contains(&points) {
            findings.ideas.push(format!(
                "{id} | {}: {points} | {}",
                say(l, "points it covers", "内容点数"),
                say(l, "three to six make sections", "三至六点才好分节")
            ));
        }
        by_unit.push(format!(
            "{id}: {} ({} {})",
            say(l, "keep", "保留"),
            count_words(text),
            say(l, "words in the plan", "字")
        ));
    }
    let mut sheet = Sheet::titled(&task.title);
    findings.write(&mut sheet, l, "");
    sheet.h2(say(l, "By chapter", "逐章"));
    sheet.items(&by_unit, say(l, "none", "无"));
    sheet.h2(say(l, "What works", "好的地方"));
    sheet.line(&match l {
        Language::En => format!(
            "- {} chapters, each with a section of its own",
            by_unit.len()
        ),
        Language::Zh => format!("- {} 章，各有一节", by_unit.len()),
    });
    sheet.h2(say(l, "Three changes", "三处改动"));
    for change in [
        say(
            l,
            "Let a person order the chapters by the reader's questions; a rehearsal orders them by the tree.",
            "请人按读者的问题排列各章；预演只按目录树排列。",
        ),
        say(
            l,
            "Say in the goal what a reader can do afterwards.",
            "在目标里写明读者读完能做什么。",
        ),
        say(
            l,
            "Name what is left out and why.",
            "写明不讲什么、为什么。",
        ),
    ] {
        sheet.line(&format!("1. {change}"));
    }
    sheet
}

/// Audits all units together. Returns the report, and true if nothing blocks publication.
pub(crate) fn audit(view: &View, task: &RehearseTask) -> (Sheet, bool) {
    let l = task.language;
    let chapters: Vec<(&str, &str)> = match &task.subject {
        Some(subject) => view
            .matching(subject)
            .map(|(path, seen)| (path, seen.text.as_str()))
            .collect(),
        None => Vec::new(),
    };
    let stem = |path: &str| {
        path.rsplit('/')
            .next()
            .and_then(|name| name.split('.').next())
            .unwrap_or_default()
            .to_owned()
    };
    let mut thread = Vec::new();
    let mut objections = 0;
    for unit in task
        .units
        .iter()
        .filter(|unit| !chapters.iter().any(|(path, _)| stem(path) == unit.id))
    {
        thread.push(format!(
            "❌ {} | {}",
            unit.id,
            say(l, "the chapter was not there to be read", "没有读到这一章")
        ));
        objections += 1;
    }
    for (path, text) in &chapters {
        thread.extend(
            form_faults(text, l)
                .into_iter()
                .map(|fault| format!("⚠️ {} | {fault}", stem(path))),
        );
    }
    let references: Vec<Vec<String>> = entries(view, &REFERENCES)
        .iter()
        .map(|entry| {
            let kept = chapters.iter().any(|(path, _)| stem(path) == entry.value);
            vec![
                entry.key.clone(),
                entry.value.clone(),
                quoted(&entry.unit),
                (if kept {
                    say(l, "kept", "兑现")
                } else {
                    say(l, "no such chapter", "没有这一章")
                })
                .to_owned(),
            ]
        })
        .collect();
    let broken: Vec<String> = chapters
        .iter()
        .flat_map(|(path, text)| {
            let document = Document::parse(text);
            let missing = document.links().iter().filter(|link| {
                link.path.is_empty()
                    && link
                        .anchor
                        .as_ref()
                        .is_some_and(|anchor| document.find(anchor).is_err())
            });
            missing
                .map(|link| {
                    format!(
                        "⚠️ {path}:{} | {}",
                        link.line,
                        say(l, "the link leads to no section", "链接没有去处")
                    )
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let terms = entries(view, &TERMS);
    let mut doubled = Vec::new();
    for (at, entry) in terms.iter().enumerate() {
        if let Some(earlier) = terms[..at].iter().find(|earlier| {
            earlier.key == entry.key && earlier.value != entry.value && entry.supersedes.is_empty()
        }) {
            doubled.push(format!(
                "⚠️ {} | {}: {} / {}",
                quoted(&entry.key),
                say(
                    l,
                    "two definitions, and neither supersedes the other",
                    "两个定义，互不取代"
                ),
                earlier.unit,
                entry.unit
            ));
        }
    }
    let metaphors = entries(view, &METAPHORS);
    for (at, entry) in metaphors.iter().enumerate() {
        if metaphors[..at].iter().any(|earlier| {
            earlier.value == entry.value && earlier.key != entry.key && !entry.value.is_empty()
        }) {
            doubled.push(format!(
                "⚠️ {} | {}",
                quoted(&entry.value),
                say(l, "one metaphor for two concepts", "一个比喻用于两个概念")
            ));
        }
    }
    let well = objections == 0;
    let mut sheet = Sheet::titled(&task.title);
    sheet.h2(say(l, "Verdict", "结论"));
    let warnings = thread.len() - objections + doubled.len() + broken.len();
    sheet.line(&match l {
        Language::En => format!("*{}*. Chapters read: {}. Objections: {objections}; warnings: {warnings}; ideas: 0. A rehearsal counts and looks up; it does not judge.", if well { "passed" } else { "failed" }, chapters.len()),
        Language::Zh => format!("{}。读了 {} 章。异议 {objections} 条，警告 {warnings} 条，建议 0 条。预演只清点与查对，不作判断。", if well { "通过" } else { "不通过" }, chapters.len()),
    });
    let none = say(l, "none", "无");
    sheet.h2(say(l, "Read-through", "通读"));
    sheet.items(&thread, none);
    sheet.h2(say(l, "Cross-references", "交叉引用"));
    match references.is_empty() {
        true => sheet.line(none),
        false => sheet.table(
            &[
                say(l, "from", "自"),
                say(l, "to", "至"),
                say(l, "about", "内容"),
                say(l, "state", "状态"),
            ],
            &references,
        ),
    }
    sheet.line("");
    sheet.items(&broken, none);
    sheet.h2(say(l, "Terms", "术语"));
    sheet.items(&doubled, none);
    sheet.h2(say(l, "Sensitivity", "敏感内容"));
    sheet.line(&format!(
        "- {}",
        say(
            l,
            "not judged: a rehearsal does not understand what it reads",
            "未判断：预演并不理解所读内容"
        )
    ));
    sheet.h2(say(l, "To do", "待办"));
    sheet.items(
        &thread
            .iter()
            .filter(|item| item.starts_with('❌'))
            .map(|item| item.trim_start_matches("❌ ").to_owned())
            .collect::<Vec<_>>(),
        none,
    );
    (sheet, well)
}

/// Lists the files that were read. Used for roles that need understanding, which this agent lacks.
pub(crate) fn report(view: &View, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let mut sheet = Sheet::titled(&task.title);
    sheet.h2(say(l, "What was read", "读了什么"));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (path, seen) in &view.texts {
        let document = Document::parse(&seen.text);
        let headings = document
            .sections()
            .iter()
            .filter(|section| section.level > 0)
            .count();
        let gist = document
            .sections()
            .first()
            .and_then(|section| document.first_sentence(section))
            .unwrap_or_default();
        rows.push(vec![
            code(path),
            count_words(&seen.text).to_string(),
            headings.to_string(),
            crate::parse::shortened(&quoted(&gist), 100),
        ]);
    }
    sheet.table(
        &[
            say(l, "path", "路径"),
            say(l, "words", "字数"),
            say(l, "headings", "标题数"),
            say(l, "first sentence", "第一句"),
        ],
        &rows,
    );
    sheet.paragraph(say(
        l,
        "A rehearsal lists what this role would see; the work itself needs an agent.",
        "预演只列出这个角色会看到什么；这项工作本身需要智能体来做。",
    ));
    sheet
}
