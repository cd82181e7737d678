//! Parses decision entries: headings and keyed lines in both languages.
//!
//! Parsing also resolves which decision supersedes which. `record.rs` writes entries.

use quipu_contract::{Actor, Form};
use quipu_text::Document;
use serde::Serialize;

use crate::files::edit::Draft;
use crate::project::forms::resolve_form;
use crate::project::open::Project;
use crate::session::error::WorkError;

/// One decision as recorded in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    pub id: String,
    pub title: String,
    pub date: Option<String>,
    pub status: Option<String>,
    pub context: Option<String>,
    pub decision: Option<String>,
    pub why: Option<String>,
    pub alternatives: Option<String>,
    pub consequences: Option<String>,
    /// The person or agent that decided.
    pub by: Option<String>,
    /// The decisions that this one replaces.
    pub supersedes: Vec<String>,
    /// The decision that replaced this one.
    pub superseded_by: Option<String>,
    pub line: usize,
}

/// The names of each field in both languages.
const KEYS: [(Field, &[&str]); 9] = [
    (Field::Date, &["date", "日期"]),
    (Field::Status, &["status", "状态"]),
    (Field::Context, &["context", "背景"]),
    (Field::Decision, &["decision", "决策", "决定"]),
    (Field::Why, &["why", "reason", "理由", "原因"]),
    (
        Field::Alternatives,
        &["alternatives", "备选", "备选方案", "落选方案"],
    ),
    (Field::Consequences, &["consequences", "影响", "后果"]),
    (Field::Supersedes, &["supersedes", "取代"]),
    (Field::By, &["decided by", "by", "决定者", "决定人"]),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Field {
    Date,
    Status,
    Context,
    Decision,
    Why,
    Alternatives,
    Consequences,
    Supersedes,
    By,
}

/// Loads the decisions of the project, oldest first.
pub fn load_decisions(project: &Project, actor: &Actor) -> Result<Vec<Decision>, WorkError> {
    let path = resolve_form(project, actor, Form::Decisions)?;
    let text = Draft::new(project, actor).text(&path)?;
    Ok(parse_decisions(&text))
}

/// Parses every entry. Placeholder entries of a fresh template are skipped.
pub fn parse_decisions(text: &str) -> Vec<Decision> {
    let document = Document::parse(text);
    let mut found: Vec<Decision> = Vec::new();
    for section in document.sections().iter().filter(|s| s.level == 2) {
        let (id, title) = split_title(&section.title);
        let mut entry = Decision {
            id: id.to_owned(),
            title: title.to_owned(),
            date: None,
            status: None,
            context: None,
            decision: None,
            why: None,
            alternatives: None,
            consequences: None,
            by: None,
            supersedes: Vec::new(),
            superseded_by: None,
            line: section.line,
        };
        for keyed in document.keyed_in(&section.range) {
            // Quoted lines are quotations, not fields.
            let line = text[..keyed.range.start]
                .rfind('\n')
                .map_or(0, |end| end + 1);
            if text[line..keyed.range.start].contains('>') {
                continue;
            }
            let key = keyed.key.trim().to_lowercase();
            let Some((field, _)) = KEYS.iter().find(|(_, names)| names.contains(&key.as_str()))
            else {
                continue;
            };
            let value = text[keyed.value.clone()].trim().to_owned();
            if *field == Field::Supersedes {
                let names = value
                    .split([',', '，', '、', ' ', ';'])
                    .map(|n| n.trim().trim_matches(['`', '[', ']']).to_owned());
                entry.supersedes.extend(names.filter(|n| !n.is_empty()));
                continue;
            }
            let slot = match field {
                Field::Date => &mut entry.date,
                Field::Status => &mut entry.status,
                Field::Context => &mut entry.context,
                Field::Decision => &mut entry.decision,
                Field::Why => &mut entry.why,
                Field::Alternatives => &mut entry.alternatives,
                Field::By => &mut entry.by,
                Field::Consequences | Field::Supersedes => &mut entry.consequences,
            };
            if slot.is_none() && !value.is_empty() {
                *slot = Some(value);
            }
        }
        if !is_placeholder(&entry) {
            found.push(entry);
        }
    }
    for index in 0..found.len() {
        let (newer, names) = (found[index].id.clone(), found[index].supersedes.clone());
        for old in names {
            if let Some(older) = found
                .iter_mut()
                .take(index)
                .find(|d| d.id.eq_ignore_ascii_case(&old))
            {
                older.superseded_by = Some(newer.clone());
            }
        }
    }
    found
}

/// Splits `ADR-001: Title` or `ADR-001：标题`. A heading without an id is used as both id and
/// title.
fn split_title(heading: &str) -> (&str, &str) {
    let split = heading
        .split_once(['：', ':'])
        .filter(|(id, _)| !id.trim().contains(char::is_whitespace) && !id.trim().is_empty());
    match split {
        Some((id, title)) => (id.trim(), title.trim()),
        None => (heading.trim(), heading.trim()),
    }
}

/// Whether the entry is a placeholder: `[Title]`, `ADR-XXX`, or only brackets and blanks in every
/// field.
fn is_placeholder(entry: &Decision) -> bool {
    let open = |text: &str| {
        let text = text.trim().trim_matches('_').trim();
        text.is_empty()
            || (text.starts_with(['[', '<', '［']) && text.ends_with([']', '>', '］']))
            || matches!(text, "…" | "..." | "YYYY-MM-DD")
    };
    let fields = [&entry.context, &entry.decision, &entry.consequences];
    let said = fields
        .iter()
        .filter_map(|f| f.as_deref())
        .collect::<Vec<_>>();
    let hollow = said.is_empty() || said.iter().all(|f| open(f));
    let number = entry.id.rsplit('-').next().unwrap_or_default();
    let unnumbered = (1..=4).contains(&number.len())
        && number.chars().all(|c| matches!(c, 'X' | 'x' | 'N' | 'n'));
    open(&entry.title) || (unnumbered && hollow) || (hollow && !said.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_are_read_and_chains_resolved() {
        let text = "# Decisions\n\n## ADR-001: Tokens\n- Date: 2026-04-15\n- Status: Accepted\n- Context: a\n- Decision: b\n- Mood: fine\n\n\
                    ## ADR-002：会话\n- 日期：2026-04-16\n- 取代：ADR-001\n- 背景：甲\n- 决策：乙\n- 影响：丙\n\n\
                    ## ADR-XXX: [Title]\n- Context: [why]\n\n## ADR-003: [Title]\n- Context:\n";
        let found = parse_decisions(text);
        assert_eq!(
            found.iter().map(|d| d.id.as_str()).collect::<Vec<_>>(),
            ["ADR-001", "ADR-002"]
        );
        assert_eq!(found[0].superseded_by.as_deref(), Some("ADR-002"));
        assert_eq!(
            (found[1].title.as_str(), found[1].consequences.as_deref()),
            ("会话", Some("丙"))
        );
    }
}
