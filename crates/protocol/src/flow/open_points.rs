//! Open points of the reports before a gate: what their authors leave to the person who decides.
//!
//! The contract names the sections, with `open` in a file rule. The points are words of agents: they
//! are shown, and block nothing.

use quipu_contract::ProjectPath;
use quipu_store::StoreError;
use quipu_text::{Document, marker};
use serde::Serialize;

use super::job::PlannedJob;
use crate::project::open::Project;

/// An item of an open section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenPoint {
    /// The place, as file:line.
    pub at: String,
    pub section: String,
    pub text: String,
}

/// Items that say that there is nothing.
const NOTHING: [&str; 6] = ["none", "nothing", "n/a", "无", "没有", "暂无"];

/// Reads the open points of the files that a gate reads.
pub fn open_points(project: &Project, gate: &PlannedJob<'_>) -> Result<Vec<OpenPoint>, StoreError> {
    let mut found = Vec::new();
    for pattern in gate.reads() {
        let path = pattern
            .as_literal()
            .and_then(|path| ProjectPath::parse(path).ok());
        let Some((path, rule)) = path.and_then(|path| {
            let rule = project.contract.rule(&path)?;
            (!rule.open.is_empty()).then_some((path, rule))
        }) else {
            continue;
        };
        if let Some((bytes, _)) = project.store.read(&path)? {
            let text = String::from_utf8_lossy(&bytes);
            found.extend(points_in(path.as_str(), &text, &rule.open));
        }
    }
    Ok(found)
}

fn points_in(path: &str, text: &str, open: &[String]) -> Vec<OpenPoint> {
    let body = marker(text).map_or(text, |marker| &text[..marker.start]);
    let document = Document::parse(body);
    let is_open = |title: &str| {
        open.iter()
            .any(|name| name.to_lowercase() == title.trim().to_lowercase())
    };
    let mut found: Vec<OpenPoint> = Vec::new();
    for section in document.sections().iter().filter(|s| is_open(&s.title)) {
        let lines = document.slice(&section.body).lines();
        let first = section.line + 1;
        for (nth, line) in lines.enumerate() {
            let line = line.trim_end();
            let item = ["- ", "* ", "+ "]
                .iter()
                .find_map(|sign| line.trim_start().strip_prefix(sign));
            match item.map(str::trim) {
                Some(item) if says_nothing(item) => {}
                Some(item) => found.push(OpenPoint {
                    at: format!("{path}:{}", first + nth),
                    section: section.title.clone(),
                    text: item.to_owned(),
                }),
                // The rest of an item is on indented lines.
                None if line.starts_with([' ', '\t']) => {
                    if let Some(last) = found.last_mut() {
                        last.text.push(' ');
                        last.text.push_str(line.trim());
                    }
                }
                None => {}
            }
        }
    }
    found
}

fn says_nothing(item: &str) -> bool {
    let said = item.trim_matches(|c: char| "*_`()（）.。 ".contains(c));
    said.is_empty() || NOTHING.contains(&said.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_open_sections_are_points() {
        let text = "# Notes\n\n## Fixed\n- a\n\n## left standing\n- the scar\n  is on the other palm\n- none.\n\n## 矛盾\n- 无\n- 左手\n\n<!-- EDIT_NOTES_COMPLETE -->\n";
        let open = ["Left standing".to_owned(), "矛盾".to_owned()];
        let points = points_in("n.md", text, &open);
        let told: Vec<_> = points
            .iter()
            .map(|p| (p.at.as_str(), p.text.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("n.md:7", "the scar is on the other palm"),
                ("n.md:13", "左手")
            ]
        );
    }
}
