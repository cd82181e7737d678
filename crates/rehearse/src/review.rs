//! Reviews of a draft: against the source, against memory, and as a text.
//!
//! The checks only look up and count; they make no judgement.

use std::collections::BTreeMap;

use quipu_contract::Language;
use quipu_text::{Document, first_sentence};

use crate::draft::blocks;
use crate::parse::shortened;
use crate::sheet::{Sheet, code, count_words, is_han, quoted, say};
use crate::source::SourceLanguage;
use crate::task::RehearseTask;
use crate::view::{Seen, View};

/// The findings of a review, by severity.
#[derive(Default)]
pub(crate) struct Findings {
    pub objections: Vec<String>,
    pub warnings: Vec<String>,
    pub ideas: Vec<String>,
}

impl Findings {
    pub fn write(&self, sheet: &mut Sheet, l: Language, counted: &str) {
        sheet.h2(say(l, "Verdict", "结论"));
        let verdict = if self.objections.is_empty() {
            say(l, "pass", "通过")
        } else {
            say(l, "block", "否决")
        };
        let (objections, warnings, ideas) =
            (self.objections.len(), self.warnings.len(), self.ideas.len());
        sheet.line(&match l {
            Language::En => format!("*{verdict}*.{counted} Objections: {objections}; warnings: {warnings}; ideas: {ideas}. A rehearsal counts and looks up; it does not judge."),
            Language::Zh => format!("{verdict}。{counted}异议 {objections} 条，警告 {warnings} 条，建议 {ideas} 条。预演只清点与查对，不作判断。"),
        });
        sheet.h2(say(l, "Findings", "发现"));
        let all = [
            ("❌", &self.objections),
            ("⚠️", &self.warnings),
            ("💡", &self.ideas),
        ];
        let items: Vec<String> = all
            .iter()
            .flat_map(|(sign, found)| found.iter().map(move |item| format!("{sign} {item}")))
            .collect();
        sheet.items(&items, say(l, "none", "无"));
    }
}

fn quote(l: Language, words: &str) -> String {
    let words = shortened(&quoted(words), 80);
    match l {
        Language::En => format!("\"{words}\""),
        Language::Zh => format!("“{words}”"),
    }
}

/// Returns the code spans of a line, each with the text before it.
fn spans(line: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = line[at..].find('`').map(|open| at + open + 1) {
        let Some(close) = line[open..].find('`').map(|close| open + close) else {
            break;
        };
        found.push((&line[..open - 1], &line[open..close]));
        at = close + 1;
    }
    found
}

/// Parses `path:line` of a source file.
fn citation(span: &str) -> Option<(&str, usize)> {
    let (path, line) = span.rsplit_once(':')?;
    SourceLanguage::of(path)?;
    Some((path, line.parse().ok()?))
}

/// Returns the name of the cited item: the last code span or emphasis before the location.
fn name_before(before: &str) -> Option<&str> {
    let start = before.len()
        - before
            .chars()
            .rev()
            .take(60)
            .map(char::len_utf8)
            .sum::<usize>();
    let near = &before[start..];
    let end = near.rfind(['`', '*'])?;
    let begin = near[..end].rfind(['`', '*'])? + 1;
    let name = near[begin..end].rsplit("::").next()?;
    let plain = name
        .chars()
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    plain.then_some(name)
}

/// Checks that the code and the locations that a draft cites exist in the source.
pub(crate) fn against_source(view: &View, draft: &str, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let sources: BTreeMap<&str, &Seen> = view
        .texts
        .iter()
        .filter(|(path, _)| SourceLanguage::of(path).is_some())
        .map(|(path, seen)| (path.as_str(), seen))
        .collect();
    let mut findings = Findings::default();
    let (mut verified, mut open) = (Vec::new(), Vec::new());
    let mut heading = String::new();
    for line in prose_lines(draft) {
        if let Some(title) = line.strip_prefix('#') {
            heading = quoted(title.trim_start_matches('#').trim());
            continue;
        }
        for (before, span) in spans(line) {
            let Some((path, number)) = citation(span) else {
                continue;
            };
            let said = format!("{} ({heading})", quote(l, span));
            let Some(seen) = sources.get(path) else {
                open.push(format!(
                    "{said}: {}",
                    say(l, "the file is not in this view", "此视图中没有该文件")
                ));
                continue;
            };
            if seen.cut {
                open.push(format!(
                    "{said}: {}",
                    say(
                        l,
                        "only parts of the file are in this view",
                        "此视图中只有该文件的一部分"
                    )
                ));
                continue;
            }
            let there = number
                .checked_sub(1)
                .and_then(|at| seen.text.lines().nth(at));
            let name = name_before(before);
            match (there, name) {
                (None, _) => findings.objections.push(format!(
                    "{said} | {}: {path} | {} {} | {}",
                    say(l, "source", "源码"),
                    say(l, "it has so many lines:", "该文件行数："),
                    seen.text.lines().count(),
                    say(l, "cite a line that is there", "改为存在的行")
                )),
                (Some(there), Some(name)) if !there.contains(name) => {
                    let real = seen
                        .text
                        .lines()
                        .position(|line| line.contains(name))
                        .map(|at| at + 1);
                    let cure = real.map_or_else(
                        || say(l, "leave it out", "删去").to_owned(),
                        |real| code(&format!("{path}:{real}")),
                    );
                    let truth = if real.is_some() {
                        say(l, "it stands elsewhere", "它在别处")
                    } else {
                        say(l, "the file does not hold it", "文件中没有")
                    };
                    findings.objections.push(format!(
                        "{said} | {}: {path}:{number} | {}: {truth} | {cure}",
                        say(l, "source", "源码"),
                        code(name)
                    ));
                }
                (Some(_), _) => verified.push(
                    format!(
                        "{} {}",
                        code(&format!("{path}:{number}")),
                        name.map(code).unwrap_or_default()
                    )
                    .trim_end()
                    .to_owned(),
                ),
            }
        }
    }
    let shown = blocks(draft);
    for (place, block) in &shown {
        let inner: Vec<&str> = block.lines().skip(1).collect();
        let inner = inner[..inner.len().saturating_sub(1)].join("\n");
        let whole = sources.values().any(|seen| has_lines(&seen.text, &inner));
        if whole {
            verified.push(format!(
                "{place}: {}",
                say(l, "the block, line by line", "代码块逐行相符")
            ));
        } else if sources.values().any(|seen| seen.cut) || sources.is_empty() {
            open.push(format!(
                "{place}: {}",
                say(
                    l,
                    "the block's source is not wholly in this view",
                    "代码块的出处不全在此视图中"
                )
            ));
        } else {
            let first = inner.lines().next().unwrap_or_default();
            findings.objections.push(format!(
                "{} | {} | {}",
                quote(l, first),
                say(
                    l,
                    "this block is nowhere in the source",
                    "源码中没有这段代码"
                ),
                say(l, "quote it as it stands", "照原样引用")
            ));
        }
    }
    let mut sheet = Sheet::titled(&task.title);
    let checked = verified.len() + open.len() + findings.objections.len();
    findings.write(
        &mut sheet,
        l,
        &match l {
            Language::En => format!(" Places and code blocks looked up: {checked}."),
            Language::Zh => format!("查对出处与代码块 {checked} 处。"),
        },
    );
    sheet.h2(say(l, "Verified", "已核实"));
    verified.dedup();
    sheet.items(&verified, say(l, "none", "无"));
    sheet.h2(say(l, "Not verifiable", "无法核实"));
    sheet.items(&open, say(l, "none", "无"));
    sheet
}

fn has_lines(text: &str, wanted: &str) -> bool {
    let trim = |text: &str| {
        text.lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
    };
    !wanted.trim().is_empty() && trim(text).contains(&trim(wanted))
}

/// Returns the lines outside code blocks.
pub(crate) fn prose_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        if fence {
            inside = !inside;
        }
        !inside && !fence
    })
}

/// Counts the headings of each level: H1, H2, H3, H4 and below.
pub(crate) fn levels(text: &str) -> [usize; 4] {
    let document = Document::parse(text);
    let mut counts = [0; 4];
    for section in document
        .sections()
        .iter()
        .filter(|section| section.level > 0)
    {
        counts[(section.level as usize).min(4) - 1] += 1;
    }
    counts
}

/// Describes violations of the required form.
pub(crate) fn form_faults(text: &str, l: Language) -> Vec<String> {
    let [h1, h2, _, h4] = levels(text);
    let mut faults = Vec::new();
    if h1 != 1 {
        faults.push(format!(
            "{} {h1}, {}",
            say(l, "H1:", "一级标题："),
            say(l, "and there must be one", "应为一个")
        ));
    }
    if !(3..=6).contains(&h2) {
        faults.push(format!(
            "{} {h2}, {}",
            say(l, "H2:", "二级标题："),
            say(l, "and there must be three to six", "应为三至六个")
        ));
    }
    if h4 > 0 {
        faults.push(format!(
            "{} {h4}, {}",
            say(l, "H4:", "四级标题："),
            say(l, "and there must be none", "不应有")
        ));
    }
    faults
}

/// A row of a table in the view, by the meaning of its columns.
pub(crate) struct Entry {
    pub key: String,
    pub value: String,
    pub unit: String,
    pub supersedes: String,
}

/// Returns the rows of every table with one of these pairs as its first two headers.
pub(crate) fn entries(view: &View, headers: &[(&str, &str)]) -> Vec<Entry> {
    let mut found = Vec::new();
    for seen in view.texts.values() {
        let document = Document::parse(&seen.text);
        for table in document.tables() {
            let header = |at: usize| {
                table
                    .header
                    .get(at)
                    .map(|cell| cell.text.trim().to_lowercase())
                    .unwrap_or_default()
            };
            if !headers
                .iter()
                .any(|(first, second)| header(0) == *first && header(1) == *second)
            {
                continue;
            }
            for row in document.rows_in(&table.range) {
                let cell = |at: usize| {
                    row.cells
                        .get(at)
                        .map(|cell| cell.text.trim().to_owned())
                        .unwrap_or_default()
                };
                let last = row.cells.len().saturating_sub(1).max(3);
                found.push(Entry {
                    key: cell(0),
                    value: cell(1),
                    unit: cell(2),
                    supersedes: cell(last),
                });
            }
        }
    }
    found
}

pub(crate) const TERMS: [(&str, &str); 2] = [("term", "definition"), ("术语", "定义")];
pub(crate) const METAPHORS: [(&str, &str); 2] = [("concept", "metaphor"), ("概念", "比喻")];
pub(crate) const REFERENCES: [(&str, &str); 2] = [("from", "to"), ("自", "至")];

/// Returns the terms that a text defines: a term is emphasised at the start of a paragraph, and its
/// definition follows the location.
pub(crate) fn defined_terms(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in prose_lines(text) {
        let Some((term, rest)) = line
            .strip_prefix('*')
            .filter(|rest| !rest.starts_with('*'))
            .and_then(|rest| rest.split_once('*'))
        else {
            continue;
        };
        // The first sentence gives the location and the second the definition.
        let said = rest
            .split_once("`. ")
            .or_else(|| rest.split_once("`。"))
            .map(|(_, said)| said.trim());
        let definition = first_sentence(said.unwrap_or_default());
        let least = if definition.chars().any(is_han) { 4 } else { 9 };
        let plain = definition.chars().filter(|c| c.is_alphanumeric()).count() >= least;
        if plain
            && !found.iter().any(|(known, _)| known == term)
            && !definition.starts_with("It is made of")
            && !definition.starts_with("它由")
        {
            found.push((term.to_owned(), quoted(definition)));
        }
    }
    found
}

/// Checks a draft against memory and form, and proposes entries for memory.
pub(crate) fn against_memory(view: &View, draft: &str, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let mut findings = Findings::default();
    let known = entries(view, &TERMS);
    let unit = task
        .unit
        .as_ref()
        .map(|unit| unit.id.as_str())
        .unwrap_or_default();
    let terms = defined_terms(draft);
    let mut rows = Vec::new();
    for (term, definition) in &terms {
        let newest = known
            .iter()
            .rev()
            .find(|entry| entry.key.eq_ignore_ascii_case(term));
        match newest {
            Some(entry) if entry.value == *definition => {}
            Some(entry) => {
                findings.warnings.push(format!(
                    "{} | {}: {} ({}) | {}",
                    quote(l, &format!("{term}: {definition}")),
                    say(l, "conflicts with", "与之冲突"),
                    quoted(&entry.value),
                    entry.unit,
                    say(
                        l,
                        "keep the earlier words, or supersede them",
                        "沿用原定义，或以新条目取代"
                    )
                ));
                rows.push(vec![
                    quoted(term),
                    definition.clone(),
                    unit.to_owned(),
                    entry.unit.clone(),
                ]);
            }
            None => rows.push(vec![
                quoted(term),
                definition.clone(),
                unit.to_owned(),
                String::new(),
            ]),
        }
    }
    rows.truncate(12);
    let faults = form_faults(draft, l);
    findings.warnings.extend(
        faults
            .iter()
            .map(|fault| format!("{} | {fault}", say(l, "form", "形式"))),
    );
    let mut references = Vec::new();
    for other in task
        .units
        .iter()
        .filter(|other| other.id != unit && mentions(draft, &other.id))
    {
        let builds = task
            .unit
            .as_ref()
            .is_some_and(|unit| unit.needs.contains(&other.id));
        let kind = if builds {
            say(l, "builds on", "承接")
        } else {
            say(l, "see", "参见")
        };
        references.push(vec![
            unit.to_owned(),
            other.id.clone(),
            quoted(&other.title),
            kind.to_owned(),
        ]);
    }
    for entry in entries(view, &REFERENCES)
        .iter()
        .filter(|entry| entry.key == unit || entry.value == unit)
    {
        if !task.units.is_empty() && !task.units.iter().any(|known| known.id == entry.value) {
            findings.warnings.push(format!(
                "{} → {} | {}",
                entry.key,
                entry.value,
                say(l, "no such chapter", "没有这一章")
            ));
        }
    }

    let mut sheet = Sheet::titled(&task.title);
    findings.write(&mut sheet, l, "");
    sheet.h2(say(l, "Form", "形式"));
    let [h1, h2, h3, h4] = levels(draft);
    sheet.line(&match l {
        Language::En => format!(
            "H1: {h1}, H2: {h2}, H3: {h3}, H4: {h4}. Words: {}.",
            count_words(draft)
        ),
        Language::Zh => format!(
            "一级标题 {h1}，二级 {h2}，三级 {h3}，四级 {h4}。字数：{}。",
            count_words(draft)
        ),
    });
    sheet.h2(say(l, "New items", "新条目"));
    sheet.h3(say(l, "Summary", "摘要"));
    sheet.line(&summary(draft, &terms, &references, task));
    sheet.h3(say(l, "Glossary", "术语"));
    rows_or_none(
        &mut sheet,
        &[
            say(l, "term", "术语"),
            say(l, "definition", "定义"),
            say(l, "chapter", "章"),
            say(l, "supersedes", "取代"),
        ],
        &rows,
        l,
    );
    sheet.h3(say(l, "Metaphors", "比喻"));
    sheet.line(say(l, "none", "无"));
    sheet.h3(say(l, "Cross-references", "交叉引用"));
    rows_or_none(
        &mut sheet,
        &[
            say(l, "from", "自"),
            say(l, "to", "至"),
            say(l, "about", "内容"),
            say(l, "kind", "类型"),
        ],
        &references,
        l,
    );
    sheet
}

fn rows_or_none(sheet: &mut Sheet, header: &[&str], rows: &[Vec<String>], l: Language) {
    match rows.is_empty() {
        true => sheet.line(say(l, "none", "无")),
        false => sheet.table(header, rows),
    }
}

/// Returns true if a text contains the ID of a unit as a separate word.
fn mentions(text: &str, id: &str) -> bool {
    text.match_indices(id).any(|(at, _)| {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '/' || c == '-';
        !text[..at].chars().next_back().is_some_and(word)
            && !text[at + id.len()..]
                .chars()
                .next()
                .is_some_and(|c| word(c) || c == '.' && text[at + id.len()..].starts_with(".md"))
    })
}

/// Writes a summary of 200 to 300 words from the chapter's own sentences, if the chapter is long
/// enough.
fn summary(
    draft: &str,
    terms: &[(String, String)],
    references: &[Vec<String>],
    task: &RehearseTask,
) -> String {
    let l = task.language;
    let title = task
        .unit
        .as_ref()
        .map_or(task.project.as_str(), |unit| &unit.title);
    // A short chapter has a short summary: at most half of its words.
    let room = (count_words(draft) / 2).min(300);
    let names: Vec<&str> = terms
        .iter()
        .map(|(term, _)| term.as_str())
        .take(if room < 150 { 3 } else { 8 })
        .collect();
    let lead = match l {
        Language::En => format!(
            "This chapter tells from the source what {} is, and where each part of it stands.",
            quoted(title)
        ),
        Language::Zh => format!("本章依据源码讲{}是什么，以及各部分在哪里。", quoted(title)),
    };
    let mut core = lead;
    let mut closing = String::new();
    let paragraphs: Vec<&str> = prose_lines(draft)
        .filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("<!--"))
        .collect();
    for paragraph in paragraphs.iter().skip(1) {
        if count_words(&core) >= 190.min(room.saturating_sub(60)) {
            break;
        }
        // The statement follows the location.
        let Some((place, said)) = paragraph
            .split_once("`. ")
            .or_else(|| paragraph.split_once("`。"))
        else {
            continue;
        };
        let sentence = first_sentence(said);
        let about = spans(&format!("{place}`"))
            .first()
            .map(|(_, name)| code(name));
        let sentence = about
            .filter(|_| !sentence.is_empty())
            .map_or_else(String::new, |about| format!("{about}: {sentence}"));
        if sentence.chars().count() > 12
            && !core.contains(&sentence)
            && count_words(&core) + count_words(&sentence) <= 215.min(room.saturating_sub(40))
        {
            core.push_str(say(l, " ", ""));
            core.push_str(&quoted(&sentence));
        }
    }
    if let Some(last) = paragraphs.last() {
        let is_short = count_words(&core) + count_words(last) + 20 <= room;
        closing.push_str(&quoted(if is_short { last } else { title }));
    }
    let none = say(l, "none", "无");
    let list = |items: Vec<String>| {
        if items.is_empty() {
            none.to_owned()
        } else {
            items.join(say(l, ", ", "、"))
        }
    };
    let relations = list(
        references
            .iter()
            .map(|row| format!("{} {} ({})", row[3], row[1], row[2]))
            .collect(),
    );
    let terms = list(names.iter().map(|name| quoted(name)).collect());
    match l {
        Language::En => format!(
            "**Core content:** {core} **Key terms:** {terms}. **Key metaphors:** none. **Relations:** {relations}. **Readers now know:** {closing}"
        ),
        Language::Zh => {
            format!(
                "**核心内容：**{core}**关键术语：**{terms}。**关键比喻：**无。**关系：**{relations}。**读者现在知道：**{closing}"
            )
        }
    }
}

/// Filler words, in both languages.
const FILLERS: [&str; 10] = [
    "simply",
    "obviously",
    "of course",
    "it should be noted",
    "basically",
    "very",
    "显然",
    "众所周知",
    "毋庸置疑",
    "非常",
];

/// Checks the readability of a text by counting.
pub(crate) fn as_text(view: &View, draft: &str, task: &RehearseTask) -> Sheet {
    let l = task.language;
    let mut findings = Findings::default();
    let mut heading = String::new();
    for line in prose_lines(draft) {
        if line.starts_with('#') {
            heading = quoted(line.trim_start_matches('#').trim());
            continue;
        }
        for sentence in sentences(line) {
            let (words, most) = (
                count_words(sentence),
                if sentence.chars().any(is_han) { 90 } else { 45 },
            );
            if words > most {
                findings.warnings.push(format!(
                    "{} ({heading}) | {} {words} {} | {}",
                    quote(l, sentence),
                    say(l, "a sentence of", "一句话长"),
                    say(l, "words", "字"),
                    say(l, "make two of it", "分成两句")
                ));
            }
        }
        if count_words(line) > 160 {
            findings.warnings.push(format!(
                "{} ({heading}) | {} | {}",
                quote(l, line),
                say(l, "a paragraph of more than 160 words", "一段超过 160 字"),
                say(l, "divide it", "分段")
            ));
        }
        for filler in FILLERS.iter().filter(|filler| has_word(line, filler)) {
            findings.ideas.push(format!(
                "{} ({heading}) | {} | {}",
                quote(l, filler),
                say(l, "carries nothing", "没有内容"),
                say(l, "leave it out", "删去")
            ));
        }
    }
    if levels(draft)[1] == 0 {
        findings.objections.push(format!(
            "{} | {}",
            say(l, "the whole chapter", "整章"),
            say(l, "it has no sections", "没有分节")
        ));
    }
    findings.warnings.truncate(12);
    findings.ideas.truncate(3);
    let mut sheet = Sheet::titled(&task.title);
    findings.write(&mut sheet, l, "");
    sheet.h2(say(l, "Style guide, point by point", "体例逐条"));
    let others = view
        .texts
        .iter()
        .filter(|(path, seen)| seen.text != draft && path.ends_with(".md"));
    let points: Vec<String> = others
        .flat_map(|(_, seen)| {
            let document = Document::parse(&seen.text);
            document
                .sections()
                .iter()
                .filter(|section| section.level == 2)
                .map(|section| quoted(&section.title))
                .collect::<Vec<_>>()
        })
        .map(|title| {
            format!(
                "{title}: {}",
                say(l, "not judged by a rehearsal", "预演不作判断")
            )
        })
        .collect();
    sheet.items(&points, say(l, "none", "无"));
    sheet.h2(say(l, "Sensitivity", "敏感内容"));
    sheet.line(&format!(
        "- {}",
        say(
            l,
            "not judged: a rehearsal does not understand what it reads",
            "未判断：预演并不理解所读内容"
        )
    ));
    sheet
}

pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    text.match_indices(word).any(|(at, _)| {
        let letter = |c: char| c.is_ascii_alphabetic();
        !text[..at].chars().next_back().is_some_and(letter)
            && !text[at + word.len()..].chars().next().is_some_and(letter)
    })
}

/// The maximum length of a paragraph to split into sentences, in characters. The rest is ignored.
const TAKEN_APART: usize = 20_000;

/// Splits a paragraph into sentences at full stops.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let end = text
        .char_indices()
        .nth(TAKEN_APART)
        .map_or(text.len(), |(at, _)| at);
    let mut rest = text[..end].trim();
    while !rest.is_empty() {
        let first = first_sentence(rest);
        let end = if first.is_empty() {
            rest.len()
        } else {
            rest.find(first).map_or(rest.len(), |at| at + first.len())
        };
        found.push(rest[..end].trim());
        rest = rest[end..].trim_start();
    }
    found
}
