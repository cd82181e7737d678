//! The marks of a scene, checked mechanically: each quotation is in the scene, and each deciding
//! line is in its file.

use std::path::Path;

use quipu_claims::{Claim, Evidence, Page};
use serde_json::Value;

/// A contradiction, or a near-miss.
pub struct Mark {
    pub id: String,
    pub is_contradiction: bool,
    pub kind: String,
    pub quote: String,
    pub deciding: String,
    /// The file and the lines that contain the deciding text.
    file: String,
    lines: Vec<usize>,
    /// The lines of the scene that contain the quotation.
    on: Vec<usize>,
}

/// The kinds of marks.
const KINDS: [&str; 12] = [
    "body", "dead", "age", "place", "object", "knows", "rule", "relation", "ability", "time",
    "name", "trait",
];
/// The share of the deciding text that evidence must show.
const ENOUGH: f64 = 0.6;

/// Loads the marks of a scene. Returns the chapter too.
pub fn load_marks(file: &Path, draft: &str, pages: &[Page]) -> Result<(String, Vec<Mark>), String> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let value: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let mut marks: Vec<Mark> = Vec::new();
    for one in value["marks"].as_array().ok_or("no marks")? {
        let mark = load_mark(one, draft, pages)
            .map_err(|fault| format!("{}: {fault}", one["id"].as_str().unwrap_or("?")))?;
        if marks.iter().any(|other| other.id == mark.id) {
            return Err(format!("{}: used twice", mark.id));
        }
        marks.push(mark);
    }
    let chapter = value["chapter"].as_str().unwrap_or_default().to_owned();
    Ok((chapter, marks))
}

fn load_mark(one: &Value, draft: &str, pages: &[Page]) -> Result<Mark, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (quote, kind) = (text(&one["quote"]), text(&one["kind"]));
    let (file, deciding) = (
        text(&one["deciding"]["file"]),
        text(&one["deciding"]["line"]),
    );
    if quote.is_empty() || !draft.contains(&quote) {
        return Err(format!("the scene does not contain “{quote}”"));
    }
    if !KINDS.contains(&kind.as_str()) {
        return Err(format!("unknown kind `{kind}`"));
    }
    let page = pages.iter().find(|page| page.path == file);
    let lines: Vec<usize> = page
        .map_or("", |page| &page.text)
        .lines()
        .enumerate()
        .filter(|(_, line)| !deciding.is_empty() && line.contains(&deciding))
        .map(|(nth, _)| nth + 1)
        .collect();
    if lines.is_empty() {
        return Err(format!("no line of {file} contains “{deciding}”"));
    }
    let starts = draft.match_indices(&quote);
    Ok(Mark {
        id: text(&one["id"]),
        is_contradiction: one["contradiction"].as_bool().ok_or("not marked")?,
        on: starts
            .map(|(at, _)| draft[..at].matches('\n').count() + 1)
            .collect(),
        kind,
        quote,
        deciding,
        file,
        lines,
    })
}

impl Mark {
    /// Returns the claims that contain the quotation, or a part of it that is a whole claim.
    pub fn claims_of(&self, claims: &[Claim]) -> Vec<usize> {
        let quote = letters(&self.quote);
        let first = self.on.first().copied().unwrap_or(0);
        let last = first + self.quote.matches('\n').count();
        let holds = |claim: &Claim| {
            let text = letters(&claim.text);
            text.contains(&quote) || text.chars().count() > 3 && quote.contains(&text)
        };
        let all = claims.iter().enumerate();
        let found: Vec<usize> = all
            .filter(|(_, claim)| holds(claim))
            .map(|(nth, _)| nth)
            .collect();
        if !found.is_empty() {
            return found;
        }
        // The quotation begins in one sentence and ends in another.
        let shares = |claim: &Claim| shared(&quote, &letters(&claim.text)) > 0.3;
        let near = claims.iter().enumerate().filter(|(_, claim)| {
            (first.saturating_sub(1)..=last).contains(&claim.line) && shares(claim)
        });
        near.map(|(nth, _)| nth).collect()
    }
}

/// Returns true if the evidence shows the deciding text of a mark.
pub fn covers(evidence: &[&Evidence], mark: &Mark) -> bool {
    let wanted = letters(&mark.deciding);
    let there: Vec<String> = evidence
        .iter()
        .filter(|one| one.at.path == mark.file && mark.lines.contains(&one.at.line))
        .map(|one| letters(&one.text))
        .collect();
    let shown: f64 = there
        .iter()
        .map(|text| {
            if text.contains(&wanted) {
                1.0
            } else {
                shared(&wanted, text)
            }
        })
        .sum();
    shown >= ENOUGH
}

/// Returns the letters and digits of a text, in lower case.
fn letters(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the length of the longest common run, as a share of `wanted`.
fn shared(wanted: &str, text: &str) -> f64 {
    let (a, b): (Vec<char>, Vec<char>) = (wanted.chars().collect(), text.chars().collect());
    let mut runs = vec![0usize; b.len() + 1];
    let mut longest = 0;
    for one in &a {
        for nth in (0..b.len()).rev() {
            runs[nth + 1] = if *one == b[nth] { runs[nth] + 1 } else { 0 };
            longest = longest.max(runs[nth + 1]);
        }
    }
    longest as f64 / a.len().max(1) as f64
}
