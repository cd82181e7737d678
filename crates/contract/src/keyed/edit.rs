//! Reads and changes single facts. An edit changes only its own line and keeps every other byte.

use thiserror::Error;

use super::history::remember;
use super::parse::{Kind, Part, Unit, fold, item_content, parse, render, split_key};

/// One keyed line or table row.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fact {
    /// The title of its section; empty before the first heading.
    pub section: String,
    pub key: String,
    pub value: String,
    pub line: usize,
    /// Whether it is an older value, kept in a section's history.
    pub older: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyedError {
    #[error("unknown section `{section}`; the sections are {}", join(known))]
    NoSection { section: String, known: Vec<String> },
    #[error("`{key}` is new: name its section; the sections are {}", join(known))]
    WhichSection { key: String, known: Vec<String> },
    #[error("`{key}` exists in several sections: {}", join(sections))]
    Ambiguous { key: String, sections: Vec<String> },
    #[error("`{text}` must be a single line")]
    NotOneLine { text: String },
    #[error(
        "`{key}` is not a valid key: at most 40 characters and 6 words, without colons, \
         punctuation or brackets"
    )]
    NoKey { key: String },
    #[error(
        "the row of `{key}` has {cells} cells after its key: give as many values, separated by ` \
         | `"
    )]
    OtherCells { key: String, cells: usize },
}

fn join(names: &[String]) -> String {
    if names.is_empty() {
        "none".into()
    } else {
        names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// The previous state of a fact that was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Was {
    New,
    Same,
    Older(String),
}

/// Returns every fact of a text, in order.
pub fn facts(text: &str) -> Vec<Fact> {
    let mut found = Vec::new();
    for part in parse(text) {
        let older = part.is_history();
        let section = if older {
            part.titles.iter().rev().nth(1).cloned().unwrap_or_default()
        } else {
            part.title().to_owned()
        };
        for unit in &part.units {
            if let Some(key) = unit.key() {
                found.push(Fact {
                    section: section.clone(),
                    key: key.to_owned(),
                    value: unit.value(),
                    line: unit.line,
                    older,
                });
            }
        }
    }
    found
}

/// Sets a fact and returns the new text. The previous value moves to its section's history with the
/// time until which it held; without a time it is dropped. An existing key is found without a
/// section; a new key needs one, unless `fallback` names one of the text.
pub fn set_fact(
    text: &str,
    section: Option<&str>,
    fallback: &[&str],
    key: &str,
    value: &str,
    until: &str,
) -> Result<(String, Was), KeyedError> {
    let (key, value) = (one_line(key)?, one_line(value)?);
    if split_key(&format!("{key}: x")).is_none_or(|(read, _)| read != key) {
        return Err(KeyedError::NoKey {
            key: key.to_owned(),
        });
    }
    let mut parts = parse(text);
    let at = match section {
        Some(section) => resolve_part(&parts, section)?,
        None => find_key(&parts, key)?.map_or_else(|| new_key_part(&parts, fallback, key), Ok)?,
    };
    let wanted = fold(key);
    let found = parts[at]
        .units
        .iter()
        .position(|unit| unit.key().is_some_and(|key| fold(key) == wanted));
    let Some(index) = found else {
        let line = line_like(&parts[at], key, value);
        let eol = eol_of(&parts);
        let follows = at + 1 < parts.len();
        let after = parts[at]
            .units
            .iter()
            .rposition(|unit| matches!(unit.kind, Kind::Keyed { .. }));
        let after = after
            .or_else(|| {
                parts[at]
                    .units
                    .iter()
                    .rposition(|unit| unit.kind != Kind::Comment)
            })
            .unwrap_or(0);
        insert_after(
            &mut parts[at].units,
            after,
            format!("{line}{eol}"),
            eol,
            follows,
        );
        return Ok((render(&parts), Was::New));
    };
    let unit = &mut parts[at].units[index];
    let old = unit.value();
    if old == value {
        return Ok((text.to_owned(), Was::Same));
    }
    unit.put(value)?;
    let key = unit.key().unwrap_or(key).to_owned();
    remember(&mut parts, at, &key, &old, until);
    Ok((render(&parts), Was::Older(old)))
}

/// Appends a line to a section and returns the new text.
pub fn add_note(text: &str, section: &str, note: &str) -> Result<String, KeyedError> {
    let note = one_line(note)?;
    let mut parts = parse(text);
    let at = resolve_part(&parts, section)?;
    let eol = eol_of(&parts);
    let follows = at + 1 < parts.len();
    let after = parts[at]
        .units
        .iter()
        .rposition(|unit| unit.kind != Kind::Comment)
        .unwrap_or(0);
    insert_after(
        &mut parts[at].units,
        after,
        format!("- {note}{eol}"),
        eol,
        follows,
    );
    Ok(render(&parts))
}

impl Unit {
    /// Replaces the value.
    fn put(&mut self, value: &str) -> Result<(), KeyedError> {
        match &mut self.kind {
            Kind::Keyed { value: place, .. } => {
                let tight = self.text[..place.start].ends_with([':', '*', '_', '`']);
                let new = if tight {
                    format!(" {value}")
                } else {
                    value.to_owned()
                };
                self.text.replace_range(place.clone(), &new);
                place.end = place.start + new.len();
                self.finish();
            }
            Kind::Row { key, cells } => {
                let values: Vec<&str> = value.split(" | ").map(str::trim).collect();
                if values.len() != cells.len() - 1 || value.contains('\\') {
                    return Err(KeyedError::OtherCells {
                        key: key.clone(),
                        cells: cells.len() - 1,
                    });
                }
                for (cell, value) in cells.clone().into_iter().skip(1).zip(values).rev() {
                    self.text.replace_range(cell, &format!(" {value} "));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Formats a line for a new fact like the last one of its section.
fn line_like(part: &Part, key: &str, value: &str) -> String {
    let model = part.units.iter().rev().find_map(|unit| match &unit.kind {
        Kind::Keyed { key, value, .. } => Some((unit, key, value)),
        _ => None,
    });
    if let Some((unit, known, place)) = model {
        let at = item_content(&unit.text).unwrap_or(0);
        if let Some(start) = unit.text[at..].find(known.as_str()).map(|found| at + found) {
            let gap = unit.text[start + known.len()..place.start]
                .lines()
                .next()
                .unwrap_or_default();
            let blank = if gap.ends_with([' ', '：']) { "" } else { " " };
            return format!(
                "{}{key}{gap}{blank}{value}",
                &unit.text[..start].replace("[x]", "[ ]")
            );
        }
    }
    if key.chars().any(|c| matches!(c, '\u{3400}'..='\u{9fff}')) {
        format!("- {key}：{value}")
    } else {
        format!("- {key}: {value}")
    }
}

/// Inserts a line after a unit. A list stays one list; anything else is separated by a blank line.
pub(super) fn insert_after(
    units: &mut Vec<Unit>,
    index: usize,
    line: String,
    eol: &str,
    follows: bool,
) {
    let before = &mut units[index];
    let lists = matches!(before.kind, Kind::Keyed { .. } | Kind::Item)
        && item_content(&before.text).is_some();
    let joins = lists && item_content(&line).is_some();
    let mut gap = std::mem::take(&mut before.gap);
    if !before.text.is_empty() && !before.text.ends_with('\n') {
        before.text.push_str(eol);
    }
    if !joins && !before.text.is_empty() {
        before.gap = eol.to_owned();
    }
    if gap.is_empty() && (follows || index + 1 < units.len()) {
        gap = eol.to_owned();
    }
    if !follows && index + 1 == units.len() && !joins {
        gap = String::new();
    }
    let kind = match item_content(&line).and_then(|at| Some((at, split_key(&line[at..])?))) {
        Some((at, (key, value))) => Kind::Keyed {
            key: key.to_owned(),
            value: at + value..line.len(),
            rest: line.len(),
        },
        None => Kind::Item,
    };
    let mut unit = Unit {
        id: String::new(),
        text: line,
        gap,
        line: 0,
        kind,
    };
    unit.finish();
    units.insert(index + 1, unit);
}

fn resolve_part(parts: &[Part], section: &str) -> Result<usize, KeyedError> {
    let wanted = fold(section);
    let headed = |part: &&Part| part.level > 0 && !part.is_history();
    let found = parts
        .iter()
        .position(|part| headed(&part) && fold(part.title()) == wanted);
    found.ok_or_else(|| KeyedError::NoSection {
        section: section.to_owned(),
        known: known(parts),
    })
}

fn known(parts: &[Part]) -> Vec<String> {
    parts
        .iter()
        .filter(|part| part.level > 1 && !part.is_history())
        .map(|part| part.title().to_owned())
        .collect()
}

fn find_key(parts: &[Part], key: &str) -> Result<Option<usize>, KeyedError> {
    let wanted = fold(key);
    let holds = |part: &Part| {
        part.units
            .iter()
            .any(|unit| unit.key().is_some_and(|key| fold(key) == wanted))
    };
    let found: Vec<usize> = (0..parts.len())
        .filter(|at| !parts[*at].is_history() && holds(&parts[*at]))
        .collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        several => Err(KeyedError::Ambiguous {
            key: key.to_owned(),
            sections: several
                .iter()
                .map(|at| parts[*at].title().to_owned())
                .collect(),
        }),
    }
}

fn new_key_part(parts: &[Part], fallback: &[&str], key: &str) -> Result<usize, KeyedError> {
    let named = fallback
        .iter()
        .find_map(|section| resolve_part(parts, section).ok());
    named.ok_or_else(|| KeyedError::WhichSection {
        key: key.to_owned(),
        known: known(parts),
    })
}

fn one_line(text: &str) -> Result<&str, KeyedError> {
    let trimmed = text.trim();
    if trimmed.contains(['\n', '\r']) {
        return Err(KeyedError::NotOneLine {
            text: text.to_owned(),
        });
    }
    Ok(trimmed)
}

/// Returns the line ending of the text, taken from its first line.
pub(super) fn eol_of(parts: &[Part]) -> &'static str {
    let first = parts
        .iter()
        .flat_map(|part| &part.units)
        .find(|unit| unit.text.contains('\n'));
    if first.is_some_and(|unit| unit.text.lines().next().is_some() && unit.text.contains("\r\n")) {
        "\r\n"
    } else {
        "\n"
    }
}
