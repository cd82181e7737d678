//! The remember step: appends the new items of a report to long-term memory, and makes a text
//! final.
//!
//! Memory is never edited. An item that contradicts a row in force goes to the audit log, for a
//! person. An item that already exists is not added twice, so the step is idempotent.

use quipu_contract::{
    Contract, Language, Remember, RememberItem, RememberKind, RowCheck, parse_span,
};
use quipu_text::{Document, count_words, marker, render_marker};

use crate::flow::messages::{Audit, wrong_length_of_part};

/// A row of a memory file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    cells: Vec<String>,
}

impl Row {
    fn key(&self) -> String {
        folded(self.cells.first().map_or("", String::as_str))
    }

    fn value(&self) -> String {
        folded(self.cells.get(1).map_or("", String::as_str))
    }

    fn supersedes(&self) -> bool {
        self.cells.len() > 2
            && self
                .cells
                .last()
                .is_some_and(|c| !["", "-", "—"].contains(&c.trim()))
    }

    fn render(&self) -> String {
        let cells = self.cells.iter().map(|c| {
            if c.is_empty() {
                " ".to_owned()
            } else {
                format!(" {c} ")
            }
        });
        format!("|{}|\n", cells.collect::<Vec<_>>().join("|"))
    }
}

pub(crate) fn folded(cell: &str) -> String {
    cell.trim()
        .trim_matches(['*', '`', '_'])
        .to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The additions to one memory file.
#[derive(Debug, Default)]
pub struct Growth {
    pub text: String,
    pub audits: Vec<String>,
}

/// Lists the parts that a report must have but lacks.
pub fn find_missing(remember: &Remember, text: &str) -> Vec<String> {
    if remember.items.is_empty() {
        return Vec::new();
    }
    let document = Document::parse(text);
    let Some(outer) = section_named(&document, &remember.section, None) else {
        return vec![format!(
            "has no section `## {}`",
            remember.section.join("` or `## ")
        )];
    };
    let lacking = remember
        .items
        .iter()
        .filter(|item| section_named(&document, &item.section, Some(outer)).is_none());
    let mut missing: Vec<String> = lacking
        .map(|item| {
            format!(
                "has no part `### {}` under `{}`",
                item.section.join("` or `### "),
                document.section(outer).title
            )
        })
        .collect();
    missing.extend(find_unfit(remember, text));
    missing
}

/// Allowed deviation from the requested word count, as a fraction.
const TOLERANCE: f64 = 0.2;
/// A part need not be longer than the source text divided by the first number, and must not be
/// longer than it divided by the second.
const SHARES: (usize, usize) = (3, 2);

/// Lists the parts of a report that are much shorter or longer than requested. `whole` is the text
/// that they summarise.
pub fn find_wrong_length(
    remember: &Remember,
    text: &str,
    whole: Option<&str>,
    language: Language,
) -> Vec<String> {
    let document = Document::parse(text);
    let whole = whole.map(count_words);
    let wrong = remember.items.iter().filter_map(|item| {
        let (least, most) = parse_span(item.words.as_ref()?)?;
        let outer = section_named(&document, &remember.section, None)?;
        let title = &document
            .section(section_named(&document, &item.section, Some(outer))?)
            .title;
        let count = part_of(&document, remember, item).map_or(0, |(_, body)| count_words(body));
        let share = |words: u32, share: usize| {
            (words as usize).min(whole.map_or(usize::MAX, |whole| whole / share))
        };
        let required = share(least, SHARES.0)..=share(most, SHARES.1);
        let bound = |words: usize, share: f64| (words as f64 * share).round() as usize;
        let accepted =
            bound(*required.start(), 1.0 - TOLERANCE)..=bound(*required.end(), 1.0 + TOLERANCE);
        let is_scaled = required != (least as usize..=most as usize);
        (!accepted.contains(&count)).then(|| {
            wrong_length_of_part(
                language,
                title,
                count,
                &required,
                whole.filter(|_| is_scaled),
            )
        })
    });
    wrong.collect()
}

/// Lists the parts of a report with content that cannot be remembered in its present form.
pub fn find_unfit(remember: &Remember, text: &str) -> Vec<String> {
    let document = Document::parse(text);
    remember
        .items
        .iter()
        .filter_map(|item| {
            part_of(&document, remember, item)
                .and_then(|(title, body)| find_misfit(item, title, body))
        })
        .collect()
}

fn find_misfit(item: &RememberItem, title: &str, body: &str) -> Option<String> {
    match item.kind {
        RememberKind::Section => {
            // Later entries are appended after this text, so it must not leave a block open.
            let probe = format!("{body}\n\n## behind\n");
            let closed = Document::parse(&probe)
                .sections()
                .last()
                .is_some_and(|s| s.title == "behind");
            (!closed).then(|| {
                format!(
                    "has a part `### {title}` that hides what follows it in `{}`: a fence, \
                     comment or tag such as <pre> is not closed",
                    item.to
                )
            })
        }
        RememberKind::Rows => {
            let table = table_lines(body);
            let beside = body
                .lines()
                .map(str::trim)
                .any(|line| !line.is_empty() && !table.iter().any(|(_, row)| *row == line));
            (beside && rows(body).is_empty()).then(|| {
                let none = if item.none.is_empty() { String::new() } else { format!("; if there \
                    are no entries, write `{}`", item.none.join("` or `")) };
                format!("has a part `### {title}` without a row: each entry is a row `| … | … |` with the columns of `{}`, not in a list, prose or code{none}", item.to)
            })
        }
    }
}

/// Returns a part of a report with its title. None if it is missing or says "none".
fn part_of<'t>(
    document: &'t Document<'t>,
    remember: &Remember,
    item: &RememberItem,
) -> Option<(&'t str, &'t str)> {
    let outer = section_named(document, &remember.section, None)?;
    let part = document.section(section_named(document, &item.section, Some(outer))?);
    let body = document.slice(&(part.body.start..part.range.end));
    let body = marker(body).map_or(body, |m| &body[..m.start]).trim();
    let said = folded(
        body.trim_start_matches(['-', '*', ' ', '(', '（'])
            .trim_end_matches(['.', '。', ')', '）', '*']),
    );
    let nothing = body.is_empty() || item.none.iter().any(|none| said == folded(none));
    (!nothing).then_some((part.title.as_str(), body))
}

fn section_named(
    document: &Document<'_>,
    names: &[String],
    inside: Option<quipu_text::SectionId>,
) -> Option<quipu_text::SectionId> {
    let alike = |title: &str| {
        names.iter().any(|n| {
            folded(title.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')) == folded(n)
        })
    };
    let within =
        |section: &quipu_text::Section| inside.is_none_or(|outer| section.parent == Some(outer));
    document
        .sections()
        .iter()
        .find(|s| s.level > 0 && alike(&s.title) && within(s))
        .map(|s| s.id)
}

/// Computes the additions of a report to one memory file with the content `memory`.
pub fn grow(
    contract: &Contract,
    item: &RememberItem,
    remember: &Remember,
    unit: &str,
    report: &str,
    memory: &str,
    now: jiff::Timestamp,
) -> Growth {
    let document = Document::parse(report);
    let Some((_, body)) = part_of(&document, remember, item) else {
        return Growth::default();
    };
    match item.kind {
        RememberKind::Section => grow_section(unit, body, memory),
        RememberKind::Rows => grow_rows(contract, item, unit, body, memory, now),
    }
}

fn grow_section(unit: &str, body: &str, memory: &str) -> Growth {
    let document = Document::parse(memory);
    let mut own = document.sections().iter().filter(|s| s.title == unit);
    if own.any(|s| document.slice(&(s.body.start..s.range.end)).trim() == body) {
        return Growth::default();
    }
    Growth {
        text: format!("{}\n## {unit}\n\n{body}\n", line_end(memory)),
        audits: Vec::new(),
    }
}

fn line_end(memory: &str) -> &'static str {
    if memory.is_empty() || memory.ends_with('\n') {
        ""
    } else {
        "\n"
    }
}

fn grow_rows(
    contract: &Contract,
    item: &RememberItem,
    unit: &str,
    body: &str,
    memory: &str,
    now: jiff::Timestamp,
) -> Growth {
    let mut known = rows(memory);
    let width = header_width(memory);
    let mut growth = Growth::default();
    for mut row in rows(body) {
        if width > 0 {
            row.cells.resize(width, String::new());
        }
        if known.iter().any(|k| {
            k.cells
                .iter()
                .map(|c| folded(c))
                .eq(row.cells.iter().map(|c| folded(c)))
        }) {
            continue;
        }
        if let Some(against) = find_conflict(&known, item.check, unit, &mut row) {
            let what = format!(
                "`{}` would get the row {} although {}",
                item.to,
                row.render().trim(),
                against.render().trim()
            );
            let audit = Audit {
                about: unit,
                kind: "CONFLICT",
                what: &what,
                done: said(contract, true),
                open: said(contract, false),
            };
            growth.audits.push(audit.render(contract.language, now));
            continue;
        }
        growth.text.push_str(&row.render());
        known.push(row);
    }
    if !growth.text.is_empty() {
        growth.text.insert_str(0, line_end(memory));
    }
    growth
}

fn said(contract: &Contract, done: bool) -> &'static str {
    match (contract.language, done) {
        (quipu_contract::Language::En, true) => {
            "the current entry is unchanged; the new one was not added"
        }
        (quipu_contract::Language::En, false) => {
            "a person decides; to replace the old entry, add a new row that names what it \
             supersedes"
        }
        (quipu_contract::Language::Zh, true) => "现行条目不变；新条目未加入",
        (quipu_contract::Language::Zh, false) => "由人决定；用一条写明“取代”的新行替换旧条目",
    }
}

/// Finds the row in force that a new row contradicts. A unit may change its own entries; the new
/// row then records that it supersedes the old one.
fn find_conflict(known: &[Row], check: RowCheck, unit: &str, row: &mut Row) -> Option<Row> {
    if check == RowCheck::None || row.supersedes() {
        return None;
    }
    // The newest row of a key is in force.
    let in_force = |key: &str| known.iter().rev().find(|k| k.key() == key);
    if let Some(earlier) = in_force(&row.key())
        && earlier.value() != row.value()
    {
        if earlier.cells.get(2).map(|c| folded(c)) != Some(folded(unit)) {
            return Some(earlier.clone());
        }
        if let Some(last) = row.cells.last_mut().filter(|c| c.is_empty()) {
            *last = unit.to_owned();
        }
    }
    if check == RowCheck::OneToOne && !["", "-", "—"].contains(&row.value().as_str()) {
        let serves = |k: &&Row| {
            k.value() == row.value() && k.key() != row.key() && in_force(&k.key()) == Some(*k)
        };
        return known.iter().find(serves).cloned();
    }
    None
}

fn rows(text: &str) -> Vec<Row> {
    table_rows(text)
        .into_iter()
        .map(|(_, cells)| Row { cells })
        .collect()
}

/// The table rows in a text, each with its line number. Headers, comments and code are skipped.
pub(crate) fn table_rows(text: &str) -> Vec<(usize, Vec<String>)> {
    let lines = table_lines(text);
    let is_line = |line: &str| line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
    let mut rows = Vec::new();
    for (index, (number, line)) in lines.iter().enumerate() {
        let heads = lines.get(index + 1).is_some_and(|(_, next)| is_line(next));
        if !is_line(line) && !heads {
            rows.push((*number, cells(line)));
        }
    }
    rows
}

fn header_width(text: &str) -> usize {
    let lines = table_lines(text);
    lines
        .iter()
        .find(|(_, line)| line.contains("---"))
        .map_or(0, |(_, line)| cells(line).len())
}

/// The lines that belong to tables, with their numbers.
fn table_lines(text: &str) -> Vec<(usize, &str)> {
    let (mut lines, mut comment, mut fence) = (Vec::new(), false, false);
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if !comment && trimmed.starts_with("```") {
            fence = !fence;
        }
        let opens = trimmed.rfind("<!--");
        if !fence && !comment && opens.is_none() && trimmed.starts_with('|') {
            lines.push((at + 1, trimmed));
        }
        comment = match (opens, trimmed.rfind("-->")) {
            (Some(open), Some(close)) => open > close,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => comment,
        };
    }
    lines
}

/// Splits a row into cells. `\|` does not separate cells.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let inner = inner
        .strip_suffix('|')
        .filter(|i| !i.ends_with('\\'))
        .unwrap_or(inner);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in inner.chars() {
        if c == '|' && !escaped {
            cells.push(String::new());
        } else {
            cells.last_mut().expect("there is always one").push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    cells.into_iter().map(|c| c.trim().to_owned()).collect()
}

/// Turns a draft into a final text by replacing its marker.
pub fn finish(draft: &str, name: &str) -> String {
    let body = marker(draft).map_or(draft, |m| &draft[..m.start]);
    format!("{}\n\n{}\n", body.trim_end(), render_marker(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(known: &str, row: &str, check: RowCheck) -> bool {
        find_conflict(&rows(known), check, "ch03", &mut rows(row).remove(0)).is_some()
    }

    #[test]
    fn a_row_may_not_contradict_what_is_in_force() {
        let known = "| term | definition | chapter | supersedes |\n|---|---|---|---|\n| lease | a right | ch02 | |\n<!--\n| knot | example | ch01 | |\n-->\n";
        assert!(conflict(
            known,
            "| Lease | a duty | ch03 | |",
            RowCheck::OneValue
        ));
        assert!(!conflict(
            known,
            "| lease | a duty | ch03 | ch02 |",
            RowCheck::OneValue
        ));
        assert!(!conflict(
            known,
            "| knot | a tie | ch03 | |",
            RowCheck::OneValue
        ));
        assert!(!conflict(
            known,
            "| lock | a right | ch03 | |",
            RowCheck::OneValue
        ));
        assert!(conflict(
            known,
            "| lock | a right | ch03 | |",
            RowCheck::OneToOne
        ));
        let changed = format!("{known}| lease | a loan | ch04 | ch02 |\n");
        assert!(!conflict(
            &changed,
            "| lock | a right | ch03 | |",
            RowCheck::OneToOne
        ));
    }

    #[test]
    fn a_chapter_supersedes_its_own_entries() {
        let mut row = rows("| lease | a duty | ch03 | |").remove(0);
        assert_eq!(
            find_conflict(
                &rows("| lease | a right | ch03 | |"),
                RowCheck::OneValue,
                "ch03",
                &mut row
            ),
            None
        );
        assert_eq!(row.render(), "| lease | a duty | ch03 | ch03 |\n");
    }

    #[test]
    fn a_part_that_cannot_be_remembered_is_told() {
        let item = |kind: RememberKind| RememberItem {
            section: vec!["Glossary".into(), "术语".into()],
            to: "meta/glossary.md".into(),
            kind,
            check: RowCheck::None,
            none: vec!["none".into(), "无".into()],
            words: None,
        };
        let unfit = |kind: RememberKind, body: &str| {
            let remember = Remember {
                from: "report.md".into(),
                section: vec!["New items".into(), "新条目".into()],
                items: vec![item(kind)],
                entries: false,
                text: None,
                to: None,
            };
            let found = |text: String| find_unfit(&remember, &text).len();
            let counts = [
                found(format!(
                    "## New items\n\n### Glossary\n\n{body}\n\n<!-- DONE -->\n"
                )),
                found(format!(
                    "## 新条目\n\n### 术语\n\n{body}\n\n<!-- DONE -->\n"
                )),
            ];
            assert_eq!(counts[0], counts[1]);
            counts[0] == 1
        };
        for lost in [
            "- **lease**: a right",
            "A lease is a right.",
            "```\n| lease | a right |\n```",
            "租约：一种权利",
        ] {
            assert!(unfit(RememberKind::Rows, lost), "{lost}");
        }
        for fit in [
            "",
            "none",
            "None.",
            "- none",
            "(none)",
            "无。",
            "| a | b |",
            "| term | is |\n|---|---|",
            "New:\n\n| a | b |",
        ] {
            assert!(!unfit(RememberKind::Rows, fit), "{fit}");
        }
        for open in [
            "It is.\n\n<pre>\nmore",
            "It is.\n\n```\nmore",
            "- a\n\n<script>",
        ] {
            assert!(unfit(RememberKind::Section, open), "{open}");
        }
        for closed in [
            "It is.",
            "<pre>\nmore\n</pre>",
            "```\nmore\n```",
            "a `<pre>` b",
            "- a\n  - b",
            "<div>\nmore",
        ] {
            assert!(!unfit(RememberKind::Section, closed), "{closed}");
        }
    }

    #[test]
    fn cells_may_hold_escaped_bars() {
        assert_eq!(cells(r"| a \| b | c |"), [r"a \| b", "c"]);
    }

    #[test]
    fn a_part_has_as_many_words_as_were_asked() {
        let item = RememberItem {
            section: vec!["Summary".into(), "摘要".into()],
            to: "meta/summaries.md".into(),
            kind: RememberKind::Section,
            check: RowCheck::None,
            none: Vec::new(),
            words: Some("200-300".into()),
        };
        let remember = Remember {
            from: "report.md".into(),
            section: vec!["New items".into(), "新条目".into()],
            items: vec![item],
            entries: false,
            text: None,
            to: None,
        };
        let long = "word ".repeat(3000);
        let wrong = |body: &str, whole: &str| {
            find_wrong_length(
                &remember,
                &format!("## New items\n\n### Summary\n\n{body}\n"),
                Some(whole),
                Language::En,
            )
        };
        for words in [160, 200, 300, 360] {
            assert_eq!(wrong(&"word ".repeat(words), &long), [""; 0], "{words}");
            let chinese = format!("## 新条目\n\n### 摘要\n\n{}\n", "字".repeat(words));
            assert_eq!(
                find_wrong_length(&remember, &chinese, Some(&long), Language::Zh),
                [""; 0],
                "{words}"
            );
        }
        assert_eq!(
            wrong("x", &long),
            [
                "has a part `### Summary` of 1 words; 200 to 300 are required, a fifth more or \
                 less is accepted. Every word outside code blocks and comments counts, those of \
                 headings, tables and quotations too"
            ]
        );
        for words in [0, 150, 370] {
            assert_eq!(wrong(&"word ".repeat(words), &long).len(), 1, "{words}");
        }
        // A short text has a short summary: from a third of its words to half of them.
        assert_eq!(wrong(&"word ".repeat(40), &"word ".repeat(120)), [""; 0]);
        assert_eq!(wrong(&"word ".repeat(72), &"word ".repeat(120)), [""; 0]);
        for words in [1, 31, 73, 250] {
            let said = wrong(&"word ".repeat(words), &"word ".repeat(120));
            assert!(
                said[0].contains("; 40 to 60 are required for a text of 120 words"),
                "{said:?}"
            );
        }
    }
}
