//! The steps of a story's chapter: scenes from the plan, the check against memory, the edit, and
//! the extraction of facts.
//!
//! The judges that find contradictions are in `quipu_claims`.

use quipu_claims::{Asked, Bounds, Checked, Corpus, Memory, Page, check as query, cut_claims};
use quipu_contract::{FileRule, Form};
use quipu_recall::Tier;
use quipu_text::{Document, marker, render_marker};

use crate::parse::shortened;
use crate::review::{has_word, levels, sentences};
use crate::sheet::{Sheet, count_words, quoted, say};
use crate::task::RehearseTask;
use crate::view::View;

/// Words that mark a cause, a rule or a relation.
const SIGNS: [&str; 20] = [
    "because", "since", "so that", "never", "always", "must", "cannot", "promised", "afraid",
    "wanted", "因为", "所以", "从不", "总是", "必须", "不能", "答应", "害怕", "想要", "为了",
];
/// The maximum number of extracted facts.
const FACTS: usize = 12;
/// The maximum number of misses to list.
const MISSES: usize = 8;

impl RehearseTask {
    pub(crate) fn rule(&self, path: &str) -> Option<&FileRule> {
        self.files
            .iter()
            .find(|rule| rule.path.matches(path).is_some())
    }
}

/// Returns the Markdown files of a view as pages, except those at `but`.
fn pages(view: &View, task: &RehearseTask, but: &[&str]) -> Vec<Page> {
    let others = view
        .texts
        .iter()
        .filter(|(path, _)| path.ends_with(".md") && !but.contains(&path.as_str()));
    others
        .map(|(path, seen)| {
            let rule = task.rule(path);
            let tier = match rule.and_then(|rule| rule.tier.as_deref()) {
                Some("L0") => Tier::L0,
                Some("L2") => Tier::L2,
                _ => Tier::L1,
            };
            let is_memory = rule.is_none_or(|rule| rule.tier.is_some());
            Page {
                path: path.clone(),
                tier,
                is_memory,
                form: rule.and_then(|rule| rule.form),
                text: seen.text.clone(),
            }
        })
        .collect()
}

/// Turns the unit's part of a plan into scenes, one per line.
pub(crate) fn retell(plan: &str, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let (id, title) = task
        .unit
        .as_ref()
        .map_or((String::new(), task.project.clone()), |unit| {
            (unit.id.clone(), unit.title.clone())
        });
    let mut sheet = Sheet::titled(&title);
    let document = Document::parse(plan);
    let part = document
        .sections()
        .iter()
        .find(|section| section.title == id)
        .map(|section| document.slice(&section.body))
        .unwrap_or(plan);
    let mut scenes = 0;
    for line in part.lines().map(|line| {
        line.trim()
            .trim_start_matches(['-', '*', '_', ' '])
            .trim_end_matches('_')
    }) {
        if line.is_empty() || line.starts_with(['#', '<', '[']) {
            continue;
        }
        scenes += 1;
        sheet.h2(&format!("{} {scenes}", say(l, "Scene", "场景")));
        sheet.paragraph(&quoted(line));
    }
    if scenes == 0 {
        sheet.h2(say(l, "Scene 1", "场景 1"));
        sheet.paragraph(say(
            l,
            "The plan says nothing of this chapter yet.",
            "大纲还没有写到这一章。",
        ));
    }
    lengthen(&mut sheet, part, task);
    sheet
}

/// Repeats the plan until the text has nine tenths of the required length: a rehearsal invents
/// nothing.
fn lengthen(sheet: &mut Sheet, part: &str, task: &RehearseTask) {
    let wanted = task.words * 9 / 10;
    let lines: Vec<String> = part
        .lines()
        .map(|line| {
            line.trim()
                .trim_start_matches(['-', '*', '_', ' '])
                .to_owned()
        })
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '<', '[']))
        .collect();
    let none = say(
        task.language,
        "The plan says nothing of this chapter yet.",
        "大纲还没有写到这一章。",
    );
    let lines = if lines.is_empty() {
        vec![none.to_owned()]
    } else {
        lines
    };
    for line in lines.iter().cycle() {
        if count_words(sheet.text()) >= wanted {
            break;
        }
        sheet.paragraph(&quoted(line));
    }
}

/// Returns the text unchanged under its next marker, and notes that say so.
pub(crate) fn edit(text: &str, task: &RehearseTask) -> Vec<(String, Vec<u8>)> {
    let l = task.language;
    let mut body = marker(text)
        .map_or(text, |found| &text[..found.start])
        .trim_end()
        .to_owned();
    let mut outputs = task.outputs.iter();
    let mut written = Vec::new();
    if let Some(output) = outputs.next() {
        let shape = task.rule(&output.path).and_then(|rule| rule.shape.as_ref());
        if shape.is_some_and(|shape| shape.headings.get(&2).is_some_and(|(least, _)| *least > 0))
            && levels(&body)[1] == 0
        {
            body = as_one_part(&body, say(l, "Rules", "规则"));
        }
        let end = output
            .marker
            .as_deref()
            .map(|name| format!("\n{}\n", render_marker(name)))
            .unwrap_or_default();
        written.push((output.path.clone(), format!("{body}\n{end}").into_bytes()));
    }
    for output in outputs {
        let mut sheet = Sheet::titled(&task.title);
        sheet.h2(say(l, "Fixed", "已修正"));
        sheet.line(&format!(
            "- {}",
            say(l, "none: a rehearsal changes no word", "无：预演不改一字")
        ));
        sheet.h2(say(l, "Left standing", "保留"));
        sheet.line(&format!(
            "- {}",
            say(l, "everything that the report lists", "报告所列的一切")
        ));
        sheet.h2(say(l, "Questions for the author", "问作者"));
        sheet.line(&format!("- {}", say(l, "none", "无")));
        written.push((
            output.path.clone(),
            crate::finished(task, output, sheet, true),
        ));
    }
    written
}

/// Puts a text without parts under one heading, below its title if it has one.
fn as_one_part(text: &str, name: &str) -> String {
    match text.split_once('\n').filter(|_| text.starts_with("# ")) {
        Some((title, rest)) => format!("{title}\n\n## {name}\n\n{}", rest.trim_start()),
        None => format!("## {name}\n\n{text}"),
    }
}

/// Lists the contradictions between a draft and the view's memory, as the deterministic judges find
/// them.
pub(crate) fn check(view: &View, path: &str, text: &str, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let pages = pages(view, task, &[path]);
    let chapter = quipu_claims::chapter_number(path);
    let bounds = Bounds {
        chapter,
        ..Bounds::default()
    };
    let corpus = Corpus::of(&pages, chapter);
    let (checked, _) = query(&corpus, text, &cut_claims(text), &bounds);
    let mut sheet = Sheet::titled(&task.title);
    let none = say(l, "none", "无");
    sheet.h2(say(l, "Conflicts", "冲突"));
    sheet.items(
        &checked
            .iter()
            .flat_map(|one| conflicts(path, one, task))
            .collect::<Vec<_>>(),
        none,
    );
    sheet.h2(say(l, "Unknown", "未知"));
    sheet.line(&format!(
        "- {}",
        say(
            l,
            "not judged: a rehearsal has no opinion",
            "未判断：预演没有见解"
        )
    ));
    sheet.h2(say(l, "Misses", "未命中"));
    let missed = checked.iter().filter(|one| one.l1 == Asked::Miss);
    let misses: Vec<String> = missed
        .take(MISSES)
        .map(|one| {
            let found = one
                .evidence
                .first()
                .map(|found| format!(" · {} {} (L2)", say(l, "found in", "见"), found.at))
                .unwrap_or_default();
            format!(
                "{path}:{} · {}{found}",
                one.claim.line,
                say(l, "not in L1", "L1 没有")
            )
        })
        .collect();
    sheet.items(&misses, none);
    for (en, zh) in [("Offered facts", "可入库事实"), ("Pressure", "施压")] {
        sheet.h2(say(l, en, zh));
        sheet.items(&[], none);
    }
    sheet
}

fn conflicts(path: &str, checked: &Checked, task: &RehearseTask) -> Vec<String> {
    let l = task.language;
    let found = checked
        .findings
        .iter()
        .filter(|judged| judged.finding.conflict);
    found
        .map(|judged| {
            let finding = &judged.finding;
            let level = finding
                .level
                .map(|level| format!(" · [{}]", level.name()))
                .unwrap_or_default();
            format!(
                "{path}:{} ⇄ {} · L1{level} · {} {:.2} · {}{}\n  “{}” / “{}”: {}",
                checked.claim.line,
                finding.at,
                say(l, "confidence", "把握"),
                finding.confidence,
                say(l, "judged by ", "判定："),
                finding.judge,
                quoted(&checked.claim.text),
                quoted(&finding.evidence),
                finding.why
            )
        })
        .collect()
}

/// Lists the sentences that give causes and rules, each under the memory section of the entity it
/// names. Adds one chronicle entry for each text.
pub(crate) fn extract(view: &View, subjects: &[(&str, &str)], task: &RehearseTask) -> Sheet {
    let l = task.language;
    let title = task
        .unit
        .as_ref()
        .map_or(task.project.as_str(), |unit| &unit.title);
    let mut sheet = Sheet::titled(title);
    let but: Vec<&str> = subjects.iter().map(|(path, _)| *path).collect();
    let pages = pages(view, task, &but);
    let memory = Memory::of(&pages);
    let known = |sentence: &str| pages.iter().any(|page| page.text.contains(sentence));
    let mut found: Vec<(String, String, String)> = Vec::new();
    for (path, text) in subjects {
        let document = Document::parse(text);
        let mut opening = None;
        for section in document.sections() {
            let anchor = document.anchor_of(section);
            let link = if anchor.is_empty() {
                (*path).to_owned()
            } else {
                format!("{path}#{anchor}")
            };
            for sentence in document.slice(&section.body).lines().flat_map(sentences) {
                let said = quoted(sentence);
                // A long draft repeats its sentences.
                let is_found = found.iter().any(|(_, _, entry)| entry.contains(&said));
                if sentence.starts_with("<!--") || known(&said) || is_found {
                    continue;
                }
                opening.get_or_insert_with(|| (said.clone(), link.clone()));
                if found.len() == FACTS || !SIGNS.iter().any(|sign| has_word(sentence, sign)) {
                    continue;
                }
                let about = memory
                    .mentions(sentence)
                    .first()
                    .map(|mention| &memory.entities[mention.entity]);
                let (file, heading) = about.map_or_else(Default::default, |entity| {
                    (entity.at.path.clone(), entity.name.clone())
                });
                found.push((file, heading, format!("[chapter] {said} [→ {link}]")));
            }
        }
        let chronicle = task
            .files
            .iter()
            .find(|rule| rule.form == Some(Form::Chronicle))
            .and_then(|rule| rule.path.as_literal());
        if let (Some(chronicle), Some((said, link)), Some(unit)) = (chronicle, opening, &task.unit)
        {
            found.push((
                chronicle.to_owned(),
                unit.id.clone(),
                format!("[chapter] {} [→ {link}]", shortened(&said, 200)),
            ));
        }
    }
    // A fact about no one that memory knows has no place in it.
    found.retain(|(file, _, _)| !file.is_empty());
    found.sort_by_key(|(file, heading, _)| (file.clone(), heading.clone()));
    let (mut file, mut heading) = (None, None);
    for (its_file, its_heading, item) in &found {
        if file != Some(its_file) {
            (file, heading) = (Some(its_file), None);
            sheet.h2(its_file);
        }
        if heading != Some(its_heading) && !its_heading.is_empty() {
            heading = Some(its_heading);
            sheet.h3(its_heading);
        }
        sheet.line(&format!("- {item}"));
    }
    if found.is_empty() {
        sheet.paragraph(say(
            l,
            "No sentence gives a cause or a rule.",
            "没有说明原因或规则的句子。",
        ));
    }
    sheet
}
