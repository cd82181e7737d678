//! The history of a section: replaced values, with the time until which they held.

use super::edit::{eol_of, insert_after};
use super::parse::{Kind, Part, Unit};

/// Adds an older value to the history of a part, creating the history if needed. A value without a
/// time is not recorded.
pub(super) fn remember(parts: &mut Vec<Part>, of: usize, key: &str, value: &str, until: &str) {
    if value.is_empty() || until.is_empty() {
        return;
    }
    let (level, titles) = (parts[of].level, parts[of].titles.clone());
    let eol = eol_of(parts);
    let depth = (level + 1).clamp(2, 6);
    let place = (of + 1..parts.len())
        .take_while(|at| parts[*at].level > level)
        .find(|at| parts[*at].is_history() && parts[*at].titles.len() == titles.len() + 1);
    let at = match place {
        Some(at) => at,
        None => {
            let title = if is_chinese(parts, of) {
                "历史"
            } else {
                "History"
            };
            let heading = format!("{} {title}{eol}", "#".repeat(depth));
            let unit = Unit {
                id: "#".into(),
                text: heading,
                gap: eol.to_owned(),
                line: 0,
                kind: Kind::Heading,
            };
            let mut titles = titles;
            titles.push(title.to_owned());
            let history = Part {
                id: format!("{}\u{1}history", parts[of].id),
                titles,
                level: depth,
                line: 0,
                units: vec![unit],
            };
            let last = parts[of]
                .units
                .last_mut()
                .expect("every part has its heading");
            if !last.text.is_empty() && !last.text.ends_with('\n') {
                last.text.push_str(eol);
            }
            if last.gap.is_empty() {
                last.gap = eol.to_owned();
            }
            parts.insert(of + 1, history);
            of + 1
        }
    };
    let line = match fold_is_chinese(parts[at].title()) {
        true => format!("- {key}：{value}（至 {until}）{eol}"),
        false => format!("- {key}: {value} (until {until}){eol}"),
    };
    let follows = at + 1 < parts.len();
    let after = parts[at]
        .units
        .iter()
        .rposition(|unit| unit.kind != Kind::Comment)
        .unwrap_or(0);
    insert_after(&mut parts[at].units, after, line, eol, follows);
}

fn is_chinese(parts: &[Part], of: usize) -> bool {
    let own = parts[of]
        .titles
        .iter()
        .skip(1)
        .chain(parts[of].titles.first())
        .any(|title| fold_is_chinese(title));
    let others = parts
        .iter()
        .filter(|part| part.is_history())
        .map(|part| fold_is_chinese(part.title()))
        .next();
    others.unwrap_or(own)
}

fn fold_is_chinese(title: &str) -> bool {
    title.chars().any(|c| matches!(c, '\u{3400}'..='\u{9fff}'))
}
